"""Indices and other results of comparisons may be those of zeros if inputs are subnormal.

A device may flush subnormal FLOAT32 numbers to zero, so ARGMAX of [1e-40, 2e-40] may be 0 or 1.

The tested code is in `dmlconf/permitted/subnormals.py`, `dmlconf/permitted/allowance.py`,
`dmlconf/precision/compare.py` and `dmlconf/judging/judge.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case
from dmlconf.judging.judge import judge
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import Status
from tests.engine.cases import write

NUMBERS = "[1.0e-40, 2.0e-40, -1.0e-40, 1.0e-41]"
INPUT = f"InputTensor: {{Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: {NUMBERS}}}"
INDEX = "{Sizes: [1, 1, 1, 1], DataType: UINT32}"
WINDOW = "Strides: [1, 1], WindowSize: [1, 4], StartPadding: [0, 0], EndPadding: [0, 0]"
POOLED = f"""{INPUT}, OutputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32}},
      OutputIndicesTensor: {{Sizes: [1, 1, 1, 1], DataType: UINT32}}, {WINDOW}"""
TOP = f"""{INPUT}, OutputValueTensor: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32}},
      OutputIndexTensor: {{Sizes: [1, 1, 1, 2], DataType: UINT32}}, Axis: 3, K: 2"""
GRADIENTS = "{Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: [1, 2, 3, 4]}"

DESCS = {
    "ARGMIN": f"{INPUT}, OutputTensor: {INDEX}, Axes: [3], AxisDirection: INCREASING",
    "ARGMAX": f"{INPUT}, OutputTensor: {INDEX}, Axes: [3], AxisDirection: DECREASING",
    "REDUCE": f"Function: ARGMAX, {INPUT}, OutputTensor: {INDEX}, Axes: [3]",
    "MAX_POOLING1": POOLED,
    "MAX_POOLING2": f"{POOLED}, Dilations: [1, 1]",
    "TOP_K": TOP,
    "TOP_K1": f"{TOP}, AxisDirection: INCREASING",
    "ELEMENT_WISE_CLIP_GRAD": f"""{INPUT}, InputGradientTensor: {GRADIENTS},
      OutputGradientTensor: {{Sizes: [1, 1, 1, 4], DataType: FLOAT32}}, Min: 0, Max: 1""",
    "NONZERO_COORDINATES": f"""{INPUT}, OutputCountTensor: {{Sizes: [1], DataType: UINT32}},
      OutputCoordinatesTensor: {{Sizes: [4, 4], DataType: UINT32}}""",
}


def case_of(directory: Path, operator: str, numbers: str = NUMBERS) -> Case:
    desc = DESCS[operator].replace(NUMBERS, numbers)
    text = f"operator: {operator}\ncases:\n  - name: one\n    desc: {{{desc}}}\n"
    (planned,) = load_suite([write(directory, text, "one.yaml")]).plan()
    return build(planned)


def flushed(case: Case) -> dict[str, Array]:
    return evaluate(
        case, {name: array * 0 for name, array in case.inputs().items()} | gradients(case)
    )


def gradients(case: Case) -> dict[str, Array]:
    """Return the input of gradients, which no operator compares."""
    return {name: a for name, a in case.inputs().items() if name == "InputGradientTensor"}


def reference(case: Case) -> Outcome:
    return Outputs(evaluate(case, case.inputs()))


@pytest.mark.parametrize("operator", DESCS)
def test_results_for_zeros_are_right_if_the_inputs_are_subnormal(
    tmp_path: Path, operator: str
) -> None:
    case = case_of(tmp_path, operator)
    actual = flushed(case)
    right = evaluate(case, case.inputs())
    assert any((actual[name] != right[name]).any() for name in actual)
    assert judge(case, Outputs(actual), reference).status is Status.PASSED
    assert judge(case, Outputs(right), reference).status is Status.PASSED


@pytest.mark.parametrize("operator", DESCS)
def test_results_for_zeros_are_wrong_if_the_inputs_are_normal(
    tmp_path: Path, operator: str
) -> None:
    case = case_of(tmp_path, operator, "[0.1, 0.2, -0.1, 0.01]")
    assert judge(case, Outputs(flushed(case)), reference).status is Status.FAILED


@pytest.mark.parametrize("operator", ["ARGMIN", "ARGMAX", "REDUCE", "MAX_POOLING1", "TOP_K"])
def test_an_index_wrong_for_subnormal_numbers_and_zeros_fails(
    tmp_path: Path, operator: str
) -> None:
    case = case_of(tmp_path, operator)
    actual = evaluate(case, case.inputs())
    name = next(name for name, array in actual.items() if array.dtype.kind == "u")
    candidates = {int(actual[name].ravel()[0]), int(flushed(case)[name].ravel()[0])}
    (other, *_) = {0, 1, 2, 3} - candidates
    actual[name] = actual[name].copy()
    actual[name].flat[0] = other
    assert judge(case, Outputs(actual), reference).status is Status.FAILED


@pytest.mark.parametrize("function", ["MIN", "MAX"])
def test_extrema_of_subnormal_numbers_may_be_zero(tmp_path: Path, function: str) -> None:
    desc = f"Function: {function}, {INPUT}, Axes: [3], OutputTensor: "
    desc += "{Sizes: [1, 1, 1, 1], DataType: FLOAT32}"
    text = f"operator: REDUCE\ncases:\n  - name: one\n    desc: {{{desc}}}\n"
    (planned,) = load_suite([write(tmp_path, text, "one.yaml")]).plan()
    case = build(planned)
    zero = Outputs({"OutputTensor": np.zeros((1, 1, 1, 1), np.float32)})
    larger = Outputs({"OutputTensor": np.full((1, 1, 1, 1), 1e-30, np.float32)})
    assert judge(case, zero, reference).status is Status.PASSED
    assert judge(case, larger, reference).status is Status.FAILED


def test_subnormal_float16_inputs_are_no_zeros(tmp_path: Path) -> None:
    """Direct3D permits to flush subnormal FLOAT32 numbers; 1e-5 is a normal one."""
    desc = "InputTensor: {Sizes: [2], DataType: FLOAT16, values: [1.0e-5, 1]}, "
    desc += "OutputTensor: {Sizes: [2], DataType: FLOAT32}"
    text = f"operator: CAST\ncases:\n  - name: one\n    desc: {{{desc}}}\n"
    (planned,) = load_suite([write(tmp_path, text, "one.yaml")]).plan()
    case = build(planned)
    zero = Outputs({"OutputTensor": np.array([0, 1], np.float32)})
    assert judge(case, reference(case), reference).status is Status.PASSED
    assert judge(case, zero, reference).status is Status.FAILED
