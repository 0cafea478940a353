"""The figure "by driver defect" counts the defects of drivers that cases catch.

For a defect that no case catches, a survivor, the figure says why.

The tested code is in `dmlconf/strength/drivers/figure.py`,
`dmlconf/strength/drivers/catalogue.py`, `dmlconf/strength/drivers/conditions.py`,
`dmlconf/strength/drivers/measure.py`, `dmlconf/strength/drivers/parallel.py`,
`dmlconf/strength/drivers/window_formulas.py`, `dmlconf/reports/strength/drivers.py` and
`dmlconf/cli/commands/writing/strength.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.expressions import ExpressionError
from dmlconf.reference.evaluation import evaluate
from dmlconf.reports.strength.drivers import DriverDefects, driver_data, survivor_lines
from dmlconf.resources import cases_directory
from dmlconf.strength.drivers.catalogue import bug_reports, driver_defects
from dmlconf.strength.drivers.computation import Computation
from dmlconf.strength.drivers.conditions import condition, features
from dmlconf.strength.drivers.figure import DefectResult, DriverFigure, Fate, caught_in_any
from dmlconf.strength.drivers.parallel import measure_drivers
from tests.bundled import bundled
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

OVERLAPPING_WINDOWS = """
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


CHANNELS_LAST = """
operator: MAX_POOLING1
cases:
  - name: channels-last
    desc:
      InputTensor:
        Sizes: [1, 2, 1, 4]
        DataType: INT8
        layout: channels-last
        values: [1, 9, 2, 8, 5, 3, 4, 6]
      OutputTensor: {Sizes: [1, 2, 1, 2], DataType: INT8}
      OutputIndicesTensor: {Sizes: [1, 2, 1, 2], DataType: UINT32}
      Strides: [1, 2]
      WindowSize: [1, 2]
      StartPadding: [0, 0]
      EndPadding: [0, 0]
"""

GROUPS = """
operator: CONVOLUTION
cases:
  - name: groups
    desc:
      InputTensor: {Sizes: [1, 2, 1, 3], DataType: FLOAT32, values: [1, 2, 4, 1, 2, 4]}
      FilterTensor: {Sizes: [2, 1, 1, 2], DataType: FLOAT32, values: [1, 1, 1, 1]}
      OutputTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32}
      Mode: CROSS_CORRELATION
      Direction: FORWARD
      Strides: [1, 1]
      Dilations: [1, 2]
      StartPadding: [0, 0]
      EndPadding: [0, 0]
      OutputPadding: [0, 0]
      GroupCount: 2
"""

DEPTHWISE = """
operator: CONVOLUTION
cases:
  - name: depthwise
    desc:
      InputTensor: {Sizes: [1, 3, 1, 1], DataType: FLOAT32, values: [1, 1, 1]}
      FilterTensor: {Sizes: [3, 1, 1, 1], DataType: FLOAT32, values: [2, 3, 4]}
      OutputTensor: {Sizes: [1, 3, 1, 1], DataType: FLOAT32}
      Mode: CROSS_CORRELATION
      Direction: FORWARD
      Strides: [1, 1]
      Dilations: [1, 1]
      StartPadding: [0, 0]
      EndPadding: [0, 0]
      OutputPadding: [0, 0]
      GroupCount: 3
"""

FUSED_PRODUCT = """
operator: GEMM
cases:
  - name: fused
    desc:
      ATensor: {Sizes: [1, 1], DataType: FLOAT16, values: [3]}
      BTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [1]}
      CTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [-5]}
      OutputTensor: {Sizes: [1, 1], DataType: FLOAT16}
      TransA: NONE
      TransB: NONE
      Alpha: 1
      Beta: 1
      FusedActivation: {operator: ACTIVATION_RELU}
"""

REPEATED = """
operator: ELEMENT_WISE_ADD
cases:
  - name: repeated-and-padded
    desc:
      ATensor: {Sizes: [2, 2], DataType: INT32, Strides: [3, 1], values: [10, 20, 30, 40]}
      BTensor: {Sizes: [2, 2], DataType: INT32, Strides: [0, 1], values: [1, 2, 1, 2]}
      OutputTensor: {Sizes: [2, 2], DataType: INT32}
"""

ATTENTION = """
operator: MULTIHEAD_ATTENTION
cases:
  - name: keys
    desc: {TENSORS,
      Scale: 1, MaskFilterValue: -1, HeadCount: 1, MaskType: NONE}
"""

INT8_REDUCTION = """
operator: REDUCE
cases:
  - name: outer-and-inner
    desc:
      Function: MAX
      InputTensor: {Sizes: [2, 1, 2], DataType: INT8, values: [1, 2, 3, 4]}
      OutputTensor: {Sizes: [1, 1, 1], DataType: INT8}
      Axes: [0, 2]
"""


def wrong_outputs(directory: Path, text: str, defect: str) -> Mapping[str, list[float]]:
    """Return the elements of the outputs that a defect changes in the one case of a suite."""
    file = directory / "suite.yaml"
    file.write_text(text, encoding="utf-8")
    [planned] = load_suite([file]).plan()
    case = valid_case(planned)
    [known] = [one for one in driver_defects() if one.name == defect]
    assert all(known.met(features(case)))
    arrays = known.inject(Computation(case, case.inputs(), evaluate(case, case.inputs())))
    assert arrays is not None
    return {name: array.ravel().tolist() for name, array in arrays.items()}


def results_by_defect(directory: Path, text: str) -> dict[str, DefectResult]:
    file = directory / "suite.yaml"
    file.write_text(text, encoding="utf-8")
    figure = figure_of(file)
    return {pair.defect.name: pair for pair in figure.pairs}


def figure_of(file: Path) -> DriverFigure:
    plan = list(load_suite([file]).plan())
    applicability, strength = measure_drivers(plan, [file], 1)
    return DriverFigure.of(driver_defects(), applicability, strength)


def computed_pooling(directory: Path) -> Computation:
    file = directory / "suite.yaml"
    file.write_text(POOLING, encoding="utf-8")
    [planned] = load_suite([file]).plan()
    case = valid_case(planned)
    return Computation(case, case.inputs(), evaluate(case, case.inputs()))


def test_each_driver_defect_has_operators_and_a_cause() -> None:
    defects = driver_defects()
    assert len(defects) >= 400
    assert len({defect.name for defect in defects}) == len(defects)
    for defect in defects:
        assert defect.operators, defect.name
        assert (defect.report is None) != (defect.plausible is None), defect.name
    used = {defect.report.name for defect in defects if defect.report}
    assert used == bug_reports().keys()
    products = [report.product for report in bug_reports().values()]
    assert products.count("DirectML") >= 40


def test_case_that_meets_a_condition_catches_the_defect(tmp_path: Path) -> None:
    actual = results_by_defect(tmp_path, CUMULATION.replace("LENGTH", "300"))
    for name in (
        "cumulation ignores HasExclusiveSum",
        "cumulative sum beyond 64 elements starts anew",
        "cumulative sum beyond 256 elements starts anew",
    ):
        assert actual[name].fate is Fate.CAUGHT
        assert actual[name].missing == ""


def test_defect_gives_the_wrong_results_of_its_bug_report(
    tmp_path: Path,
) -> None:
    run = computed_pooling(tmp_path)
    [defect] = [d for d in driver_defects() if d.report and d.report.name == "onnxruntime-29637"]
    wrong = defect.inject(run)
    assert wrong is not None
    assert run.outputs["OutputTensor"].ravel().tolist() == [9, 2, 9, 3, 8, 4, 7, 5, 6]
    assert wrong["OutputTensor"].ravel().tolist() == [1, 2, 9, 3, 8, 4, 7, 5, 6]


def test_indices_that_count_padding_are_one_greater(tmp_path: Path) -> None:
    run = computed_pooling(tmp_path)
    [defect] = [d for d in driver_defects() if d.name == "max pooling indices count the padding"]
    wrong = defect.inject(run)
    assert wrong is not None
    right = run.outputs["OutputIndicesTensor"].ravel()
    # The input has one row and one element of padding before it.
    assert wrong["OutputIndicesTensor"].ravel().tolist() == (right + 1).tolist()


@pytest.mark.parametrize(
    ("text", "defect", "output", "expected"),
    [
        (
            CHANNELS_LAST,
            "channels-last max pooling counts its indices as the elements lie",
            "OutputIndicesTensor",
            [2, 6, 1, 7],  # The element (c, w) counts as 2 * w + c, and not as 4 * c + w.
        ),
        (
            GROUPS,
            "grouped convolution dilates the filters of its first group only",
            "OutputTensor",
            [5, 3],  # 1 + 4 with the dilation of 2, and 1 + 2 without it.
        ),
        (
            DEPTHWISE,
            "depthwise convolution uses the filter of the next group",
            "OutputTensor",
            [3, 4, 2],  # The filters are 2, 3 and 4, and all inputs 1.
        ),
        (
            FUSED_PRODUCT,
            "product of FLOAT16 applies its activation before the bias",
            "OutputTensor",
            [-2],  # RELU(3 * 1) - 5, and not RELU(3 * 1 - 5).
        ),
        (
            REPEATED,
            "repeated input beside a padded one is read as packed",
            "OutputTensor",
            [11, 22, 30, 40],  # B stores 1 and 2 only; its second row is read behind them.
        ),
        (
            INT8_REDUCTION,
            "reduction of INT8 over axes that are not adjacent drops a slice",
            "OutputTensor",
            [2],  # The greatest number of the first slice, 1 and 2.
        ),
    ],
)
def test_defect_of_two_conditions_gives_its_wrong_results(
    tmp_path: Path, text: str, defect: str, output: str, expected: list[float]
) -> None:
    assert wrong_outputs(tmp_path, text, defect)[output] == expected


def test_features_of_a_case_distinguish_layouts(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(REPEATED, encoding="utf-8")
    [planned] = load_suite([file]).plan()
    names = features(valid_case(planned))
    assert names["padded_tensors"] == ("ATensor",)
    assert names["broadcast_tensors"] == ("BTensor",)
    assert names["transposed_tensors"] == names["channels_last_tensors"] == ()


@pytest.mark.parametrize(
    "inputs",
    [
        """QueryTensor: {Sizes: [1, 1, 1, 2, 1], DataType: FLOAT32, values: [1, 2]},
      KeyTensor: {Sizes: [1, 1, 1, 3, 1], DataType: FLOAT32, values: [1, 2, 3]},
      ValueTensor: {Sizes: [1, 1, 1, 3, 1], DataType: FLOAT32, values: [1, 2, 3]},
      OutputTensor: {Sizes: [1, 1, 1, 2, 1], DataType: FLOAT32}""",
        """StackedQueryKeyTensor: {Sizes: [1, 3, 1, 2, 1], DataType: FLOAT32, fill: {sequence: {}}},
      ValueTensor: {Sizes: [1, 3, 1], DataType: FLOAT32, values: [1, 2, 3]},
      OutputTensor: {Sizes: [1, 3, 1], DataType: FLOAT32}""",
        """QueryTensor: {Sizes: [1, 2, 1], DataType: FLOAT32, values: [1, 2]},
      StackedKeyValueTensor: {Sizes: [1, 3, 1, 2, 1], DataType: FLOAT32, fill: {sequence: {}}},
      OutputTensor: {Sizes: [1, 2, 1], DataType: FLOAT32}""",
    ],
)
def test_keys_of_an_attention_are_counted_in_any_tensor(tmp_path: Path, inputs: str) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(ATTENTION.replace("TENSORS", inputs), encoding="utf-8")
    [planned] = load_suite([file]).plan()
    assert features(valid_case(planned))["keys"] == 3


def test_defects_that_fewer_than_three_cases_notice_are_named(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    case = CUMULATION.replace("LENGTH", "300")
    entry = case.partition("cases:\n")[2]
    second, third = (entry.replace("exclusive", f"exclusive-{i}") for i in range(2))

    def remarks(entries: str) -> list[str]:
        file.write_text(case + entries, encoding="utf-8")
        defect = "cumulative sum beyond 256 elements starts anew: "
        return [each for each in DriverDefects(figure_of(file)).remarks() if defect in each]

    [remark] = remarks(second)
    assert "starts anew: two cases notice it" in remark
    assert remarks(second + third) == []


def test_sample_of_two_cases_reports_no_rarely_noticed_defect(tmp_path: Path) -> None:
    """Cases outside the sample may notice the defect, too."""
    file = tmp_path / "suite.yaml"
    file.write_text(CUMULATION.replace("LENGTH", "300"), encoding="utf-8")
    plan = list(load_suite([file]).plan())
    applicability, strength = measure_drivers(plan, [file], 1, 2)
    assert DriverFigure.of(driver_defects(), applicability, strength).few
    assert not DriverFigure.of(driver_defects(), applicability, strength, 2).few
    assert DriverFigure.of(driver_defects(), applicability, strength, 3).few


@pytest.mark.slow
def test_several_processes_measure_what_one_does() -> None:
    """The cases are more than a process takes at a time."""
    plan = list(bundled("cumulative_summation/matrix.yaml").plan())
    assert len(plan) > 200
    folder = [cases_directory() / "cumulative_summation"]
    one = measure_drivers(plan, folder, 1, 5)
    assert measure_drivers(plan, folder, 2, 5) == one
    assert max(index for met in one[0].met.values() for index in met.cases) > 200


def test_a_survivor_names_the_size_that_no_case_has(tmp_path: Path) -> None:
    actual = results_by_defect(tmp_path, CUMULATION.replace("LENGTH", "300"))
    survivor = actual["cumulative sum beyond 1024 elements starts anew"]
    assert survivor.fate is Fate.UNMET
    assert survivor.missing == (
        "no case of CUMULATIVE_SUMMATION has more than 1,024 elements along the axis"
    )


def test_hidden_defects_differ_from_permitted_defects(
    tmp_path: Path,
) -> None:
    actual = results_by_defect(tmp_path, ALL_ZERO)
    survivor = actual["cumulative sum beyond 256 elements starts anew"]
    assert survivor.fate is Fate.HIDDEN
    assert survivor.missing.startswith("the data of the one case that runs it hide it")
    tolerant = "    tolerance: {OutputTensor: {absolute: 1000000, reason: a test}}\n"
    actual = results_by_defect(tmp_path, CUMULATION.replace("LENGTH", "300") + tolerant)
    survivor = actual["cumulative sum beyond 256 elements starts anew"]
    assert survivor.fate is Fate.UNNOTICED
    assert survivor.missing.startswith("1 of its cases show it and none fails")


@pytest.mark.parametrize("seed", range(4))
def test_defect_hidden_by_its_sample_is_tried_further(tmp_path: Path, seed: int) -> None:
    """The seed decides which of the two cases is the sample."""
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


EXCLUSION_IGNORED = "cumulation ignores HasExclusiveSum"
WRONG_EXPECTATION = """
  - name: wrong-expectation
    desc:
      InputTensor: {Sizes: [2, 300], DataType: INT32, fill: {sequence: {start: 1}}}
      OutputTensor: {Sizes: [2, 300], DataType: INT32}
      Axis: 1
      AxisDirection: INCREASING
      HasExclusiveSum: true
    expect: {OutputTensor: {fill: {constant: {value: 7}}}}
"""


@pytest.mark.parametrize("seed", range(4))
def test_defect_with_unusable_sample_is_tried_further(tmp_path: Path, seed: int) -> None:
    """The seed decides which of the two cases is the sample."""
    file = tmp_path / "suite.yaml"
    file.write_text(CUMULATION.replace("LENGTH", "300") + WRONG_EXPECTATION, encoding="utf-8")
    plan = list(load_suite([file]).plan())
    applicability, strength = measure_drivers(plan, [file], 1, 1, seed)
    figure = DriverFigure.of(driver_defects(), applicability, strength)
    [pair] = [pair for pair in figure.pairs if pair.defect.name == EXCLUSION_IGNORED]
    assert pair.fate is Fate.CAUGHT


def test_survivor_says_that_no_case_passes(
    tmp_path: Path,
) -> None:
    actual = results_by_defect(
        tmp_path, "operator: CUMULATIVE_SUMMATION\ncases:" + WRONG_EXPECTATION
    )
    assert actual[EXCLUSION_IGNORED].missing == (
        "1 case of CUMULATIVE_SUMMATION with `HasExclusiveSum`, "
        "and none passes with the right outputs"
    )


def test_a_second_dispatch_that_differs_is_caught(tmp_path: Path) -> None:
    actual = results_by_defect(tmp_path, OVERLAPPING_WINDOWS)
    assert actual["second dispatch adds to the first"].fate is Fate.CAUGHT


def test_suite_of_one_case_has_a_line_for_each_survivor(
    tmp_path: Path,
) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(CUMULATION.replace("LENGTH", "9"), encoding="utf-8")
    figure = figure_of(file)
    assert 0 < DriverDefects(figure).share < 100
    data = driver_data(figure)
    caught = {pair.defect.name for pair in figure.pairs if pair.tally.caught}
    assert data["caught_in_every_operator"] == len(caught) < data["defects"]
    by_defect = figure.by_defect
    assert {name for name, pairs in by_defect.items() if caught_in_any(pairs)} == caught
    assert data["defects"] == len(by_defect)
    assert len(list(survivor_lines(figure))) == len(figure.survivors) > 0


def test_explanations_of_survivors_name_operators_of_their_defect() -> None:
    explained = [defect for defect in driver_defects() if defect.survives]
    assert len(explained) > 0
    for defect in explained:
        assert set(defect.survives) <= set(defect.operators), defect.name


def test_the_line_of_a_survivor_has_its_explanation(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(ROUNDING, encoding="utf-8")
    figure = figure_of(file)
    (line,) = [one for one in survivor_lines(figure) if "rounding takes halves to even" in one]
    assert line.endswith("explained: DML_ROUNDING_MODE has no constant for halves away from zero")


def test_unknown_conditions_and_invalid_expressions_are_refused() -> None:
    with pytest.raises(KeyError):
        condition({"axis-under": 5})
    with pytest.raises(ExpressionError):
        condition("import os")


def test_command_fails_if_too_few_driver_defects_are_caught(tmp_path: Path) -> None:
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


def test_markdown_report_has_the_command_and_survivors(
    tmp_path: Path,
) -> None:
    (tmp_path / "suite.yaml").write_text(CUMULATION.replace("LENGTH", "9"), encoding="utf-8")
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


def test_dmlconf_strength_refuses_a_threshold_of_an_unknown_figure(tmp_path: Path) -> None:
    for thresholds, message in (
        (["driver=99"], "'driver' is not a figure"),
        (["=99"], "'' is not a figure"),
        (["99", "defects=50"], "defects has two percentages; give one"),
    ):
        options = [f"--fail-under={each}" for each in thresholds]
        process = dmlconf_here(tmp_path, "strength", ".", *options)
        assert process.returncode == 2
        assert message in process.stderr
