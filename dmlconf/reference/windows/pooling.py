"""Operators that return a mean or a norm of each window, and the gradient of the mean.

EndPadding only affects the size of the output: all that a position reaches beyond the input
is padding. An `..._interval` function returns the least and the greatest right values, and an
`..._error_scale` function the sums of the absolute values of what is added up; they take the
arguments of their operator.

Source: the operators' pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.accuracy import EXP2_ERROR, LOG2_ERROR
from dmlconf.reference.numbers.error_scale import ErrorScale
from dmlconf.reference.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.reference.windows.sliding import Window, elements, spread, sums, windows
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "AveragePooling1Desc",
    "DilatedPoolingDesc",
    "LpPooling1Desc",
    "average_pooling1",
    "average_pooling1_error_scale",
    "average_pooling_grad",
    "average_pooling_grad_error_scale",
    "lp_pooling1",
    "lp_pooling1_candidates",
]

_Interval = tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class DilatedPoolingDesc:
    """The fields that the descs of poolings with Dilations begin with."""

    InputTensor: Array
    OutputTensor: TensorDesc
    Strides: Sequence[int]
    WindowSize: Sequence[int]
    StartPadding: Sequence[int]
    EndPadding: Sequence[int]
    Dilations: Sequence[int]

    def windows(self) -> list[Window]:
        """Return the window along each spatial axis."""
        spatial = self.Strides, self.WindowSize, self.StartPadding, self.Dilations
        return windows(self.InputTensor.shape, self.OutputTensor.Sizes, *spatial)


@dataclass(frozen=True, slots=True)
class AveragePooling1Desc(DilatedPoolingDesc):
    """The fields of DML_AVERAGE_POOLING1_OPERATOR_DESC."""

    IncludePadding: bool


@dataclass(frozen=True, slots=True)
class LpPooling1Desc(DilatedPoolingDesc):
    """The fields of DML_LP_POOLING1_OPERATOR_DESC."""

    P: int


@of_fields(AveragePooling1Desc)
def average_pooling1(desc: AveragePooling1Desc) -> Array:
    """InputTensor {N, C, D0, ...} -> OutputTensor {N, C, E0, ...}; FLOAT32, FLOAT16

    Return the mean of each window, whose elements are Dilations apart. It is computed in FLOAT64
    and rounded once, to the output's type; what else is right is decided by the rule `accumulate`
    (`dmlconf.precision.accumulation`).

    Source: the page of DML_AVERAGE_POOLING1_OPERATOR_DESC.
    """
    with np.errstate(all="ignore"):
        return _means(desc, desc.InputTensor).astype(desc.OutputTensor.DataType.dtype)


@of_fields(AveragePooling1Desc)
def average_pooling1_error_scale(desc: AveragePooling1Desc) -> ErrorScale:
    """Return the means of absolute values; with what FLOAT32 may overflow in.

    Derived in docs/bounds.md, Averages.
    """
    with np.errstate(all="ignore"):
        mean = _means(desc, np.abs(desc.InputTensor))
        beyond = mean * prod(desc.WindowSize) > np.finfo(np.float32).max
    return ErrorScale(mean, overflows=beyond & np.isfinite(mean))


def _means(desc: AveragePooling1Desc, tensor: Array) -> Array:
    """Return the mean of what the window sees at each position, FLOAT64."""
    over = desc.windows()
    totals = sums(tensor, over)
    totals /= prod(desc.WindowSize) if desc.IncludePadding else elements(over)
    return totals


def average_pooling_grad(
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    Strides: Sequence[int],
    WindowSize: Sequence[int],
    StartPadding: Sequence[int],
    EndPadding: Sequence[int],
    IncludePadding: bool,
) -> Array:
    """InputGradientTensor {N, C, E0, ...} -> OutputGradientTensor {N, C, D0, ...}; FLOAT32, FLOAT16

    Return zeros, with an equal share of each gradient added to all that its window sees.

    IncludePadding gives padding a share as well, but no element after it.

    Source: the page of DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC; what lies behind was measured.
    """
    sizes = OutputGradientTensor.Sizes, InputGradientTensor.shape
    over = windows(*sizes, Strides, WindowSize, StartPadding)
    with np.errstate(all="ignore"):
        shares = InputGradientTensor.astype(np.float64)
        if IncludePadding:
            extents = zip(sizes[0][2:], StartPadding, EndPadding, strict=False)
            padded = (1, 1, *(sum(extent) for extent in extents))
            within = windows(padded, sizes[1], Strides, WindowSize, (0,) * len(Strides))
            shares /= np.maximum(elements(within), 1)
        else:
            shares /= elements(over)
        return spread(shares, over).astype(OutputGradientTensor.DataType.dtype)


def average_pooling_grad_error_scale(
    InputGradientTensor: Array, OutputGradientTensor: TensorDesc, **attributes: Any
) -> Array:
    """Return the sums of the shares' absolute values.

    Derived in docs/bounds.md, Sums.
    """
    absolute = np.abs(InputGradientTensor)
    return average_pooling_grad(absolute, _wide(OutputGradientTensor), **attributes)


@of_fields(LpPooling1Desc)
def lp_pooling1(desc: LpPooling1Desc) -> Array:
    """InputTensor {N, C, D0, ...} -> OutputTensor {N, C, E0, ...}; FLOAT32, FLOAT16

    Return the p-norm of each window, whose elements are Dilations apart.

    The root of a P of 0 is the power of infinity.

    Source: the page of DML_LP_POOLING1_OPERATOR_DESC; a P of 0 was measured on DirectML 1.15.4.
    """
    return _roots(desc)


@of_fields(LpPooling1Desc)
def lp_pooling1_candidates(desc: LpPooling1Desc) -> Sequence[_Interval]:
    """Return the least and the greatest right roots where every power is made of exp2 and log2.

    A power that is subnormal in FLOAT32 may be lost. A sum beyond FLOAT32 may be infinite, and its
    root with it, but no number between that and the root itself is right. With a P of 0 the
    logarithms of 0 and of 1 are multiplied by 0 and by infinity, which is NaN on some devices:
    anything is right where the window sees 0 or what is not finite, or one element.

    Source: Direct3D 11.3 functional specification, 22.10 (exp, log).
    """
    over, P = desc.windows(), desc.P
    if P == 0:
        special = sums(~(np.isfinite(desc.InputTensor) & (desc.InputTensor != 0)), over) > 0
        exact = _roots(desc)
        return [anything_where(special | (elements(over) == 1), (exact, exact))]
    single = np.finfo(np.float32)
    with np.errstate(all="ignore"):
        bases = np.abs(desc.InputTensor.astype(np.float64))
        powers = bases**P
        error = powers * _power_error(bases, P)
        error = np.where(powers < single.tiny, powers, error)
        total = sums(powers, over)
        room = sums(error, over) + total * (prod(desc.WindowSize) * STEP)
        root = total ** (1 / P)
        least, most = np.maximum(total - room, 0) ** (1 / P), (total + room) ** (1 / P)
        room = np.maximum(root - least, most - root) + most * _power_error(total, 1 / P)
        lowest, highest = rounded_interval(root, room, desc.OutputTensor.DataType.dtype)
        lowest = np.maximum(lowest, 0)
        overflows = (total * (1 + EXP2_ERROR) > single.max) & np.isfinite(root)
        if not overflows.any():
            return [(lowest, highest)]
        infinity = lowest.dtype.type(np.inf)
        infinite = np.where(overflows, infinity, lowest), np.where(overflows, infinity, highest)
    return [(lowest, highest), infinite]


def _roots(desc: LpPooling1Desc) -> Array:
    """Return the root of the sum of the powers that the window sees at each position."""
    with np.errstate(all="ignore"):
        powers = np.abs(desc.InputTensor.astype(np.float64)) ** desc.P
        root = 1 / desc.P if desc.P else np.inf
        return (sums(powers, desc.windows()) ** root).astype(desc.OutputTensor.DataType.dtype)


def _power_error(base: Array, exponent: float) -> Array:
    """Return the relative error of exp2(exponent * log2(base)); 0 for a power of 0."""
    logarithm = np.abs(np.log2(base))
    inner = exponent * (LOG2_ERROR * np.maximum(logarithm, 1) + STEP * logarithm)
    return np.where(np.isfinite(logarithm), np.log(2) * inner + EXP2_ERROR, 0)


def _wide(tensor: TensorDesc) -> TensorDesc:
    """Return a FLOAT64 tensor of the same sizes."""
    return TensorDesc(DataType.FLOAT64, tensor.Sizes)
