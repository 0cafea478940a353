"""Driver defects: the catalogue, those that cases catch, and what others lack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.expressions import ExpressionError
from dmlconf.reference.evaluation import evaluate
from dmlconf.reports.strength.drivers import driver_data, driver_lines, driver_share
from dmlconf.strength.drivers.catalogue import bug_reports, driver_defects
from dmlconf.strength.drivers.computation import Computation
from dmlconf.strength.drivers.conditions import condition
from dmlconf.strength.drivers.figure import DefectResult, DriverFigure, Fate
from dmlconf.strength.drivers.parallel import measure_drivers
from tests.cli.process import dmlconf_here

CUMULATION = """
operator: CUMULATIVE_SUMMATION
cases:
  - name: exclusive
    desc:
      InputTensor: {Sizes: [2, LENGTH], DataType: INT32, fill: {sequence: {start: 1}}}
      OutputTensor: {Sizes: [2, LENGTH], DataType: INT32}
      Axis: 1
      AxisDirection: INCREASING
      HasExclusiveSum: true
"""

ALL_ZERO = """
operator: CUMULATIVE_SUMMATION
cases:
  - name: of-nothing
    desc:
      InputTensor: {Sizes: [2, 300], DataType: INT32, fill: {constant: {value: 0}}}
      OutputTensor: {Sizes: [2, 300], DataType: INT32}
      Axis: 1
      AxisDirection: INCREASING
      HasExclusiveSum: false
"""

SECOND_DISPATCH = """
operator: FOLD
cases:
  - name: overlaps
    desc:
      InputTensor: {Sizes: [1, 4, 4], DataType: FLOAT32, fill: {sequence: {start: 1}}}
      OutputTensor: {Sizes: [1, 1, 3, 3], DataType: FLOAT32}
      WindowSizes: [2, 2]
      Strides: [1, 1]
      Dilations: [1, 1]
      StartPadding: [0, 0]
      EndPadding: [0, 0]
"""

POOLING = """
operator: MAX_POOLING2
cases:
  - name: dilation-and-padding
    desc:
      InputTensor: {Sizes: [1, 1, 1, 9], DataType: FLOAT32, values: [1, 9, 2, 8, 3, 7, 4, 6, 5]}
      OutputTensor: {Sizes: [1, 1, 1, 9], DataType: FLOAT32}
      OutputIndicesTensor: {Sizes: [1, 1, 1, 9], DataType: UINT32}
      Strides: [1, 1]
      WindowSize: [1, 2]
      StartPadding: [0, 1]
      EndPadding: [0, 1]
      Dilations: [1, 2]
"""

ROUNDING = """
operator: ELEMENT_WISE_ROUND
cases:
  - name: halves
    desc:
      InputTensor: {Sizes: [3], DataType: FLOAT32, values: [0.5, 1.5, -2.5]}
      OutputTensor: {Sizes: [3], DataType: FLOAT32}
      RoundingMode: HALVES_TO_NEAREST_EVEN
"""


def measured(directory: Path, text: str) -> dict[str, DefectResult]:
    file = directory / "suite.yaml"
    file.write_text(text, encoding="utf-8")
    figure = figure_of(file)
    return {pair.defect.name: pair for pair in figure.pairs}


def figure_of(file: Path, sample: int | None = None) -> DriverFigure:
    plan = list(load_suite([file]).plan())
    applicability, strength = measure_drivers(plan, [file], 1, sample)
    return DriverFigure.of(driver_defects(), applicability, strength)


def pooling(directory: Path) -> Computation:
    file = directory / "suite.yaml"
    file.write_text(POOLING, encoding="utf-8")
    [planned] = load_suite([file]).plan()
    case = valid_case(planned)
    return Computation(case, case.inputs(), evaluate(case, case.inputs()))


def test_the_catalogue_is_large_and_says_where_each_defect_was_seen() -> None:
    defects = driver_defects()
    assert len(defects) >= 150
    assert len({defect.name for defect in defects}) == len(defects)
    for defect in defects:
        assert defect.operators, defect.name
        assert (defect.report is None) != (defect.plausible is None), defect.name
    used = {defect.report.name for defect in defects if defect.report}
    assert used == bug_reports().keys()
    assert sum(report.product == "DirectML" for report in bug_reports().values()) >= 40


def test_a_case_that_runs_a_defect_catches_it(tmp_path: Path) -> None:
    actual = measured(tmp_path, CUMULATION.replace("LENGTH", "300"))
    for name in (
        "cumulation ignores HasExclusiveSum",
        "cumulative sum beyond 64 elements starts anew",
        "cumulative sum beyond 256 elements starts anew",
    ):
        assert actual[name].fate is Fate.CAUGHT
        assert actual[name].missing == ""


def test_a_defect_gives_the_wrong_results_of_the_report_that_it_is_rebuilt_from(
    tmp_path: Path,
) -> None:
    run = pooling(tmp_path)
    [defect] = [d for d in driver_defects() if d.report and d.report.name == "onnxruntime-29637"]
    wrong = defect.inject(run)
    assert wrong is not None
    assert run.outputs["OutputTensor"].ravel().tolist() == [9, 2, 9, 3, 8, 4, 7, 5, 6]
    assert wrong["OutputTensor"].ravel().tolist() == [1, 2, 9, 3, 8, 4, 7, 5, 6]


def test_indices_that_count_the_padding_are_those_of_the_padded_input(tmp_path: Path) -> None:
    run = pooling(tmp_path)
    [defect] = [d for d in driver_defects() if d.name == "max pooling indices count the padding"]
    wrong = defect.inject(run)
    assert wrong is not None
    right = run.outputs["OutputIndicesTensor"].ravel()
    assert wrong["OutputIndicesTensor"].ravel().tolist() == (right + 1).tolist()


def test_a_survivor_names_the_size_that_no_case_has(tmp_path: Path) -> None:
    actual = measured(tmp_path, CUMULATION.replace("LENGTH", "300"))
    survivor = actual["cumulative sum beyond 1024 elements starts anew"]
    assert survivor.fate is Fate.UNMET
    assert survivor.missing == (
        "no case of CUMULATIVE_SUMMATION has more than 1,024 elements along the axis"
    )


def test_data_that_hides_a_defect_is_distinguished_from_a_rule_that_permits_it(
    tmp_path: Path,
) -> None:
    actual = measured(tmp_path, ALL_ZERO)
    survivor = actual["cumulative sum beyond 256 elements starts anew"]
    assert survivor.fate is Fate.HIDDEN
    assert survivor.missing.startswith("the data of the one case that runs it hide it")


@pytest.mark.parametrize("seed", range(4))
def test_a_defect_that_its_sample_hides_is_tried_on_all_cases(tmp_path: Path, seed: int) -> None:
    """Whichever case the sample is, the one whose data shows the defect is tried."""
    file = tmp_path / "suite.yaml"
    shows = CUMULATION.replace("LENGTH", "300")
    file.write_text(shows + ALL_ZERO.partition("cases:\n")[2], encoding="utf-8")
    plan = list(load_suite([file]).plan())
    applicability, strength = measure_drivers(plan, [file], 1, 1, seed)
    figure = DriverFigure.of(driver_defects(), applicability, strength)
    [pair] = [
        pair
        for pair in figure.pairs
        if pair.defect.name == "cumulative sum beyond 256 elements starts anew"
    ]
    assert pair.fate is Fate.CAUGHT


def test_a_second_dispatch_that_differs_is_caught(tmp_path: Path) -> None:
    actual = measured(tmp_path, SECOND_DISPATCH)
    assert actual["second dispatch adds to the first"].fate is Fate.CAUGHT


def test_a_defect_counts_as_caught_only_in_every_operator(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(CUMULATION.replace("LENGTH", "9"), encoding="utf-8")
    figure = figure_of(file)
    assert 0 < driver_share(figure) < 100
    data = driver_data(figure)
    assert data["caught_in_every_operator"] < data["defects"] == len(figure.by_defect)
    assert len(list(driver_lines(figure))) == len(figure.survivors) > 0


def test_explanations_of_survivors_name_operators_of_their_defect() -> None:
    for defect in driver_defects():
        assert set(defect.survives) <= set(defect.operators), defect.name


def test_the_line_of_a_survivor_has_its_explanation(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(ROUNDING, encoding="utf-8")
    figure = figure_of(file)
    (line,) = [one for one in driver_lines(figure) if "rounding takes halves to even" in one]
    assert line.endswith("explained: DML_ROUNDING_MODE has no constant for halves away from zero")


def test_an_unknown_condition_is_refused() -> None:
    with pytest.raises(KeyError):
        condition({"axis-under": 5})
    with pytest.raises(ExpressionError):
        condition("import os")


def test_the_command_fails_under_a_share_of_driver_defects(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(CUMULATION.replace("LENGTH", "9"), encoding="utf-8")
    report = tmp_path / "strength.json"
    process = dmlconf_here(
        tmp_path,
        "strength",
        "suite.yaml",
        "--figure",
        "drivers",
        "-v",
        "--fail-under",
        "drivers=99",
        "--report",
        f"json:{report}",
    )
    assert process.returncode == 1
    assert "by driver defect: " in process.stderr
    assert "no case of CUMULATIVE_SUMMATION has" in process.stdout
    data = json.loads(report.read_text("utf-8"))
    assert data["drivers"]["fates"]["caught"] > 0
    assert "perturbations" not in data
    markdown = tmp_path / "strength.md"
    passed = dmlconf_here(
        tmp_path,
        "strength",
        "suite.yaml",
        "--fail-under",
        "drivers=1",
        "--figure",
        "drivers",
        "--seed",
        "4",
        "--report",
        f"markdown:{markdown}",
    )
    assert passed.returncode == 0
    text = markdown.read_text("utf-8")
    assert "--figure drivers --seed 4" in text
    assert "- CUMULATIVE_SUMMATION: cumulative sum beyond 64 elements starts anew: no case" in text


def test_the_command_refuses_an_unknown_figure(tmp_path: Path) -> None:
    process = dmlconf_here(tmp_path, "strength", ".", "--fail-under", "driver=99")
    assert process.returncode == 2
    assert "'driver' is not a figure" in process.stderr
