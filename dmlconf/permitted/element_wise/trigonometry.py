"""Permitted errors of sine, cosine, tangent and their inverses.

Kernels compute them with hardware functions and polynomials: the sine of 1 may be 0.8415 +- 0.0008.

Source: Direct3D 11.3 functional specification, 22.10 (sincos).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.element_wise.scale_bias import (
    function_interval,
    scaled_interval,
    unary_interval,
)
from dmlconf.permitted.numbers.rounding import anything_where, rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.element_wise.scale_bias import ScaleBias, scaled
from dmlconf.reference.numbers.sine import cosine, sine
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_acos_interval",
    "element_wise_asin_interval",
    "element_wise_atan_interval",
    "element_wise_cos_interval",
    "element_wise_sin_interval",
    "element_wise_tan_candidates",
]

_SINE: Final = 0.0008
"""The absolute error of sine and cosine from -100 pi to 100 pi."""

_SINE_END: Final = 100 * np.pi
"""The greatest size of an argument for which Direct3D's specification limits the error."""

_ARCSINE: Final = 7.0e-5
"""The absolute error of the polynomial of Abramowitz and Stegun, 4.4.45: 6.8e-5 at 0."""

ARCTANGENT: Final = 2.0**-16
"""The absolute error of an arc tangent: 1.2e-5 for the polynomial of Abramowitz and Stegun, 4.4.47,
plus the error of its argument, a quotient."""


def _scaled_with_error(tensor: Array, scale_bias: ScaleBias | None) -> tuple[Array, Array]:
    """Return the scaled elements, and the absolute errors of their sines and cosines.

    Errors are infinite beyond 100 pi, and for NaN.
    """
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
) -> Interval:
    exact, error = _scaled_with_error(tensor, scale_bias)
    with np.errstate(all="ignore"):
        value = function(exact)
        low = np.maximum(value - error, -1 - _SINE)
        high = np.minimum(value + error, 1 + _SINE)
    dtype = output.DataType.dtype
    ends = rounded_interval(low, 0.0, dtype)[0], rounded_interval(high, 0.0, dtype)[1]
    return anything_where(_may_overflow(tensor, scale_bias), ends)


def _may_overflow(tensor: Array, scale_bias: ScaleBias | None) -> Array:
    """Return where one end of the scaled interval is infinite and the other finite."""
    low, high = (np.isfinite(end) for end in scaled_interval(tensor, scale_bias))
    either: Array = low != high
    return either


def element_wise_tan_candidates(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Sequence[Interval]:
    """Return the candidates of TAN: `sin(x) / cos(x)`.

    Let e be the error of sine and cosine. Near a pole, where |cos x| <= e, numbers of either sign
    are right if their size is (|sin x| - e) / (|cos x| + e) or more. Any value is right for a
    finite x beyond 100 pi, and where scaling may give a finite or an infinite x.

    Source: Direct3D 11.3 functional specification, 22.10 (sincos).
    """
    exact, error = _scaled_with_error(InputTensor, ScaleBias)
    with np.errstate(all="ignore"):
        sine, cosine = np.sin(exact), np.cos(exact)
        quotients = [
            (sine + above * error) / (cosine + below * error)
            for above in (-1, 1)
            for below in (-1, 1)
        ]
        pole = (np.abs(cosine) <= error) & np.isfinite(exact)
        least = (np.abs(sine) - error) / (np.abs(cosine) + error)
        least = np.where(np.isfinite(error), least, -np.inf)
        low, high = np.minimum.reduce(quotients), np.maximum.reduce(quotients)
    ends = np.where(pole, least, low), np.where(pole, np.inf, high)
    others = np.where(pole, -np.inf, low), np.where(pole, -least, high)
    dtype, undefined = OutputTensor.DataType.dtype, _may_overflow(InputTensor, ScaleBias)
    return [
        anything_where(
            undefined, (rounded_interval(a, 0.0, dtype)[0], rounded_interval(b, 0.0, dtype)[1])
        )
        for a, b in (ends, others)[: 1 + pole.any()]
    ]


def _arctangent_interval(
    tensor: Array, scale_bias: ScaleBias | None, output: TensorDesc
) -> Interval:
    ends = function_interval(np.arctan, tensor, scale_bias, output, error=lambda x: ARCTANGENT)
    return anything_where(np.isnan(scaled(tensor, scale_bias)), ends)


element_wise_sin_interval = unary_interval(
    "element_wise_sin",
    partial(_sine_interval, sine),
    "the sine; for finite elements beyond 100 pi any number from -1.0008 to 1.0008",
)

element_wise_cos_interval = unary_interval(
    "element_wise_cos",
    partial(_sine_interval, cosine),
    "the cosine; for finite elements beyond 100 pi any number from -1.0008 to 1.0008",
)

element_wise_asin_interval = unary_interval(
    "element_wise_asin",
    partial(function_interval, np.arcsin, error=lambda x: _ARCSINE, domain=(-1.0, 1.0)),
    "the inverse sine by a polynomial",
)

element_wise_acos_interval = unary_interval(
    "element_wise_acos",
    partial(function_interval, np.arccos, error=lambda x: _ARCSINE, domain=(-1.0, 1.0)),
    "the inverse cosine by a polynomial",
)

element_wise_atan_interval = unary_interval(
    "element_wise_atan",
    _arctangent_interval,
    "the inverse tangent by a polynomial; for NaN any value, since a kernel may replace NaN",
)
