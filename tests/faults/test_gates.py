"""The known fault of GRU in DirectML 1.8.0 is recognised: activations get finite numbers only.

The outputs called measured are those of DirectML 1.8.0.

The tested code is in `dmlconf/faults/gates.py` and `schemas/known-faults.yaml`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.faults.gates import bounded_before_activations
from dmlconf.verdicts.verdict import Status
from tests.faults.user_cases import case_of, outputs_of, status_and_fault

FAULT = "gates-of-bounded-numbers-in-gru"

STEP = (
    "{InputTensor: {Sizes: [1, 1, 1, 1], DataType: TYPE, values: [1]}, "
    "WeightTensor: {Sizes: [1, 1, 3, 1], DataType: TYPE, values: WEIGHTS}, "
    "RecurrenceTensor: {Sizes: [1, 1, 3, 1], DataType: TYPE, values: [0, 0, 0]}, "
    "OutputSingleTensor: {Sizes: [1, 1, 1, 1], DataType: TYPE}, "
    "ActivationDescs: [{operator: ACTIVATION_IDENTITY}, {operator: ACTIVATION_SOFTSIGN}], "
    "Direction: FORWARD, LinearBeforeReset: false}"
)


@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize(("weight", "measured"), [(".inf", 1), ("-.inf", -1)])
def test_finite_softsign_of_infinity_is_waived(
    weight: str, measured: float, data_type: str, tmp_path: Path
) -> None:
    """SOFTSIGN is x / (1 + |x|), which is NaN for an infinite x."""
    desc = STEP.replace("TYPE", data_type).replace("WEIGHTS", f"[0, 0, {weight}]")
    case = case_of(tmp_path, "GRU", desc)
    arrays = outputs_of(case, {"OutputSingleTensor": [measured]})
    assert status_and_fault(case, arrays, "1.8.0") == (Status.WAIVED, FAULT)
    assert status_and_fault(case, arrays, "1.9.0") == (Status.FAILED, "")
    for wrong in (0.5, -measured):
        arrays = outputs_of(case, {"OutputSingleTensor": [wrong]})
        assert status_and_fault(case, arrays, "1.8.0") == (Status.FAILED, ""), wrong


def test_nan_is_replaced_by_the_lowest_number(tmp_path: Path) -> None:
    """The hyperbolic tangent of the lowest number is -1."""
    desc = STEP.replace("TYPE", "FLOAT32").replace("WEIGHTS", "[0, 0, .nan]")
    case = case_of(tmp_path, "GRU", desc.replace("SOFTSIGN", "TANH"))
    computed = bounded_before_activations(case)
    assert computed is not None
    assert computed.outputs["OutputSingleTensor"].ravel().tolist() == [-1]
