"""Permitted results of ROI_POOLING and ROI_ALIGN1 besides the reference's outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import anything_where, rounded_interval
from dmlconf.permitted.regions.candidates import Candidate, reduced_candidates
from dmlconf.permitted.regions.sampling import adrift, special_outputs, uncertain
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.regions.outputs import (
    LOWEST,
    RoiAlign1Desc,
    greatest_of_parts,
    reading_and_placements,
    roi_pooling,
    scaled_regions,
)
from dmlconf.tensors.datatypes import Array

__all__ = [
    "roi_align1_candidates",
    "roi_pooling_interval",
]


def roi_pooling_interval(
    InputTensor: Array,
    ROITensor: Array,
    OutputTensor: TensorDesc,
    SpatialScale: float,
    PooledSize: Mapping[str, int],
) -> Interval:
    """Return the interval of ROI_POOLING: the greatest number of each part of a region.

    If a part has no number above -infinity, the lowest finite number and -infinity are right. Any
    result is right for a region with a scaled corner outside the range of INT32.
    """
    attributes = SpatialScale, PooledSize
    most = roi_pooling(InputTensor, ROITensor, OutputTensor, *attributes)
    unbounded = greatest_of_parts(InputTensor, ROITensor, *attributes, np.float32(-np.inf))
    least = np.where(np.isneginf(unbounded), unbounded, most).astype(most.dtype)
    _, corners = scaled_regions(ROITensor, SpatialScale)
    beyond = (corners < np.iinfo(np.int32).min) | (corners > np.iinfo(np.int32).max)
    return anything_where(beyond.any(axis=1).reshape(-1, 1, 1, 1), (least, most))


@of_fields(RoiAlign1Desc)
def roi_align1_candidates(desc: RoiAlign1Desc) -> Sequence[Interval]:
    """Return the candidates: the outputs for coordinates with the rounding errors of FLOAT32.

    With NEAREST_NEIGHBOR, a sample near the middle between two elements reads either of them. A
    sample near an end of the input may be outside. Any result is right

    - for a region whose coordinates are not finite in FLOAT32
    - for an output with a sample that may be in the input and be off by more than half an element
    - for an output that infinite, NaN or huge elements affect (`special_outputs`)
    """
    dtype = desc.OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        reading, *placements = reading_and_placements(desc)
        y, x = map(uncertain, placements)
        special = np.moveaxis(special_outputs(reading, y, x), -1, 1)
        special |= (y.undefined | x.undefined)[:, np.newaxis, np.newaxis, np.newaxis]
        special |= adrift(reading, y, 1)[:, np.newaxis, :, np.newaxis]
        special |= adrift(reading, x, 2)[:, np.newaxis, np.newaxis, :]
        candidates = reduced_candidates(reading, y, x, desc.ReductionFunction)
        return [
            anything_where(special, _rounded(candidate, desc.ReductionFunction, dtype))
            for candidate in candidates
        ]


def _rounded(candidate: Candidate, function: str, dtype: np.dtype[Any]) -> Interval:
    """Return a candidate in the output's type, with the channels before rows and columns.

    Where the result is the lowest FLOAT32 number, -infinity is right too. For MAX, the lowest
    finite number of the output's type is also right instead of -infinity.
    """
    least, most, error = (
        np.moveaxis(part, -1, 1) for part in (candidate.least, candidate.most, candidate.error)
    )
    beyond = np.isinf(error) & np.isfinite(least)
    lowest, highest = (
        rounded_interval(least, error, dtype)[0],
        rounded_interval(most, error, dtype)[1],
    )
    lowest[beyond | (least == LOWEST)] = -np.inf
    highest[beyond] = np.inf
    if function == "MAX":
        highest = np.maximum(highest, np.finfo(dtype).min)
    return lowest, highest
