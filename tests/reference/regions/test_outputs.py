"""ROI_POOLING and ROI_ALIGN agree with loops; at a boundary they may read either element.

The tested code is in `dmlconf/reference/regions/outputs.py`,
`dmlconf/reference/regions/sampling.py`, `dmlconf/permitted/regions/outputs.py` and
`dmlconf/permitted/regions/candidates.py`.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.regions.outputs import roi_pooling_interval
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType
from tests.permitted.intervals import is_permitted
from tests.reference.functions import function_of

SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed: int) -> tuple[Array, Array, Array]:
    """Return an input, regions with corners at multiples of 1/8, and the batch of each region."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 6, 4)
    regions = random.integers(-16, 56, (3, 4)) / 8
    batches = random.integers(0, sizes[0], 3)
    values = random.integers(-9, 10, sizes)
    return values.astype(np.float32), regions.astype(np.float32), batches.astype(np.uint32)


@given(SEEDS, st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.5, 1.0, 2.0]))
def test_roi_pooling_agrees_with_the_formula_of_its_page(
    seed: int, height: int, width: int, scale: float
) -> None:
    values, regions, batches = drawn(seed)
    actual = reference_function("ROI_POOLING")(
        InputTensor=values,
        ROITensor=np.column_stack([batches, regions]).reshape(1, 1, 3, 5),
        OutputTensor=TensorDesc(DataType.FLOAT32, (3, values.shape[1], height, width)),
        SpatialScale=scale,
        PooledSize={"Height": height, "Width": width},
    )
    for region, channel, y, x in np.ndindex(*actual.shape):
        x1, y1, x2, y2 = (round(float(corner) * scale) for corner in regions[region])
        seen = [
            values[batches[region], channel, row, column]
            for row in part(y, height, y1, y2)
            for column in part(x, width, x1, x2)
            if 0 <= row < values.shape[2] and 0 <= column < values.shape[3]
        ]
        assert actual[region, channel, y, x] == max(seen, default=0)


@pytest.mark.parametrize(
    ("corner", "held"), [(-(2.0**31), True), (-(2.0**31) - 256, False), (2.0**31, False)]
)
def test_only_corners_beyond_int32_permit_any_result(corner: float, held: bool) -> None:
    least, greatest = roi_pooling_interval(
        np.array([1, 2, 3, 4], np.float32).reshape(1, 1, 1, 4),
        np.array([0, corner, 0, 2, 0], np.float32).reshape(1, 1, 1, 5),
        TensorDesc(DataType.FLOAT32, (1, 1, 1, 1)),
        1.0,
        {"Height": 1, "Width": 1},
    )
    ends = (3, 3) if held else (-math.inf, math.inf)
    assert (least.item(), greatest.item()) == ends


def part(index: int, parts: int, first: int, last: int) -> range:
    """Return the coordinates of one part of a region along an axis, as ROI_POOLING defines it."""
    size = max(last - first + 1, 1)
    begin = index * size // parts
    end = ((index + 1) * size + parts - 1) // parts
    return range(begin + first, end + first)


@pytest.mark.slow
@given(
    SEEDS,
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from(["NEAREST_NEIGHBOR", "LINEAR"]),
    st.sampled_from(["AVERAGE", "MAX"]),
    st.sampled_from([(0.5, -0.5), (0.0, 0.0), (0.25, 0.125)]),
    st.booleans(),
)
def test_roi_align_agrees_with_measured_coordinates(
    seed: int,
    height: int,
    width: int,
    mode: str,
    function: str,
    offsets: tuple[float, float],
    corners: bool,
) -> None:
    values, regions, batches = drawn(seed)
    arguments = {
        "InputTensor": values,
        "ROITensor": regions,
        "BatchIndicesTensor": batches,
        "OutputTensor": TensorDesc(DataType.FLOAT64, (3, values.shape[1], height, width)),
        "ReductionFunction": function,
        "InterpolationMode": mode,
        "SpatialScaleX": 1.0,
        "SpatialScaleY": 0.5,
        "InputPixelOffset": offsets[0],
        "OutputPixelOffset": offsets[1],
        "OutOfBoundsInputValue": 3.0,
        "MinimumSamplesPerOutput": 1,
        "MaximumSamplesPerOutput": 3,
        "AlignRegionsToCorners": corners,
    }
    actual = reference_function("ROI_ALIGN1")(**arguments)
    for region, channel, y, x in np.ndindex(*actual.shape):
        x1, y1, x2, y2 = map(float, regions[region])
        rows = coordinates(y, height, y1 * 0.5, y2 * 0.5, offsets, corners)
        columns = coordinates(x, width, x1, x2, offsets, corners)
        image = values[batches[region], channel]
        samples = [read(image, at, mode, corners) for at in product(rows, columns)]
        expected = max(samples) if function == "MAX" else math.fsum(samples) / len(samples)
        np.testing.assert_allclose(actual[region, channel, y, x], expected, atol=1e-5)
    single = {**arguments, "OutputTensor": TensorDesc(DataType.FLOAT32, actual.shape)}
    candidates = function_of("ROI_ALIGN1", "candidates")(**single)
    right = reference_function("ROI_ALIGN1")(**single)
    within = [(least <= right) & (right <= most) for least, most in candidates]
    assert np.logical_or.reduce(within).all()


def coordinates(
    index: int, outputs: int, begin: float, end: float, offsets: tuple[float, float], corners: bool
) -> list[float]:
    """Return the coordinates of an output's samples along an axis, as measured on DirectML."""
    count = min(max(math.ceil(abs(end - begin) / outputs), 1), 3)
    length = outputs * count - corners
    shares = [(index * count + sample - offsets[1]) / max(length, 1) for sample in range(count)]
    if length == 0:
        shares = [0.5]
    return [share * (end - begin) + begin - offsets[0] for share in shares]


def read(image: Array, at: tuple[float, float], mode: str, corners: bool) -> float:
    """Return the value of an image at a row and column, or OutOfBoundsInputValue, 3, outside."""
    for index, size in zip(at, image.shape, strict=True):
        if (index < 0 or index > size - 1) if corners else (index <= -1 or index >= size):
            return 3.0
    y, x = (min(max(index, 0), size - 1) for index, size in zip(at, image.shape, strict=True))
    if mode == "NEAREST_NEIGHBOR":
        return float(image[math.floor(y + 0.5), math.floor(x + 0.5)])
    weights = ((math.floor(y), math.ceil(y), y % 1), (math.floor(x), math.ceil(x), x % 1))
    (top, bottom, down), (left, right, across) = weights
    upper = image[top, left] * (1 - across) + image[top, right] * across
    lower = image[bottom, left] * (1 - across) + image[bottom, right] * across
    return float(upper * (1 - down) + lower * down)


@pytest.mark.parametrize(
    ("begin", "end", "outputs", "right"),
    [
        pytest.param(-1.0, 3.0, 1, {20.0}, id="exact"),
        pytest.param(0.5, 3.5, 3, {10.0, 20.0}, id="rounded"),
    ],
)
def test_boundary_is_uncertain_only_for_rounded_coordinates(
    begin: float, end: float, outputs: int, right: set[float]
) -> None:
    """The first sample is at 0.5; its computation divides by `outputs`, 1 or 3."""
    candidates = function_of("ROI_ALIGN", "candidates")(
        InputTensor=np.array([10, 20, 30, 40], np.float32).reshape(1, 1, 1, 4),
        ROITensor=np.array([[begin, 0, end, 1]], np.float32),
        BatchIndicesTensor=np.array([0], np.uint32),
        OutputTensor=TensorDesc(DataType.FLOAT32, (1, 1, 1, outputs)),
        ReductionFunction="AVERAGE",
        InterpolationMode="NEAREST_NEIGHBOR",
        SpatialScaleX=1.0,
        SpatialScaleY=1.0,
        OutOfBoundsInputValue=0.0,
        MinimumSamplesPerOutput=1,
        MaximumSamplesPerOutput=1,
    )
    assert {float(least[0, 0, 0, 0]) for least, _ in candidates} == right
    assert all(least[0, 0, 0, 0] == most[0, 0, 0, 0] for least, most in candidates)


@pytest.mark.parametrize(
    ("function", "samples", "right"),
    [
        pytest.param("AVERAGE", 1, {10.0, 20.0}, id="one-sample"),
        pytest.param("AVERAGE", 2, {20.0, 25.0, 30.0}, id="mean"),
        pytest.param("MAX", 2, {30.0, 40.0}, id="greatest"),
    ],
)
def test_sample_near_a_boundary_reads_either_element(
    function: str, samples: int, right: set[float]
) -> None:
    """Samples of the first output are at 0.5, or at 0.5 and 2.5, up to rounding."""
    fields: dict[str, Any] = {
        "InputTensor": np.array([10, 20, 30, 40], np.float32).reshape(1, 1, 4, 1),
        "ROITensor": np.array([[0, 0.5, 1, 3.5] if samples == 1 else [0, 0, 1, 12]], np.float32),
        "BatchIndicesTensor": np.array([0], np.uint32),
        "OutputTensor": TensorDesc(DataType.FLOAT32, (1, 1, 3, 1)),
        "ReductionFunction": function,
        "InterpolationMode": "NEAREST_NEIGHBOR",
        "SpatialScaleX": 1.0,
        "SpatialScaleY": 1.0,
        "OutOfBoundsInputValue": 0.0,
        "MinimumSamplesPerOutput": samples,
        "MaximumSamplesPerOutput": samples,
    }
    expected = reference_function("ROI_ALIGN")(**fields)
    candidates = function_of("ROI_ALIGN", "candidates")(**fields)
    for value in (10.0, 12.0, 15.0, 18.0, 20.0, 22.0, 25.0, 27.0, 30.0, 33.0, 40.0, 45.0):
        driver = expected.copy()
        driver[0, 0, 0, 0] = value
        actual = is_permitted(driver, expected, *candidates)
        assert actual[0, 0, 0, 0] == (value in right)


def test_sample_at_the_edge_reads_edge_or_outside_value() -> None:
    """The last sample is at 20 * 0.1, which FLOAT32 may round to the last element, 2."""
    fields: dict[str, Any] = {
        "InputTensor": np.array([10, 20, 30], np.float32).reshape(1, 1, 1, 3),
        "ROITensor": np.array([[0, 0, 20, 0]], np.float32),
        "BatchIndicesTensor": np.array([0], np.uint32),
        "OutputTensor": TensorDesc(DataType.FLOAT32, (1, 1, 1, 4)),
        "ReductionFunction": "AVERAGE",
        "InterpolationMode": "LINEAR",
        "SpatialScaleX": 0.1,
        "SpatialScaleY": 1.0,
        "InputPixelOffset": 0.0,
        "OutputPixelOffset": 0.0,
        "OutOfBoundsInputValue": -6.0,
        "MinimumSamplesPerOutput": 1,
        "MaximumSamplesPerOutput": 1,
        "AlignRegionsToCorners": True,
    }
    expected = reference_function("ROI_ALIGN1")(**fields)
    candidates = function_of("ROI_ALIGN1", "candidates")(**fields)
    for value, right in (
        (30.0, True),
        (29.999998, True),
        (-6.0, True),
        (12.0, False),
        (0.0, False),
    ):
        driver = expected.copy()
        driver[0, 0, 0, 3] = value
        assert is_permitted(driver, expected, *candidates)[0, 0, 0, 3] == right


def test_five_uncertain_samples_permit_values_between_extremes() -> None:
    """Samples of the first output are at 0.5, 2.5, 4.5, 6.5 and 8.5, up to rounding."""
    fields: dict[str, Any] = {
        "InputTensor": np.arange(32, dtype=np.float32).reshape(1, 1, 32, 1),
        "ROITensor": np.array([[0, 0, 1, 30]], np.float32),
        "BatchIndicesTensor": np.array([0], np.uint32),
        "OutputTensor": TensorDesc(DataType.FLOAT32, (1, 1, 3, 1)),
        "ReductionFunction": "AVERAGE",
        "InterpolationMode": "NEAREST_NEIGHBOR",
        "SpatialScaleX": 1.0,
        "SpatialScaleY": 1.0,
        "OutOfBoundsInputValue": 0.0,
        "MinimumSamplesPerOutput": 5,
        "MaximumSamplesPerOutput": 5,
    }
    expected = reference_function("ROI_ALIGN")(**fields)
    candidates = function_of("ROI_ALIGN", "candidates")(**fields)
    assert len(candidates) == 2**3  # Three samples are tried on both sides.
    for value, right in ((4.0, True), (4.3, True), (5.0, True), (3.9, False), (5.1, False)):
        driver = expected.copy()
        driver[0, 0, 0, 0] = value
        assert is_permitted(driver, expected, *candidates)[0, 0, 0, 0] == right
