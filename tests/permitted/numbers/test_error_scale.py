"""A store in FLOAT16 loses at most 2^-10 of what `store_sizes` returns.

The tested code is in `dmlconf/permitted/numbers/error_scale.py` and
`dmlconf/permitted/quantization/arithmetic.py`.
"""

from __future__ import annotations

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale, store_sizes
from dmlconf.permitted.quantization.arithmetic import matrix_multiply_integer_to_float_error_scale
from dmlconf.tensors.datatypes import Array, DataType
from tests.truncation import toward_zero


def test_truncation_loses_at_most_a_1024th_of_store_sizes() -> None:
    rng = np.random.default_rng(1)
    values = rng.uniform(-1, 1, 20_000) * 2.0 ** rng.integers(-20, 15, 20_000)
    lost = np.abs(toward_zero(values) - values)
    assert (lost <= 2.0**-10 * store_sizes(values)).all()


def test_store_size_is_the_power_of_two_at_or_below() -> None:
    values = np.array([1.0, 1.5, 1.98, -3.0, 1000.0])
    assert store_sizes(values).tolist() == [1, 1, 1, 2, 512]


def test_store_size_just_below_a_power_of_two_is_that_power() -> None:
    assert store_sizes(np.array([1.999, -1.999])).tolist() == [2, 2]


def test_store_of_an_exact_float16_number_loses_nothing() -> None:
    values = np.array([2048.0, 2049.0, 0.1, 0.0])
    assert store_sizes(values, True).tolist() == [0, 2048, 0.0625, 0]
    assert (store_sizes(values) > 0).all()


def store_error_scale(scale: float) -> Array:
    """Return the error scale of FLOAT16 stores, for products of small integers with a scale."""
    a, b = np.array([[3, 5]], np.int8), np.array([[2], [7]], np.int8)
    scales = np.full((1, 1), scale, np.float16)
    output = TensorDesc(DataType.FLOAT16, (1, 1))
    result = matrix_multiply_integer_to_float_error_scale(
        a, scales, None, b, scales, None, None, output
    )
    assert result.stored is not None
    return result.stored


def test_dequantized_integers_that_float16_has_lose_nothing() -> None:
    assert store_error_scale(0.5) == 0
    assert store_error_scale(0.1) > 0


def test_joined_deviation_defaults_to_stored_or_0() -> None:
    sums, stored = np.ones(1), np.full(1, 8.0)
    parts = [ErrorScale(sums, stored, np.full(1, 2.0)), ErrorScale(sums, stored), ErrorScale(sums)]
    assert ErrorScale.joined(parts, 0).deviation is not None
    np.testing.assert_array_equal(ErrorScale.joined(parts, 0).deviation, [2, 8, 0])
