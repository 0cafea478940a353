"""A fault of ROI_POOLING: it computes the ends of a region's parts in 32 bits."""

from __future__ import annotations

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.regions.outputs import scaled_regions
from dmlconf.tensors.datatypes import Array

__all__ = ["parts_beyond_32_bits_left_out"]


def parts_beyond_32_bits_left_out(case: Case) -> Computed | None:
    """Return ROI_POOLING's outputs if a part whose end wraps around in 32 bits gives 0.

    Each output is the maximum of a part of a region. Along a row of a region with w columns, part i
    ends ((i + 1) * w + PooledSize.Width - 1) // PooledSize.Width columns after the region begins;
    heights do the same along a column. If the dividend wraps around, the part counts as outside the
    tensor. None if no dividend wraps around, or if a region's corner does not fit INT32.
    """
    desc = case.desc
    _, corners = scaled_regions(case.inputs()["ROITensor"], desc["SpatialScale"])
    limits = np.iinfo(np.int32)
    if not ((corners >= limits.min) & (corners <= limits.max)).all():
        return None
    pooled = desc["PooledSize"]
    columns = _wraps(corners[:, 2] - corners[:, 0] + 1, pooled["Width"])
    rows = _wraps(corners[:, 3] - corners[:, 1] + 1, pooled["Height"])
    outside = rows[:, np.newaxis, :, np.newaxis] | columns[:, np.newaxis, np.newaxis, :]
    if not outside.any():
        return None
    right = evaluate(case)["OutputTensor"]
    return Computed({"OutputTensor": np.where(outside, right.dtype.type(0), right)})


def _wraps(extents: Array, parts: int) -> Array:
    """Return for each region, and each of its parts, whether the dividend reaches 2^32."""
    extent = np.maximum(extents, 1).astype(np.int64)[:, np.newaxis]
    dividends: Array = (np.arange(parts) + 1) * extent + parts - 1
    return dividends >= 1 << 32
