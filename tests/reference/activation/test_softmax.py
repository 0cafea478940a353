"""Softmax, log-softmax and hardmax agree; kernels that store the sum in FLOAT16 are right.

The elements of a softmax are called shares: those of a row add up to 1.

The tested code is in `dmlconf/reference/activation/softmax.py` and
`dmlconf/permitted/activation/softmax.py`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.activation.softmax import (
    activation_log_softmax1_candidates,
    activation_softmax1_error_scale,
    change_of_shares,
)
from dmlconf.precision.accumulation import roundings
from dmlconf.reference.activation.softmax import activation_hardmax1, activation_softmax1
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType
from tests.properties import examples
from tests.truncation import toward_zero

activation_hardmax = reference_function("ACTIVATION_HARDMAX")
activation_log_softmax = reference_function("ACTIVATION_LOG_SOFTMAX")
activation_softmax = reference_function("ACTIVATION_SOFTMAX")

tensors = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=3, max_dims=3, max_side=4),
    elements=st.floats(-50, 50, width=32),
)
few = settings(max_examples=examples(40), deadline=None)


def output_like(tensor: Array) -> TensorDesc:
    return TensorDesc(DataType.FLOAT32, tensor.shape)


@few
@given(tensors)
def test_the_exponential_of_log_softmax_is_softmax(tensor: Array) -> None:
    shares = activation_softmax(tensor, output_like(tensor))
    logarithms = activation_log_softmax(tensor, output_like(tensor))
    assert np.allclose(np.exp(logarithms), shares, rtol=1e-4)


@few
@given(tensors, st.sets(st.integers(0, 2)))
def test_hardmax_chooses_one_of_the_largest_elements_of_each_row(
    tensor: Array, axes: set[int]
) -> None:
    chosen = activation_hardmax1(tensor, output_like(tensor), sorted(axes))
    over = tuple(axes)
    assert (chosen.sum(over) == 1).all()
    assert ((chosen * tensor).sum(over) == tensor.max(over)).all()
    shares = activation_softmax1(tensor, output_like(tensor), sorted(axes))
    assert ((chosen * shares).sum(over) == shares.max(over)).all()


def test_hardmax_chooses_the_first_of_equal_elements() -> None:
    tensor = np.array([[[1, 3], [3, 3]], [[3, 0], [0, 0]]], np.float32)
    assert activation_hardmax(tensor, output_like(tensor)).tolist() == [
        [[0, 1], [1, 0]],
        [[1, 0], [1, 0]],
    ]
    actual = activation_hardmax1(tensor, output_like(tensor), [2, 0])
    assert actual.tolist() == [[[0, 1], [1, 0]], [[0, 0], [0, 0]]]


@few
@given(tensors)
def test_log_softmax_with_sums_in_float32_is_within_the_interval(tensor: Array) -> None:
    below = tensor - tensor.max(-1, keepdims=True)
    logarithms = below - np.log(np.exp(below).sum(-1, keepdims=True))
    [(lowest, highest)] = activation_log_softmax1_candidates(tensor, output_like(tensor), [2])
    assert ((lowest <= logarithms) & (logarithms <= highest)).all()
    assert (highest - lowest <= 1e-5 * (1 - logarithms)).all()


def test_log_softmax_may_store_only_the_sum_in_float16() -> None:
    tensor = np.random.default_rng(1).uniform(-3, 3, (40, 7, 8)).astype(np.float16)
    output = TensorDesc(DataType.FLOAT16, tensor.shape)
    below = tensor.astype(np.float64) - tensor.max(-1, keepdims=True)
    [(lowest, highest)] = activation_log_softmax1_candidates(tensor, output, [2])

    def outside(stored: Array) -> int:
        result = toward_zero(stored)
        return int(((result < lowest) | (result > highest)).sum())

    sums = np.exp(below).sum(-1, keepdims=True)
    assert outside(below - np.log(sums)) == 0
    assert outside(below - np.log(toward_zero(sums))) == 0
    powers = toward_zero(np.exp(below)).sum(-1, keepdims=True)
    assert outside(below - toward_zero(np.log(toward_zero(powers)))) > 0


def test_softmax_may_store_the_sum_in_float16() -> None:
    """FLOAT16 has 4, the sum of the first row's exponentials, and rounds the second sum."""
    tensor = np.array([[2, 2, 2, 2], [2, 1, 0, -9]], np.float16)
    scale = activation_softmax1_error_scale(tensor, TensorDesc(DataType.FLOAT16, (2, 4)), [1])
    powers = np.exp(tensor.astype(np.float64) - 2)
    total = powers.sum(1, keepdims=True)
    [(least, greatest)] = scale.spans
    assert scale.stored is not None
    assert (scale.stored == 0).all()
    assert (least[0] == 0.25).all()
    assert (greatest[0] == 0.25).all()
    assert np.allclose(greatest[1], powers[1] / toward_zero(total)[1], 2**-16)
    assert np.allclose(least[1], powers[1] / np.fmax(total, total.astype(np.float16))[1], 2**-16)


def test_row_of_100000_elements_is_normalized_as_a_whole() -> None:
    tensor = np.zeros((1, 1, 100_000), np.float32)
    assert (activation_softmax(tensor, output_like(tensor)) == np.float32(1e-5)).all()
    assert np.allclose(activation_log_softmax(tensor, output_like(tensor)), np.log(1e-5))


@few
@given(tensors, st.integers(0, 2**32 - 1))
def test_change_of_shares_bounds_errors_of_exponents(tensor: Array, seed: int) -> None:
    errors = np.random.default_rng(seed).uniform(-1e-6, 1e-6, tensor.shape)
    powers = np.exp(tensor.astype(np.float64) - tensor.max())
    shares = powers / powers.sum(2, keepdims=True)
    moved = powers * np.exp(errors)
    change = np.abs(moved / moved.sum(2, keepdims=True) - shares)
    bound = shares * change_of_shares(shares, np.abs(errors), (2,))
    assert (change <= bound * (1 + 1e-4) + 1e-13 * shares).all()


def test_a_share_of_nearly_1_hardly_changes() -> None:
    """Errors of 0.001 change the difference of two exponents by 0.002 at most."""
    shares = np.array([1 - 2.0**-30, 2.0**-30])
    change = change_of_shares(shares, np.array([1e-3, 1e-3]), (0,))
    assert change[0] < 1e-11  # 0.002 * 2^-30 is 1.9e-12.
    assert 1e-3 < change[1] < 2.1e-3


def test_log_softmax_with_a_serial_sum_is_within_the_interval() -> None:
    tensor = np.full((1, 4096), -1.5, np.float32)
    tensor[0, 2048] = 0
    total = np.cumsum(np.exp(tensor), 1, dtype=np.float32)[:, -1:]
    logarithms = tensor - np.log(total)
    [(lowest, highest)] = activation_log_softmax1_candidates(tensor, output_like(tensor), [1])
    assert ((lowest <= logarithms) & (logarithms <= highest)).all()
    assert (highest - lowest < 0.002).all()


def test_softmax_by_powers_of_two_may_truncate_their_arguments() -> None:
    single = partial(toward_zero, dtype=np.float32)
    tensor = np.random.default_rng(0).uniform(0, 80, (50, 64)).astype(np.float32)
    below = single(tensor.astype(np.float64) - tensor.max(1, keepdims=True))
    argument = single(below * float(np.float32(np.log2(np.e))))
    powers = single(np.exp2(argument))
    actual = single(powers / powers.sum(1, keepdims=True)).astype(np.float32)
    exact = activation_softmax1(tensor, output_like(tensor), [1])
    scale = activation_softmax1_error_scale(tensor, output_like(tensor), [1])
    error = np.abs(actual.astype(np.float64) - exact)
    limit = roundings(64) * 2.0**-24 * scale.sums
    assert (error <= np.maximum(limit, np.finfo(np.float32).tiny)).all()
    assert (limit <= 1e-4 * exact + np.finfo(np.float32).tiny).all()
