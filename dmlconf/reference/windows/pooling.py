"""Operators that return a mean or a norm of each window, and the gradient of the mean.

All elements that a window reaches beyond the input are padding, which counts as 0. Except in
`average_pooling_grad`, EndPadding has no other effect than on the sizes of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.windows.sliding import Window, elements, spread, sums, windows
from dmlconf.tensors.datatypes import Array

__all__ = [
    "AveragePooling1Desc",
    "DilatedPoolingDesc",
    "LpPooling1Desc",
    "average_pooling1",
    "average_pooling_grad",
    "lp_pooling1",
    "window_means",
    "window_norms",
]


@dataclass(frozen=True, slots=True)
class DilatedPoolingDesc:
    """The fields that the descs of AVERAGE_POOLING1, LP_POOLING1 and MAX_POOLING2 share."""

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

    Return the mean of each window, whose elements are Dilations apart.

    The sum is divided by the size of the window with IncludePadding, else by the number of elements
    that are not padding. If this number is 0, the mean is NaN.

    Source: the page of DML_AVERAGE_POOLING1_OPERATOR_DESC.
    """
    with np.errstate(all="ignore"):
        return window_means(desc, desc.InputTensor).astype(desc.OutputTensor.DataType.dtype)


def window_means(desc: AveragePooling1Desc, tensor: Array) -> Array:
    """Return the mean of the window's elements at each position, FLOAT64."""
    over = desc.windows()
    totals = sums(tensor, over)
    totals /= prod(desc.WindowSize) if desc.IncludePadding else elements(over).astype(np.float64)
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

    Return zeros, with an equal share of each gradient added to all elements of its window. With
    IncludePadding, padding gets a share as well, but nothing beyond the EndPadding does.

    Source: the page of DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC; the shares were measured.
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
            shares /= elements(over).astype(np.float64)
        return spread(shares, over).astype(OutputGradientTensor.DataType.dtype)


@of_fields(LpPooling1Desc)
def lp_pooling1(desc: LpPooling1Desc) -> Array:
    """InputTensor {N, C, D0, ...} -> OutputTensor {N, C, E0, ...}; FLOAT32, FLOAT16

    Return the p-norm of each window, `sum(|x|^P)^(1 / P)`; its elements are Dilations apart.

    With a P of 0, the exponent 1 / P is infinity. A window gives 1 if it has one element besides
    padding, infinity if it has several, and 0 if it has none.

    Source: the page of DML_LP_POOLING1_OPERATOR_DESC; a P of 0 was measured on DirectML 1.15.4.
    """
    return window_norms(desc)


def window_norms(desc: LpPooling1Desc) -> Array:
    """Return the p-norm of the window's elements at each position, in the output's type."""
    with np.errstate(all="ignore"):
        powers = np.abs(desc.InputTensor.astype(np.float64)) ** desc.P
        root = 1 / desc.P if desc.P else np.inf
        return (sums(powers, desc.windows()) ** root).astype(desc.OutputTensor.DataType.dtype)
