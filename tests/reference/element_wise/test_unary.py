"""Functions of one element agree with the C library, and permit formulas that kernels use.

The tested code is in `exponential.py`, `trigonometry.py`, `scale_bias.py` and `unary.py` of
`dmlconf/reference/element_wise/` and of `dmlconf/permitted/element_wise/`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType
from tests.permitted.intervals import is_permitted
from tests.reference.functions import function_of

Function = Callable[[Array], Array]

ONE, TWO, LOG_2 = np.float32(1), np.float32(2), np.float32(math.log(2))


def evaluate(name: str, numbers: Any, data_type: DataType, part: str = "", **fields: Any) -> Any:
    """Return the result for a vector, or a `part` of what is permitted."""
    operator = f"ELEMENT_WISE_{name}"
    function = function_of(operator, part)
    values = np.array(numbers, data_type.dtype)
    desc = TensorDesc(data_type, values.shape)
    return function(InputTensor=values, OutputTensor=desc, **{"ScaleBias": None, **fields})


def log(x: Array) -> Array:
    return np.log2(x) * LOG_2


def quotient(x: Array) -> Array:
    """Return (1 + x) / (1 - x), computed with a reciprocal."""
    return (ONE + x) * (ONE / (ONE - x))


FORMULAS: dict[str, tuple[Function, float, float]] = {
    "SQRT": (np.sqrt, 0, 1e30),
    "RECIP": (np.reciprocal, 1e-30, 1e30),
    "LOG": (log, 1e-30, 1e30),
    "SINH": (lambda x: (np.exp(x) - np.exp(-x)) / TWO, -88, 88),
    "COSH": (lambda x: (np.exp(x) + np.exp(-x)) / TWO, -88, 88),
    "TANH": (lambda x: (ONE - np.exp(-TWO * x)) / (ONE + np.exp(-TWO * x)), -40, 40),
    "ASINH": (lambda x: log(x + np.sqrt(x * x + ONE)), -1e6, 1e18),
    "ACOSH": (lambda x: log(x + np.sqrt(x * x - ONE)), 1, 1e18),
    "ATANH": (lambda x: log(quotient(x)) / TWO, -0.999, 0.999),
    "SIN": (np.sin, -314, 314),
    "COS": (np.cos, -314, 314),
    "TAN": (lambda x: np.sin(x) * (ONE / np.cos(x)), -314, 314),
}
"""FLOAT32 formulas of kernels, with the ends of the arguments to try."""

VALUES: dict[str, tuple[Callable[[float], float], float, float]] = {
    "SQRT": (math.sqrt, 0, 1e4),
    "LOG": (math.log, 1e-4, 1e4),
    "ERF": (math.erf, -6, 6),
    "TANH": (math.tanh, -9, 9),
    "SINH": (math.sinh, -11, 11),
    "COSH": (math.cosh, -11, 11),
    "ASINH": (math.asinh, -1e4, 1e4),
    "ACOSH": (math.acosh, 1, 1e4),
    "ATANH": (math.atanh, -0.999, 0.999),
    "SIN": (math.sin, -300, 300),
    "COS": (math.cos, -300, 300),
    "TAN": (math.tan, -300, 300),
    "ASIN": (math.asin, -1, 1),
    "ACOS": (math.acos, -1, 1),
    "ATAN": (math.atan, -1e4, 1e4),
}
"""Functions of the C library, with the ends of the arguments to try."""


# Each example is for all operators, since making it takes longer than a check.
@given(data=st.data())
def test_results_agree_with_the_c_library_within_one_ulp(data: st.DataObject) -> None:
    for name, (function, low, high) in VALUES.items():
        drawn = data.draw(st.floats(low, high), name)
        for data_type in (DataType.FLOAT32, DataType.FLOAT16):
            number = float(data_type.dtype.type(drawn))
            (actual,) = evaluate(name, [number], data_type)
            expected = function(number)
            ulp = abs(np.spacing(data_type.dtype.type(expected)))
            assert abs(float(actual) - expected) <= ulp, (name, data_type)


def permitted_intervals(name: str, numbers: Any) -> list[tuple[Array, Array]]:
    """Return the permitted intervals: two of tangents if one is near a pole."""
    if name == "TAN":
        return list(evaluate(name, numbers, DataType.FLOAT32, "candidates"))
    return [evaluate(name, numbers, DataType.FLOAT32, "interval")]


@given(data=st.data())
def test_float32_formulas_of_kernels_are_permitted(data: st.DataObject) -> None:
    for name, (formula, low, high) in FORMULAS.items():
        values = np.array([data.draw(st.floats(low, high), name)], np.float32)
        with np.errstate(all="ignore"):
            actual = formula(values)
        tiny = abs(actual[0]) < np.finfo(np.float32).tiny
        ends = permitted_intervals(name, values)
        inside = any(lowest[0] <= actual[0] <= highest[0] for lowest, highest in ends)
        assert tiny or inside, name


@pytest.mark.parametrize("name", ["SQRT", "RECIP"])
@given(st.floats(2.0**-100, 2.0**100, width=32))
def test_square_roots_and_reciprocals_permit_from_2_to_7_values(name: str, number: float) -> None:
    lowest, highest = evaluate(name, [number], DataType.FLOAT32, "interval")
    steps = int(highest.view(np.int32)[0]) - int(lowest.view(np.int32)[0])
    assert 1 <= steps <= 6


@given(st.floats(-9, 9, width=32), st.floats(-3, 3, width=32), st.floats(-3, 3, width=32))
def test_scale_and_bias_may_be_rounded_once_or_twice(x: float, scale: float, bias: float) -> None:
    fields = {"ScaleBias": {"Scale": scale, "Bias": bias}}
    lowest, highest = evaluate("ATAN", [x], DataType.FLOAT32, "interval", **fields)
    twice = np.float32(x) * np.float32(scale) + np.float32(bias)
    once = np.float32(x * scale + bias)
    for argument in (twice, once):
        assert lowest[0] <= np.arctan(argument) <= highest[0]


@pytest.mark.parametrize("name", ["SIN", "COS"])
def test_sine_and_cosine_beyond_100_pi_are_anything_within_1(name: str) -> None:
    numbers = [1000.0, -1000.0, 3.0e38, -3.0e38]
    lowest, highest = evaluate(name, numbers, DataType.FLOAT32, "interval")
    assert (np.abs([lowest, highest]) < 1.001).all()
    assert (lowest <= -1).all()
    assert (highest >= 1).all()


def test_tangent_at_its_pole_is_large_of_either_sign() -> None:
    """A cosine may be off by 0.0008, whose reciprocal is 1250."""
    above, below = permitted_intervals("TAN", [math.pi / 2, 1.0])
    assert above[1][0] == np.inf
    assert below[0][0] == -np.inf
    assert above[0][0] > 1200
    assert below[1][0] < -1200
    for lowest, highest in (above, below):
        assert highest[1] - lowest[1] < 0.02


def test_asinh_may_be_minus_infinity_where_x_and_the_root_cancel() -> None:
    """x + sqrt(x * x + 1) is 0 in FLOAT32 for -1e10, and NaN for minus infinity."""
    lowest, highest = evaluate("ASINH", [-1e10, -3.0, -np.inf], DataType.FLOAT32, "interval")
    assert lowest[0] == -np.inf
    assert highest[1] - lowest[1] < 1e-4
    assert np.isnan(evaluate("ASINH", [-np.inf], DataType.FLOAT32)[0])


@pytest.mark.parametrize(("name", "sign"), [("SINH", 1), ("SINH", -1), ("COSH", 1), ("COSH", -1)])
def test_sinh_and_cosh_may_be_infinite_if_the_exponential_overflows(name: str, sign: int) -> None:
    """exp(88) is 1.7e38, and exp(89) is 4.5e38."""
    ends = evaluate(name, [sign * 88.0, sign * 89.0], DataType.FLOAT32, "interval")
    farthest = np.abs(ends).max(0)
    assert farthest[0] < np.inf
    assert farthest[1] == np.inf
    assert np.isfinite(ends).sum() == 3  # Of both ends for 88, and one end for 89.


def permits(name: str, number: float, actual: float, **fields: Any) -> bool:
    right = evaluate(name, [number], DataType.FLOAT32, **fields)
    candidates = evaluate(name, [number], DataType.FLOAT32, "candidates", **fields)
    return bool(is_permitted(np.array([actual], np.float32), right, *candidates).all())


@pytest.mark.parametrize("name", ["CEIL", "FLOOR"])
def test_ceil_and_floor_permit_nothing_between_two_whole_numbers(name: str) -> None:
    # The scaled number 15 / 3 is 5, or next to 5 on either side.
    scaled: dict[str, Any] = {"ScaleBias": {"Scale": float(np.float32(1) / 3), "Bias": 0.0}}
    actual = [permits(name, 15, value, **scaled) for value in (4, 4.5, 5, 5.5, 6, 7)]
    assert actual == [name == "FLOOR", False, True, False, name == "CEIL", False]
    assert [permits(name, 2.5, value) for value in (2, 2.5, 3)] == [
        name == "FLOOR",
        False,
        name == "CEIL",
    ]


@pytest.mark.parametrize("sign", [1, -1])
def test_sign_of_a_subnormal_number_is_its_own_or_0(sign: int) -> None:
    function = reference_function("ELEMENT_WISE_SIGN")
    values, output = np.array([sign * 1e-40], np.float32), TensorDesc(DataType.FLOAT32, (1,))
    right = function(InputTensor=values, OutputTensor=output)
    candidates = function_of("ELEMENT_WISE_SIGN", "candidates")(
        InputTensor=values, OutputTensor=output
    )
    drivers = [np.array([sign * value], np.float32) for value in (1, 0, 0.5, -1)]
    actual = [bool(is_permitted(driver, right, *candidates).all()) for driver in drivers]
    assert actual == [True, True, False, False]


def test_round_by_adding_a_half_permits_two_numbers() -> None:
    """In FLOAT32, 0.49999997 + 0.5 is 1."""
    values, output = np.array([0.49999997], np.float32), TensorDesc(DataType.FLOAT32, (1,))
    fields: dict[str, Any] = {"RoundingMode": "TOWARD_INFINITY"}
    right, candidates = (
        function_of("ELEMENT_WISE_ROUND", part)(InputTensor=values, OutputTensor=output, **fields)
        for part in ("", "candidates")
    )
    drivers = [np.array([value], np.float32) for value in (0, 1, 0.5)]
    actual = [bool(is_permitted(driver, right, *candidates).all()) for driver in drivers]
    assert actual == [True, True, False]
