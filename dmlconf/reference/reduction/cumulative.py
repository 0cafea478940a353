"""Operators that return running sums and products along an axis."""

from __future__ import annotations

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.tensors.datatypes import Array

__all__ = [
    "cumulated",
    "cumulative_product",
    "cumulative_summation",
]


def cumulative_summation(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    Axis: int,
    AxisDirection: str,
    HasExclusiveSum: bool,
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64, INT32, UINT64,
    UINT32

    Return for each element the sum of the elements from the start of the axis up to it. With
    DECREASING, sums begin at the end of the axis. With HasExclusiveSum the element itself is left
    out, so the first sum is 0. Integers wrap around.

    Source: the page of DML_CUMULATIVE_SUMMATION_OPERATOR_DESC; wrapping was measured.
    """
    return cumulated(np.add, InputTensor, Axis, AxisDirection, HasExclusiveSum)


def cumulative_product(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    Axis: int,
    AxisDirection: str,
    HasExclusiveProduct: bool,
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64, INT32, UINT64,
    UINT32

    Return products as `cumulative_summation` returns sums. With HasExclusiveProduct the element
    itself is left out, and the first product is 1.

    Source: the page of DML_CUMULATIVE_PRODUCT_OPERATOR_DESC; wrapping was measured.
    """
    return cumulated(np.multiply, InputTensor, Axis, AxisDirection, HasExclusiveProduct)


def cumulated(
    operation: np.ufunc, tensor: Array, axis: int, direction: str, exclusive: bool
) -> Array:
    """Return, for each element, the operation applied to all elements up to it.

    The result has the tensor's type; floating-point numbers are computed in FLOAT64.

    Args:
        exclusive: whether the element itself is left out.
    """

    def of_slice(part: Array) -> Array:
        source = part.astype(np.float64) if part.dtype.kind == "f" else part
        if direction == "DECREASING":
            source = np.flip(source, axis)
        steps = operation.accumulate(source, axis, dtype=source.dtype)
        if exclusive:
            first = np.full_like(np.take(steps, [0], axis), operation.identity)
            earlier = np.take(steps, np.arange(part.shape[axis] - 1), axis)
            steps = np.concatenate([first, earlier], axis)
        return np.flip(steps, axis) if direction == "DECREASING" else steps

    with np.errstate(all="ignore"):
        return in_slices(of_slice, tensor, dtype=tensor.dtype, together=(axis,))
