"""Operators that keep each element within bounds, and their gradients.

Bounds become numbers of the tensor's type: for integers truncated and clamped, for FLOAT16 rounded
to nearest, with the largest number for what exceeds it. The bound of THRESHOLD stays FLOAT32.

Source: the operators' pages; the conversion of bounds, NaN and bounds in the wrong order were
measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dmlconf.backends.numpy.conversion import cast
from dmlconf.backends.numpy.scale_bias import (
    ScaleBias,
    function_interval,
    is_identity,
    scaled_function,
)
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "element_wise_clip",
    "element_wise_clip1",
    "element_wise_clip1_interval",
    "element_wise_clip_grad",
    "element_wise_clip_grad1",
    "element_wise_clip_interval",
    "element_wise_threshold",
    "element_wise_threshold_interval",
]


def element_wise_clip(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    ScaleBias: ScaleBias | None,
    Min: float,
    Max: float,
) -> Array:
    """Return the greater of Min and the lesser of the scaled element and Max.

    Of a number and NaN the number is taken.

    Source: the page of DML_ELEMENT_WISE_CLIP_OPERATOR_DESC.
    """
    return _function(_clip(OutputTensor, Min, Max), InputTensor, ScaleBias, OutputTensor)


def element_wise_clip_interval(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    ScaleBias: ScaleBias | None,
    Min: float,
    Max: float,
) -> tuple[Array, Array]:
    """Return the bounded elements, which are scaled with a rounding either way."""
    return function_interval(_clip(OutputTensor, Min, Max), InputTensor, ScaleBias, OutputTensor)


def element_wise_clip1(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    ScaleBias: ScaleBias | None,
    MinMaxDataType: str,
    Min: float,
    Max: float,
) -> Array:
    """Return the greater of Min and the lesser of the scaled element and Max.

    Of a number and NaN the number is taken.

    Source: the page of DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC.
    """
    return element_wise_clip(InputTensor, OutputTensor, ScaleBias, Min, Max)


def element_wise_clip1_interval(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    ScaleBias: ScaleBias | None,
    MinMaxDataType: str,
    Min: float,
    Max: float,
) -> tuple[Array, Array]:
    """Return the bounded elements, which are scaled with a rounding either way."""
    return element_wise_clip_interval(InputTensor, OutputTensor, ScaleBias, Min, Max)


def element_wise_threshold(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None, Min: float
) -> Array:
    """Return the greater of the scaled element and Min; the number where one of them is NaN.

    Source: the page of DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC.
    """
    return _function(_threshold(OutputTensor, Min), InputTensor, ScaleBias, OutputTensor)


def element_wise_threshold_interval(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None, Min: float
) -> tuple[Array, Array]:
    """Return the bounded elements, which are scaled with a rounding either way."""
    return function_interval(_threshold(OutputTensor, Min), InputTensor, ScaleBias, OutputTensor)


def element_wise_clip_grad(
    InputTensor: Array,
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    Min: float,
    Max: float,
) -> Array:
    """Return the gradient where the element is between the bounds, and 0 elsewhere.

    It is 0 at the bounds themselves, for NaN, and where a bound is NaN.

    Source: the page of DML_ELEMENT_WISE_CLIP_GRAD_OPERATOR_DESC; the bounds were measured.
    """
    least, greatest = _bound(Min, OutputGradientTensor), _bound(Max, OutputGradientTensor)
    with np.errstate(invalid="ignore"):
        within = (InputTensor > least) & (InputTensor < greatest)
    return np.where(within, InputGradientTensor, InputGradientTensor.dtype.type(0))


def element_wise_clip_grad1(
    InputTensor: Array,
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    MinMaxDataType: str,
    Min: float,
    Max: float,
) -> Array:
    """Return the gradient where the element is between the bounds, and 0 elsewhere.

    It is 0 at the bounds themselves, for NaN, and where a bound is NaN.

    Source: the page of DML_ELEMENT_WISE_CLIP_GRAD1_OPERATOR_DESC; the bounds were measured.
    """
    return element_wise_clip_grad(InputTensor, InputGradientTensor, OutputGradientTensor, Min, Max)


def _clip(tensor: TensorDesc, least: float, greatest: float) -> Callable[[Array], Array]:
    low, high = _bound(least, tensor), _bound(greatest, tensor)

    def clip(values: Array) -> Array:
        bounded: Array = np.fmin(values, high)
        np.fmax(low, bounded, out=bounded)
        return bounded

    return clip


def _threshold(tensor: TensorDesc, least: float) -> Callable[[Array], Array]:
    low = np.float32(least) if tensor.DataType.dtype.kind == "f" else _bound(least, tensor)
    return lambda values: np.fmax(values, low)


def _bound(value: float, tensor: TensorDesc) -> Any:
    """Return a bound as a number of a tensor's type."""
    dtype = tensor.DataType.dtype
    if dtype.kind != "f":
        if isinstance(value, int):
            limits = np.iinfo(dtype)
            return dtype.type(min(max(value, int(limits.min)), int(limits.max)))
        return cast(np.array([np.float32(value)]), tensor)[0]
    with np.errstate(over="ignore"):
        bound = dtype.type(np.float32(value))
    if tensor.DataType is DataType.FLOAT16 and np.isinf(bound):
        return dtype.type(np.copysign(np.finfo(dtype).max, bound))
    return bound


def _function(
    function: Callable[[Array], Array],
    tensor: Array,
    scale_bias: ScaleBias | None,
    output: TensorDesc,
) -> Array:
    if is_identity(scale_bias):
        with np.errstate(all="ignore"):
            return function(tensor).astype(output.DataType.dtype, copy=False)
    return scaled_function(function, tensor, scale_bias, output)
