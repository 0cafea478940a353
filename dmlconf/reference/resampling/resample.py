"""Operators that stretch and shrink a tensor along its axes, and their gradients.

Source: the operators' pages. Measured: what becomes of coordinates outside the input, which
neighbour is the nearest at halves and in integer tensors, how Antialiased works, and that
gradients exchange the offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.precision.allowance import Interval
from dmlconf.reference.resampling.candidates import linear_candidates, nearest_candidates
from dmlconf.reference.resampling.interpolation import (
    Coordinates,
    coordinates,
    elements_at,
    in_leading_blocks,
    interpolated,
    nearest,
)
from dmlconf.tensors.datatypes import Array

__all__ = [
    "resample",
    "resample1",
    "resample1_candidates",
    "resample2",
    "resample2_candidates",
    "resample3",
    "resample3_candidates",
    "resample_candidates",
    "resample_interval",
]

_PIXEL_CENTERS: Final = (0.5, -0.5)
"""Offsets of inputs and outputs with which coordinates are those of the elements' centers."""


def resample(
    InputTensor: Array, OutputTensor: TensorDesc, InterpolationMode: str, Scales: Sequence[float]
) -> Array:
    """Return elements of the input, or interpolated ones, at the centers of the output's elements.

    Source: the page of DML_RESAMPLE_OPERATOR_DESC.
    """
    return resample1(InputTensor, OutputTensor, InterpolationMode, Scales, *_centers(Scales))


def resample_candidates(
    InputTensor: Array, OutputTensor: TensorDesc, InterpolationMode: str, Scales: Sequence[float]
) -> Sequence[Interval]:
    """Return what is right as for `resample1`."""
    return resample1_candidates(
        InputTensor, OutputTensor, InterpolationMode, Scales, *_centers(Scales)
    )


def resample_interval(
    InputTensor: Array, OutputTensor: TensorDesc, InterpolationMode: str, Scales: Sequence[float]
) -> Interval:
    """Return the least and the greatest right values of LINEAR: its only candidate."""
    (interval,) = resample_candidates(InputTensor, OutputTensor, InterpolationMode, Scales)
    return interval


def resample1(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    InterpolationMode: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> Array:
    """Return what is at `(i - OutputPixelOffset) / Scale - InputPixelOffset` along each axis.

    The nearest element is the next one at halves; in integer tensors it is always that before.
    Edges go on beyond their end, and interpolated integers lose their fraction.

    Source: the page of DML_RESAMPLE1_OPERATOR_DESC; halves and integers were measured.
    """
    at = _all_coordinates(OutputTensor.Sizes, Scales, InputPixelOffsets, OutputPixelOffsets)
    if InterpolationMode == "LINEAR":
        return _linear(InputTensor, OutputTensor, [[one] for one in at])
    return _nearest(InputTensor, at, _rounding(InputTensor))


def resample1_candidates(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    InterpolationMode: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> Sequence[Interval]:
    """Return what coordinates computed in FLOAT32 give.

    NEAREST_NEIGHBOR gives one element of those that rounding may lead to, and nothing between them.
    LINEAR gives what is on the line through the elements around a coordinate or, with an
    InputPixelOffset below 0 or above 1, through those around the coordinate of the offset 0 or 1.
    """
    at = _all_coordinates(OutputTensor.Sizes, Scales, InputPixelOffsets, OutputPixelOffsets)
    if InterpolationMode == "LINEAR":
        steps = [[one] for one in at]
        return linear_candidates(InputTensor, OutputTensor, steps, InputPixelOffsets)
    return nearest_candidates(InputTensor, at, _rounding(InputTensor))


def resample2(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    InterpolationMode: str,
    RoundingDirection: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> Array:
    """Return the same as `resample1`, but the nearest element is the next one in a direction.

    Source: the page of DML_RESAMPLE2_OPERATOR_DESC.
    """
    return resample3(
        InputTensor,
        OutputTensor,
        InterpolationMode,
        RoundingDirection,
        Scales,
        InputPixelOffsets,
        OutputPixelOffsets,
        False,
    )


def resample2_candidates(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    InterpolationMode: str,
    RoundingDirection: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> Sequence[Interval]:
    """Return what coordinates computed in FLOAT32 give, as for `resample1`."""
    return resample3_candidates(
        InputTensor,
        OutputTensor,
        InterpolationMode,
        RoundingDirection,
        Scales,
        InputPixelOffsets,
        OutputPixelOffsets,
        False,
    )


def resample3(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    InterpolationMode: str,
    RoundingDirection: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
    Antialiased: bool,
) -> Array:
    """Return the same as `resample2`, or interpolate in several steps where much is left out.

    That is so if Antialiased is true, the mode is LINEAR and a scale is below 1/2. In each step but
    the last, an axis whose size is more than twice the output's shrinks to the greatest power of
    two below it, and any other one becomes the output's size. The ratios of sizes take the place of
    all scales.

    Source: the page of DML_RESAMPLE3_OPERATOR_DESC; the steps were measured.
    """
    offsets = InputPixelOffsets, OutputPixelOffsets
    if InterpolationMode == "LINEAR":
        steps = _all_steps(InputTensor.shape, OutputTensor.Sizes, Scales, *offsets, Antialiased)
        return _linear(InputTensor, OutputTensor, steps)
    at = _all_coordinates(OutputTensor.Sizes, Scales, *offsets)
    return _nearest(InputTensor, at, RoundingDirection)


def resample3_candidates(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    InterpolationMode: str,
    RoundingDirection: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
    Antialiased: bool,
) -> Sequence[Interval]:
    """Return what coordinates computed in FLOAT32 give, as for `resample1`."""
    offsets = InputPixelOffsets, OutputPixelOffsets
    if InterpolationMode == "LINEAR":
        steps = _all_steps(InputTensor.shape, OutputTensor.Sizes, Scales, *offsets, Antialiased)
        return linear_candidates(InputTensor, OutputTensor, steps, InputPixelOffsets)
    at = _all_coordinates(OutputTensor.Sizes, Scales, *offsets)
    return nearest_candidates(InputTensor, at, RoundingDirection)


def _centers(scales: Sequence[float]) -> tuple[list[float], list[float]]:
    first, second = _PIXEL_CENTERS
    return [first] * len(scales), [second] * len(scales)


def _rounding(tensor: Array) -> str:
    return "HALF_UP" if tensor.dtype.kind == "f" else "DECREASING"


def _all_coordinates(
    sizes: Sequence[int],
    scales: Sequence[float],
    input_offsets: Sequence[float],
    output_offsets: Sequence[float],
) -> list[Coordinates]:
    return [
        coordinates(*axis)
        for axis in zip(sizes, scales, input_offsets, output_offsets, strict=True)
    ]


def _all_steps(
    input_sizes: Sequence[int],
    output_sizes: Sequence[int],
    scales: Sequence[float],
    input_offsets: Sequence[float],
    output_offsets: Sequence[float],
    antialiased: bool,
) -> list[list[Coordinates]]:
    """Return the coordinates of each step, for each axis."""
    if not antialiased or min(scales) >= 0.5:
        at = _all_coordinates(output_sizes, scales, input_offsets, output_offsets)
        return [[one] for one in at]
    offsets = list(zip(input_offsets, output_offsets, strict=True))
    steps: list[list[Coordinates]] = [[] for _ in scales]
    for before, after in pairwise(_all_sizes(input_sizes, output_sizes)):
        for axis, (size, to) in enumerate(zip(before, after, strict=True)):
            steps[axis].append(coordinates(to, to / size, *offsets[axis]))
    return steps


def _all_sizes(sizes: Sequence[int], wanted: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the sizes before and after each step of an antialiased interpolation.

    There are at least two steps; what has its size already is still shifted by the offsets.
    """
    yield sizes
    while True:
        sizes = [
            1 << (size - 1).bit_length() - 1 if size > 2 * to else to
            for size, to in zip(sizes, wanted, strict=True)
        ]
        yield sizes
        if all(size <= 2 * to for size, to in zip(sizes, wanted, strict=True)):
            break
    yield wanted


def _linear(tensor: Array, output: TensorDesc, steps: Sequence[Sequence[Coordinates]]) -> Array:
    """Interpolate blocks that stay in the processor's cache, along the axes that change."""
    sizes = tensor.shape
    changing = [
        axis
        for axis, of_axis in enumerate(steps)
        if len(of_axis) > 1 or not of_axis[0].is_whole(sizes[axis])
    ]
    if not changing:
        return tensor.copy()
    # Axes that shrink come first, and later ones before earlier ones, as they leave less to do.
    order = sorted(changing, key=lambda axis: (output.Sizes[axis] / sizes[axis], -axis))

    def stretched(values: Array) -> Array:
        for axis in order:
            for at in steps[axis]:
                values = interpolated(values, axis - changing[0] + 1, at)
        return values

    with np.errstate(all="ignore"):
        return in_leading_blocks(stretched, tensor, changing[0], output)


def _nearest(tensor: Array, at: Sequence[Coordinates], rounding: str) -> Array:
    places = [
        nearest(axis.values, size, rounding) for axis, size in zip(at, tensor.shape, strict=True)
    ]
    return elements_at(tensor, places)
