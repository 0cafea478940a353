"""Trigonometric functions and their inverses, in radians."""

from __future__ import annotations

import numpy as np

from dmlconf.reference.element_wise.scale_bias import unary
from dmlconf.reference.numbers.sine import cosine, sine

__all__ = [
    "element_wise_acos",
    "element_wise_asin",
    "element_wise_atan",
    "element_wise_cos",
    "element_wise_sin",
    "element_wise_tan",
]

element_wise_sin = unary("element_wise_sin", sine, "the sine")

element_wise_cos = unary("element_wise_cos", cosine, "the cosine")

element_wise_tan = unary("element_wise_tan", np.tan, "the tangent")

element_wise_asin = unary("element_wise_asin", np.arcsin, "the inverse sine")

element_wise_acos = unary("element_wise_acos", np.arccos, "the inverse cosine")

element_wise_atan = unary("element_wise_atan", np.arctan, "the inverse tangent")
