"""RESAMPLE_GRAD1, the gradient of resampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.resampling.interpolation import (
    Coordinates,
    coordinates,
    in_leading_blocks,
    nearest,
)
from dmlconf.reference.resampling.spreading import spread, summed
from dmlconf.tensors.datatypes import Array

__all__ = [
    "ResampleGrad1Desc",
    "element_coordinates",
    "resample_grad1",
]


@dataclass(frozen=True, slots=True)
class ResampleGrad1Desc:
    """The fields of DML_RESAMPLE_GRAD1_OPERATOR_DESC."""

    InputGradientTensor: Array
    OutputGradientTensor: TensorDesc
    InterpolationMode: str
    RoundingDirection: str
    Scales: Sequence[float]
    InputPixelOffsets: Sequence[float]
    OutputPixelOffsets: Sequence[float]


@of_fields(ResampleGrad1Desc)
def resample_grad1(desc: ResampleGrad1Desc) -> Array:
    """InputGradientTensor {E0, E1, ...} -> OutputGradientTensor {D0, D1, ...}; FLOAT32, FLOAT16

    Return the gradient for the tensor that was resampled: for each of its elements, the weighted
    sum of the gradients of all elements that were computed from it.

    Along each axis, the element g of InputGradientTensor with index i belongs to the coordinate

        x = (i - InputPixelOffset) / Scale - OutputPixelOffset

    LINEAR adds (1 - w) g to the element floor(x) and w g to the next one, where w = x - floor(x).
    NEAREST_NEIGHBOR adds g to the element floor(x) with the RoundingDirection DECREASING, ceil(x)
    with INCREASING, and floor(x + 1/2) with HALF_UP, which `interpolation.ROUNDING` explains. What
    would be added beyond an edge is added to the element at that edge.

    Source: the page of DML_RESAMPLE_GRAD1_OPERATOR_DESC. Measured: other than on the page, the
    offsets are exchanged. The gradient of a RESAMPLE2 with the InputPixelOffset 0.5 and the
    OutputPixelOffset -0.5 takes -0.5 and 0.5.
    """
    gradient, output = desc.InputGradientTensor, desc.OutputGradientTensor
    along = element_coordinates(desc)
    changing = [axis for axis, at in enumerate(along) if not at.is_whole(output.Sizes[axis])]

    def added_up(values: Array) -> Array:
        for axis in changing:
            at, size = along[axis], output.Sizes[axis]
            if desc.InterpolationMode == "LINEAR":
                values = spread(values, axis - changing[0] + 1, at, size)
            else:
                indices = nearest(at.values, size, desc.RoundingDirection)
                values = summed(values, axis - changing[0] + 1, indices, size)
        return values

    with np.errstate(all="ignore"):
        return in_leading_blocks(added_up, gradient, min(changing, default=0), output)


def element_coordinates(desc: ResampleGrad1Desc) -> list[Coordinates]:
    """Return, for each axis, where InputGradientTensor's elements lie in OutputGradientTensor."""
    offsets = desc.OutputPixelOffsets, desc.InputPixelOffsets
    along = zip(desc.InputGradientTensor.shape, desc.Scales, *offsets, strict=True)
    return [coordinates(*axis) for axis in along]
