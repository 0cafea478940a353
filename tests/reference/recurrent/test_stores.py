"""What GRU and RNN of FLOAT16 hold on the way, as measured on DirectML."""

from __future__ import annotations

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.error_scale import ErrorScale
from dmlconf.reference.recurrent.gru import gru_error_scale
from dmlconf.reference.recurrent.rnn import rnn_error_scale
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
    (actual,) = gru_error_scale(
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
    assert lost(actual) >= 1


def rnn_of(inputs: float, weight: float, bias: float) -> ErrorScale:
    """Return the error scale of one step of an RNN of one node, without hidden nodes before it."""
    (result,) = rnn_error_scale(
        InputTensor=half(inputs).reshape(1, 1, 1, 1),
        WeightTensor=half(weight).reshape(1, 1, 1, 1),
        RecurrenceTensor=half(1).reshape(1, 1, 1, 1),
        BiasTensor=half(bias, 0).reshape(1, 1, 1, 2),
        HiddenInitTensor=None,
        SequenceLengthsTensor=None,
        OutputSequenceTensor=TensorDesc(DataType.FLOAT16, (1, 1, 1, 1)),
        OutputSingleTensor=None,
        ActivationDescs=[RELU],
        Direction="FORWARD",
    )
    return result


def test_a_store_loses_nothing_of_exact_sums() -> None:
    assert lost(rnn_of(3, 0.25, 0.5)) < 2.0**-20


@pytest.mark.parametrize(("inputs", "weight", "bias"), [(0.3, 0.7, 0.5), (2047, 1.5, 0)])
def test_a_store_loses_a_place_of_sums_that_float16_does_not_have(
    inputs: float, weight: float, bias: float
) -> None:
    value = float(np.float16(inputs)) * float(np.float16(weight)) + bias
    assert lost(rnn_of(inputs, weight, bias)) > abs(value) * 2.0**-11
