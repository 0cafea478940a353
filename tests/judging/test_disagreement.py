"""Outputs that contradict each other fail, even if the rule of each permits it by itself.

The tested code is in `dmlconf/judging/disagreement.py`, `dmlconf/judging/nodes.py`,
`dmlconf/judging/judge.py`, `dmlconf/judging/contradictions.py`,
`dmlconf/precision/consequences.py`, and in `quantization/linear.py` and `movement/selection.py` of
`dmlconf/permitted/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Outputs
from dmlconf.cases.model import Case
from dmlconf.judging.judge import judge
from dmlconf.tensors.sample import sample_of
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.cases.suites import built, replace_once
from tests.cli.process import dmlconf_here
from tests.graphs.suites import graph_case

DYNAMIC: Final = """
operator: DYNAMIC_QUANTIZE_LINEAR
cases:
  - name: one
    desc:
      InputTensor: {{Sizes: [{count}], DataType: FLOAT32, values: {values}}}
      OutputTensor: {{Sizes: [{count}], DataType: {integer}}}
      OutputScaleTensor: {{Sizes: [1], DataType: FLOAT32}}
      OutputZeroPointTensor: {{Sizes: [1], DataType: {integer}}}
"""


def dynamic(folder: Path, values: list[float], integer: str = "UINT8") -> Case:
    text = str(values).replace("inf", ".inf")
    return built(folder, DYNAMIC.format(count=len(values), values=text, integer=integer))


def with_outputs(case: Case, changed: Mapping[str, Any]) -> Outputs:
    """Return the reference's outputs, with these elements in place of some."""
    right = run_case(case)
    assert isinstance(right, Outputs)
    arrays = dict(right.arrays)
    for name, values in changed.items():
        arrays[name] = np.array(values, arrays[name].dtype).reshape(arrays[name].shape)
    return Outputs(arrays)


def verdict_of(case: Case, changed: Mapping[str, Any]) -> Verdict:
    right = run_case(case)
    return judge(case, with_outputs(case, changed), lambda _: right)


def quantized(scale: float, zero_point: int, *elements: int) -> dict[str, Any]:
    return {
        "OutputScaleTensor": [scale],
        "OutputZeroPointTensor": [zero_point],
        "OutputTensor": elements,
    }


OVERFLOWING: Final = [3e38, -3e38, 1e37]
"""The range of 6e38 is infinite in FLOAT32, and the scale infinite or 6e38 / 255."""

SUBNORMAL: Final = [0.0, 7.52316384526264e-37, 1.88079096131566e-37, 1.1754943508222875e-38]
"""The range divided by 255 is the subnormal scale 2.95e-39, which may count as 0."""

FINITE: Final = 6e38 / 255
SMALL: Final = 7.52316384526264e-37 / 255


@pytest.mark.parametrize(
    ("values", "right"),
    [
        (OVERFLOWING, quantized(np.inf, 0, 0, 0, 0)),
        (OVERFLOWING, quantized(FINITE, 128, 255, 0, 132)),
        (SUBNORMAL, quantized(SMALL, 0, 0, 255, 64, 4)),
        (SUBNORMAL, quantized(SMALL, 0, 0, 255, 255, 255)),
        (SUBNORMAL, quantized(0, 0, 0, 255, 64, 4)),
        ([0.0, 0.0], quantized(0, 0, 0, 0)),
        ([1.0, np.inf], quantized(np.inf, 0, 0, 0)),
        ([1.0, -np.inf], quantized(np.inf, 0, 0, 0)),
        ([1.0, -np.inf], quantized(np.inf, 255, 255, 255)),
    ],
)
def test_quantized_elements_of_the_returned_scale_pass(
    values: list[float], right: dict[str, Any], tmp_path: Path
) -> None:
    assert verdict_of(dynamic(tmp_path, values), right).status in (Status.PASSED, Status.UNCHECKED)


@pytest.mark.parametrize(
    ("values", "wrong", "named"),
    [
        (OVERFLOWING, quantized(np.inf, 128, 128, 128, 128), "OutputZeroPointTensor"),
        (OVERFLOWING, quantized(np.inf, 0, 255, 0, 0), "OutputTensor"),
        (OVERFLOWING, quantized(FINITE, 0, 127, 0, 4), "OutputZeroPointTensor"),
        (OVERFLOWING, quantized(FINITE, 128, 128, 128, 128), "OutputTensor"),
        (SUBNORMAL, quantized(SMALL, 0, 0, 255, 64, 255), "OutputTensor"),
        (SUBNORMAL, quantized(0, 0, 0, 255, 255, 4), "OutputTensor"),
        ([0.0, 0.0], quantized(0, 0, 0, 1), "OutputTensor"),
        ([0.0, 0.0], quantized(0, 7, 7, 7), "OutputZeroPointTensor"),
        ([1.0, np.inf], quantized(np.inf, 0, 0, 255), "OutputTensor"),
        ([1.0, -np.inf], quantized(np.inf, 9, 9, 9), "OutputZeroPointTensor"),
    ],
)
def test_quantized_elements_of_another_scale_fail(
    values: list[float], wrong: dict[str, Any], named: str, tmp_path: Path
) -> None:
    verdict = verdict_of(dynamic(tmp_path, values), wrong)
    assert not any(figures.differing for figures in verdict.figures.values())
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.OUTPUTS_DISAGREE
    assert f"{named} contradict" in verdict.reason.message
    assert verdict.reason.differences[0]["tensor"] == named


@pytest.mark.parametrize("end", [-np.inf, np.inf])
def test_element_next_to_a_half_is_that_of_the_returned_scale(end: float, tmp_path: Path) -> None:
    """By itself, the scale may be any of some FLOAT32 numbers, and the element 100 or 101."""
    scale = np.float32(257) / np.float32(255)
    moved = np.nextafter(np.nextafter(scale, np.float32(end)), np.float32(end))
    half = np.float32(100.5) * scale
    case = dynamic(tmp_path, [257.0, float(half)])
    upper, lower = (quantized(float(moved), 0, 255, each) for each in (101, 100))
    # A greater scale makes the quotient less than 100.5.
    right, wrong = (lower, upper) if end > 0 else (upper, lower)
    assert verdict_of(case, right).status is Status.PASSED
    assert verdict_of(case, wrong).reason is not None
    for each in (upper, lower):
        assert verdict_of(case, {**each, "OutputScaleTensor": [scale]}).status is Status.PASSED


def test_message_and_differences_name_what_is_contradicted(tmp_path: Path) -> None:
    case = dynamic(tmp_path, SUBNORMAL)
    reason = verdict_of(case, quantized(SMALL, 0, 0, 255, 64, 255)).reason
    assert reason is not None
    assert reason.message == (
        "1 of 4 elements of OutputTensor contradicts OutputScaleTensor and OutputZeroPointTensor"
    )
    assert reason.differences == (
        {
            "tensor": "OutputTensor",
            "coordinates": [3],
            "expected": 4,
            "allowed": [[4, 4]],
            "actual": 255,
            "off_by": 251,
            "unit": "",
        },
    )


GRAPH: Final = """
inputs: {x: {Sizes: [3], DataType: FLOAT32, values: [3.0e+38, -3.0e+38, 1.0e+37]}}
nodes:
  quantize:
    operator: DYNAMIC_QUANTIZE_LINEAR
    desc:
      InputTensor: x
      OutputTensor: {Sizes: [3], DataType: UINT8}
      OutputScaleTensor: {Sizes: [1], DataType: FLOAT32}
      OutputZeroPointTensor: {Sizes: [1], DataType: UINT8}
outputs:
  q: quantize
  scale: quantize.OutputScaleTensor
  zero: quantize.OutputZeroPointTensor
"""

COPIED: Final = replace_once(
    replace_once(GRAPH, "InputTensor: x", "InputTensor: copy"),
    "nodes:",
    "nodes:\n  copy: {operator: ELEMENT_WISE_IDENTITY, desc: {InputTensor: x, OutputTensor: {}}}",
)


def test_outputs_of_a_node_of_a_graph_are_judged_together(tmp_path: Path) -> None:
    case = graph_case(tmp_path, GRAPH)
    right = {"q": [255, 0, 132], "scale": [FINITE], "zero": [128]}
    assert verdict_of(case, right).status in (Status.PASSED, Status.UNCHECKED)
    reason = verdict_of(case, {**right, "q": [128, 128, 128]}).reason
    assert reason is not None
    assert reason.kind is ReasonKind.OUTPUTS_DISAGREE
    assert reason.message == "3 of 3 elements of q contradict scale and zero"


def test_node_of_which_an_output_or_an_input_is_not_known_is_not_judged_so(tmp_path: Path) -> None:
    lines = GRAPH.splitlines(keepends=True)
    without_zero_point = "".join(line for line in lines if "zero:" not in line)
    for text in (without_zero_point, COPIED):
        case = graph_case(tmp_path, text)
        outputs = {"q": [128, 128, 128], "scale": [FINITE], "zero": [128]}
        known = {name: outputs[name] for name in case.outputs()}
        assert verdict_of(case, known).status in (Status.PASSED, Status.UNCHECKED)


STATED: Final = DYNAMIC.format(count=4, values=str(SUBNORMAL), integer="UINT8")


def expecting(*elements: int) -> str:
    return STATED + (
        f"    expect: {{OutputTensor: {list(elements)}, OutputScaleTensor: [{SMALL}], "
        "OutputZeroPointTensor: [0]}\n"
    )


def test_expected_outputs_that_contradict_each_other_fail_every_backend(tmp_path: Path) -> None:
    case = built(tmp_path, expecting(0, 255, 64, 255))
    verdict = verdict_of(case, {})
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.CONTRADICTION
    assert "expected values contradict each other: 1 of 4 elements" in verdict.reason.message
    disputed = built(
        tmp_path, expecting(0, 255, 64, 255) + "    disputes: reference\n    note: a\n"
    )
    assert verdict_of(disputed, {"OutputTensor": [0, 255, 64, 255]}).status is Status.PASSED


def test_validate_reports_expected_outputs_that_contradict_each_other(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(expecting(0, 255, 64, 255), encoding="utf-8")
    wrong = dmlconf_here(tmp_path, "validate", file)
    assert wrong.returncode != 0
    assert "contradict each other" in " ".join(wrong.stdout.split() + wrong.stderr.split())
    file.write_text(expecting(0, 255, 64, 4), encoding="utf-8")
    assert dmlconf_here(tmp_path, "validate", file).returncode == 0


def test_case_with_a_tolerance_of_its_own_is_not_judged_so(tmp_path: Path) -> None:
    text = STATED + "    tolerance: {OutputTensor: {absolute: 255, reason: a test}}\n"
    case = built(tmp_path, text)
    assert verdict_of(case, quantized(SMALL, 0, 0, 255, 64, 255)).status is Status.PASSED


def test_sample_of_an_output_is_judged_by_whole_others(tmp_path: Path) -> None:
    case = dynamic(tmp_path, [*SUBNORMAL, *SUBNORMAL])
    right = with_outputs(case, quantized(SMALL, 0, *[0, 255, 64, 4] * 2))
    for wrong in (False, True):
        elements = right.arrays["OutputTensor"].copy()
        elements[3] = 255 if wrong else 4
        others = {n: array for n, array in right.arrays.items() if n != "OutputTensor"}
        sample = sample_of(elements, "seed", 7)
        outcome = Outputs(others, samples={"OutputTensor": sample})
        verdict = judge(case, outcome, lambda _: right)
        assert (verdict.status is Status.FAILED) == (wrong and 3 in sample.indices)


TOP: Final = """
operator: TOP_K1
cases:
  - name: one
    desc:
      InputTensor: {Sizes: [5], DataType: FLOAT32, values: [3, .nan, 1, 5, 2]}
      OutputValueTensor: {Sizes: [3], DataType: FLOAT32}
      OutputIndexTensor: {Sizes: [3], DataType: UINT32}
      Axis: 0
      K: 3
      AxisDirection: DECREASING
"""


@pytest.mark.parametrize(
    ("values", "indices", "right"),
    [
        ([np.nan, 5, 3], [1, 3, 0], True),
        ([5, 5, 1], [3, 3, 2], True),
        ([5, 3, 2], [3, 0, 3], False),
        ([np.nan, 5, 3], [3, 1, 0], False),
    ],
)
def test_value_of_top_k_is_the_element_at_its_index(
    values: list[float], indices: list[int], right: bool, tmp_path: Path
) -> None:
    """A line with NaN has no order, so any element and any index is right by itself."""
    outputs = {"OutputValueTensor": values, "OutputIndexTensor": indices}
    assert (verdict_of(built(tmp_path, TOP), outputs).status is Status.PASSED) == right


NONZERO: Final = """
operator: NONZERO_COORDINATES
cases:
  - name: one
    desc:
      InputTensor: {Sizes: [4], DataType: FLOAT32, values: [1.0e-40, 0, 2, 3]}
      OutputCountTensor: {Sizes: [1], DataType: UINT32}
      OutputCoordinatesTensor: {Sizes: [4, 1], DataType: UINT32}
"""


@pytest.mark.parametrize(
    ("count", "coordinates", "right"),
    [
        (3, [0, 2, 3, 9], True),
        (2, [2, 3, 9, 9], True),
        (3, [0, 2, 9, 9], False),
        (3, [2, 3, 9, 9], False),
        (2, [0, 2, 3, 9], False),
    ],
)
def test_coordinates_are_those_of_the_counted_elements(
    count: int, coordinates: list[int], right: bool, tmp_path: Path
) -> None:
    """1e-40 may count as 0."""
    outputs = {"OutputCountTensor": [count], "OutputCoordinatesTensor": coordinates}
    assert (verdict_of(built(tmp_path, NONZERO), outputs).status is Status.PASSED) == right
