"""Cases notice changed expectations, except changes that the source of their rule permits.

The tested code is in `dmlconf/strength/expectations.py`, `dmlconf/strength/perturbations.py`,
`dmlconf/reports/strength/expectations.py` and `dmlconf/reports/strength/figure.py`.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case
from dmlconf.judging.judge import Against, Recorded
from dmlconf.reports.strength.expectations import (
    EXPECTATIONS,
    SpoiledExpectations,
    permitted_lines,
    unnoticed_lines,
    weak_operators,
)
from dmlconf.reports.strength.figure import Setting
from dmlconf.strength.expectations import ExpectationFigure, measure_expectations
from dmlconf.strength.perturbations import KINDS
from dmlconf.tensors.sample import sample_of
from tests.cases.suites import PRODUCT
from tests.cli.process import dmlconf_here
from tests.strength.test_perturbations import ABSOLUTE_LIMIT, EXACT

STATED = PRODUCT + "    expect: {OutputTensor: [19.25, 15.4, 38.5, 32]}\n"


def recorded_outputs(case: Case) -> Outcome | Recorded:
    """Return the outputs of the reference as if a device had been recorded."""
    return Recorded(run_case(case))


def measured(directory: Path, text: str, against: Against = recorded_outputs) -> ExpectationFigure:
    """Return the figure of a suite; `against` gives expected outcomes that cases do not state."""
    file = directory / "suite.yaml"
    file.write_text(text, encoding="utf-8")
    plan = load_suite([file]).plan()
    return measure_expectations(map(build, plan), against)


def test_an_exact_rule_notices_every_kind_of_change(tmp_path: Path) -> None:
    figure = measured(tmp_path, EXACT)
    assert {kind for _, kind in figure.tallies} == set(KINDS)
    assert all(tally.noticed == tally.tried > 0 for tally in figure.tallies.values())
    assert weak_operators(figure, 100) == {}
    assert list(unnoticed_lines(figure)) == []


def test_case_that_only_the_reference_judges_is_not_counted(tmp_path: Path) -> None:
    figure = measured(tmp_path, EXACT, run_case)
    assert (figure.cases, figure.tallies) == (0, {})


def test_rule_of_a_matrix_product_notices_changed_values(tmp_path: Path) -> None:
    figure = measured(tmp_path, STATED, run_case)
    tallies = {kind: (tally.tried, tally.noticed) for (_, kind), tally in figure.tallies.items()}
    assert "largest zeroed" in tallies
    assert tallies == dict.fromkeys(tallies, (1, 1))


def test_changes_that_a_source_permits_are_counted_apart(tmp_path: Path) -> None:
    figure = measured(tmp_path, ABSOLUTE_LIMIT)
    tally = figure.tallies["ELEMENT_WISE_COS", "1,000 ULP in FLOAT32"]
    assert (tally.tried, tally.noticed, tally.counted) == (1, 0, 0)
    [line] = permitted_lines(figure)
    assert line.startswith("2 by Direct3D 11.3")  # The other change swaps two elements.
    assert line.endswith("ELEMENT_WISE_COS 2")


OPEN = """
operator: LOCAL_RESPONSE_NORMALIZATION_GRAD
cases:
  - name: any
    desc:
      InputTensor: {Sizes: [1, 2, 1, 3], DataType: FLOAT16, values: [NUMBERS]}
      InputGradientTensor: {Sizes: [1, 2, 1, 3], DataType: FLOAT16, values: [1, 2, 1, 2, 1, 2]}
      OutputGradientTensor: {Sizes: [1, 2, 1, 3], DataType: FLOAT16}
      CrossChannel: true
      LocalSize: 2
      Alpha: 0.5
      Beta: 0.1
      Bias: 1
"""
"""A case whose sums of squares overflow FLOAT16 if its NUMBERS are large."""


def test_change_of_an_open_element_counts_as_unnoticed(
    tmp_path: Path,
) -> None:
    """200**2 + 160**2 overflows FLOAT16, and any result is right."""
    kind = "4 ULP in FLOAT16"
    figure = measured(tmp_path, OPEN.replace("NUMBERS", "200, 150, 170, 160, 180, 150"))
    assert all(not tally.permitted for tally in figure.tallies.values())
    assert figure.tallies["LOCAL_RESPONSE_NORMALIZATION_GRAD", kind].noticed == 0
    bounded = measured(tmp_path, OPEN.replace("NUMBERS", "6, 5, 7, 6, 8, 5"))
    tally = bounded.tallies["LOCAL_RESPONSE_NORMALIZATION_GRAD", kind]
    assert tally.noticed + tally.permitted.total() == tally.tried == 1


ORIGIN = """
operator: ELEMENT_WISE_ATAN_YX
cases:
  - name: origin
    desc:
      ATensor: {Sizes: [3], DataType: FLOAT32, values: [0, 1, 1]}
      BTensor: {Sizes: [3], DataType: FLOAT32, values: [-0.0, 2, 1]}
      OutputTensor: {Sizes: [3], DataType: FLOAT32}
"""
"""The angles of three points, of which that of the origin is undefined."""


def test_changes_beside_an_undefined_angle_are_noticed(
    tmp_path: Path,
) -> None:
    figure = measured(tmp_path, ORIGIN)
    assert {kind for _, kind in figure.tallies} >= {"largest zeroed", "sign flipped"}
    assert all(tally.noticed == tally.counted > 0 for tally in figure.tallies.values())


def test_unnoticed_changes_without_a_source_lower_the_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dmlconf.strength.expectations.sources", dict)
    figure = measured(tmp_path, ABSOLUTE_LIMIT)
    assert weak_operators(figure, 99)["ELEMENT_WISE_COS"] < 99
    assert any("1,000 ULP in FLOAT32" in line for line in unnoticed_lines(figure))


def test_case_with_a_wrong_expectation_is_not_counted(tmp_path: Path) -> None:
    figure = measured(tmp_path, STATED.replace("38.5", "1"), run_case)
    assert figure.failing == ["gemm/suite/product"]
    assert figure.cases == 0


def test_changes_of_a_sampled_recording_are_noticed(tmp_path: Path) -> None:
    large = EXACT.replace("Sizes: [4, 9]", "Sizes: [200, 200]")
    file = tmp_path / "suite.yaml"
    file.write_text(large, encoding="utf-8")

    def sampled(case: Case) -> Recorded:
        outcome = run_case(case)
        assert isinstance(outcome, Outputs)
        samples = {name: sample_of(array, "s", 64) for name, array in outcome.arrays.items()}
        return Recorded(Outputs({}, samples=samples))

    figure = measure_expectations(map(build, load_suite([file]).plan()), sampled)
    assert figure.cases == 3
    assert {kind for _, kind in figure.tallies} == set(KINDS)
    assert all(tally.noticed == tally.tried > 0 for tally in figure.tallies.values())


def test_command_fails_for_a_wrong_expectation(tmp_path: Path) -> None:
    (tmp_path / "gemm.yaml").write_text(STATED, encoding="utf-8")
    arguments = ["strength", "gemm.yaml", "-q", "--figure", "expectations"]
    done = dmlconf_here(
        tmp_path, *arguments, "--fail-under", "expectations=99", "--report", "json:it.json"
    )
    assert done.returncode == 0, done.stderr
    assert "(100.00%)" in done.stdout
    data = json.loads((tmp_path / "it.json").read_text("utf-8"))["expectations"]
    assert data["operators"][0]["operator"] == "GEMM"
    (tmp_path / "gemm.yaml").write_text(STATED.replace("38.5", "1"), encoding="utf-8")
    failed = dmlconf_here(tmp_path, *arguments, "--fail-under", "expectations=99")
    assert failed.returncode == 1
    assert "gemm/gemm/product fails as it is" in failed.stderr


COSINE = """
  - name: cosine-NUMBER
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [0.01, 1]}
      OutputTensor: {Sizes: [2], DataType: FLOAT32}
    expect: {OutputTensor: [0.99995, 0.5403023]}"""
"""A case whose expected values are the cosines of its inputs."""


@pytest.mark.parametrize(("permitted", "cases"), [(True, 1), (False, 10)])
def test_sample_grows_tenfold_if_it_notices_too_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, permitted: bool, cases: int
) -> None:
    """Without the source of its rule, COS does not notice 1,000 ULP."""
    if not permitted:
        monkeypatch.setattr("dmlconf.strength.expectations.sources", dict)
    file = tmp_path / "suite.yaml"
    twelve = "".join(COSINE.replace("NUMBER", str(number)) for number in range(12))
    file.write_text(f"operator: ELEMENT_WISE_COS\ncases:{twelve}\n", encoding="utf-8")
    plan = list(load_suite([file]).plan())
    # One process, samples of one case, and the seed 0.
    setting = Setting(
        plan, [], [file], 1, 1, 0, ["expectations"], lambda count: nullcontext(lambda: None)
    )
    figure = EXPECTATIONS.measure(setting)
    assert isinstance(figure, SpoiledExpectations)
    assert figure.figure.cases == cases
