"""A suite of different values catches every injected defect; one of equal values does not.

The tested code is in `dmlconf/strength/measure.py`, `dmlconf/strength/value_defects.py`,
`dmlconf/strength/computed_defects.py`, `dmlconf/strength/injection.py`,
`dmlconf/strength/legitimate.py`, `dmlconf/strength/parallel.py`,
`dmlconf/reports/strength/defects.py` and `dmlconf/cli/commands/writing/strength.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.reference.evaluation import evaluate
from dmlconf.reports.strength.defects import closing_sentence, operator_strengths, survivors
from dmlconf.reports.strength.figure import Setting
from dmlconf.resources import cases_directory
from dmlconf.strength.injection import Site, recomputed
from dmlconf.strength.measure import Strength, measure
from tests.bundled import bundled
from tests.cli.process import dmlconf_here
from tests.excuses.test_deviations import case as bundled_case
from tests.graphs.suites import TWO_NODES, graph_file
from tests.judging.test_unjudged import INFINITE_REGION

EQUAL_VALUES = """
operator: TILE
cases:
  - name: all-alike
    desc:
      InputTensor: {Sizes: [2, 2], DataType: FLOAT32, fill: {constant: {value: 1}}}
      OutputTensor: {Sizes: [4, 4], DataType: FLOAT32}
      Repeats: [2, 2]
"""

DIFFERENT_VALUES = """
operator: TILE
cases:
  - name: all-different
    desc:
      InputTensor: {Sizes: [3, 5], DataType: FLOAT32, fill: specials}
      OutputTensor: {Sizes: [6, 15], DataType: FLOAT32}
      Repeats: [2, 3]
  - name: other-repeats
    desc:
      InputTensor: {Sizes: [3, 5], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [6, 10], DataType: FLOAT32}
      Repeats: [2, 2]
"""

SEVERAL_OUTPUTS = """
operator: BATCH_NORMALIZATION_GRAD
cases:
  - name: sums-of-columns
    desc:
      InputTensor:
        {Sizes: [9, 5], DataType: FLOAT32, fill: {uniform: {low: -2, high: 3, seed: 1}}}
      InputGradientTensor:
        {Sizes: [9, 5], DataType: FLOAT32, fill: {uniform: {low: -3, high: 2, seed: 2}}}
      MeanTensor: {Sizes: [1, 5], DataType: FLOAT32, fill: sequence}
      VarianceTensor: {Sizes: [1, 5], DataType: FLOAT32, fill: {sequence: {start: 1}}}
      ScaleTensor: {Sizes: [1, 5], DataType: FLOAT32, fill: {sequence: {start: 1}}}
      OutputGradientTensor: {Sizes: [9, 5], DataType: FLOAT32}
      OutputScaleGradientTensor: {Sizes: [1, 5], DataType: FLOAT32}
      OutputBiasGradientTensor: {Sizes: [1, 5], DataType: FLOAT32}
      Epsilon: 0.001
"""


ROUNDED = """
operator: ELEMENT_WISE_ROUND
cases:
  - name: to-negative-zero
    desc:
      InputTensor: {Sizes: [4], DataType: FLOAT32, values: [-0.25, 0.25, 1.5, -2.5]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      RoundingMode: TOWARD_ZERO
    expect: {OutputTensor: [-0.0, 0.0, 1.0, -2.0]}
"""

NOTHING_ADDED_UP = """
operator: BATCH_NORMALIZATION
cases:
  - name: each-element-by-itself
    desc:
      InputTensor: {Sizes: [1, 1, 1, 40], DataType: FLOAT32, fill: {sequence: {start: -40}}}
      MeanTensor: {Sizes: [1, 1, 1, 40], DataType: FLOAT32, fill: {constant: {value: 0}}}
      VarianceTensor: {Sizes: [1, 1, 1, 40], DataType: FLOAT32, fill: {constant: {value: 1}}}
      ScaleTensor: {Sizes: [1, 1, 1, 40], DataType: FLOAT32, fill: {constant: {value: 1}}}
      BiasTensor: {Sizes: [1, 1, 1, 40], DataType: FLOAT32, fill: {constant: {value: 0}}}
      OutputTensor: {Sizes: [1, 1, 1, 40], DataType: FLOAT32}
      Spatial: true
      Epsilon: 0
      FusedActivation: {operator: ACTIVATION_SIGMOID}
"""


def strength_of(directory: Path, text: str) -> Strength:
    file = directory / "suite.yaml"
    file.write_text(text, encoding="utf-8")
    return measure(map(build, load_suite([file]).plan()), run_case)


def test_device_that_flushes_subnormals_passes(
    tmp_path: Path,
) -> None:
    strength = strength_of(tmp_path, ROUNDED)
    assert ("ELEMENT_WISE_ROUND", "float32 subnormals flushed") in strength.legitimate
    assert strength.refused == []


def test_defects_of_sums_are_injected_only_into_sums(tmp_path: Path) -> None:
    strength = strength_of(tmp_path, NOTHING_ADDED_UP)
    assert strength.refused == []
    assert len(strength.mutants) > 0
    assert not any(mutant.defect.startswith("accumulated") for mutant in strength.mutants)


def test_equal_values_miss_defects_that_move_elements(tmp_path: Path) -> None:
    actual = {mutant.defect for mutant, _ in survivors(strength_of(tmp_path, EQUAL_VALUES))}
    assert {"off by one, axis -1", "off by one, axis -2", "axes swapped"} <= actual
    assert {"rounded through float16", "input transposed, InputTensor"} <= actual
    assert "1 ULP" not in actual
    assert "last element wrong" not in actual


def test_different_values_catch_every_injected_defect(tmp_path: Path) -> None:
    strength = strength_of(tmp_path, DIFFERENT_VALUES)
    assert survivors(strength) == []
    [row] = operator_strengths(strength)
    assert row.injected == row.caught > 15
    defects = {mutant.defect for mutant in strength.mutants}
    assert {"subnormals flushed", "sign of zero dropped", "NaN for infinity"} <= defects


def test_defects_of_inputs_without_effect_are_not_injected(tmp_path: Path) -> None:
    strength = strength_of(tmp_path, SEVERAL_OUTPUTS)
    assert survivors(strength) == []
    defects = {(mutant.defect, mutant.output) for mutant in strength.mutants}
    assert ("input transposed, InputGradientTensor", "OutputBiasGradientTensor") in defects
    assert ("input transposed, InputTensor", "OutputScaleGradientTensor") in defects
    assert ("input transposed, InputTensor", "OutputBiasGradientTensor") not in defects


def test_a_case_without_independent_expectation_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(EQUAL_VALUES, encoding="utf-8")
    strength = measure(map(build, load_suite([file]).plan()), lambda case: None)
    assert (strength.cases, strength.unused) == (0, ["tile/suite/all-alike"])
    assert closing_sentence(strength).startswith("0 of 0 injected defects")


def test_case_that_does_not_fit_into_memory_is_unused(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(INFINITE_REGION, encoding="utf-8")
    ran = dmlconf_here(tmp_path, "strength", file, "--quiet")
    assert ran.returncode == 0, ran.stderr
    strength = measure(map(build, load_suite([file]).plan()), run_case)
    assert (strength.cases, strength.unused) == (0, ["roi_align1/suite/infinite"])


def test_desc_that_the_reference_refuses_gives_no_output() -> None:
    tested = bundled_case("roi_align_grad/boundary/one-element")
    site = Site(tested, evaluate(tested), "OutputGradientTensor")
    assert recomputed(site) is not None
    assert recomputed(site, desc={"OutputGradientTensor": None}) is None


def test_dmlconf_strength_writes_reports_and_fails_below_a_share(tmp_path: Path) -> None:
    (tmp_path / "weak.yaml").write_text(EQUAL_VALUES, encoding="utf-8")
    report = tmp_path / "out" / "strength.json"
    markdown = tmp_path / "strength.md"
    process = dmlconf_here(
        tmp_path,
        "strength",
        str(tmp_path / "weak.yaml"),
        "--fail-under",
        "99",
        "--report",
        f"json:{report}",
        "--report",
        f"markdown:{markdown}",
    )
    assert process.returncode == 1
    assert "TILE" in process.stderr
    assert "fewer than 99%" in process.stderr
    assert "not caught: TILE, axes swapped" in process.stdout
    data = json.loads(report.read_text("utf-8"))
    assert 0 < data["summary"]["caught"] < data["summary"]["injected"]
    assert markdown.read_text("utf-8").startswith("# Strength of the suite\n")


def test_dmlconf_strength_succeeds_without_a_threshold(tmp_path: Path) -> None:
    (tmp_path / "weak.yaml").write_text(EQUAL_VALUES, encoding="utf-8")
    process = dmlconf_here(tmp_path, "strength", str(tmp_path / "weak.yaml"), "--report", "json")
    assert process.returncode == 0
    assert json.loads(process.stdout)["summary"]["cases"] == 1


@pytest.mark.parametrize(("option", "value"), [("--report", "svg"), ("--fail-under", "101")])
def test_command_refuses_unknown_formats_and_shares_above_100(
    tmp_path: Path, option: str, value: str
) -> None:
    process = dmlconf_here(tmp_path, "strength", str(cases_directory() / "tile"), option, value)
    assert process.returncode == 2
    assert f"Invalid value for {option}" in process.stderr.replace("'", "")
    assert value in process.stderr


@pytest.mark.slow
def test_two_processes_find_the_same_as_one_process() -> None:
    plan = [p for p in bundled("tile").plan() if "invalid" not in p.template.tags][:40]
    steps: list[int] = []

    @contextmanager
    def progress(count: int) -> Iterator[Callable[[], None]]:
        yield lambda: steps.append(count)

    def injected(jobs: int) -> Strength:
        chosen = ("defects", "perturbations")
        return Setting(plan, [], [cases_directory()], jobs, None, 0, chosen, progress).injected

    actual = injected(2)
    assert steps == [40] * 40  # One step for each case, of a progress of 40 steps.
    assert injected(1) == actual
    assert steps == [40] * 80
    assert actual.cases > 30


def test_graphs_get_perturbations_but_no_injected_defects(tmp_path: Path) -> None:
    plan = load_suite([graph_file(tmp_path, TWO_NODES)]).plan()
    strength = measure(map(build, plan), run_case)
    assert strength.cases == 1
    assert strength.mutants == {}
    assert strength.perturbed != {}
