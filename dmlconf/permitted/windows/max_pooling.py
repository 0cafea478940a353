"""Permitted results of MAX_POOLING and MAX_POOLING_GRAD besides the reference's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale, quantum_of
from dmlconf.permitted.numbers.rounding import ANY_RESULT
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.windows.max_pooling import (
    MaxPooling2Desc,
    comparable,
    max_pooling_grad,
    stored_maxima,
)
from dmlconf.reference.windows.sliding import Window, elements, greatest, indexed, windows
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "max_pooling2_candidates",
    "max_pooling2_interval",
    "max_pooling_grad_error_scale",
]


@of_fields(MaxPooling2Desc)
def max_pooling2_candidates(desc: MaxPooling2Desc) -> tuple[Sequence[Interval], ...]:
    """Return the intervals of `max_pooling2_interval`, and others with NaN for windows of NaN only.

    A window of NaN only may also contain padding.
    """
    over = desc.windows()
    (least, most), *indices = _intervals(desc, over)
    outputs = [(least, most)]
    numbers = np.where(np.isnan(desc.InputTensor), np.int8(-1), np.int8(1))
    only_nan = greatest(numbers, over, np.int8(-2)) == -1
    if only_nan.any():
        nan = least.dtype.type(np.nan)
        outputs.append((np.where(only_nan, nan, least), np.where(only_nan, nan, most)))
    return outputs, *([each] for each in indices)


@of_fields(MaxPooling2Desc)
def max_pooling2_interval(desc: MaxPooling2Desc) -> tuple[Interval, ...]:
    """Return the intervals of the maximum of each window and, if the desc has it, of its index.

    If a floating-point window has no number above negative infinity, the output may be negative
    infinity or the lowest finite number. Any index is right for this window, for a window of
    padding alone, and for a window whose maximum is the lowest finite FLOAT32 number.
    """
    return _intervals(desc, desc.windows())


def _intervals(desc: MaxPooling2Desc, over: Sequence[Window]) -> tuple[Interval, ...]:
    values, lowest = comparable(desc.InputTensor)
    maxima, indices = indexed(values, over, lowest)
    most = least = stored_maxima(maxima, desc.OutputTensor)
    undefined = indices < 0
    if desc.InputTensor.dtype.kind == "f":
        undefined |= maxima == lowest
        least = np.where(np.isneginf(greatest(values, over, -np.inf)), -np.inf, most)
    if desc.OutputIndicesTensor is None:
        return ((least, most),)
    dtype = desc.OutputIndicesTensor.DataType.dtype
    first = np.where(undefined, 0, indices).astype(dtype)
    return (least, most), (first, np.where(undefined, np.iinfo(dtype).max, first))


def max_pooling_grad_error_scale(
    InputTensor: Array,
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    **attributes: Any,
) -> ErrorScale:
    """Return the error scale: the sums of the gradients' absolute values.

    Measured: the gradient of a dilated window of padding alone may be added to the tensor's first
    element, for which any result is then right.

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
