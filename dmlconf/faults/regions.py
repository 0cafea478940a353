"""A fault of ROI_POOLING: the bounds of a region's parts overflow 32 bits."""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.reference.regions.outputs import LOWEST, greatest_of_parts, scaled_regions
from dmlconf.tensors.datatypes import Array

__all__ = ["parts_beyond_32_bits_left_out"]

_WRAP: Final = 1 << 32


def parts_beyond_32_bits_left_out(case: Case) -> Computed | None:
    """Return ROI_POOLING's outputs if the bounds of parts are computed in 32 bits.

    Each output element is the maximum of a part of a region. Let p be PooledSize.Width. In a region
    of w columns that begins at column c, part i begins at column c + i * w // p. It ends before
    column c + ((i + 1) * w + p - 1) // p. Rows are divided alike. The dividends wrap around at
    2^32. A part that then ends before it begins gives 0. None if no dividend wraps around, or if a
    corner does not fit INT32.
    """
    desc, inputs = case.desc, case.inputs()
    _, corners = scaled_regions(inputs["ROITensor"], desc["SpatialScale"])
    limits = np.iinfo(np.int32)
    if not ((corners >= limits.min) & (corners <= limits.max)).all():
        return None
    pooled = desc["PooledSize"]
    extents = np.maximum(corners[:, 2:] - corners[:, :2] + 1, 1).astype(np.int64)
    parts = np.array([pooled["Width"], pooled["Height"]])
    if (extents * parts + parts - 1 < _WRAP).all():
        return None
    name = "OutputTensor"
    greatest = greatest_of_parts(
        inputs["InputTensor"], inputs["ROITensor"], desc["SpatialScale"], pooled, LOWEST, _wrapped
    )
    dtype = desc[name].DataType.dtype
    return Computed({name: np.maximum(greatest, np.finfo(dtype).min).astype(dtype)})


def _wrapped(first: Array, last: Array, parts: int, size: int) -> tuple[Array, Array]:
    """Return the first index and the number of elements of each part of each region."""
    extent = np.maximum(last - first + 1, 1).astype(np.int64)[:, np.newaxis]
    part, start = np.arange(parts), first[:, np.newaxis]
    begin = part * extent % _WRAP // parts + start
    end = ((part + 1) * extent + parts - 1) % _WRAP // parts + start
    begin, end = np.clip(begin, 0, size), np.clip(end, 0, size)
    return begin, np.maximum(end - begin, 0)
