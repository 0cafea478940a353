"""The error function of arrays, and its complement, from tables of Taylor series.

A table has the first four Taylor coefficients of the function at nodes that are 1/4096 apart.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["erf", "erfc"]

_PER_UNIT: Final = 4096
"""How many nodes the table has between 0 and 1."""

_END: Final = 11
"""The last node: erfc(11) is 1.4e-54, less than any positive FLOAT32 number."""

_FAR: Final = 2.0**30
"""The magnitude, beyond the table, to which larger numbers are clipped."""

_TO_NODE: Final = 1.5 * 2.0**52 / _PER_UNIT
"""A number so large that `x + _TO_NODE` is rounded to a multiple of 1/4096, the nearest node.

The last bits of the sum then count the nodes, since one unit in the last place is 1/4096.
"""

_FIRST: Final = int(np.array(_TO_NODE - _END).view(np.int64))
"""The bits of `x + _TO_NODE` at the first node, x = -11, as an integer."""


def erf(values: Array) -> Array:
    """Return erf of FLOAT64 numbers, with an absolute error of at most 2^-50; NaN stays NaN."""
    return _series(values, _of_erf())


def erfc(values: Array) -> Array:
    """Return `1 - erf` of FLOAT64 numbers; NaN stays NaN.

    The relative error is below 2^-38 for numbers below 11 - 1/8192. From there on the result is 0.
    """
    return _series(values, _of_erfc())


def _series(values: Array, coefficients: tuple[Array, ...]) -> Array:
    """Return each value's Taylor series at the nearest node; the highest power comes first."""
    with np.errstate(all="ignore"):
        if not np.vdot(values, values) < _FAR**2:
            values = np.clip(values, -_FAR, _FAR)
        node = values + _TO_NODE
        distance = values - (node - _TO_NODE)
        nearest = node.view(np.int64)
        nearest -= _FIRST
        highest, *others = coefficients
        result = highest.take(nearest, mode="clip")
        for coefficient in others:
            result *= distance
            result += coefficient.take(nearest, mode="clip")
    return result


@cache
def _of_erf() -> tuple[Array, ...]:
    values = np.array([math.erf(node) for node in _nodes()])
    # `_series` adds this to multiples of x: erf(0) is 0 + -0 = 0, and erf(-0) is -0 + -0 = -0.
    values[values == 0] = -0.0
    return *_slopes(), values


@cache
def _of_erfc() -> tuple[Array, ...]:
    values = np.array([math.erfc(node) for node in _nodes()])
    values[-1] = 0
    return *(-slope for slope in _slopes()), values


def _nodes() -> Array:
    return np.arange(-_END * _PER_UNIT, _END * _PER_UNIT + 1) / _PER_UNIT


def _slopes() -> tuple[Array, ...]:
    """Return the Taylor coefficients of erf at every node, for the third, second and first power.

    The first derivative is `2 / sqrt(pi) * exp(-x^2)`.
    """
    n = _nodes()
    slope = np.exp(-n * n) * (2 / math.sqrt(math.pi))
    # erf counts as constant from the last node on, and up to the first.
    slope[[0, -1]] = 0
    return slope * ((2 * n**2 - 1) / 3), slope * -n, slope
