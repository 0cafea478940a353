"""Square roots, reciprocals, exponentials, logarithms, hyperbolic functions and error function."""

from __future__ import annotations

import numpy as np

from dmlconf.reference.element_wise.scale_bias import unary
from dmlconf.reference.numbers.erf import erf
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_acosh",
    "element_wise_asinh",
    "element_wise_atanh",
    "element_wise_cosh",
    "element_wise_erf",
    "element_wise_exp",
    "element_wise_log",
    "element_wise_recip",
    "element_wise_sinh",
    "element_wise_sqrt",
    "element_wise_tanh",
]


def _arcsinh(x: Array) -> Array:
    return np.where(x == -np.inf, np.nan, np.arcsinh(x))


element_wise_sqrt = unary("element_wise_sqrt", np.sqrt, "the square root", rounds_once=True)

element_wise_recip = unary("element_wise_recip", np.reciprocal, "`1 / x`", rounds_once=True)

element_wise_exp = unary(
    "element_wise_exp",
    np.exp,
    "`exp(x)`",
    measured="that scaled elements are rounded to FLOAT32 was measured on DirectML 1.15.4",
)

element_wise_log = unary("element_wise_log", np.log, "the natural logarithm")

element_wise_tanh = unary("element_wise_tanh", np.tanh, "the hyperbolic tangent")

element_wise_sinh = unary("element_wise_sinh", np.sinh, "the hyperbolic sine")

element_wise_cosh = unary("element_wise_cosh", np.cosh, "the hyperbolic cosine")

element_wise_asinh = unary(
    "element_wise_asinh",
    _arcsinh,
    "the inverse hyperbolic sine; NaN for negative infinity, as the page's formula gives",
    measured="negative infinity was measured",
)

element_wise_acosh = unary("element_wise_acosh", np.arccosh, "the inverse hyperbolic cosine")

element_wise_atanh = unary("element_wise_atanh", np.arctanh, "the inverse hyperbolic tangent")

element_wise_erf = unary("element_wise_erf", erf, "the error function")
