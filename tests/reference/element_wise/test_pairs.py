"""Operators of two tensors give right sums, differences, products, remainders, means, extrema.

The tested code is in `arithmetic.py` and `modulus.py` of `dmlconf/reference/element_wise/` and of
`dmlconf/permitted/element_wise/`, and in `dmlconf/permitted/numbers/rounding.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import rounded_interval
from dmlconf.tensors.datatypes import DataType
from tests.permitted.intervals import hull, is_permitted
from tests.reference.functions import divisors, drawn_pair, function_of, integers
from tests.truncation import toward_zero

INTEGERS = [data_type for data_type in DataType if not data_type.is_float and data_type.bits > 4]
SIGNED = [data_type for data_type in INTEGERS if data_type.is_signed]
FLOATS = [DataType.FLOAT32, DataType.FLOAT16]
NUMBERS = st.floats(-1e5, 1e5, width=32)


def evaluate(name: str, data_type: DataType, a: Any, b: Any, part: str = "", **more: Any) -> Any:
    """Return the result for two numbers, or a `part` of what is permitted."""
    inputs = {
        "ATensor": np.array([a], data_type.dtype),
        "BTensor": np.array([b], data_type.dtype),
    }
    function = function_of(f"ELEMENT_WISE_{name}", part)
    result = function(**inputs, OutputTensor=TensorDesc(data_type, (1,)), **more)
    if part == "candidates":
        return result
    return tuple(end[0] for end in result) if part else result[0]


def remainder_ends(name: str, data_type: DataType, a: float, b: float) -> tuple[Any, Any]:
    low, high = hull(evaluate(name, data_type, a, b, "candidates"))
    return low[0], high[0]


# Each example is for all data types, since making it takes longer than a check.
@given(st.data())
def test_sums_differences_and_products_of_integers_wrap_around(data: st.DataObject) -> None:
    for data_type in INTEGERS:
        a, b = drawn_pair(data, data_type, integers(data_type))
        for name, exact in (("ADD", a + b), ("SUBTRACT", a - b), ("MULTIPLY", a * b)):
            result = evaluate(name, data_type, a, b)
            assert result.dtype == data_type.dtype
            assert (int(result) - exact) % (1 << data_type.bits) == 0, (name, data_type)


@given(st.data())
def test_remainders_have_the_sign_of_dividend_or_divisor(data: st.DataObject) -> None:
    for data_type in INTEGERS:
        a, b = drawn_pair(data, data_type, divisors(data_type, 1, 9))
        if b == -1 and a == data_type.minimum:
            continue
        truncated = abs(a) % abs(b) * (-1 if a < 0 else 1)
        for name, remainder in (("MODULUS_TRUNCATE", truncated), ("MODULUS_FLOOR", a % b)):
            lowest, highest = remainder_ends(name, data_type, a, b)
            result = evaluate(name, data_type, a, b)
            assert result == lowest == highest == remainder, (name, data_type)


@pytest.mark.parametrize("data_type", SIGNED)
@pytest.mark.parametrize("name", ["MODULUS_TRUNCATE", "MODULUS_FLOOR"])
def test_undefined_signed_remainders_may_be_anything(name: str, data_type: DataType) -> None:
    ends = remainder_ends(name, data_type, 5, 0)
    assert ends == (data_type.minimum, data_type.maximum)
    ends = remainder_ends(name, data_type, data_type.minimum, -1)
    assert ends == (data_type.minimum, data_type.maximum)


@given(NUMBERS, st.floats(0.0625, 1e4, width=32), st.sampled_from([1, -1]))
def test_a_remainder_may_be_computed_from_a_float32_quotient(a: float, b: float, sign: int) -> None:
    x, y = np.float32(a), np.float32(b * sign)
    # A multiple of the divisor must leave 0.
    is_multiple = math.remainder(x, y) == 0
    quotients = (x / y, x / y if is_multiple else x * (np.float32(1) / y))
    for name, rounded in (("MODULUS_TRUNCATE", np.trunc), ("MODULUS_FLOOR", np.floor)):
        lowest, highest = remainder_ends(name, DataType.FLOAT32, float(x), float(y))
        assert lowest <= evaluate(name, DataType.FLOAT32, x, y) <= highest
        for quotient in quotients:
            assert lowest <= x - y * rounded(quotient) <= highest


@pytest.mark.parametrize("name", ["MODULUS_TRUNCATE", "MODULUS_FLOOR"])
def test_remainder_of_17_by_5_is_nearly_exact(name: str) -> None:
    lowest, highest = remainder_ends(name, DataType.FLOAT32, 17, 5)
    assert 2 - 1e-5 < lowest <= 2 <= highest < 2 + 1e-5


@given(st.data())
def test_min_and_max_of_integers_are_exact(data: st.DataObject) -> None:
    for data_type in INTEGERS:
        check_min_and_max(data_type, *drawn_pair(data, data_type, integers(data_type)))


@given(NUMBERS, NUMBERS)
def test_min_and_max_of_float32_numbers_are_exact(a: float, b: float) -> None:
    check_min_and_max(DataType.FLOAT32, a, b)


def check_min_and_max(data_type: DataType, a: float, b: float) -> None:
    for name, right in (("MIN", min(a, b)), ("MAX", max(a, b))):
        assert evaluate(name, data_type, a, b) == right, (name, data_type)
        assert evaluate(name, data_type, a, b, "interval") == (right, right), (name, data_type)


@pytest.mark.parametrize("data_type", FLOATS)
def test_min_and_max_of_nan_and_a_number_are_the_number(data_type: DataType) -> None:
    for name in ("MIN", "MAX"):
        assert evaluate(name, data_type, math.nan, 2) == evaluate(name, data_type, 2, math.nan) == 2
        assert math.isnan(evaluate(name, data_type, math.nan, math.nan))


def test_mean_of_integers_halves_the_wrapped_sum() -> None:
    assert evaluate("MEAN", DataType.INT32, -2, -1) == -1
    assert evaluate("MEAN", DataType.INT32, 2**31 - 1, 1) == -(2**30)
    assert evaluate("MEAN", DataType.UINT32, 2**32 - 1, 1) == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_mean_whose_sum_overflows_is_the_mean_or_infinity(sign: int) -> None:
    right = evaluate("MEAN", DataType.FLOAT32, sign * 3e38, sign * 3e38)
    candidates = evaluate("MEAN", DataType.FLOAT32, sign * 3e38, sign * 3e38, "candidates")
    assert right == sign * math.inf
    for value, permitted in ((3e38, True), (math.inf, True), (3.3e38, False), (-math.inf, False)):
        driver = np.array([sign * value], np.float32)
        actual = is_permitted(driver, np.array([right]), *candidates)
        assert actual.tolist() == [permitted]


@given(NUMBERS, NUMBERS)
def test_square_of_a_rounded_or_truncated_difference_is_permitted(a: float, b: float) -> None:
    exact = float(np.float32(a)) - float(np.float32(b))
    nearest = np.float32(exact)
    truncated = np.float32(toward_zero(exact, np.float32))
    lowest, highest = evaluate("DIFFERENCE_SQUARE", DataType.FLOAT32, a, b, "interval")
    assert lowest <= truncated * truncated <= nearest * nearest <= highest


@pytest.mark.parametrize("data_type", FLOATS)
@given(st.floats(-100, 100, width=16), st.floats(-100, 100, width=16))
def test_activation_may_follow_the_rounded_or_the_exact_sum(
    data_type: DataType, a: float, b: float
) -> None:
    activation = {"operator": "ACTIVATION_LINEAR", "Alpha": 3, "Beta": -1}
    total = evaluate("ADD", data_type, a, b)
    lowest, highest = evaluate("ADD1", data_type, a, b, "interval", FusedActivation=activation)
    assert lowest <= data_type.dtype.type(float(total) * 3 - 1) <= highest
    assert lowest <= data_type.dtype.type((a + b) * 3 - 1) <= highest


def test_add1_without_an_activation_equals_add() -> None:
    total = evaluate("ADD1", DataType.FLOAT32, 0.1, 0.2, FusedActivation=None)
    assert total == evaluate("ADD", DataType.FLOAT32, 0.1, 0.2)
    assert total == np.float32(0.1) + np.float32(0.2)


def test_float16_sum_may_overflow_before_its_activation() -> None:
    """FLOAT16 stores 65504 + 65504 as infinity or 65504."""
    activation = {"operator": "ACTIVATION_LINEAR", "Alpha": 0.25, "Beta": 0}
    ends = evaluate("ADD1", DataType.FLOAT16, 65504, 65504, "interval", FusedActivation=activation)
    # The activation may be off by the step to the FLOAT16 number below 16376.
    assert ends[0] in (16368, 65504 / 4)
    assert ends[1] == math.inf


def test_interval_with_a_large_error_reaches_across_zero() -> None:
    lowest, highest = rounded_interval(np.array([0.5, -0.5]), 2.0, np.dtype(np.float32))
    assert [lowest.tolist(), highest.tolist()] == [[-1.5, -2.5], [2.5, 1.5]]


def test_remainder_of_a_large_quotient_may_have_the_other_sign() -> None:
    """FLOAT32 numbers near the dividend are 8 apart."""
    lowest, highest = remainder_ends("MODULUS_TRUNCATE", DataType.FLOAT32, 9.177936e7, 0.015)
    assert lowest <= -8
    assert highest >= 8
