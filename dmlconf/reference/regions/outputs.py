"""ROI_POOLING and ROI_ALIGN1, which read regions of interest and resize them all to one size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.floats import single
from dmlconf.reference.regions.sampling import (
    Placement,
    Reading,
    channels_last,
    placed,
    reduced,
    slices,
)
from dmlconf.tensors.datatypes import Array

__all__ = [
    "LOWEST",
    "RoiAlign1Desc",
    "axes",
    "greatest_of_parts",
    "integer_regions",
    "reading_and_placements",
    "roi_align1",
    "roi_pooling",
    "scaled_regions",
]

LOWEST: Final = np.finfo(np.float32).min
"""The lowest finite FLOAT32 number."""


def roi_pooling(
    InputTensor: Array,
    ROITensor: Array,
    OutputTensor: TensorDesc,
    SpatialScale: float,
    PooledSize: Mapping[str, int],
) -> Array:
    """InputTensor {N, C, H, W}, ROITensor {1, 1, R, 5} -> OutputTensor {R, C, OH, OW}; FLOAT32,
    FLOAT16

    Return the greatest number in each part of each region.

    ROITensor has the batch index, x1, y1, x2 and y2 of each region. Along x, and likewise along y,
    a region has PooledSize parts. Part i has the columns from begin to end - 1; both are clamped to
    the input:

        first, last = round(x1 SpatialScale), round(x2 SpatialScale)
        extent = max(last - first + 1, 1)
        begin = first + floor(i extent / PooledSize)
        end = first + ceil((i + 1) extent / PooledSize)

    Halves are rounded to even. NaN in the input is ignored, and no result is below the lowest
    finite number of its type. A part outside the input gives 0. Scaled coordinates are clamped to
    INT32. Batch indices lose their fraction, and are clamped to 0 and N - 1. A NaN coordinate or
    batch index becomes 0.

    Source: the page of DML_ROI_POOLING_OPERATOR_DESC; the end, exchanged corners, halves, NaN,
    parts outside the input, and batch indices were measured.
    """
    pooled = greatest_of_parts(InputTensor, ROITensor, SpatialScale, PooledSize, LOWEST)
    dtype = OutputTensor.DataType.dtype
    return np.maximum(pooled, np.finfo(dtype).min).astype(dtype)


def _parts(first: Array, last: Array, parts: int, size: int) -> tuple[Array, Array]:
    """Return where each part of each region begins along an axis, and how many elements it has."""
    extent = np.maximum(last - first + 1, 1)[:, np.newaxis]
    part = np.arange(parts)
    begin = part * extent // parts + first[:, np.newaxis]
    end = -(-(part + 1) * extent // parts) + first[:, np.newaxis]
    begin, end = np.clip(begin, 0, size), np.clip(end, 0, size)
    return begin, end - begin


def greatest_of_parts(
    tensor: Array,
    regions: Array,
    scale: float,
    pooled: Mapping[str, int],
    lowest: np.float32,
    parts_of: Callable[[Array, Array, int, int], tuple[Array, Array]] = _parts,
) -> Array:
    """Return the greatest number in each part, FLOAT32, {regions, channels, rows, columns}.

    No number is below `lowest`, and a part outside the tensor gives 0.

    Args:
        parts_of: takes and returns what `_parts` does.
    """
    batches, _, height, width = tensor.shape
    batch, corners = integer_regions(regions, scale)
    batch = np.clip(batch, 0, batches - 1)
    rows = parts_of(corners[:, 1], corners[:, 3], pooled["Height"], height)
    columns = parts_of(corners[:, 0], corners[:, 2], pooled["Width"], width)
    values = np.fmax(channels_last(tensor, np.dtype(np.float32)), lowest)
    best = np.empty((*rows[1].shape, columns[1].shape[1], values.shape[-1]), np.float32)
    for some in slices(len(batch), best[0, :, 0].size * width):
        of_rows, of_columns = ([part[some] for part in axis] for axis in (rows, columns))
        best[some] = _of_parts(values, batch[some], of_rows, of_columns, lowest)
    best[(rows[1][..., np.newaxis] == 0) | (columns[1][:, np.newaxis] == 0)] = 0
    return np.moveaxis(best, -1, 1)


def integer_regions(regions: Array, scale: float) -> tuple[Array, Array]:
    """Return the batch and the scaled x1, y1, x2 and y2 of each region.

    Both arrays are INT64 with values in the range of INT32.

    Source: Direct3D 11.3 functional specification, 3.2.3.1 (conversion to integers).
    """
    batch, corners = scaled_regions(regions, scale)
    limits = np.iinfo(np.int32)

    def integers(numbers: Array) -> Array:
        whole: Array = np.clip(np.nan_to_num(numbers, nan=0.0), limits.min, limits.max)
        return whole.astype(np.int64)

    return integers(batch), integers(corners)


def scaled_regions(regions: Array, scale: float) -> tuple[Array, Array]:
    """Return the batch and the scaled and rounded corners of each region, FLOAT64."""
    numbers = regions.reshape(-1, 5).astype(np.float32)
    with np.errstate(all="ignore"):
        corners = np.rint(numbers[:, 1:] * np.float32(scale))
    return numbers[:, 0].astype(np.float64), corners.astype(np.float64)


def _of_parts(
    values: Array,
    batch: Array,
    rows: Sequence[Array],
    columns: Sequence[Array],
    lowest: np.float32,
) -> Array:
    """Return the greatest element of each part, {regions, rows, columns, channels}.

    Args:
        values: sizes {batches, height, width, channels}.
    """
    height, width = values.shape[1:3]
    region = np.arange(len(batch))[:, np.newaxis, np.newaxis]
    row = np.arange(rows[0].shape[1])[:, np.newaxis]
    begin, count = (part[:, np.newaxis] for part in columns)
    bands = _greatest(lambda at: values[batch[:, np.newaxis], at], rows, height, lowest)
    return _greatest(lambda at: bands[region, row, at], (begin, count), width, lowest)


def _greatest(
    read: Callable[[Array], Array], parts: Sequence[Array], size: int, lowest: np.float32
) -> Array:
    """Return the greatest element of each part along an axis; `lowest` for parts without elements.

    Args:
        read: returns the elements at some indices along the axis.
        parts: where each part begins, and how many elements it has.
    """
    first, count = parts
    best = np.full_like(read(np.zeros_like(first)), lowest)
    for number in range(int(count.max(initial=0))):
        samples = read(np.minimum(first + number, size - 1))
        inside = (number < count).reshape(*count.shape, *(1,) * (best.ndim - count.ndim))
        np.maximum(best, samples, out=best, where=inside)
    return best


@dataclass(frozen=True, slots=True)
class RoiAlign1Desc:
    """The fields of DML_ROI_ALIGN1_OPERATOR_DESC."""

    InputTensor: Array
    ROITensor: Array
    BatchIndicesTensor: Array
    OutputTensor: TensorDesc
    ReductionFunction: str
    InterpolationMode: str
    SpatialScaleX: float
    SpatialScaleY: float
    InputPixelOffset: float
    OutputPixelOffset: float
    OutOfBoundsInputValue: float
    MinimumSamplesPerOutput: int
    MaximumSamplesPerOutput: int
    AlignRegionsToCorners: bool


@of_fields(RoiAlign1Desc)
def roi_align1(desc: RoiAlign1Desc) -> Array:
    """InputTensor {N, C, H, W}, ROITensor {1, ..., R, 4}, BatchIndicesTensor {1, ..., R} ->
    OutputTensor {R, C, OH, OW}; FLOAT32, FLOAT16; BatchIndicesTensor: UINT64, UINT32

    Return for each output the mean (ReductionFunction AVERAGE) or the greatest (MAX) of its
    samples.

    Along x, and likewise along y, output i of a region has n samples. Sample k lies at

        extent = (x2 - x1) SpatialScaleX
        n = ceil(abs(extent) / outputs), between MinimumSamplesPerOutput and MaximumSamplesPerOutput
        x = (i n + k - OutputPixelOffset) / (outputs n) extent + x1 SpatialScaleX - InputPixelOffset

    A sample is outside if x <= -1 or x >= size. With AlignRegionsToCorners it is outside if x < 0
    or x > size - 1, the divisor is `outputs n - 1`, and a single sample lies in the middle. A
    sample outside has the value OutOfBoundsInputValue. Inside, NEAREST_NEIGHBOR reads the element
    `floor(x + 1/2)`, and LINEAR interpolates between the four elements around the sample. In
    place of an element beyond the input, both read the one at the edge. MAX ignores NaN, and is not
    below the lowest finite number of the output's type. A batch index keeps its low 32 bits, and is
    clamped to `N - 1`.

    Source: the page of DML_ROI_ALIGN1_OPERATOR_DESC has pictures and words; the formulas were
    measured.
    """
    with np.errstate(all="ignore"):
        reading, y, x = reading_and_placements(desc)
        samples = reduced(reading, y.samples(), x.samples(), desc.ReductionFunction)
        output = np.moveaxis(samples, -1, 1)
        dtype = desc.OutputTensor.DataType.dtype
        if desc.ReductionFunction == "MAX":
            output = np.maximum(output, np.finfo(dtype).min)
        return output.astype(dtype)


def reading_and_placements(desc: RoiAlign1Desc) -> tuple[Reading, Placement, Placement]:
    """Return how the input is read, and where the rows and the columns of samples lie."""
    sizes, corners = desc.OutputTensor.Sizes[2:], desc.AlignRegionsToCorners
    scales = desc.SpatialScaleY, desc.SpatialScaleX
    counts = desc.MinimumSamplesPerOutput, desc.MaximumSamplesPerOutput
    offsets = desc.InputPixelOffset, desc.OutputPixelOffset
    y, x = axes(desc.ROITensor, sizes, scales, counts, offsets, corners=corners)
    attributes = desc.InterpolationMode, desc.OutOfBoundsInputValue, corners
    return _reading(desc.InputTensor, desc.BatchIndicesTensor, *attributes), y, x


def axes(
    regions: Array,
    sizes: Sequence[int],
    scales: tuple[float, float],
    counts: tuple[int, int],
    offsets: tuple[float, float],
    *,
    corners: bool,
) -> tuple[Placement, Placement]:
    """Return where the rows and the columns of the samples of each region lie.

    Args:
        regions: the last dimension is x1, y1, x2, y2.
        sizes, scales: for y and then x.
        counts, offsets, corners: see `placed`.
    """
    ends = regions.reshape(-1, 4)
    y, x = (
        placed(ends[:, first::2], scale, size, counts, offsets, corners=corners)
        for first, scale, size in zip((1, 0), scales, sizes, strict=True)
    )
    return y, x


def _reading(tensor: Array, batches: Array, mode: str, outside: float, corners: bool) -> Reading:
    values = channels_last(tensor)
    batch = np.minimum(batches.ravel().astype(np.uint32), len(values) - 1).astype(np.intp)
    return Reading(values, batch, mode == "LINEAR", single(outside), corners)
