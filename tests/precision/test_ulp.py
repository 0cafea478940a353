"""A distance in ULP is the number of steps between two numbers, also across zero and to infinity.

The tested code is in `dmlconf/precision/ulp.py`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dmlconf.precision.ulp import UNORDERED, ordered_bits, ulp_distance
from dmlconf.tensors.datatypes import Array, DataType

FLOATS = [DataType.FLOAT16, DataType.FLOAT32, DataType.FLOAT64]
FRACTION_BITS = {DataType.FLOAT16: 10, DataType.FLOAT32: 23, DataType.FLOAT64: 52}
LEAST_EXPONENT = {DataType.FLOAT16: -14, DataType.FLOAT32: -126, DataType.FLOAT64: -1022}


def number(data_type: DataType, bits: int) -> Any:
    return np.array([bits], f"u{data_type.bits // 8}").view(data_type.dtype)[0]


def numbers(data_type: DataType) -> st.SearchStrategy[Any]:
    """Return a strategy for any bits, often near the edges of the format."""
    sign = 1 << (data_type.bits - 1)
    infinity = ((1 << (data_type.bits - 1 - FRACTION_BITS[data_type])) - 1) << (
        FRACTION_BITS[data_type]
    )
    least_normal = 1 << FRACTION_BITS[data_type]
    edges = [0, 1, least_normal - 1, least_normal, infinity - 1, infinity, infinity + 1, sign - 1]
    near = st.builds(
        lambda edge, step, negative: ((edge + step) % sign) | (sign if negative else 0),
        st.sampled_from(edges),
        st.integers(-3, 3),
        st.booleans(),
    )
    return (near | st.integers(0, 2 * sign - 1)).map(lambda bits: number(data_type, bits))


PAIRS = st.sampled_from(FLOATS).flatmap(
    lambda data_type: st.tuples(st.just(data_type), numbers(data_type), numbers(data_type))
)


def rank(data_type: DataType, value: Any) -> int:
    """Return how many steps a finite number or an infinity is from 0, by exact arithmetic."""
    steps = 1 << FRACTION_BITS[data_type]
    if math.isinf(value):
        greatest = float(np.finfo(data_type.dtype).max)
        return (rank(data_type, greatest) + 1) * (1 if value > 0 else -1)
    exact = Fraction(float(value))
    if exact < 0:
        return -rank(data_type, -value)
    least = LEAST_EXPONENT[data_type]
    exponent = max(least, math.frexp(float(value))[1] - 1) if exact else least
    within = exact / Fraction(2) ** exponent * steps
    assert within.denominator == 1
    return (exponent - least) * steps + int(within)


def distance(a: Any, b: Any) -> int:
    return int(ulp_distance(np.array([a]), np.array([b]))[0])


@given(PAIRS)
def test_distance_agrees_with_exact_arithmetic(pair: tuple[DataType, Any, Any]) -> None:
    data_type, a, b = pair
    if np.isnan(a) or np.isnan(b):
        expected = 0 if np.isnan(a) and np.isnan(b) else UNORDERED[a.itemsize]
    else:
        expected = abs(rank(data_type, a) - rank(data_type, b))
    assert distance(a, b) == expected


@pytest.mark.slow
@given(PAIRS)
def test_distance_is_the_same_both_ways(pair: tuple[DataType, Any, Any]) -> None:
    _, a, b = pair
    assert distance(a, b) == distance(b, a)


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(0, 40),
    st.sampled_from([math.inf, -math.inf]),
)
def test_distance_counts_the_steps_of_nextafter(start: float, steps: int, end: float) -> None:
    reached, taken = start, 0
    while taken < steps and math.isfinite(reached):
        reached = math.nextafter(reached, end)
        taken += 1
    assert distance(np.float64(reached), np.float64(start)) == taken


@given(st.sampled_from(FLOATS), st.data())
def test_steps_across_zero_are_counted(data_type: DataType, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, 20).map(lambda bits: number(data_type, bits)))
    reached = value
    taken = 0
    while taken < 40:
        reached = np.nextafter(reached, data_type.dtype.type(-math.inf))
        taken += 1
        assert distance(value, reached) == taken


@pytest.mark.parametrize("data_type", FLOATS)
def test_zeros_of_both_signs_have_distance_0(data_type: DataType) -> None:
    tiny = number(data_type, 1)
    zero = data_type.dtype.type(0.0)
    assert distance(zero, -zero) == 0
    assert distance(tiny, -zero) == distance(tiny, zero) == 1
    assert distance(tiny, -tiny) == 2


@pytest.mark.parametrize("data_type", FLOATS)
def test_infinity_is_one_step_beyond_the_greatest_number(data_type: DataType) -> None:
    greatest = np.finfo(data_type.dtype).max
    infinity = data_type.dtype.type(math.inf)
    assert distance(greatest, infinity) == 1
    assert distance(-greatest, -infinity) == 1
    assert distance(infinity, infinity) == 0
    assert distance(infinity, -infinity) == 2 * rank(data_type, infinity)


@pytest.mark.parametrize("data_type", FLOATS)
def test_nan_has_distance_0_only_to_nan(data_type: DataType) -> None:
    nan = data_type.dtype.type(math.nan)
    others = [0.0, 1.0, -1.0, math.inf, -math.inf]
    assert distance(nan, nan) == 0
    assert distance(nan, -nan) == 0
    for other in map(data_type.dtype.type, others):
        assert distance(nan, other) == distance(other, -nan) == UNORDERED[nan.itemsize]


@pytest.mark.parametrize("data_type", FLOATS)
def test_distances_keep_the_shape(data_type: DataType) -> None:
    values = np.arange(6, dtype=data_type.dtype).reshape(2, 3)
    other = values.copy()
    other[1, 2] = np.nextafter(other[1, 2], data_type.dtype.type(9))
    assert ulp_distance(values, other).tolist() == [[0, 0, 0], [0, 0, 1]]
    assert ulp_distance(values.T, other.T).tolist() == [[0, 0], [0, 0], [0, 1]]
    assert ordered_bits(values.T).shape == (3, 2)
    single, nan = values[0, 1].reshape(()), np.array(np.nan, data_type.dtype)
    assert ordered_bits(single).shape == ulp_distance(single, single).shape == ()
    assert ulp_distance(single, nan).tolist() == UNORDERED[values.itemsize]


@pytest.mark.slow
@given(PAIRS)
def test_ordered_bits_have_the_order_of_the_numbers(pair: tuple[DataType, Any, Any]) -> None:
    data_type, a, b = pair
    assume(a < b or a > b)
    values: Array = np.array([min(a, b), max(a, b)], data_type.dtype)
    less, greater = ordered_bits(values).tolist()
    assert less < greater


@pytest.mark.parametrize("data_type", FLOATS)
def test_negative_zero_comes_right_before_positive_zero(data_type: DataType) -> None:
    values = np.array([-0.0, 0.0], data_type.dtype)
    negative, positive = ordered_bits(values).tolist()
    assert positive - negative == 1


@pytest.mark.parametrize("data_type", FLOATS)
def test_ordered_bits_of_nans_lie_beyond_those_of_infinities(data_type: DataType) -> None:
    nan = data_type.dtype.type(math.nan)
    values = np.array([-np.abs(nan), -math.inf, math.inf, np.abs(nan)], data_type.dtype)
    lowest, negative, positive, highest = ordered_bits(values).tolist()
    assert lowest < negative < positive < highest
