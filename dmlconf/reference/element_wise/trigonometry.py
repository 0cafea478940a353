"""Trigonometric functions and their inverses.

An `..._interval` function takes the arguments of its operator and returns the least and the
greatest right value of each element. Kernels compute formulas of FLOAT32 numbers with the
hardware's own functions, whose errors are added up here.

Source: the operators' pages; Direct3D 11.3 functional specification, 22.10 (sincos).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.element_wise.scale_bias import (
    ScaleBias,
    function_interval,
    scaled,
    scaled_function,
    scaled_interval,
)
from dmlconf.reference.numbers.rounding import anything_where, rounded_interval
from dmlconf.reference.numbers.sine import cosine, sine
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_acos",
    "element_wise_acos_interval",
    "element_wise_asin",
    "element_wise_asin_interval",
    "element_wise_atan",
    "element_wise_atan_interval",
    "element_wise_cos",
    "element_wise_cos_interval",
    "element_wise_sin",
    "element_wise_sin_interval",
    "element_wise_tan",
    "element_wise_tan_interval",
]

_SINE: Final = 0.0008
"""The absolute error of sine and cosine up to 100 pi."""

_SINE_END: Final = 100 * np.pi
"""Beyond this the Direct3D functional specification does not limit the error."""

_ARCSINE: Final = 7.0e-5
"""The error of the polynomial of Abramowitz and Stegun, 4.4.45, which is 6.8e-5 at 0."""

_ARCTANGENT: Final = 2.0**-16
"""The error of the polynomial of Abramowitz and Stegun, 4.4.47, 1e-5, and of a reciprocal."""


def element_wise_sin(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return the sine.

    Source: the page of DML_ELEMENT_WISE_SIN_OPERATOR_DESC.
    """
    return scaled_function(sine, InputTensor, ScaleBias, OutputTensor)


def element_wise_sin_interval(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> tuple[Array, Array]:
    """Return the sine; beyond 100 pi any value of a sine is right."""
    return _sine_interval(sine, InputTensor, ScaleBias, OutputTensor)


def element_wise_cos(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return the cosine.

    Source: the page of DML_ELEMENT_WISE_COS_OPERATOR_DESC.
    """
    return scaled_function(cosine, InputTensor, ScaleBias, OutputTensor)


def element_wise_cos_interval(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> tuple[Array, Array]:
    """Return the cosine; beyond 100 pi any value of a cosine is right."""
    return _sine_interval(cosine, InputTensor, ScaleBias, OutputTensor)


def element_wise_tan(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return the tangent.

    Source: the page of DML_ELEMENT_WISE_TAN_OPERATOR_DESC.
    """
    return scaled_function(np.tan, InputTensor, ScaleBias, OutputTensor)


def element_wise_tan_interval(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> tuple[Array, Array]:
    """Return `sin(x) / cos(x)`; any value where the cosine may be zero."""
    return _tangent_interval(InputTensor, ScaleBias, OutputTensor)


def element_wise_asin(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return the inverse sine.

    Source: the page of DML_ELEMENT_WISE_ASIN_OPERATOR_DESC.
    """
    return scaled_function(np.arcsin, InputTensor, ScaleBias, OutputTensor)


def element_wise_asin_interval(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> tuple[Array, Array]:
    """Return the inverse sine by a polynomial."""
    return function_interval(
        np.arcsin,
        InputTensor,
        ScaleBias,
        OutputTensor,
        error=lambda x: _ARCSINE,
        domain=(-1.0, 1.0),
    )


def element_wise_acos(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return the inverse cosine.

    Source: the page of DML_ELEMENT_WISE_ACOS_OPERATOR_DESC.
    """
    return scaled_function(np.arccos, InputTensor, ScaleBias, OutputTensor)


def element_wise_acos_interval(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> tuple[Array, Array]:
    """Return the inverse cosine by a polynomial."""
    return function_interval(
        np.arccos,
        InputTensor,
        ScaleBias,
        OutputTensor,
        error=lambda x: _ARCSINE,
        domain=(-1.0, 1.0),
    )


def element_wise_atan(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return the inverse tangent.

    Source: the page of DML_ELEMENT_WISE_ATAN_OPERATOR_DESC.
    """
    return scaled_function(np.arctan, InputTensor, ScaleBias, OutputTensor)


def element_wise_atan_interval(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> tuple[Array, Array]:
    """Return the inverse tangent by a polynomial; of NaN, which it may lose, anything."""
    ends = function_interval(
        np.arctan, InputTensor, ScaleBias, OutputTensor, error=lambda x: _ARCTANGENT
    )
    return anything_where(np.isnan(scaled(InputTensor, ScaleBias)), ends)


def _room(tensor: Array, scale_bias: ScaleBias | None) -> tuple[Array, Array]:
    """Return the scaled elements, and how far sine and cosine of them may be off."""
    exact = scaled(tensor, scale_bias)
    low, high = scaled_interval(tensor, scale_bias)
    with np.errstate(all="ignore"):
        of_argument = np.fmax(exact - low, high - exact)
        reduced = np.fmax(np.abs(low), np.abs(high)) <= _SINE_END
        return exact, np.where(reduced, np.nan_to_num(of_argument) + _SINE, np.inf)


def _sine_interval(
    function: Callable[[Array], Array],
    tensor: Array,
    scale_bias: ScaleBias | None,
    output: TensorDesc,
) -> tuple[Array, Array]:
    exact, error = _room(tensor, scale_bias)
    with np.errstate(all="ignore"):
        value = function(exact)
        low = np.maximum(value - error, -1 - _SINE)
        high = np.minimum(value + error, 1 + _SINE)
    dtype = output.DataType.dtype
    ends = rounded_interval(low, 0.0, dtype)[0], rounded_interval(high, 0.0, dtype)[1]
    return anything_where(_may_overflow(tensor, scale_bias), ends)


def _may_overflow(tensor: Array, scale_bias: ScaleBias | None) -> Array:
    """Tell where scaling may make infinity of a number, which has no sine."""
    low, high = (np.isfinite(end) for end in scaled_interval(tensor, scale_bias))
    either: Array = low != high
    return either


def _tangent_interval(
    tensor: Array, scale_bias: ScaleBias | None, output: TensorDesc
) -> tuple[Array, Array]:
    exact, error = _room(tensor, scale_bias)
    with np.errstate(all="ignore"):
        sine, cosine = np.sin(exact), np.cos(exact)
        quotients = [
            (sine + above * error) / (cosine + below * error)
            for above in (-1, 1)
            for below in (-1, 1)
        ]
        pole = (np.abs(cosine) <= error) & np.isfinite(exact)
        low = np.where(pole, -np.inf, np.minimum.reduce(quotients))
        high = np.where(pole, np.inf, np.maximum.reduce(quotients))
    dtype = output.DataType.dtype
    ends = rounded_interval(low, 0.0, dtype)[0], rounded_interval(high, 0.0, dtype)[1]
    return anything_where(_may_overflow(tensor, scale_bias), ends)
