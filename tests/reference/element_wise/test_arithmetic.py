"""Sums, quotients and exponentials of the reference are right; what rounding gives is permitted.

The tested code is in `arithmetic.py`, `exponential.py` and `scale_bias.py` of
`dmlconf/reference/element_wise/` and of `dmlconf/permitted/element_wise/`, and in
`dmlconf/permitted/numbers/rounding.py`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import rounded_interval
from dmlconf.tensors.datatypes import DataType
from tests.permitted.intervals import hull
from tests.reference.functions import divisors, drawn_pair, function_of, integers

INTEGERS = [data_type for data_type in DataType if not data_type.is_float and data_type.bits > 4]
HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)
NUMBERS = st.floats(-(2.0**100), 2.0**100, width=32)


def evaluate(name: str, output: DataType, *inputs: Any, part: str = "", **attributes: Any) -> Any:
    """Return the result for vectors, or the ends of a `part` of what is permitted."""
    desc = TensorDesc(output, (len(inputs[0]),))
    function = function_of(name, part)
    names = ("ATensor", "BTensor") if len(inputs) == 2 else ("InputTensor",)
    result = function(**dict(zip(names, inputs, strict=True)), OutputTensor=desc, **attributes)
    return hull(result) if part == "candidates" else result


# Each example is for all data types, since making it takes longer than a check.
@given(st.data())
def test_sums_of_integers_wrap_around(data: st.DataObject) -> None:
    for data_type in INTEGERS:
        a, b = drawn_pair(data, data_type, integers(data_type))
        (total,) = evaluate("ELEMENT_WISE_ADD", data_type, *vectors(data_type, a, b))
        assert (int(total) - a - b) % (1 << data_type.bits) == 0, data_type


@given(st.data())
def test_quotients_of_integers_are_truncated(data: st.DataObject) -> None:
    for data_type in INTEGERS:
        a, b = drawn_pair(data, data_type, divisors(data_type, 1, 3))
        if b == -1 and a == data_type.minimum:
            continue
        inputs = vectors(data_type, a, b)
        (quotient,) = evaluate("ELEMENT_WISE_DIVIDE", data_type, *inputs)
        lowest, highest = evaluate("ELEMENT_WISE_DIVIDE", data_type, *inputs, part="candidates")
        truncated = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        assert lowest[0] == highest[0] == quotient == truncated, data_type


@pytest.mark.parametrize("data_type", INTEGERS)
def test_only_unsigned_integers_over_zero_are_defined(data_type: DataType) -> None:
    inputs = vectors(data_type, 5, 0)
    lowest, highest = evaluate("ELEMENT_WISE_DIVIDE", data_type, *inputs, part="candidates")
    assert highest[0] == data_type.maximum
    assert lowest[0] == (data_type.minimum if data_type.is_signed else data_type.maximum)


@pytest.mark.parametrize("data_type", [each for each in INTEGERS if each.is_signed])
def test_smallest_integer_divided_by_minus_one_may_be_anything(data_type: DataType) -> None:
    inputs = vectors(data_type, int(data_type.minimum), -1)
    assert evaluate("ELEMENT_WISE_DIVIDE", data_type, *inputs)[0] == data_type.minimum
    lowest, highest = evaluate("ELEMENT_WISE_DIVIDE", data_type, *inputs, part="candidates")
    assert [lowest[0], highest[0]] == [data_type.minimum, data_type.maximum]


def vectors(data_type: DataType, *numbers: float) -> list[Any]:
    return [np.array([number], data_type.dtype) for number in numbers]


@given(NUMBERS, NUMBERS)
def test_float32_sum_is_the_nearest_or_the_truncated_number(a: float, b: float) -> None:
    inputs = vectors(DataType.FLOAT32, a, b)
    (total,) = evaluate("ELEMENT_WISE_ADD", DataType.FLOAT32, *inputs)
    lowest, highest = evaluate("ELEMENT_WISE_ADD", DataType.FLOAT32, *inputs, part="interval")
    exact = Fraction(a) + Fraction(b)
    gap = abs(Fraction(float(total)) - exact)
    assert all(gap <= abs(Fraction(float(other)) - exact) for other in neighbours(total))
    ends = {float(lowest[0]), float(highest[0])}
    assert float(total) in ends
    assert ends <= {float(total), *map(float, neighbours(total))}
    truncated = [end for end in ends if abs(Fraction(end)) <= abs(exact)]
    assert truncated
    assert len(ends) == (1 if exact == Fraction(float(total)) or truncated == [total] else 2)


def neighbours(number: Any) -> list[Any]:
    return [np.nextafter(number, number.dtype.type(end)) for end in (-np.inf, np.inf)]


@given(st.floats(0.25, 100, width=32), st.floats(0.25, 100, width=32))
def test_a_quotient_may_be_a_product_with_the_reciprocal(a: float, b: float) -> None:
    inputs = vectors(DataType.FLOAT32, a, b)
    lowest, highest = evaluate("ELEMENT_WISE_DIVIDE", DataType.FLOAT32, *inputs, part="candidates")
    product = np.float32(a) * (np.float32(1) / np.float32(b))
    assert lowest[0] <= product <= highest[0]
    assert highest[0] - lowest[0] <= 6 * np.spacing(np.float32(a / b))


@given(
    st.floats(-30, 30, width=16),
    st.sampled_from([0.25, 0.5, 1, -0.5]),
    st.sampled_from([0, 1, -2.5]),
)
def test_scale_and_bias_apply_before_an_exponential(x: float, scale: float, bias: float) -> None:
    scale_bias = {"Scale": scale, "Bias": bias}
    (inputs,) = vectors(DataType.FLOAT32, x)
    (result,) = evaluate("ELEMENT_WISE_EXP", DataType.FLOAT32, inputs, ScaleBias=scale_bias)
    exact = np.exp(np.float64(np.float32(x * scale + bias)))
    assert result == np.float32(exact)


@given(st.integers(0, 2**7))
def test_exponential_may_round_its_argument_once_or_twice(ulps: int) -> None:
    """The reference rounds the argument once; kernels may round the product, too."""
    scale, bias = np.float32(1234567), np.float32(-1234500.5)
    (inputs,) = vectors(DataType.FLOAT32, 1 - ulps * 2.0**-24)
    scale_bias = {"Scale": float(scale), "Bias": float(bias)}
    (result,) = evaluate("ELEMENT_WISE_EXP", DataType.FLOAT32, inputs, ScaleBias=scale_bias)
    argument = np.float32(np.float64(inputs[0]) * np.float64(scale) + np.float64(bias))
    assert result == np.float32(np.exp(np.float64(argument)))
    lowest, highest = evaluate(
        "ELEMENT_WISE_EXP", DataType.FLOAT32, inputs, part="interval", ScaleBias=scale_bias
    )
    rounded_twice = np.float32(inputs[0] * scale) + bias
    assert lowest[0] <= np.exp(np.float64(rounded_twice)) <= highest[0]


@given(st.floats(-80, 80, width=32))
def test_exponential_may_be_computed_as_a_power_of_two(x: float) -> None:
    (inputs,) = vectors(DataType.FLOAT32, x)
    lowest, highest = evaluate(
        "ELEMENT_WISE_EXP", DataType.FLOAT32, inputs, part="interval", ScaleBias=None
    )
    power = np.float32(np.exp2(np.float64(np.float32(x) * np.float32(np.log2(np.e)))))
    assert lowest[0] <= power <= highest[0]
    assert highest[0] - lowest[0] <= np.exp(x) * 2.0**-22 * (6 + 2 * abs(x))


@pytest.mark.parametrize("dtype", [HALF, SINGLE])
@given(st.floats(-60000, 60000))
@example(102.90625004)  # In FLOAT16 102.9375, or by way of FLOAT32 102.875.
@example(102.96874998)  # In FLOAT16 102.9375, or by way of FLOAT32 103.
def test_rounded_number_is_one_of_two_neighbours(dtype: np.dtype[Any], number: float) -> None:
    lowest, highest = (end[0] for end in rounded_interval(np.array([number]), 0.0, dtype))
    nearest = np.float32(number).astype(dtype)
    assert lowest <= nearest <= highest <= neighbours(lowest)[1]
    assert lowest <= np.float64(number).astype(dtype) <= highest
    assert min(abs(float(lowest)), abs(float(highest))) <= abs(number)
    if float(nearest) == number:
        assert lowest == highest


@pytest.mark.parametrize("sign", [1, -1])
def test_number_just_beyond_float16_may_be_infinity_or_65504(sign: int) -> None:
    lowest, highest = rounded_interval(np.array([sign * 65504.01]), 0.0, HALF)
    assert [float(lowest[0]), float(highest[0])] == sorted([sign * 65504.0, sign * np.inf])


def test_a_result_that_may_be_subnormal_may_be_flushed() -> None:
    tiny = np.finfo(np.float32).tiny
    exact = np.array([1.0, -1.0]) * float(tiny)
    lowest, highest = rounded_interval(exact, 2.0**-20 * float(tiny), SINGLE)
    assert lowest[0] == 0
    assert highest[1] == 0


def test_nan_errors_and_infinities_permit_only_the_number() -> None:
    lowest, highest = rounded_interval(np.array([1.0, np.inf]), np.array([np.nan, 1.0]), SINGLE)
    assert lowest.tolist() == highest.tolist() == [1.0, np.inf]
