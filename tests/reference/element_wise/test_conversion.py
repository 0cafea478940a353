"""CAST converts as measured, QUANTIZE_LINEAR as documented; other right roundings are permitted.

The tested code is in `element_wise/conversion.py`, `quantization/linear.py` and
`quantization/quotients.py` of `dmlconf/reference/` and of `dmlconf/permitted/`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array, DataType
from tests.permitted.intervals import is_permitted
from tests.reference.functions import function_of
from tests.truncation import toward_zero

FLOATS = [DataType.FLOAT64, DataType.FLOAT32, DataType.FLOAT16]
INTEGERS = [data_type for data_type in DataType if not data_type.is_float and data_type.bits > 4]


def cast(values: Array, output: DataType, part: str = "") -> Any:
    """Return what CAST gives, or a `part` of what is permitted."""
    function = function_of("CAST", part)
    return function(values, TensorDesc(output, values.shape))


def clamped(number: int, data_type: DataType) -> int:
    return min(max(number, int(data_type.minimum)), int(data_type.maximum))


@given(st.sampled_from(FLOATS), st.sampled_from(INTEGERS), st.data())
def test_floats_that_are_cast_to_integers_are_truncated_and_clamped(
    source: DataType, target: DataType, data: st.DataObject
) -> None:
    around = st.floats(-300, 300) | st.floats(float(target.minimum) * 2, float(target.maximum) * 2)
    with np.errstate(over="ignore"):
        values = np.array([data.draw(around)], source.dtype)
    if np.isfinite(values[0]):
        assert int(cast(values, target)[0]) == clamped(int(float(values[0])), target)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTEGERS)
def test_cast_makes_nan_0_and_infinities_the_limits(source: DataType, target: DataType) -> None:
    values = np.array([np.nan, np.inf, -np.inf], source.dtype)
    expected = [0, int(target.maximum), int(target.minimum)]
    assert [int(value) for value in cast(values, target)] == expected


@st.composite
def integer(draw: st.DrawFn) -> tuple[DataType, int]:
    source = draw(st.sampled_from(INTEGERS))
    return source, draw(st.integers(int(source.minimum), int(source.maximum)))


@given(integer(), st.sampled_from(INTEGERS))
def test_integers_wrap_or_in_small_types_may_be_clamped(
    drawn: tuple[DataType, int], target: DataType
) -> None:
    source, number = drawn
    values = np.array([number], source.dtype)
    result = int(cast(values, target)[0])
    wrapped = (number - int(target.minimum)) % (1 << target.bits) + int(target.minimum)
    if target.bits >= 32:
        assert result == wrapped
    else:
        low = number % (1 << 32)  # Of a 64-bit number, only these bits are clamped.
        signed = low - (1 << 32) if target.is_signed and low >= 1 << 31 else low
        assert result == clamped(signed, target)
        ends = cast(values, target, "candidates")
        assert {int(end[0]) for candidate in ends for end in candidate} == {result, wrapped}


def test_cast_out_of_range_may_clamp_or_wrap_and_nothing_else() -> None:
    values = np.array([200.0, -300.0, 1e10, np.nan, 100.7], np.float32)
    right, candidates = cast(values, DataType.INT8), cast(values, DataType.INT8, "candidates")
    for driver, permitted in (
        ([127, -128, 127, 0, 100], [True] * 5),
        ([-56, -44, -1, 0, 100], [True] * 5),  # The low 8 bits of 200, -300 and 2^31 - 1.
        ([50, -100, 0, -1, 101], [False] * 5),
        ([126, -127, 126, -128, 99], [False] * 5),
    ):
        actual = is_permitted(np.array(driver, np.int8), right, *candidates)
        assert actual.tolist() == permitted


@given(integer(), st.sampled_from([DataType.FLOAT32, DataType.FLOAT64]))
def test_integers_become_the_nearest_float(drawn: tuple[DataType, int], target: DataType) -> None:
    source, number = drawn
    values = np.array([number], source.dtype)
    (result,) = cast(values, target)
    gap = abs(Fraction(float(result)) - number)
    for end in (-np.inf, np.inf):
        other = np.nextafter(result, target.dtype.type(end))
        assert gap <= abs(Fraction(float(other)) - number)
    lowest, highest = (end[0] for end in cast(values, target, "interval"))
    assert lowest <= result <= highest
    if gap == 0 or source.bits < 64 or target is DataType.FLOAT64:
        assert lowest == highest
    else:
        assert min(abs(int(lowest)), abs(int(highest))) <= abs(number)


@given(st.floats(-65000, 65000, width=32))
def test_float32_becomes_the_nearest_or_the_truncated_float16(number: float) -> None:
    values = np.array([number], np.float32)
    (result,) = cast(values, DataType.FLOAT16)
    lowest, highest = (end[0] for end in cast(values, DataType.FLOAT16, "interval"))
    assert result == np.float16(values[0])
    assert {float(lowest), float(highest)} == {float(result), float(toward_zero(number))}


def test_cast_to_float16_may_truncate_or_round_to_nearest() -> None:
    ends = cast(np.array([1.0009], np.float32), DataType.FLOAT16, "interval")
    assert [float(end[0]) for end in ends] == [1.0, 1.0009765625]


def test_large_integer_cast_to_float32_may_be_rounded_toward_zero() -> None:
    """Below 2^63, FLOAT32 numbers are 2^39 apart."""
    ends = cast(np.array([(1 << 63) - 1]), DataType.FLOAT32, "interval")
    assert [int(end[0]) for end in ends] == [(1 << 63) - (1 << 39), 1 << 63]


def quantize(x: Array, scale: Array, zero: Array | None, output: DataType, part: str = "") -> Any:
    """Return what QUANTIZE_LINEAR gives, or a `part` of what is permitted."""
    name = "ELEMENT_WISE_QUANTIZE_LINEAR"
    function = function_of(name, part)
    return function(x, scale, zero, TensorDesc(output, x.shape))


@given(
    st.sampled_from([DataType.FLOAT32, DataType.FLOAT16, DataType.INT32]),
    st.sampled_from([DataType.INT8, DataType.UINT8]),
    st.integers(-1000, 1000),
    st.sampled_from([0.5, 1, 2, 4, 8]),
    st.integers(0, 127) | st.none(),
)
def test_quotients_are_quantized_with_halves_to_even(
    source: DataType, target: DataType, number: int, scale: float, zero: int | None
) -> None:
    x = np.array([number], source.dtype)
    scales = np.array([scale], np.float16 if source is DataType.FLOAT16 else np.float32)
    zeros = None if zero is None else np.array([zero], target.dtype)
    expected = clamped(round(Fraction(number) / Fraction(scale)) + (zero or 0), target)
    assert quantize(x, scales, zeros, target).tolist() == [expected]


@given(st.floats(-500, 500, width=32), st.floats(0.125, 50, width=32))
def test_quantized_quotient_may_be_a_product_with_the_reciprocal(x: float, scale: float) -> None:
    values, scales = np.array([x], np.float32), np.array([scale], np.float32)
    ((lowest, highest),) = quantize(values, scales, None, DataType.INT8, "candidates")
    product = float(values[0] * (np.float32(1) / scales[0]))
    assert lowest[0] <= clamped(round(product), DataType.INT8) <= highest[0]
    if abs(product % 1 - 0.5) > 0.01:
        assert lowest[0] == highest[0]


def test_half_that_a_reciprocal_misses_may_be_rounded_either_way() -> None:
    """-409.5 / 7 is -58.5, and -58.500004 with the FLOAT32 reciprocal of 7."""
    x, scales = np.array([-409.5], np.float32), np.array([7], np.float32)
    assert quantize(x, scales, None, DataType.INT8).tolist() == [-58]
    (ends,) = quantize(x, scales, None, DataType.INT8, "candidates")
    assert [end.tolist() for end in ends] == [[-59], [-58]]


def quantized_ends(x: float, scale: float) -> set[tuple[int, int]]:
    """Return the ends of the candidates of INT8, with a zero point of 10."""
    tensors = np.array([x], np.float32), np.array([scale], np.float32), np.array([10], np.int8)
    candidates = quantize(*tensors, DataType.INT8, "candidates")
    return {(int(low[0]), int(high[0])) for low, high in candidates}


def test_quotient_by_a_scale_of_0_may_become_any_integer() -> None:
    assert quantized_ends(-5, 0) == {(-128, 127)}


def test_nan_may_become_the_least_integer_0_or_the_zero_point() -> None:
    assert quantized_ends(np.nan, 1) == {(-128, -128), (0, 0), (10, 10)}


def test_reference_quantizes_minus_infinity_to_the_least_integer() -> None:
    x, scales = np.array([-5, np.nan], np.float32), np.array([0, 1], np.float32)
    actual = quantize(x, scales, np.array([10, 10], np.int8), DataType.INT8)
    assert actual.tolist() == [-128, 0]
