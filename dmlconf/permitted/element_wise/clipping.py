"""Permitted results of CLIP, THRESHOLD and CLIP_GRAD besides the reference's outputs.

For integers, processors convert a bound that is NaN to different numbers, and each is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.element_wise.scale_bias import function_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.element_wise.clipping import (
    Clip1Desc,
    ClipGrad1Desc,
    bound_of,
    clip_below,
    clip_between,
    gradient_within,
    threshold_function,
)
from dmlconf.reference.element_wise.scale_bias import ScaleBias
from dmlconf.reference.fields import of_fields
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "element_wise_clip1_candidates",
    "element_wise_clip_grad1_candidates",
    "element_wise_threshold_candidates",
]


@of_fields(Clip1Desc)
def element_wise_clip1_candidates(desc: Clip1Desc) -> Sequence[Interval]:
    """Return one interval of CLIP for each pair of numbers that the bounds may become.

    Scaling may round elements up or down first.
    """
    return [
        function_interval(
            clip_between(low, high), desc.InputTensor, desc.ScaleBias, desc.OutputTensor
        )
        for low in _bounds(desc.Min, desc.OutputTensor, desc.MinMaxDataType)
        for high in _bounds(desc.Max, desc.OutputTensor, desc.MinMaxDataType)
    ]


def element_wise_threshold_candidates(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None, Min: float
) -> Sequence[Interval]:
    """Return one interval of THRESHOLD for each number that Min may become.

    Scaling may round elements up or down first.
    """
    tensors = InputTensor, ScaleBias, OutputTensor
    if OutputTensor.DataType.dtype.kind == "f":
        return [function_interval(threshold_function(OutputTensor, Min), *tensors)]
    lows = _bounds(Min, OutputTensor, "FLOAT32")
    return [function_interval(clip_below(low), *tensors) for low in lows]


@of_fields(ClipGrad1Desc)
def element_wise_clip_grad1_candidates(desc: ClipGrad1Desc) -> Sequence[Interval]:
    """Return one gradient of CLIP_GRAD for each pair of numbers that the bounds may become."""
    gradients = [
        gradient_within(desc.InputTensor, desc.InputGradientTensor, low, high)
        for low in _bounds(desc.Min, desc.OutputGradientTensor, desc.MinMaxDataType)
        for high in _bounds(desc.Max, desc.OutputGradientTensor, desc.MinMaxDataType)
    ]
    return [(gradient, gradient) for gradient in gradients]


def _bounds(value: float, tensor: TensorDesc, data_type: str) -> list[Any]:
    """Return the numbers of the tensor's type that a bound may become.

    The first is the reference's. There are others only for NaN as a bound of integers, since
    processors convert NaN to different integers.
    """
    dtype = tensor.DataType.dtype
    bound = bound_of(value, tensor, data_type)
    if dtype.kind == "f" or value == value or data_type not in DataType.__members__:
        return [bound]
    others = {0, *(() if dtype.kind == "i" else (int(np.iinfo(dtype).max),))}
    return [bound, *(dtype.type(other) for other in sorted(others - {int(bound)}))]
