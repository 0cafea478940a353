"""What GRU of FLOAT16 holds on the way, as measured on DirectML."""

from __future__ import annotations

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.error_scale import ErrorScale
from dmlconf.reference.recurrent.gru import gru_error_scale
from dmlconf.tensors.datatypes import Array, DataType

RELU = {"operator": "ACTIVATION_RELU"}


def half(*values: float) -> Array:
    return np.array(values, np.float16)


def lost(error_scale: ErrorScale) -> float:
    """Return what stores may take off the first element."""
    assert error_scale.stored is not None
    return float(error_scale.stored.ravel()[0]) * 2.0**-10


@pytest.mark.parametrize("linear_before_reset", [False, True])
def test_gru_holds_a_product_before_the_bias(linear_before_reset: bool) -> None:
    """2,048 + 1 - 2,048 is 0 on DirectML 1.15.4, which loses the 1 first."""
    recurrence = half(0, 0, 0, 0, 0, 0, 0, 0, 2048, 1, 0, 0)
    (found,) = gru_error_scale(
        InputTensor=half(0).reshape(1, 1, 1, 1),
        WeightTensor=np.zeros((1, 1, 6, 1), np.float16),
        RecurrenceTensor=recurrence.reshape(1, 1, 6, 2),
        BiasTensor=half(0, 0, 1, 1, 0, 0, 0, 0, 0, 0, -2048, 0).reshape(1, 1, 1, 12),
        HiddenInitTensor=half(1, 1).reshape(1, 1, 1, 2),
        SequenceLengthsTensor=None,
        OutputSequenceTensor=TensorDesc(DataType.FLOAT16, (1, 1, 1, 2)),
        OutputSingleTensor=None,
        ActivationDescs=[RELU, RELU],
        Direction="FORWARD",
        LinearBeforeReset=linear_before_reset,
    )
    assert lost(found) >= 1
