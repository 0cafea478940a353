"""Operators with windows or regions compute large tensors in parts, with unchanged results.

The tested code is in `dmlconf/reference/windows/sliding.py`,
`dmlconf/reference/windows/convolution.py`, `dmlconf/reference/resampling/interpolation.py`
(`in_leading_blocks`), `dmlconf/reference/regions/sampling.py` (`sample_blocks`, `slices`) and
`dmlconf/reference/regions/outputs.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType

LARGEST_NUMBER = 4
"""Small enough for exact sums in FLOAT32, and for equal maxima in a window."""

POOLED_SIZES = (2, 30, 61, 50)
"""183,000 elements; pooling computes parts of at most 65,536."""


def random(*sizes: int, seed: int = 0) -> Array:
    drawn = np.random.default_rng(seed).integers(-LARGEST_NUMBER, LARGEST_NUMBER + 1, sizes)
    return drawn.astype(np.float32)


def desc(*sizes: int, data_type: DataType = DataType.FLOAT32) -> TensorDesc:
    return TensorDesc(data_type, sizes)


def convolution(values: Array, filter_: Array, groups: int, direction: str) -> Array:
    """Return a convolution by 3 x 3 elements, whose output is as high and wide as its input."""
    channels = filter_.shape[0] if direction == "FORWARD" else filter_.shape[1] * groups
    result: Array = reference_function("CONVOLUTION")(
        InputTensor=values,
        FilterTensor=filter_,
        BiasTensor=None,
        OutputTensor=desc(len(values), channels, *values.shape[2:]),
        Mode="CROSS_CORRELATION",
        Direction=direction,
        Strides=[1, 1],
        Dilations=[1, 1],
        StartPadding=[1, 1],
        EndPadding=[1, 1],
        OutputPadding=[0, 0],
        GroupCount=groups,
        FusedActivation=None,
    )
    return result


@pytest.mark.parametrize("direction", ["FORWARD", "BACKWARD"])
@pytest.mark.parametrize(
    ("sizes", "filter_sizes", "groups"),
    [
        ((3, 8, 90, 50), (8, 8, 3, 3), 1),
        ((2, 12, 70, 70), (12, 1, 3, 3), 12),
        ((5, 6, 40, 40), (6, 3, 3, 3), 2),
    ],
    ids=["a part is some rows", "a part is some groups", "a part is a batch"],
)
def test_large_convolution_equals_loop_over_batches_and_groups(
    direction: str, sizes: tuple[int, ...], filter_sizes: tuple[int, ...], groups: int
) -> None:
    """Only FORWARD is computed in parts."""
    values, filter_ = random(*sizes), random(*filter_sizes, seed=1)
    actual = convolution(values, filter_, groups, direction)
    channels, outputs = sizes[1] // groups, actual.shape[1] // groups
    rows = len(filter_) // groups
    for batch in range(sizes[0]):
        for group in range(groups):
            of_group = slice(group * channels, (group + 1) * channels)
            weights = filter_[group * rows : (group + 1) * rows]
            padded = np.pad(values[batch, of_group], ((0, 0), (1, 1), (1, 1)))
            views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
            if direction == "FORWARD":
                expected = np.einsum("cyxij,ocij->oyx", views, weights, optimize=True)
            else:
                turned = weights[:, :, ::-1, ::-1]
                expected = np.einsum("cyxij,coij->oyx", views, turned, optimize=True)
            np.testing.assert_array_equal(
                actual[batch, group * outputs : (group + 1) * outputs], expected
            )


def pooled(operator: str, values: Array, **more: Any) -> Any:
    sizes = (values.shape[2] + 1) // 2, (values.shape[3] + 1) // 2
    result = reference_function(operator)(
        InputTensor=values,
        OutputTensor=desc(*values.shape[:2], *sizes),
        Strides=[2, 2],
        WindowSize=[3, 3],
        StartPadding=[1, 1],
        EndPadding=[1, 1],
        **more,
    )
    return result[0] if isinstance(result, tuple) and len(result) == 1 else result


@pytest.mark.parametrize(
    ("operator", "more"),
    [("AVERAGE_POOLING", {"IncludePadding": False}), ("MAX_POOLING", {}), ("LP_POOLING", {"P": 1})],
)
def test_large_pooling_equals_pooling_of_each_channel(operator: str, more: dict[str, Any]) -> None:
    values = random(*POOLED_SIZES)
    actual = pooled(operator, values, **more)
    for batch, channel in np.ndindex(2, 30):
        one = values[batch : batch + 1, channel : channel + 1]
        np.testing.assert_array_equal(
            actual[batch : batch + 1, channel : channel + 1], pooled(operator, one, **more)
        )


def test_indices_of_large_pooling_refer_to_the_whole_tensor() -> None:
    values = random(*POOLED_SIZES)
    outputs = desc(2, 30, 31, 25, data_type=DataType.UINT32)
    alone = desc(1, 1, 31, 25, data_type=DataType.UINT32)
    greatest, indices = pooled("MAX_POOLING1", values, OutputIndicesTensor=outputs)
    np.testing.assert_array_equal(values.ravel()[indices], greatest)
    for batch, channel in np.ndindex(2, 30):
        one = values[batch : batch + 1, channel : channel + 1]
        within = pooled("MAX_POOLING1", one, OutputIndicesTensor=alone)[1]
        before = (batch * 30 + channel) * one.size
        np.testing.assert_array_equal(indices[batch, channel], within[0, 0] + before)


@pytest.mark.parametrize("mode", ["LINEAR", "NEAREST_NEIGHBOR"])
@pytest.mark.parametrize("sizes", [(60, 50), (2, 1)], ids=["large output", "small output"])
def test_large_resampling_gradient_equals_that_of_each_channel(
    mode: str, sizes: tuple[int, int]
) -> None:
    gradient = random(2, 30, 120, 100)  # 720,000 elements; a part has at most 65,536.
    scales = [1.0, 1.0, 120 / sizes[0], 100 / sizes[1]]
    fields: dict[str, Any] = {
        "InterpolationMode": mode,
        "RoundingDirection": "DECREASING",
        "Scales": scales,
        "InputPixelOffsets": [0.5] * 4,
        "OutputPixelOffsets": [-0.5] * 4,
    }
    function = reference_function("RESAMPLE_GRAD1")
    actual = function(gradient, desc(2, 30, *sizes), **fields)
    for batch, channel in np.ndindex(2, 30):
        one = gradient[batch : batch + 1, channel : channel + 1]
        alone = function(one, desc(1, 1, *sizes), **fields)
        np.testing.assert_array_equal(actual[batch, channel], alone[0, 0])
    # The sum of a channel is unchanged, up to rounding.
    np.testing.assert_allclose(actual.sum(axis=(2, 3)), gradient.sum(axis=(2, 3)), atol=0.01)


@pytest.mark.parametrize("function", ["AVERAGE", "MAX"])
def test_large_roi_align_equals_that_of_each_region(function: str) -> None:
    # Eight regions are a part.
    values, count = random(2, 30, 20, 20), 40
    drawn = np.random.default_rng(2)
    begins = drawn.uniform(0, 8, (count, 2))
    regions = np.concatenate([begins, begins + drawn.uniform(1, 11, (count, 2))], axis=1)
    regions = regions.astype(np.float32).reshape(1, 1, count, 4)
    batches = drawn.integers(0, 2, (1, 1, 1, count)).astype(np.uint32)

    def aligned(regions: Array, batches: Array) -> Array:
        actual: Array = reference_function("ROI_ALIGN")(
            InputTensor=values,
            ROITensor=regions,
            BatchIndicesTensor=batches,
            OutputTensor=desc(regions.shape[2], 30, 8, 8),
            ReductionFunction=function,
            InterpolationMode="LINEAR",
            SpatialScaleX=1.0,
            SpatialScaleY=1.0,
            OutOfBoundsInputValue=0.0,
            MinimumSamplesPerOutput=1,
            MaximumSamplesPerOutput=3,
        )
        return actual

    actual = aligned(regions, batches)
    for number in range(count):
        one = slice(number, number + 1)
        alone = aligned(regions[:, :, one], batches[..., one])
        np.testing.assert_array_equal(actual[number], alone[0])


@pytest.mark.parametrize("function", ["AVERAGE", "MAX"])
def test_roi_align_of_300_channels_equals_that_of_ten(
    function: str,
) -> None:
    # Each output element is a part of its own with 300 channels, but not with ten.
    values = random(1, 300, 20, 20)
    gradients = random(2, 300, 3, 4, seed=1)
    fields: dict[str, Any] = {
        "ROITensor": np.array([[1, 2, 17, 15], [3, 1, 5, 18]], np.float32),
        "BatchIndicesTensor": np.zeros(2, np.uint32),
        "ReductionFunction": function,
        "InterpolationMode": "LINEAR",
        "SpatialScaleX": 1.0,
        "SpatialScaleY": 1.0,
        "InputPixelOffset": 0.5,
        "OutputPixelOffset": -0.5,
        "MinimumSamplesPerOutput": 12,
        "MaximumSamplesPerOutput": 16,
        "AlignRegionsToCorners": False,
    }

    def aligned(channels: slice) -> Array:
        actual: Array = reference_function("ROI_ALIGN1")(
            InputTensor=values[:, channels],
            OutputTensor=desc(*gradients[:, channels].shape),
            OutOfBoundsInputValue=0.0,
            **fields,
        )
        return actual

    def gradient(channels: slice) -> Array:
        actual: Array = reference_function("ROI_ALIGN_GRAD")(
            InputTensor=values[:, channels],
            InputGradientTensor=gradients[:, channels],
            OutputGradientTensor=desc(*values[:, channels].shape),
            OutputROIGradientTensor=None,
            **fields,
        )[0]
        return actual

    for computed in (aligned, gradient):
        whole = computed(slice(None))
        for first in range(0, 300, 10):
            channels = slice(first, first + 10)
            np.testing.assert_allclose(whole[:, channels], computed(channels), rtol=1e-6, atol=1e-6)


def test_large_roi_pooling_equals_that_of_each_region() -> None:
    values, count = random(2, 30, 40, 40), 40  # Seven regions are a part.
    drawn = np.random.default_rng(2)
    begins = drawn.integers(0, 20, (count, 2))
    ends = begins + drawn.integers(1, 20, (count, 2))
    batches = drawn.integers(0, 2, (count, 1))
    regions = np.concatenate([batches, begins, ends], axis=1).astype(np.float32)

    def pooled(regions: Array) -> Array:
        actual: Array = reference_function("ROI_POOLING")(
            InputTensor=values,
            ROITensor=regions.reshape(1, 1, -1, 5),
            OutputTensor=desc(len(regions), 30, 7, 7),
            SpatialScale=1.0,
            PooledSize={"Height": 7, "Width": 7},
        )
        return actual

    actual = pooled(regions)
    for number in range(count):
        np.testing.assert_array_equal(actual[number], pooled(regions[number : number + 1])[0])
