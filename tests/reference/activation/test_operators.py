"""An activation of finite numbers has the same results alone as fused into another operator.

The tested code is in `dmlconf/reference/activation/operators.py`,
`dmlconf/reference/activation/formulas.py`, `dmlconf/reference/activation/fused.py`,
`dmlconf/permitted/activation/operators.py` and `dmlconf/permitted/activation/fused.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.loader import operator, operator_sets
from dmlconf.catalogue.model import FieldKind
from dmlconf.permitted.activation.fused import fused_error_scale
from dmlconf.permitted.activation.slopes import slope
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.reference.activation import operators as activation
from dmlconf.reference.activation.formulas import FORMULAS
from dmlconf.reference.activation.fused import fused
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType
from tests.properties import examples
from tests.reference.functions import function_of

WITH_JUMPS = ("ACTIVATION_SHRINK", "ACTIVATION_THRESHOLDED_RELU")
"""Activations with a jump have no slope."""

numbers = st.floats(-30, 30)
factors = st.floats(0.25, 3, width=32)
few_examples = settings(max_examples=examples(25), deadline=None)


def nested(name: str, value: float) -> dict[str, Any]:
    """Return an activation all of whose attributes have the same value."""
    attributes = operator(name).of_kind(FieldKind.ATTRIBUTE)
    return {"operator": name, **{field.name: value for field in attributes}}


def alone(name: str, values: Array, value: float) -> Array:
    """Return what an activation gives as an operator, with each attribute `value`."""
    attributes = {k: v for k, v in nested(name, value).items() if k != "operator"}
    output = TensorDesc(DataType(values.dtype.name.upper()), values.shape)
    result: Array = reference_function(name)(InputTensor=values, OutputTensor=output, **attributes)
    return result


def test_every_activation_of_the_catalogue_has_a_formula() -> None:
    assert set(operator_sets()["ELEMENT_WISE_ACTIVATIONS"]) == set(FORMULAS)


def test_absent_activation_changes_nothing_and_has_slope_1() -> None:
    values = np.array([1.0, -2.0])
    assert fused(values, None) is values
    assert slope(None) == 1
    error_scale = ErrorScale(values)
    assert fused_error_scale(values, error_scale, None, np.dtype(np.float32)) is error_scale


# Each example is for all activations, since making it takes longer than a check.
@few_examples
@given(x=numbers, y=numbers, value=factors)
def test_slope_bounds_differences_of_results(x: float, y: float, value: float) -> None:
    for name in (name for name in FORMULAS if name not in WITH_JUMPS):
        first, second = fused(np.array([x, y]), nested(name, value))
        most = slope(nested(name, value)) * abs(x - y) * (1 + 1e-9) + 1e-9
        assert abs(first - second) <= most, name


@few_examples
@given(values=st.lists(numbers, min_size=1, max_size=9), value=factors)
def test_activation_has_the_same_results_fused_and_alone(values: list[float], value: float) -> None:
    array = np.array(values, np.float32)
    for name in FORMULAS:
        expected = fused(array.astype(np.float64), nested(name, value)).astype(np.float32)
        np.testing.assert_array_equal(alone(name, array, value), expected, name)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@few_examples
@given(values=st.lists(st.floats(width=16), min_size=1, max_size=9), value=factors)
def test_the_interval_contains_the_result_of_the_reference(
    dtype: type[np.floating[Any]], values: list[float], value: float
) -> None:
    array = np.array(values, dtype)
    output = TensorDesc(DataType(array.dtype.name.upper()), array.shape)
    for name in FORMULAS:
        attributes = {k: v for k, v in nested(name, value).items() if k != "operator"}
        interval = function_of(name, "interval")
        low, high = interval(InputTensor=array, OutputTensor=output, **attributes)
        expected = alone(name, array, value)
        inside = ((low <= expected) & (expected <= high)) | np.isnan(expected)
        assert inside.all(), name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ACTIVATION_RELU", [0, math.inf, 0]),
        ("ACTIVATION_ELU", [math.nan, math.inf, -1]),
        ("ACTIVATION_SIGMOID", [math.nan, 1, 0]),
        ("ACTIVATION_SOFTSIGN", [math.nan, math.nan, math.nan]),  # infinity / (1 + infinity)
    ],
)
def test_relu_of_nan_is_0_and_others_follow_their_formulas(
    name: str, expected: list[float]
) -> None:
    values = np.array([math.nan, math.inf, -math.inf], np.float32)
    np.testing.assert_array_equal(alone(name, values, 1), np.array(expected, np.float32))


def test_fused_relu_multiplies_negatives_by_0_and_keeps_nan() -> None:
    actual = fused(np.array([math.nan, -math.inf, -1.0, 2.0]), {"operator": "ACTIVATION_RELU"})
    np.testing.assert_array_equal(actual, [math.nan, math.nan, -0.0, 2.0])
    assert math.copysign(1, actual[2]) == -1


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(np.int8, [98, 126, -126, -2]), (np.float32, [98.5, 125.5, -126.5, -1.5])],
)
def test_shrink_rounds_results_of_integers_only_and_to_even(
    dtype: type[Any], expected: list[float]
) -> None:
    values = np.array([100, 127, -128, -3], dtype)
    output = TensorDesc(DataType(values.dtype.name.upper()), values.shape)
    actual = activation.activation_shrink(values, output, Bias=1.5, Threshold=2.5)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int8])
def test_shrink_of_integers_with_a_bias_of_nan_is_0(dtype: type[Any]) -> None:
    """Measured on DirectML 1.15.4."""
    values = np.array([100, 5, 0], dtype)
    output = TensorDesc(DataType(values.dtype.name.upper()), values.shape)
    actual = activation.activation_shrink(values, output, Bias=math.nan, Threshold=1)
    assert actual.tolist() == [0, 0, 0]


def test_parameterized_relu_of_integers_wraps_around() -> None:
    values, slopes = np.array([-128, -100, -3, 5], np.int8), np.array([100, 3, 5, 9], np.int8)
    output = TensorDesc(DataType.INT8, (4,))
    actual = activation.activation_parameterized_relu(values, slopes, output)
    assert actual.tolist() == [0, -300 + 256, -15, 5]


@given(st.floats(-12.5, 12.5, width=32))  # The result of -12.5 is -5e-35.
def test_gelu_is_off_by_at_most_one_ulp(x: float) -> None:
    expected = np.float32(0.5 * x * math.erfc(-x / math.sqrt(2)))
    (actual,) = alone("ACTIVATION_GELU", np.array([x], np.float32), 0)
    assert abs(actual - expected) <= np.spacing(abs(expected))


@given(st.floats(width=32, allow_nan=False), st.sampled_from([-2.0, 0.0, 0.5, 1.0, 3.0]))
def test_a_leaky_relu_multiplies_negative_numbers_by_its_slope(x: float, slope: float) -> None:
    value = np.array([x], np.float32)
    with np.errstate(all="ignore"):
        expected = value if x > 0 else np.float32(slope) * np.minimum(value, 0)
    np.testing.assert_array_equal(alone("ACTIVATION_LEAKY_RELU", value, slope), expected)


@given(st.floats(width=32, allow_nan=False), st.sampled_from([-2.0, 0.0, 0.5, 3.0]))
def test_elu_keeps_positives_and_scales_expm1_of_others(x: float, alpha: float) -> None:
    value = np.array([x], np.float32)
    (actual,) = alone("ACTIVATION_ELU", value, alpha)
    expected = float(value[0]) if x >= 0 else alpha * math.expm1(x)
    assert actual == np.float32(expected)
    assert np.signbit(actual) == np.signbit(expected) or alpha == 0


@pytest.mark.parametrize("alpha", [-2.0, -0.5, 0.0, 0.5, 1.0, 2.0])
def test_leaky_relu_keeps_the_sign_of_zero(alpha: float) -> None:
    """Measured on DirectML 1.15.4 and 1.8.0."""
    zeros = np.array([-0.0, 0.0], np.float32)
    output = TensorDesc(DataType.FLOAT32, (2,))
    actual = reference_function("ACTIVATION_LEAKY_RELU")(zeros, output, Alpha=alpha)
    assert np.signbit(actual).tolist() == [True, False]
