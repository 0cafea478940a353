"""Operators that return the greatest number in a window, and their gradient.

All elements that a window reaches beyond the input are padding. EndPadding has no other effect than
on the sizes of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.windows.pooling import DilatedPoolingDesc
from dmlconf.reference.windows.sliding import greatest, indexed, windows
from dmlconf.tensors.datatypes import Array

__all__ = [
    "MaxPooling2Desc",
    "comparable",
    "max_pooling2",
    "max_pooling_grad",
    "stored_maxima",
]


@dataclass(frozen=True, slots=True)
class MaxPooling2Desc(DilatedPoolingDesc):
    """The fields of DML_MAX_POOLING2_OPERATOR_DESC."""

    OutputIndicesTensor: TensorDesc | None


@of_fields(MaxPooling2Desc)
def max_pooling2(desc: MaxPooling2Desc) -> tuple[Array, ...]:
    """InputTensor {N, C, D0, ...} -> OutputTensor {N, C, E0, ...},
    [OutputIndicesTensor {N, C, E0, ...}]; FLOAT32, FLOAT16, INT64 to INT8, UINT64 to UINT8;
    OutputIndicesTensor: UINT64, UINT32

    Return the greatest number in each window, and its index in the whole input. Elements of a
    window are Dilations apart.

    NaN is ignored, and no result is below the lowest finite number of its type. A window of padding
    alone gives this number and the index 0. The index counts the elements of the input in row-major
    order, batches and channels included. Of equal elements the first counts; for the index, NaN and
    negative infinity equal the lowest finite FLOAT32 number.

    Source: the page of DML_MAX_POOLING2_OPERATOR_DESC; infinity, NaN and padding were measured.
    """
    over = desc.windows()
    values, lowest = comparable(desc.InputTensor)
    if desc.OutputIndicesTensor is None:
        return (stored_maxima(greatest(values, over, lowest), desc.OutputTensor),)
    maxima, indices = indexed(values, over, lowest)
    indices = np.maximum(indices, 0).astype(desc.OutputIndicesTensor.DataType.dtype)
    return stored_maxima(maxima, desc.OutputTensor), indices


def max_pooling_grad(
    InputTensor: Array,
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    Strides: Sequence[int],
    WindowSize: Sequence[int],
    StartPadding: Sequence[int],
    EndPadding: Sequence[int],
    Dilations: Sequence[int],
) -> Array:
    """InputTensor {N, C, D0, ...}, InputGradientTensor {N, C, E0, ...} ->
    OutputGradientTensor {N, C, D0, ...}; FLOAT32, FLOAT16

    Return zeros, with each gradient added at the greatest number of its window.

    Of equal elements the first counts; NaN and negative infinity equal the lowest finite FLOAT32
    number. Gradients of windows of padding alone are dropped. If Strides, WindowSize, StartPadding
    and Dilations have more numbers than there are spatial dimensions, the last ones count.

    Source: the page of DML_MAX_POOLING_GRAD_OPERATOR_DESC; NaN, negative infinity, padding and
    surplus numbers were measured.
    """
    rank = InputTensor.ndim - 2
    spatial = (of[-rank:] for of in (Strides, WindowSize, StartPadding, Dilations))
    over = windows(InputTensor.shape, InputGradientTensor.shape, *spatial)
    values, lowest = comparable(InputTensor)
    indices = indexed(values, over, lowest)[1]
    valid = indices >= 0
    with np.errstate(all="ignore"):
        gradients = InputGradientTensor[valid].astype(np.float64)
        gradient = np.bincount(indices[valid], gradients, InputTensor.size)
        return gradient.reshape(InputTensor.shape).astype(OutputGradientTensor.DataType.dtype)


def comparable(tensor: Array) -> tuple[Array, Any]:
    """Return the numbers in the type that kernels compare, and its lowest finite number."""
    if tensor.dtype.kind != "f":
        return tensor, np.iinfo(tensor.dtype).min
    return tensor.astype(np.float32, copy=False), np.finfo(np.float32).min


def stored_maxima(maxima: Array, output: TensorDesc) -> Array:
    """Return the maxima in the output's type, none below the lowest finite number of the type."""
    dtype = output.DataType.dtype
    if maxima.dtype == dtype:
        return maxima
    return np.maximum(maxima, np.finfo(dtype).min).astype(dtype)
