"""Permitted results of the gradient of RESAMPLE besides the reference's output."""

from __future__ import annotations

from collections.abc import Sequence

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

    With NEAREST_NEIGHBOR each gradient belongs to one element. If its coordinate is nearer to a
    boundary between two elements than the error of FLOAT32, it may belong to either of them, as
    a whole.
    """
    gradient, output = desc.InputGradientTensor, desc.OutputGradientTensor
    at = [uncertain(of_axis) for of_axis in element_coordinates(desc)]
    if desc.InterpolationMode == "LINEAR":
        return [linear_interval(gradient, at, output)]
    return nearest_candidates(gradient, at, desc.RoundingDirection, output)


@of_fields(ResampleGrad1Desc)
def resample_grad1_interval(desc: ResampleGrad1Desc) -> Interval:
    """Return the interval of LINEAR: the least and the greatest right sums."""
    at = [uncertain(of_axis) for of_axis in element_coordinates(desc)]
    return linear_interval(desc.InputGradientTensor, at, desc.OutputGradientTensor)
