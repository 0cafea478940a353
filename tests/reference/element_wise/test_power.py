"""POW agrees with powers by logarithms and with measured special numbers, ATAN_YX with atan2.

The tested code is in `dmlconf/reference/element_wise/power.py` and
`dmlconf/permitted/element_wise/power.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import DataType
from tests.permitted.intervals import hull
from tests.reference.functions import function_of

INTEGERS_OF_32_BITS = [DataType.INT32, DataType.UINT32]
SMALLER_INTEGERS = [DataType.INT16, DataType.INT8, DataType.UINT16, DataType.UINT8]
FLOATS = [DataType.FLOAT32, DataType.FLOAT16]
NAN, INFINITY = math.nan, math.inf


def power(
    data_type: DataType,
    base: float,
    exponent: float,
    exponent_type: DataType | None = None,
    *,
    part: str = "",
    scale_bias: Any = None,
) -> Any:
    """Return what ELEMENT_WISE_POW gives, or a `part` of what is permitted."""
    function = function_of("ELEMENT_WISE_POW", part)
    result = function(
        InputTensor=np.array([base], data_type.dtype),
        ExponentTensor=np.array([exponent], (exponent_type or data_type).dtype),
        OutputTensor=TensorDesc(data_type, (1,)),
        ScaleBias=scale_bias,
    )
    return tuple(end[0] for end in result) if part else result[0]


def angle(y: float, x: float, part: str = "") -> Any:
    function = function_of("ELEMENT_WISE_ATAN_YX", part)
    inputs = {"ATensor": np.array([y], np.float32), "BTensor": np.array([x], np.float32)}
    result = function(**inputs, OutputTensor=TensorDesc(DataType.FLOAT32, (1,)))
    return tuple(end[0] for end in hull(result)) if part else result[0]


@pytest.mark.parametrize("data_type", INTEGERS_OF_32_BITS)
@given(st.data())
def test_powers_of_integers_are_exact_modulo_2_to_the_32(
    data_type: DataType, data: st.DataObject
) -> None:
    base = data.draw(st.integers(int(data_type.minimum), int(data_type.maximum)))
    exponent = data.draw(st.integers(0, int(data_type.maximum)))
    actual = int(power(data_type, base, exponent))
    assert actual % (1 << 32) == pow(base, exponent, 1 << 32)


@pytest.mark.parametrize("data_type", SMALLER_INTEGERS)
@given(st.data())
def test_power_beyond_a_small_integer_type_may_be_any_number(
    data_type: DataType, data: st.DataObject
) -> None:
    base = data.draw(st.integers(int(data_type.minimum), int(data_type.maximum)))
    exponent = data.draw(st.integers(0, 40))
    lowest, highest = power(data_type, base, exponent, part="interval")
    if data_type.minimum <= base**exponent <= data_type.maximum:
        assert power(data_type, base, exponent) == lowest == highest == base**exponent
    else:
        assert [lowest, highest] == [data_type.minimum, data_type.maximum]


@pytest.mark.parametrize(
    ("base", "exponent", "expected"), [(1, -3, 1), (-1, -3, -1), (-1, -2, 1), (2, -1, 0), (0, 0, 1)]
)
def test_negative_powers_of_integers_are_truncated(base: int, exponent: int, expected: int) -> None:
    assert power(DataType.INT32, base, exponent) == expected


@pytest.mark.parametrize("data_type", FLOATS)
@pytest.mark.parametrize(
    ("base", "exponent", "expected"),
    [
        (0.0, 0.0, 0.0),
        (-0.0, -1.0, 0.0),
        (0.0, NAN, 0.0),
        (1.0, INFINITY, NAN),
        (INFINITY, 0.0, NAN),
        (NAN, 0.0, NAN),
        (-1.0, INFINITY, NAN),
        (-2.0, 0.5, NAN),
        (-2.0, 3.0, -8.0),
        (-2.0, 2.0, 4.0),
        (2.0, -INFINITY, 0.0),
        (-INFINITY, 3.0, -INFINITY),
    ],
)
def test_powers_of_special_and_negative_numbers_are_as_measured(
    data_type: DataType, base: float, exponent: float, expected: float
) -> None:
    np.testing.assert_equal(float(power(data_type, base, exponent)), expected)


@given(st.floats(0.01, 1000), st.floats(-4, 4))
def test_a_float32_power_may_be_computed_from_a_logarithm(base: float, exponent: float) -> None:
    x, y = np.float32(base), np.float32(exponent)
    lowest, highest = power(DataType.FLOAT32, float(x), float(y), part="interval")
    assert lowest <= np.exp2(y * np.log2(x)) <= highest
    # The exponent magnifies errors of the logarithm.
    assert 2.0**-21 * highest <= highest - lowest <= 1e-4 * highest


@pytest.mark.parametrize("data_type", FLOATS)
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("exponent", [-1.0, 0.0, 2.0, NAN])
def test_a_floating_point_power_of_0_must_be_0(
    exponent: float, zero: float, data_type: DataType
) -> None:
    assert power(data_type, zero, exponent, part="interval") == (0, 0)


def test_scaled_base_next_to_0_may_have_either_sign() -> None:
    scale_bias = {"Scale": 3.0, "Bias": -1.0}
    function = function_of("ELEMENT_WISE_CONSTANT_POW", "interval")
    arguments = np.array([1 / 3], np.float32), TensorDesc(DataType.FLOAT32, (1,)), scale_bias
    assert [end[0] for end in function(*arguments, -1.0)] == [-INFINITY, INFINITY]
    assert function(*arguments, 2.0)[0][0] == 0


@given(st.floats(0.5, 4), st.floats(0.5, 3), st.floats(-2, 2), st.floats(-2, 2))
def test_scale_and_bias_apply_to_base_and_exponent(
    x: float, y: float, scale: float, bias: float
) -> None:
    x, y, scale, bias = (float(np.float32(number)) for number in (x, y, scale, bias))
    base = np.float32(x) * np.float32(scale) + np.float32(bias)
    exponent = np.float32(y) * np.float32(scale) + np.float32(bias)
    assume(base > 0.01)
    scale_bias = {"Scale": scale, "Bias": bias}
    interval = power(DataType.FLOAT32, x, y, part="interval", scale_bias=scale_bias)
    assert interval[0] <= base**exponent <= interval[1]
    integer = power(DataType.INT32, 3, 1, scale_bias={"Scale": 1.5, "Bias": 0.5})
    assert integer == (3 * 1.5 + 0.5) ** (1 * 1.5 + 0.5)


@pytest.mark.parametrize("exponent_type", [DataType.FLOAT16, DataType.UINT8, DataType.INT16])
def test_float32_powers_by_exponents_of_narrow_types_may_overflow_float16(
    exponent_type: DataType,
) -> None:
    assert power(DataType.FLOAT32, 300, 2, exponent_type) == 90000
    lowest, highest = power(DataType.FLOAT32, -300, 3, exponent_type, part="interval")
    assert lowest == -INFINITY
    assert highest < -26e6
    assert power(DataType.FLOAT32, 250, 2, exponent_type, part="interval")[1] < 62501


def test_real_power_of_an_integer_may_be_1_less() -> None:
    assert power(DataType.INT32, 10, 2.0, DataType.FLOAT32) == 100
    assert power(DataType.INT32, 10, 2.0, DataType.FLOAT32, part="interval") == (99, 100)


def test_a_power_that_is_nan_becomes_the_integer_0() -> None:
    assert power(DataType.INT32, -2, 0.5, DataType.FLOAT32) == 0


@given(st.floats(-4, 4), st.sampled_from([2.0, 3.0, -1.0, 0.5]))
def test_a_constant_exponent_is_not_scaled(x: float, exponent: float) -> None:
    values = np.array([x], np.float32)
    scaled = float(values[0]) * 2 + 1
    assume(abs(scaled) > 0.01 and (scaled > 0 or exponent != 0.5))
    arguments = {
        "InputTensor": values,
        "OutputTensor": TensorDesc(DataType.FLOAT32, (1,)),
        "ScaleBias": {"Scale": 2.0, "Bias": 1.0},
        "Exponent": exponent,
    }
    actual = reference_function("ELEMENT_WISE_CONSTANT_POW")(**arguments)[0]
    lowest, highest = function_of("ELEMENT_WISE_CONSTANT_POW", "interval")(**arguments)
    assert actual == pytest.approx(scaled**exponent, rel=1e-6)
    assert lowest[0] <= actual <= highest[0]


@given(st.floats(-9, 9, width=32), st.floats(-9, 9, width=32))
def test_angles_agree_with_atan2(y: float, x: float) -> None:
    # Of two zeros any angle is right, and two subnormal numbers may be flushed to zeros.
    assume(max(abs(x), abs(y)) >= 2.0**-126)
    lowest, highest = angle(y, x, "candidates")
    assert abs(float(angle(y, x)) - math.atan2(y, x)) < 3e-7  # A ULP of pi is 2.4e-7.
    assert lowest <= angle(y, x) <= highest
    assert highest - lowest < 4e-5


@pytest.mark.parametrize(
    ("data_type", "base", "measured"),
    [
        (DataType.INT32, 2147483647, 587884224),
        (DataType.INT32, 1431655765, 409135008),
        (DataType.UINT32, 4294967295, 409135008),
    ],
)
def test_only_an_unsigned_base_beyond_32_bits_is_clamped(
    data_type: DataType, base: int, measured: int
) -> None:
    """The signed bases are 6442450944 and 4294967298. The unsigned one becomes 4294967295."""
    arguments = {
        "InputTensor": np.array([base], data_type.dtype),
        "ExponentTensor": np.array([-0.702], np.float32),
        "OutputTensor": TensorDesc(data_type, (1,)),
        "ScaleBias": {"Scale": 3.0, "Bias": 3.0},
    }
    power = reference_function("ELEMENT_WISE_POW")(**arguments)[0]
    assert power == pytest.approx(measured, rel=1e-5)
    lowest, highest = function_of("ELEMENT_WISE_POW", "interval")(**arguments)
    assert lowest[0] <= measured <= highest[0]


@pytest.mark.parametrize("y", [0.0, -0.0])
@pytest.mark.parametrize("x", [0.0, -0.0])
def test_any_angle_is_right_at_the_origin(y: float, x: float) -> None:
    lowest, highest = angle(y, x, "candidates")
    assert lowest == pytest.approx(-math.pi, abs=1e-4)
    assert highest == pytest.approx(math.pi, abs=1e-4)
