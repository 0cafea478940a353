from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.softmax import (
    activation_hardmax1,
    activation_log_softmax1_interval,
    activation_softmax1,
    activation_softmax1_error_scale,
)
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType

activation_hardmax = reference_function("ACTIVATION_HARDMAX")
activation_log_softmax = reference_function("ACTIVATION_LOG_SOFTMAX")
activation_softmax = reference_function("ACTIVATION_SOFTMAX")

tensors = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=3, max_dims=3, max_side=4),
    elements=st.floats(-50, 50, width=32),
)
few = settings(max_examples=40, deadline=None)


def like(tensor: Array) -> TensorDesc:
    return TensorDesc(DataType.FLOAT32, tensor.shape)


@few
@given(tensors)
def test_the_logarithm_undoes_the_power(tensor: Array) -> None:
    shares = activation_softmax(tensor, like(tensor))
    logarithms = activation_log_softmax(tensor, like(tensor))
    assert np.allclose(np.exp(logarithms), shares, rtol=1e-4)


@few
@given(tensors, st.sets(st.integers(0, 2)))
def test_one_element_of_each_row_is_chosen_and_none_is_larger(
    tensor: Array, axes: set[int]
) -> None:
    chosen = activation_hardmax1(tensor, like(tensor), sorted(axes))
    over = tuple(axes)
    assert (chosen.sum(over) == 1).all()
    assert ((chosen * tensor).sum(over) == tensor.max(over)).all()
    shares = activation_softmax1(tensor, like(tensor), sorted(axes))
    assert ((chosen * shares).sum(over) == shares.max(over)).all()


def test_of_equal_elements_the_first_in_row_major_order_is_chosen() -> None:
    tensor = np.array([[[1, 3], [3, 3]], [[3, 0], [0, 0]]], np.float32)
    assert activation_hardmax(tensor, like(tensor)).tolist() == [[[0, 1], [1, 0]], [[1, 0], [1, 0]]]
    actual = activation_hardmax1(tensor, like(tensor), [2, 0])
    assert actual.tolist() == [[[0, 1], [1, 0]], [[0, 0], [0, 0]]]


@few
@given(tensors)
def test_sums_in_float32_are_within_the_interval(tensor: Array) -> None:
    below = tensor - tensor.max(-1, keepdims=True)
    logarithms = below - np.log(np.exp(below).sum(-1, keepdims=True))
    lowest, highest = activation_log_softmax1_interval(tensor, like(tensor), [2])
    assert ((lowest <= logarithms) & (logarithms <= highest)).all()
    assert (highest - lowest <= 1e-5 * (1 - logarithms)).all()


def truncated(values: Array) -> Array:
    """Return the values rounded toward zero to FLOAT16, FLOAT64."""
    nearest = values.astype(np.float16)
    beyond = np.abs(nearest.astype(np.float64)) > np.abs(values)
    nearest[beyond] = np.nextafter(nearest[beyond], np.float16(0))
    return nearest.astype(np.float64)


def test_float16_may_store_the_sum_of_powers_and_nothing_else() -> None:
    """Where powers, their sum and its logarithm are truncated, what is lost of each adds up."""
    tensor = np.random.default_rng(1).uniform(-3, 3, (40, 7, 9)).astype(np.float16)
    output = TensorDesc(DataType.FLOAT16, tensor.shape)
    below = tensor.astype(np.float64) - tensor.max(-1, keepdims=True)
    lowest, highest = activation_log_softmax1_interval(tensor, output, [2])

    def outside(stored: Array) -> int:
        result = truncated(stored)
        return int(((result < lowest) | (result > highest)).sum())

    sums = np.exp(below).sum(-1, keepdims=True)
    assert outside(below - np.log(sums)) == 0
    assert outside(below - np.log(truncated(sums))) == 0
    powers = truncated(np.exp(below)).sum(-1, keepdims=True)
    assert outside(below - truncated(np.log(truncated(powers)))) > 0


def test_a_share_of_float16_loses_what_its_sum_does() -> None:
    """Powers of equal elements are 1, and FLOAT16 holds their sum; others may lose a place."""
    tensor = np.array([[2, 2, 2, 2], [2, 1, 0, -9]], np.float16)
    scale = activation_softmax1_error_scale(tensor, TensorDesc(DataType.FLOAT16, (2, 4)), [1])
    shares = activation_softmax(tensor, like(tensor)).astype(np.float64)
    assert scale.stored is not None
    assert (scale.stored[0] == 0).all()
    assert ((scale.stored[1] > shares[1] / 2) & (scale.stored[1] <= shares[1])).all()


def test_a_row_is_one_row_however_long() -> None:
    tensor = np.zeros((1, 1, 100_000), np.float32)
    assert (activation_softmax(tensor, like(tensor)) == np.float32(1e-5)).all()
    assert np.allclose(activation_log_softmax(tensor, like(tensor)), np.log(1e-5))
