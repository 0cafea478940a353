"""Permitted results of the gradient of RESAMPLE besides the reference's output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from dmlconf.permitted.numbers.rounding import anything_where
from dmlconf.permitted.resampling.coordinates import uncertain
from dmlconf.permitted.resampling.gradient_candidates import linear_interval, nearest_candidates
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.resampling.gradients import ResampleGrad1Desc, element_coordinates
from dmlconf.tensors.datatypes import DataType

__all__ = [
    "resample_grad1_candidates",
    "resample_grad1_interval",
]

_MOST_AT_ONCE: Final = 192
"""If the product of `2 * Scale` over the axes is at most this, gradients are added up at once.

Measured: they are added up at once for the scales 2 and 24, with the product 192, and for 8 and 8,
with the product 256. For 2 and 32, also 256, they are added up along one axis after the other.
"""


@of_fields(ResampleGrad1Desc)
def resample_grad1_candidates(desc: ResampleGrad1Desc) -> Sequence[Interval]:
    """Return the candidates: gradients for coordinates with the rounding errors of FLOAT32.

    With an infinite or NaN offset, any gradients are right.
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
        zeros = np.zeros(output.Sizes, output.DataType.dtype)
        return anything_where(np.ones(output.Sizes, bool), (zeros, zeros))
    at = [uncertain(of_axis) for of_axis in element_coordinates(desc)]
    return linear_interval(desc.InputGradientTensor, at, output, _stores(desc))


def _stores(desc: ResampleGrad1Desc) -> int:
    """Return how often FLOAT16 may hold sums of LINEAR before they are added up along all axes.

    Measured on DirectML 1.9.1 and 1.13.1: if an element has many gradients, a graph adds them up
    along one axis after the other, and truncates each result to FLOAT16. An operator outside of
    graphs does not.
    """
    if desc.OutputGradientTensor.DataType is not DataType.FLOAT16:
        return 0
    windows = [
        max(1.0, 2 * scale)
        for scale, at, size in zip(
            desc.Scales, element_coordinates(desc), desc.OutputGradientTensor.Sizes, strict=True
        )
        if not at.is_whole(size)
    ]
    return len(windows) - 1 if math.prod(windows) > _MOST_AT_ONCE else 0


def _finite_offsets(desc: ResampleGrad1Desc) -> bool:
    return bool(np.isfinite([*desc.InputPixelOffsets, *desc.OutputPixelOffsets]).all())
