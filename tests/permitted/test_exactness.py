"""Which element-wise results must be exact, and which may be far off.

The tested code is in `dmlconf/permitted/numbers/rounding.py`,
`dmlconf/permitted/activation/errors.py`, and in `dmlconf/permitted/element_wise/`: in
`modulus.py`, `arithmetic.py`, `exponential.py`, `power.py` and `scale_bias.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.tensors.datatypes import DataType
from tests.permitted.graphs.accepted import accepts, single
from tests.permitted.intervals import hull, is_permitted
from tests.reference.functions import function_of

MODULUS = ["ELEMENT_WISE_MODULUS_FLOOR", "ELEMENT_WISE_MODULUS_TRUNCATE"]
FLOATS = [DataType.FLOAT32, DataType.FLOAT16]
LARGEST = 3.4028234663852886e38


def ends_of_two(operator: str, a: float, b: float, data_type: DataType) -> tuple[float, float]:
    low, high = hull(candidates(operator, a, b, data_type))
    return float(low[0]), float(high[0])


def candidates(operator: str, a: float, b: float, data_type: DataType) -> Sequence[Interval]:
    result: Sequence[Interval] = function_of(operator, "candidates")(
        ATensor=np.array([a], data_type.dtype),
        BTensor=np.array([b], data_type.dtype),
        OutputTensor=TensorDesc(data_type, (1,)),
    )
    return result


def permits(operator: str, a: float, b: float, expected: float, actual: float) -> bool:
    right, value = (np.array([number], np.float32) for number in (expected, actual))
    return bool(is_permitted(value, right, *candidates(operator, a, b, DataType.FLOAT32)).all())


def ends_of_one(operator: str, x: float, **attributes: Any) -> tuple[float, float]:
    low, high = function_of(operator, "interval")(
        InputTensor=np.array([x], np.float32),
        OutputTensor=TensorDesc(DataType.FLOAT32, (1,)),
        **attributes,
    )
    return float(low[0]), float(high[0])


@pytest.mark.parametrize("operator", MODULUS)
@pytest.mark.parametrize("data_type", FLOATS)
@pytest.mark.parametrize(
    ("a", "b"), [(6, 3), (3, 3), (-6, 3), (41, 41), (49, -7), (2046, 3), (0.375, 0.125), (0, 7)]
)
def test_exact_multiples_leave_no_remainder(
    operator: str, data_type: DataType, a: float, b: float
) -> None:
    assert ends_of_two(operator, a, b, data_type) == (0, 0)


@pytest.mark.parametrize("operator", MODULUS)
def test_the_remainder_of_7_5_by_2_is_exact(operator: str) -> None:
    assert ends_of_two(operator, 7.5, 2, DataType.FLOAT32) == (1.5, 1.5)


@pytest.mark.parametrize("operator", MODULUS)
def test_remainder_of_a_large_quotient_may_be_off_by_the_divisor(operator: str) -> None:
    """A quotient may be off by 3 * 2^-23 of it: 4194303.5 by 1.5, and 1398100.5 by almost 0.5."""
    assert ends_of_two(operator, 8388607, 2, DataType.FLOAT32) == (-1, 3)
    assert ends_of_two(operator, 2796201, 2, DataType.FLOAT32) == (1, 1)


@pytest.mark.parametrize("operator", MODULUS)
def test_quotients_next_to_a_whole_number_may_fall_on_either_side(operator: str) -> None:
    below = float(np.nextafter(np.float32(6), np.float32(0)))
    low, high = ends_of_two(operator, below, 3, DataType.FLOAT32)
    assert low <= below - 6 < 0 < 2.9999 < high <= 3
    right = below - 3
    assert permits(operator, below, 3, right, below - 6)
    for between in (0.5, 1.5, 2.9):
        assert not permits(operator, below, 3, right, between)


@pytest.mark.parametrize(
    ("a", "b"), [(-1.2e-38, 3.4e38), (-2e-38, 1e10), (-1e-30, 1e30), (3e38, 2e38), (-1e38, 2e38)]
)
def test_dividend_may_remain_if_a_division_underflows(a: float, b: float) -> None:
    # Measured on DirectML 1.8.0 and 1.15.4 for the first two pairs.
    floored = float(np.float32(a) % np.float32(b))
    assert permits("ELEMENT_WISE_MODULUS_FLOOR", a, b, floored, a)
    assert permits("ELEMENT_WISE_MODULUS_FLOOR", a, b, floored, floored)
    assert not permits("ELEMENT_WISE_MODULUS_FLOOR", a, b, floored, b / 3)


def test_quotient_by_a_huge_number_may_be_zero() -> None:
    """1 / 3e38 is subnormal and may count as 0, and infinity times 0 is NaN."""
    right = 1e38 / 3e38
    for value, permitted in (
        (right, True),
        (0.0, True),
        (right * (1 + 2.0**-22), True),
        (right / 2, False),
        (right * 1.5, False),
        (right * 1.00001, False),
        (math.nan, False),
    ):
        assert permits("ELEMENT_WISE_DIVIDE", 1e38, 3e38, right, value) is permitted, value
    assert not permits("ELEMENT_WISE_DIVIDE", 1e37, 3e37, 1 / 3, 0.0)
    assert permits("ELEMENT_WISE_DIVIDE", math.inf, 3e38, math.inf, math.nan)


@pytest.mark.parametrize("operator", MODULUS)
@pytest.mark.parametrize("a", [1, 0, -1, math.inf])
def test_the_remainder_of_a_zero_divisor_is_nan(operator: str, a: float) -> None:
    assert all(map(math.isnan, ends_of_two(operator, a, 0, DataType.FLOAT32)))


@pytest.mark.parametrize("operator", MODULUS)
def test_any_remainder_is_right_if_the_quotient_overflows(operator: str) -> None:
    assert ends_of_two(operator, 3e38, 1e-5, DataType.FLOAT32) == (-math.inf, math.inf)


def test_any_remainder_is_right_if_the_product_overflows() -> None:
    """-3.3e38 / 8e37 is rounded down to -5, and -5 * 8e37 overflows."""
    for a, b in ((-3.3e38, 8e37), (3.3e38, -8e37)):
        ends = ends_of_two("ELEMENT_WISE_MODULUS_FLOOR", a, b, DataType.FLOAT32)
        assert ends == (-math.inf, math.inf)
    low, high = ends_of_two("ELEMENT_WISE_MODULUS_TRUNCATE", -3.3e38, 8e37, DataType.FLOAT32)
    assert -1.01e37 < low <= high < -0.99e37


@pytest.mark.parametrize("x", [LARGEST, 3e38, 1e38, 2.0**126])
def test_softsign_of_huge_numbers_is_next_to_1_or_minus_1(x: float) -> None:
    low, high = ends_of_one("ACTIVATION_SOFTSIGN", x)
    assert 1 - 2.0**-21 < low <= 1 <= high < 1 + 2.0**-21
    low, high = ends_of_one("ACTIVATION_SOFTSIGN", -x)
    assert -1 - 2.0**-21 < low <= -1 <= high < -1 + 2.0**-21


@pytest.mark.parametrize("x", [-1, -1.5, -3.14, -100])
def test_acosh_from_minus_100_to_minus_1_is_nan(x: float) -> None:
    assert all(map(math.isnan, ends_of_one("ELEMENT_WISE_ACOSH", x, ScaleBias=None)))


@pytest.mark.parametrize("x", [-1e5, -3e38])
def test_acosh_is_open_if_its_sum_may_be_zero(x: float) -> None:
    """ACOSH is log(x + sqrt(x^2 - 1)). DirectML 1.15.4 gave both infinities."""
    assert ends_of_one("ELEMENT_WISE_ACOSH", x, ScaleBias=None) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("y", "x", "of_zero"),
    [
        (1e38, LARGEST, 0.0),
        (LARGEST, LARGEST, 0.0),
        (1e38, -LARGEST, math.pi),
        (-1e38, -LARGEST, -math.pi),
        (LARGEST, 1e38, math.pi / 2),
        (-LARGEST, 1e38, -math.pi / 2),
    ],
)
def test_angle_of_huge_numbers_may_be_that_of_zero(y: float, x: float, of_zero: float) -> None:
    """A kernel may multiply by 1 / x or 1 / y, which are subnormal."""
    right = math.atan2(y, x)
    for value, permitted in ((right, True), (of_zero, True), ((right + of_zero) / 2, False)):
        assert permits("ELEMENT_WISE_ATAN_YX", y, x, right, value) is permitted


def test_angle_of_numbers_below_1e38_has_a_narrow_interval() -> None:
    low, high = ends_of_two("ELEMENT_WISE_ATAN_YX", 4e37, 8e37, DataType.FLOAT32)
    assert low < math.atan2(4e37, 8e37) < high < low + 1e-4


def test_double_precision_is_not_rounded_to_single() -> None:
    low, high = rounded_interval(np.array([1e300, 1 + 2.0**-50]), 0.0, np.dtype(np.float64))
    assert low.tolist() == high.tolist() == [1e300, 1 + 2.0**-50]


@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize(
    ("operator", "right", "wrong"),
    [
        ("ELEMENT_WISE_SQRT", 0.0, [5.0, -1.0, math.nan, math.inf]),
        ("ELEMENT_WISE_LOG", -math.inf, [5.0, -88.0, math.nan, math.inf]),
        ("ELEMENT_WISE_RECIP", math.inf, [5.0, math.nan, -math.inf]),
    ],
)
def test_the_function_of_a_sum_that_is_exactly_0_is_that_of_0(
    tmp_path: Path, data_type: str, operator: str, right: float, wrong: list[float]
) -> None:
    """FLOAT32 holds 4 * 0.5 and 4 * 0.5 - 2. DirectML 1.8.0 to 1.15.4 round nothing."""
    sizes = f"{{Sizes: [2], DataType: {data_type}"
    desc = f"""InputTensor: {sizes}, values: [4, 6]}}, OutputTensor: {sizes}}},
      ScaleBias: {{Scale: 0.5, Bias: -2}}"""
    case = single(tmp_path, operator, desc)
    beside = 0.0 if operator.endswith("LOG") else 1.0
    assert accepts(case, "OutputTensor", [right, beside])
    for value in wrong:
        assert not accepts(case, "OutputTensor", [value, beside]), value
