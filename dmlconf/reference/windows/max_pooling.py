"""Operators that return the greatest number in a window, and their gradient.

EndPadding only affects the size of the output: all that a position reaches beyond the input
is padding.

Source: the operators' pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.error_scale import ErrorScale, quantum_of
from dmlconf.reference.numbers.rounding import ANY_RESULT
from dmlconf.reference.windows.sliding import elements, greatest, indexed, windows
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "MaxPooling2Desc",
    "max_pooling2",
    "max_pooling2_interval",
    "max_pooling_grad",
    "max_pooling_grad_error_scale",
]

_Interval = tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class MaxPooling2Desc:
    """The fields of DML_MAX_POOLING2_OPERATOR_DESC."""

    InputTensor: Array
    OutputTensor: TensorDesc
    OutputIndicesTensor: TensorDesc | None
    Strides: Sequence[int]
    WindowSize: Sequence[int]
    StartPadding: Sequence[int]
    EndPadding: Sequence[int]
    Dilations: Sequence[int]


@of_fields(MaxPooling2Desc)
def max_pooling2(desc: MaxPooling2Desc) -> tuple[Array, ...]:
    """InputTensor {N, C, D0, ...} -> OutputTensor {N, C, E0, ...},
    [OutputIndicesTensor {N, C, E0, ...}]; FLOAT32, FLOAT16, INT64 to INT8, UINT64 to UINT8;
    OutputIndicesTensor: UINT64, UINT32

    Return what `max_pooling1` does, with a window whose places lie apart.

    Source: the page of DML_MAX_POOLING2_OPERATOR_DESC.
    """
    spatial = desc.Strides, desc.WindowSize, desc.StartPadding, desc.Dilations
    over = windows(desc.InputTensor.shape, desc.OutputTensor.Sizes, *spatial)
    values, lowest = _comparable(desc.InputTensor)
    if desc.OutputIndicesTensor is None:
        return (_stored(greatest(values, over, lowest), desc.OutputTensor),)
    maxima, indices = indexed(values, over, lowest)
    indices = np.maximum(indices, 0).astype(desc.OutputIndicesTensor.DataType.dtype)
    return _stored(maxima, desc.OutputTensor), indices


@of_fields(MaxPooling2Desc)
def max_pooling2_interval(desc: MaxPooling2Desc) -> tuple[_Interval, ...]:
    """Return as `max_pooling_interval` does, and any index where there is no greatest number."""
    spatial = desc.Strides, desc.WindowSize, desc.StartPadding, desc.Dilations
    over = windows(desc.InputTensor.shape, desc.OutputTensor.Sizes, *spatial)
    values, lowest = _comparable(desc.InputTensor)
    maxima, indices = indexed(values, over, lowest)
    most = least = _stored(maxima, desc.OutputTensor)
    undefined = indices < 0
    if desc.InputTensor.dtype.kind == "f":
        undefined |= maxima == lowest
        least = np.where(np.isneginf(greatest(values, over, -np.inf)), -np.inf, most)
    if desc.OutputIndicesTensor is None:
        return ((least, most),)
    dtype = desc.OutputIndicesTensor.DataType.dtype
    first = np.where(undefined, 0, indices).astype(dtype)
    return (least, most), (first, np.where(undefined, np.iinfo(dtype).max, first))


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

    Return zeros, with each gradient added where its window sees the greatest number.

    Of equal elements the first counts. Gradients of windows of padding alone are dropped. Of more
    numbers than spatial dimensions the last ones count.

    Source: the page of DML_MAX_POOLING_GRAD_OPERATOR_DESC; padding, further numbers: measured.
    """
    rank = InputTensor.ndim - 2
    spatial = (of[-rank:] for of in (Strides, WindowSize, StartPadding, Dilations))
    over = windows(InputTensor.shape, InputGradientTensor.shape, *spatial)
    values, lowest = _comparable(InputTensor)
    indices = indexed(values, over, lowest)[1]
    valid = indices >= 0
    with np.errstate(all="ignore"):
        gradients = InputGradientTensor[valid].astype(np.float64)
        gradient = np.bincount(indices[valid], gradients, InputTensor.size)
        return gradient.reshape(InputTensor.shape).astype(OutputGradientTensor.DataType.dtype)


def max_pooling_grad_error_scale(
    InputTensor: Array,
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    **attributes: Any,
) -> ErrorScale:
    """Return the sums of the gradients' absolute values.

    Measured: where a dilated window passes over the first element of all and sees nothing but
    padding, its gradient may be added there, so any result is right for that element.

    Derived in docs/bounds.md, Sums.
    """
    absolute = np.abs(InputGradientTensor)
    wide = TensorDesc(DataType.FLOAT64, OutputGradientTensor.Sizes)
    sums = max_pooling_grad(InputTensor, absolute, wide, **attributes)
    names = "Strides", "WindowSize", "StartPadding", "Dilations"
    spatial = (attributes[name][2 - InputTensor.ndim :] for name in names)
    over = windows(InputTensor.shape, InputGradientTensor.shape, *spatial)
    if max(attributes["Dilations"]) > 1 and not elements(over).all():
        sums.flat[0] = ANY_RESULT
    return ErrorScale(sums, quantum=quantum_of(InputGradientTensor))


def _comparable(tensor: Array) -> tuple[Array, Any]:
    """Return the numbers as kernels compare them, FLOAT16 as FLOAT32, and the lowest finite one."""
    if tensor.dtype.kind != "f":
        return tensor, np.iinfo(tensor.dtype).min
    return tensor.astype(np.float32, copy=False), np.finfo(np.float32).min


def _stored(maxima: Array, output: TensorDesc) -> Array:
    """Return the results in the output's type, whose lowest finite number is the least."""
    dtype = output.DataType.dtype
    return np.maximum(maxima, np.finfo(dtype).min).astype(dtype) if dtype.kind == "f" else maxima
