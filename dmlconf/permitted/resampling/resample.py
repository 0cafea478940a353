"""Permitted results of RESAMPLE besides the reference's output."""

from __future__ import annotations

from collections.abc import Sequence

from dmlconf.permitted.resampling.candidates import linear_candidates, nearest_candidates
from dmlconf.permitted.resampling.coordinates import uncertain
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.resampling.resample import Resample3Desc, coordinates_of_axes, steps_of_axes

__all__ = [
    "resample3_candidates",
]


@of_fields(Resample3Desc)
def resample3_candidates(desc: Resample3Desc) -> Sequence[Interval]:
    """Return what coordinates computed in FLOAT32 give.

    NEAREST_NEIGHBOR gives one element of those that rounding may lead to, and nothing between them.
    LINEAR gives what is on the line through the elements around a coordinate or, with an
    InputPixelOffset below 0 or above 1, through those around the coordinate of the offset 0 or 1.
    """
    if desc.InterpolationMode == "LINEAR":
        steps = [[uncertain(at) for at in of_axis] for of_axis in steps_of_axes(desc)]
        return linear_candidates(desc.InputTensor, desc.OutputTensor, steps, desc.InputPixelOffsets)
    at = [uncertain(of_axis) for of_axis in coordinates_of_axes(desc)]
    return nearest_candidates(desc.InputTensor, at, desc.RoundingDirection)
