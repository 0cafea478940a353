"""Attributes of case files, among them operators nested in a desc, are read and checked.

The tested code is in `dmlconf/cases/building/attributes.py`, `dmlconf/cases/building/values.py`,
`dmlconf/cases/loading/expansion.py` (identifiers), `dmlconf/catalogue/loader.py` (unknown names),
`dmlconf/catalogue/constraints.py`, `dmlconf/catalogue/levels.py`, `dmlconf/documents/schema.py`
(what lacks a field or is no mapping) and `dmlconf/cli/commands/running/show.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dmlconf.cases.building.build import build
from dmlconf.catalogue.constraints import violations
from dmlconf.catalogue.model import FeatureLevel
from tests.cases.suites import built, plan, replace_once
from tests.cli.process import dmlconf_here
from tests.documents.refusals import refusal

GEMM = """\
operator: GEMM
cases:
  - desc:
      ATensor: {Sizes: [1, 2], DataType: FLOAT32, values: [1, 2]}
      BTensor: {Sizes: [2, 1], DataType: FLOAT32, values: [3, 4]}
      OutputTensor: {Sizes: [1, 1], DataType: FLOAT32}
      TransA: NONE
      TransB: NONE
      Alpha: 1
      Beta: 0
      FusedActivation: {operator: ACTIVATION_LINEAR, Alpha: 2, Beta: 0.5}
"""

ACTIVATION = "{operator: ACTIVATION_LINEAR, Alpha: 2, Beta: 0.5}"
"""The nested operator of GEMM, as written."""

LINEAR_DESC = {
    "operator": "ACTIVATION_LINEAR",
    "InputTensor": None,
    "OutputTensor": None,
    "Alpha": 2,
    "Beta": 0.5,
}
"""The nested operator of GEMM, as read."""

SLOPE_MATRIX = replace_once(GEMM, "  - desc:", "  - matrix: {Slope: [2, 3]}\n    desc:")
"""GEMM as a matrix whose parameter its desc does not use."""

FUSED_MATRIX = replace_once(
    replace_once(GEMM, "  - desc:", f"  - matrix: {{Fused: [{ACTIVATION}]}}\n    desc:"),
    f"FusedActivation: {ACTIVATION}",
    "FusedActivation: =Fused",
)
"""GEMM as a matrix whose parameter is the nested operator."""


def problems_with(directory: Path, activation: str) -> str:
    """Return the problems of a case with `activation` as the text of its nested operator."""
    text = replace_once(GEMM, ACTIVATION, activation)
    return refusal(lambda: plan(directory, text), directory)


def test_a_nested_operator_has_all_of_its_fields(tmp_path: Path) -> None:
    assert built(tmp_path, GEMM).desc["FusedActivation"] == LINEAR_DESC


@pytest.mark.parametrize("name", ["DML_OPERATOR_ACTIVATION_LINEAR", "activation_linear"])
def test_nested_operator_may_have_its_prefix_or_lower_case(tmp_path: Path, name: str) -> None:
    text = replace_once(GEMM, "ACTIVATION_LINEAR", name)
    assert built(tmp_path, text).desc["FusedActivation"] == LINEAR_DESC


def test_a_tensor_of_a_nested_operator_may_be_null(tmp_path: Path) -> None:
    text = replace_once(GEMM, "Alpha: 2,", "InputTensor: null, Alpha: 2,")
    assert built(tmp_path, text).desc["FusedActivation"] == LINEAR_DESC


def test_an_absent_nested_operator_is_none(tmp_path: Path) -> None:
    assert built(tmp_path, replace_once(GEMM, ACTIVATION, "null")).desc["FusedActivation"] is None


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        (
            "{operator: ACTIVATION_LINEER}",
            "the catalogue has no operator ACTIVATION_LINEER",
            "did you mean ACTIVATION_LINEAR?",
        ),
        (
            "{operator: ACTIVATION_LINEAR, Alpha: 2, Beta: 1, Betta: 1}",
            "unknown field `Betta` in ACTIVATION_LINEAR",
            "did you mean `Beta`?",
        ),
        (
            "{operator: ACTIVATION_RELU, Slope: 1}",
            "unknown field `Slope` in ACTIVATION_RELU",
            "ACTIVATION_RELU has no attributes",
        ),
        (
            "{operator: ACTIVATION_LINEAR, Alpha: 2}",
            "`Beta` is missing",
            "ACTIVATION_LINEAR needs Beta",
        ),
        (
            "{operator: ACTIVATION_LINEAR, Alpha: much, Beta: 1}",
            "must be a number, not 'much'",
            None,
        ),
        (
            "{operator: ACTIVATION_RELU, InputTensor: {Sizes: [1], DataType: FLOAT32}}",
            "InputTensor of a nested operator must be null",
            "leave InputTensor out",
        ),
        ("{Alpha: 2}", "lacks `operator`", None),
        ("ACTIVATION_RELU", "must be a mapping or nothing", None),
    ],
)
def test_wrong_nested_operator_is_refused_with_a_hint(
    tmp_path: Path, written: str, message: str, hint: str | None
) -> None:
    actual = problems_with(tmp_path, written)
    assert message in actual
    assert hint is None or f"hint: {hint}" in actual


def test_every_problem_of_a_nested_operator_is_reported(tmp_path: Path) -> None:
    written = "{operator: ACTIVATION_LINEAR, Slope: 1, Beta: much}"
    actual = problems_with(tmp_path, written)
    assert "`Alpha` is missing" in actual
    assert "unknown field `Slope`" in actual
    assert "not 'much'" in actual


def test_a_nested_operator_may_contain_expressions(tmp_path: Path) -> None:
    text = replace_once(SLOPE_MATRIX, "Alpha: 2,", "Alpha: =Slope,")
    alphas = [build(planned).desc["FusedActivation"]["Alpha"] for planned in plan(tmp_path, text)]
    assert alphas == [2, 3]


def test_a_matrix_may_list_nested_operators(tmp_path: Path) -> None:
    (planned,) = plan(tmp_path, FUSED_MATRIX)
    assert planned.identifier == "gemm/f[Fused=ACTIVATION_LINEAR:2:0.5]"
    assert build(planned).desc["FusedActivation"] == LINEAR_DESC


@pytest.mark.parametrize(
    ("written", "broken"),
    [
        (ACTIVATION, ()),
        ("{operator: ACTIVATION_HARD_SWISH, Alpha: 1, Beta: 1}", ()),
        ("{operator: ACTIVATION_PARAMETERIZED_RELU}", ("fused-activation-permitted",)),
        ("{operator: TILE, Repeats: [1]}", ("fused-activation-permitted",)),
    ],
)
def test_constraints_apply_to_the_nested_operator(
    tmp_path: Path, written: str, broken: Any
) -> None:
    case = built(tmp_path, replace_once(GEMM, ACTIVATION, written))
    assert violations(case.operator, case.desc) == broken


def test_case_needs_the_level_of_its_nested_operator(tmp_path: Path) -> None:
    assert built(tmp_path, GEMM).required_level == FeatureLevel(4, 0)
    newer = replace_once(GEMM, ACTIVATION, "{operator: ACTIVATION_GELU}")
    assert built(tmp_path, newer).required_level == FeatureLevel(5, 1)


def test_counts_of_a_nested_operator_follow_from_its_arrays(tmp_path: Path) -> None:
    text = replace_once(GEMM, ACTIVATION, "{operator: TILE, Repeats: [1, 2]}")
    assert built(tmp_path, text).desc["FusedActivation"]["RepeatsCount"] == 2


def test_show_prints_the_nested_operator(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(GEMM, "utf-8")
    shown = dmlconf_here(tmp_path, "show", "gemm/f", path).stdout
    assert "FusedActivation  ACTIVATION_LINEAR {Alpha 2, Beta 0.5}" in shown


CLIP = """\
operator: ELEMENT_WISE_CLIP1
cases:
  - desc:
      InputTensor: {Sizes: [1], DataType: UINT8, values: [1]}
      OutputTensor: {Sizes: [1], DataType: UINT8}
      MinMaxDataType: UINT8
      Min: 0
      Max: 7
"""
"""A clip; MinMaxDataType is the type of Min and Max."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data_type", "bound", "message"),
    [
        ("UINT8", "-2", "-2 does not fit UINT8"),
        ("UINT8", "256", "256 does not fit UINT8"),
        ("UINT8", "1.5", "1.5 is not a whole number, as UINT8 asks"),
        ("INT64", "9223372036854775808", "9223372036854775808 does not fit INT64"),
        ("UINT64", ".nan", "nan does not fit UINT64"),
        ("FLOAT16", "70000", "70000 does not fit FLOAT16"),
        ("UINT4", "256", "256 does not fit UINT8"),  # Four bits are stored in a byte.
    ],
)
@pytest.mark.parametrize("command", ["validate", "run"])
def test_scalar_beyond_its_type_is_refused_at_its_location(
    tmp_path: Path, command: str, data_type: str, bound: str, message: str
) -> None:
    text = replace_once(CLIP, "MinMaxDataType: UINT8", f"MinMaxDataType: {data_type}")
    (tmp_path / "clip.yaml").write_text(
        replace_once(text, "Min: 0", f"Min: {bound}"), encoding="utf-8"
    )
    done = dmlconf_here(tmp_path, command, tmp_path / "clip.yaml")
    assert done.returncode == 3
    assert f"clip.yaml:7:12: {message}" in done.stderr


@pytest.mark.parametrize(
    ("data_type", "bound"),
    [
        ("UINT8", "255"),
        ("FLOAT32", ".nan"),
        ("FLOAT16", "-.inf"),
        ("INT4", "-8"),
        ("UNKNOWN", "-9"),
    ],
)
def test_scalars_that_fit_or_have_no_type_are_accepted(
    tmp_path: Path, data_type: str, bound: str
) -> None:
    text = replace_once(CLIP, "MinMaxDataType: UINT8", f"MinMaxDataType: {data_type}")
    desc = built(tmp_path, replace_once(text, "Min: 0", f"Min: {bound}")).desc
    assert desc["MinMaxDataType"] == data_type
    assert repr(desc["Min"]) == repr(yaml.safe_load(bound))


def test_uint8_sequence_has_int8_step_and_uint8_start(tmp_path: Path) -> None:
    text = """\
operator: FILL_VALUE_SEQUENCE
cases:
  - desc:
      OutputTensor: {Sizes: [2], DataType: UINT8}
      ValueDataType: UINT8
      ValueStart: 10
      ValueDelta: -2
"""
    assert built(tmp_path, text).desc["ValueDelta"] == -2
    wrong = replace_once(text, "ValueDelta: -2", "ValueDelta: -129")
    assert "does not fit INT8" in refusal(lambda: plan(tmp_path, wrong), tmp_path)
    negative = replace_once(text, "ValueStart: 10", "ValueStart: -1")
    assert "does not fit UINT8" in refusal(lambda: plan(tmp_path, negative), tmp_path)


@pytest.mark.parametrize("scale", ["1.0e+39", "-1.0e+39"])
def test_real_numbers_beyond_float32_are_refused(tmp_path: Path, scale: str) -> None:
    text = f"{CLIP}      ScaleBias: {{Scale: {scale}, Bias: 0}}\n"
    actual = refusal(lambda: plan(tmp_path, text), tmp_path)
    assert "does not fit FLOAT32" in actual
    assert "does not fit FLOAT32" in problems_with(tmp_path, ACTIVATION.replace("2", scale))


def test_negative_matrix_value_of_an_unsigned_attribute_is_refused(tmp_path: Path) -> None:
    join = """\
operator: JOIN
cases:
  - matrix: {JoinedAxis: [-1]}
    desc:
      InputTensors: [{Sizes: [1], DataType: INT32, values: [1]}]
      OutputTensor: {Sizes: [1], DataType: INT32}
      Axis: =JoinedAxis
"""
    actual = refusal(lambda: plan(tmp_path, join), tmp_path)
    assert "-1 does not fit UINT32" in actual


@pytest.mark.parametrize(
    ("operator", "attribute", "value", "message"),
    [
        ("ELEMENT_WISE_IDENTITY", "ScaleBias", "=N", "must have Scale and Bias, not 1"),
        ("UPSAMPLE_2D", "ScaleSize", "=N", "must have Width and Height, not 1"),
        ("CUMULATIVE_SUMMATION", "HasExclusiveSum", "=N", "must be true or false, not 1"),
        ("CUMULATIVE_SUMMATION", "AxisDirection", "=N == 1", "has no constant True"),
        ("FILL_VALUE_CONSTANT", "Value", "=[N]", "must be a number, not [1]"),
    ],
)
def test_matrix_value_of_the_wrong_kind_is_refused(
    tmp_path: Path, operator: str, attribute: str, value: str, message: str
) -> None:
    text = f"""\
operator: {operator}
cases:
  - matrix: {{N: [1]}}
    desc:
      OutputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32}}
      {attribute}: "{value}"
"""
    assert message in refusal(lambda: plan(tmp_path, text), tmp_path)
