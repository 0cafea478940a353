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
    """Return the candidates: results of coordinates with the rounding errors of FLOAT32.

    NEAREST_NEIGHBOR returns one of the elements to which the rounded coordinate may lead. LINEAR
    returns a number on the line through the two elements around the coordinate. An InputPixelOffset
    below 0 or above 1 permits further lines, and several antialiased steps permit all numbers
    between the lines. With infinite, NaN or enormous elements or offsets, any value is right.
    """
    if desc.InterpolationMode == "LINEAR":
        steps = [[uncertain(at) for at in of_axis] for of_axis in steps_of_axes(desc)]
        return linear_candidates(desc.InputTensor, desc.OutputTensor, steps, desc.InputPixelOffsets)
    at = [uncertain(of_axis) for of_axis in coordinates_of_axes(desc)]
    return nearest_candidates(desc.InputTensor, at, desc.RoundingDirection)
