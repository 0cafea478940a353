"""Long rows of bundled cases: FLOAT32 sums pass in four orders; an element 1,000 ULP off fails.

The tested code is in `dmlconf/precision/accumulation.py`, and in `dmlconf/permitted/`: in
`activation/softmax.py`, `normalization/batch.py`, `normalization/batch_gradients.py` and
`reduction/reduce.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.model import Case
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.compare import Comparison, compare
from dmlconf.tensors.datatypes import Array
from tests.bundled import bundled

SOFTMAX: Final = "activation_softmax/sizes/long-rows[Length=8195,DataType=FLOAT32]"
EQUAL: Final = "activation_softmax1/sizes/equal-elements[Length=4099,DataType=FLOAT32]"
TRAINING: Final = "batch_normalization_training/sizes/long-rows[Length=1027,DataType=FLOAT32]"
GRADIENTS: Final = "batch_normalization_training_grad/sizes/long-rows[Length=1027,DataType=FLOAT32]"
AVERAGE: Final = "reduce/sizes/long-sums-of-one-sign[Length=4099,Function=AVERAGE,DataType=FLOAT32]"

Sum = Callable[[Array], Array]
"""Adds up rows, sizes {rows, length}, in FLOAT32; returns sizes {rows, 1}."""


def _lanes(rows: Array) -> Array:
    """Return 64 partial sums of each row, of every 64th element each."""
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 64)))
    return np.cumsum(padded.reshape(len(rows), -1, 64), 1, dtype=np.float32)[:, -1]


SUMS: Final[Mapping[str, Sum]] = {
    "forward": lambda rows: np.cumsum(rows, 1, dtype=np.float32)[:, -1:],
    "backward": lambda rows: np.cumsum(rows[:, ::-1], 1, dtype=np.float32)[:, -1:],
    "ascending": lambda rows: np.cumsum(np.sort(rows, 1), 1, dtype=np.float32)[:, -1:],
    "in lanes": lambda rows: np.cumsum(_lanes(rows), 1, dtype=np.float32)[:, -1:],
}


@cache
def case_and_allowances(identifier: str) -> tuple[Case, CaseAllowances]:
    suite = bundled(identifier.partition("/")[0])
    [planned] = [planned for planned in suite.plan() if planned.identifier == identifier]
    case = build(planned)
    return case, CaseAllowances(case)


def comparison(identifier: str, output: str, actual: Array) -> Comparison:
    case, allowances = case_and_allowances(identifier)
    expected = allowances.right[output]
    shaped = actual.reshape(expected.shape).astype(np.float32)
    return compare(shaped, expected, case.rule(output), allowances.of(output))


def kernel_outputs(identifier: str, add_up: Sum) -> Mapping[str, Array]:
    """Return the outputs that depend on a sum, computed in FLOAT32."""
    case, _ = case_and_allowances(identifier)
    inputs = case.inputs()
    rows = inputs["InputTensor"].reshape(-1, inputs["InputTensor"].shape[-1])
    if identifier in (SOFTMAX, EQUAL):
        powers = np.exp(rows - rows.max(1, keepdims=True))
        return {"OutputTensor": powers / add_up(powers)}
    if identifier == AVERAGE:
        return {"OutputTensor": add_up(rows) / np.float32(rows.shape[1])}
    rows = rows.reshape(1, -1)
    count = np.float32(rows.shape[1])
    epsilon = np.float32(case.desc["Epsilon"])
    if identifier == TRAINING:
        mean = add_up(rows) / count
        variance = add_up(np.square(rows - mean)) / count
        factor = inputs["ScaleTensor"].ravel() / np.sqrt(variance + epsilon)
        return {
            "OutputTensor": (rows - mean) * factor + inputs["BiasTensor"].ravel(),
            "OutputMeanTensor": mean,
            "OutputVarianceTensor": variance,
        }
    assert identifier == GRADIENTS
    gradient = inputs["InputGradientTensor"].reshape(1, -1)
    centred = rows - inputs["MeanTensor"].ravel()
    deviation = np.sqrt(inputs["VarianceTensor"].ravel() + epsilon)
    return {
        "OutputScaleGradientTensor": add_up(gradient * centred) / deviation,
        "OutputBiasGradientTensor": add_up(gradient),
    }


@pytest.mark.parametrize("order", SUMS)
@pytest.mark.parametrize("identifier", [SOFTMAX, EQUAL, TRAINING, GRADIENTS, AVERAGE])
def test_four_orders_of_additions_pass(identifier: str, order: str) -> None:
    for output, actual in kernel_outputs(identifier, SUMS[order]).items():
        assert comparison(identifier, output, actual).passed, output


@pytest.mark.parametrize("steps", [1000, -1000])
@pytest.mark.parametrize("identifier", [SOFTMAX, EQUAL, TRAINING, GRADIENTS, AVERAGE])
def test_output_with_greatest_element_1000_ulp_off_fails(identifier: str, steps: int) -> None:
    _, allowances = case_and_allowances(identifier)
    for output in kernel_outputs(identifier, SUMS["forward"]):
        right = allowances.right[output].ravel()
        index = int(np.abs(right).argmax())
        moved = right.copy()
        moved[index] = (moved[index : index + 1].view(np.int32) + steps).view(np.float32)[0]
        assert not comparison(identifier, output, moved).passed, output
