"""Operators that keep each element within bounds, and the gradient of CLIP.

Source: the operators' pages; the conversion of bounds, NaN and bounds in the wrong order were
measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.element_wise.conversion import cast
from dmlconf.reference.element_wise.scale_bias import ScaleBias, is_identity, scaled_function
from dmlconf.reference.fields import of_fields
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "Clip1Desc",
    "ClipGrad1Desc",
    "bound_of",
    "clip_below",
    "clip_between",
    "element_wise_clip1",
    "element_wise_clip_grad1",
    "element_wise_threshold",
    "gradient_within",
    "threshold_function",
    "threshold_of",
]


@dataclass(frozen=True, slots=True)
class Clip1Desc:
    """The fields of DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC."""

    InputTensor: Array
    OutputTensor: TensorDesc
    ScaleBias: ScaleBias | None
    MinMaxDataType: str
    Min: float
    Max: float


@of_fields(Clip1Desc)
def element_wise_clip1(desc: Clip1Desc) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to INT8, UINT64 to
    UINT8

    Return `max(Min, min(x, Max))` of each scaled element x; `min` and `max` of NaN and a number are
    the number. If Min is greater than Max, the result is Min.

    Source: the page of DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC.
    """
    clip = _clip(desc.OutputTensor, desc.Min, desc.Max, desc.MinMaxDataType)
    return _of_scaled(clip, desc.InputTensor, desc.ScaleBias, desc.OutputTensor)


def element_wise_threshold(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None, Min: float
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT32 to INT8, UINT32 to
    UINT8

    Return the greater of the scaled element and Min; of NaN and a number, the number.

    Source: the page of DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC.
    """
    return _of_scaled(threshold_function(OutputTensor, Min), InputTensor, ScaleBias, OutputTensor)


@dataclass(frozen=True, slots=True)
class ClipGrad1Desc:
    """The fields of DML_ELEMENT_WISE_CLIP_GRAD1_OPERATOR_DESC."""

    InputTensor: Array
    InputGradientTensor: Array
    OutputGradientTensor: TensorDesc
    MinMaxDataType: str
    Min: float
    Max: float


@of_fields(ClipGrad1Desc)
def element_wise_clip_grad1(desc: ClipGrad1Desc) -> Array:
    """InputTensor {D0, ...}, InputGradientTensor {D0, ...} -> OutputGradientTensor {D0, ...};
    FLOAT32, FLOAT16, INT64 to INT8, UINT64 to UINT8

    Return `gradient if Min < x < Max else 0` for each element x; 0 for NaN.

    Source: the page of DML_ELEMENT_WISE_CLIP_GRAD1_OPERATOR_DESC.
    """
    least, greatest = (
        bound_of(end, desc.OutputGradientTensor, desc.MinMaxDataType)
        for end in (desc.Min, desc.Max)
    )
    return gradient_within(desc.InputTensor, desc.InputGradientTensor, least, greatest)


def gradient_within(tensor: Array, gradient: Array, least: Any, greatest: Any) -> Array:
    """Return the gradient where the tensor's element is strictly between two bounds, else 0."""
    with np.errstate(invalid="ignore"):
        within = (tensor > least) & (tensor < greatest)
    return np.where(within, gradient, gradient.dtype.type(0))


def _clip(
    tensor: TensorDesc, least: float, greatest: float, data_type: str
) -> Callable[[Array], Array]:
    return clip_between(bound_of(least, tensor, data_type), bound_of(greatest, tensor, data_type))


def clip_between(low: Any, high: Any) -> Callable[[Array], Array]:
    """Return the function `max(low, min(x, high))`, where NaN gives way to a number."""

    def clip(values: Array) -> Array:
        if values.dtype == np.float32 and low <= high and high:
            # NumPy's `clip` takes a quarter of the time. It may change the sign of a zero if `high`
            # is 0.
            bounded: Array = np.clip(values, low, high)
            bounded[np.isnan(bounded)] = high
            return bounded
        bounded = np.fmin(values, high)
        np.fmax(low, bounded, out=bounded)
        return bounded

    return clip


def threshold_function(tensor: TensorDesc, least: float) -> Callable[[Array], Array]:
    """Return the function of THRESHOLD for an output and the bound Min."""
    return clip_below(threshold_of(tensor, least))


def threshold_of(tensor: TensorDesc, least: float) -> Any:
    """Return the bound Min of THRESHOLD in FLOAT32, or cast to the type of an integer tensor."""
    if tensor.DataType.dtype.kind == "f":
        return np.float32(least)
    return cast(np.array([least], np.float32), tensor)[0]


def clip_below(low: Any) -> Callable[[Array], Array]:
    """Return the function `max(x, low)`, where NaN gives way to a number."""
    return lambda values: np.fmax(values, low)


def bound_of(value: float, tensor: TensorDesc, data_type: str) -> Any:
    """Return a bound as a number of a tensor's type.

    A bound of the tensor's type stays as it is. Other bounds of an integer tensor are truncated and
    clamped; `_OF_NAN` says what NaN becomes. Other bounds of a floating-point tensor are clamped to
    finite numbers, and rounded to FLOAT32 and then to the tensor's type. An infinite FLOAT16 bound
    counts as 65504 or -65504 for types of 32 or 64 bits.

    Args:
        data_type: the bound's own type. If it has 4 bits, the result has the lowest 8 bits of the
            truncated value. A name without a `DataType`, such as UNKNOWN, gives 0.
    """
    dtype = tensor.DataType.dtype
    if data_type not in DataType.__members__:
        return dtype.type(0)
    source = DataType(data_type)
    if source.bits == 4:
        byte = np.array([int(value) & 0xFF], np.uint8)
        return byte.astype(f"u{dtype.itemsize}").view(dtype)[0]
    if source is tensor.DataType:
        return dtype.type(value)
    if dtype.kind != "f" and source.dtype.kind != "f":
        limits = np.iinfo(dtype)
        return dtype.type(min(max(value, int(limits.min)), int(limits.max)))
    with np.errstate(over="ignore"):
        held = np.array([source.dtype.type(value)], np.float64)
        if source is DataType.FLOAT16 and dtype.itemsize > 2:
            held = np.clip(held, source.minimum, source.maximum)
    if dtype.kind == "f":
        clamped = np.clip(held, tensor.DataType.minimum, tensor.DataType.maximum)
        return clamped.astype(np.float32).astype(dtype)[0]
    return dtype.type(_OF_NAN.get(dtype.name, 0)) if np.isnan(held[0]) else cast(held, tensor)[0]


_OF_NAN: Final = {"int32": -(2**31), "int64": -(2**63), "uint64": 2**63}
"""What a NaN bound was measured to become in an integer type, on x86-64; in types not listed, 0."""


def _of_scaled(
    function: Callable[[Array], Array],
    tensor: Array,
    scale_bias: ScaleBias | None,
    output: TensorDesc,
) -> Array:
    """Return the function of scaled elements; without a ScaleBias they stay in their type."""
    if is_identity(scale_bias):
        with np.errstate(all="ignore"):
            return function(tensor).astype(output.DataType.dtype, copy=False)
    return scaled_function(function, tensor, scale_bias, output)
