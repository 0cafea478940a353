"""The permitted error of a recurrent layer does not grow without bound over many steps.

The tested code is in `dmlconf/permitted/recurrent/spread.py` and
`dmlconf/permitted/recurrent/layers.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.numbers.rounding import ANY_RESULT
from dmlconf.permitted.recurrent.gru import gru_error_scale
from dmlconf.permitted.recurrent.rnn import rnn_error_scale
from dmlconf.tensors.datatypes import Array, DataType

STEPS, INPUTS, HIDDEN = 60, 8, 16


def error_scale(operator: str, data_type: DataType, weight: float = 0.25) -> ErrorScale:
    """Return the error scale of a layer; `weight` is the standard deviation of WeightTensor."""
    random, dtype = np.random.default_rng(0), data_type.dtype
    gates = 3 if operator == "GRU" else 1

    def tensor(*sizes: int, deviation: float = 1.0) -> Array:
        values: Array = random.standard_normal(sizes) * deviation
        return values.astype(dtype)

    arguments: dict[str, Any] = {
        "InputTensor": tensor(1, STEPS, 1, INPUTS),
        "WeightTensor": tensor(1, 1, gates * HIDDEN, INPUTS, deviation=weight),
        "RecurrenceTensor": tensor(1, 1, gates * HIDDEN, HIDDEN, deviation=HIDDEN**-0.5),
        "BiasTensor": None,
        "HiddenInitTensor": None,
        "SequenceLengthsTensor": None,
        "OutputSequenceTensor": TensorDesc(data_type, (STEPS, 1, 1, HIDDEN)),
        "OutputSingleTensor": None,
        "Direction": "FORWARD",
    }
    tanh = {"operator": "ACTIVATION_TANH"}
    if operator == "RNN":
        (result,) = rnn_error_scale(**arguments, ActivationDescs=[tanh])
    else:
        sigmoid = {"operator": "ACTIVATION_SIGMOID"}
        (result,) = gru_error_scale(
            **arguments, ActivationDescs=[sigmoid, tanh], LinearBeforeReset=True
        )
    return result


@pytest.mark.slow
@pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.FLOAT16])
@pytest.mark.parametrize("operator", ["RNN", "GRU"])
def test_error_stays_small_over_60_steps(operator: str, data_type: DataType) -> None:
    sums = error_scale(operator, data_type).sums
    assert sums.max() < 50  # 50 * 2^-24 is 3e-6.
    assert np.median(sums[-1]) < 3 * np.median(sums[5])


def test_terms_that_overflow_float16_permit_any_result() -> None:
    sums = error_scale("RNN", DataType.FLOAT16, weight=10_000.0).sums
    assert (sums >= ANY_RESULT).any()
