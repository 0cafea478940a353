"""Permitted results of the gradient of RESAMPLE besides the reference's output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.permitted.numbers.rounding import anything_where
from dmlconf.permitted.resampling.coordinates import uncertain
from dmlconf.permitted.resampling.gradient_candidates import linear_interval, nearest_candidates
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.resampling.gradients import ResampleGrad1Desc, element_coordinates

__all__ = [
    "resample_grad1_candidates",
    "resample_grad1_interval",
]


@of_fields(ResampleGrad1Desc)
def resample_grad1_candidates(desc: ResampleGrad1Desc) -> Sequence[Interval]:
    """Return the candidates: gradients for coordinates with the rounding errors of FLOAT32.

    With an infinite or NaN offset, any gradients are right.

    With NEAREST_NEIGHBOR each gradient belongs to one element. If the error of its coordinate
    reaches the boundary between two elements, it may belong to either element.
    """
    if desc.InterpolationMode == "LINEAR" or not _finite_offsets(desc):
        return [_interval(desc)]
    at = [uncertain(of_axis) for of_axis in element_coordinates(desc)]
    output = desc.OutputGradientTensor
    return nearest_candidates(desc.InputGradientTensor, at, desc.RoundingDirection, output)


@of_fields(ResampleGrad1Desc)
def resample_grad1_interval(desc: ResampleGrad1Desc) -> Interval:
    """Return the interval of LINEAR: the least and the greatest right sums."""
    return _interval(desc)


def _interval(desc: ResampleGrad1Desc) -> Interval:
    output = desc.OutputGradientTensor
    if not _finite_offsets(desc):
        # No gradient has a coordinate.
        zeros = np.zeros(output.Sizes, output.DataType.dtype)
        return anything_where(np.ones(output.Sizes, bool), (zeros, zeros))
    at = [uncertain(of_axis) for of_axis in element_coordinates(desc)]
    return linear_interval(desc.InputGradientTensor, at, output)


def _finite_offsets(desc: ResampleGrad1Desc) -> bool:
    return bool(np.isfinite([*desc.InputPixelOffsets, *desc.OutputPixelOffsets]).all())
