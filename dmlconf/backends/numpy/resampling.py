"""Operators that stretch and shrink a tensor along its axes, and their gradients.

Source: the operators' pages. Measured: what becomes of coordinates outside the input, which
neighbour is the nearest at halves and in integer tensors, how Antialiased works, and that
gradients exchange the offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any, Final

import numpy as np

from dmlconf.backends.numpy.floats import single
from dmlconf.backends.numpy.interpolation import (
    Coordinates,
    Estimate,
    coordinates,
    in_blocks,
    interpolated,
    interpolated_estimate,
    nearest,
)
from dmlconf.backends.numpy.rounding import anything_where, rounded_interval
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = [
    "resample",
    "resample1",
    "resample1_interval",
    "resample2",
    "resample2_interval",
    "resample3",
    "resample3_interval",
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


def resample_interval(
    InputTensor: Array, OutputTensor: TensorDesc, InterpolationMode: str, Scales: Sequence[float]
) -> tuple[Array, Array]:
    """Return the least and the greatest right values, as for `resample1`."""
    return resample1_interval(
        InputTensor, OutputTensor, InterpolationMode, Scales, *_centers(Scales)
    )


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


def resample1_interval(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    InterpolationMode: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> tuple[Array, Array]:
    """Return the least and the greatest right values with coordinates computed in FLOAT32."""
    at = _all_coordinates(OutputTensor.Sizes, Scales, InputPixelOffsets, OutputPixelOffsets)
    if InterpolationMode == "LINEAR":
        lines = map(_shifted, at, InputPixelOffsets)
        return _linear_interval(InputTensor, OutputTensor, [[one] for one in lines])
    return _nearest_interval(InputTensor, at, _rounding(InputTensor))


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


def resample2_interval(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    InterpolationMode: str,
    RoundingDirection: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> tuple[Array, Array]:
    """Return the least and the greatest right values with coordinates computed in FLOAT32."""
    return resample3_interval(
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


def resample3_interval(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    InterpolationMode: str,
    RoundingDirection: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
    Antialiased: bool,
) -> tuple[Array, Array]:
    """Return the least and the greatest right values with coordinates computed in FLOAT32."""
    offsets = InputPixelOffsets, OutputPixelOffsets
    if InterpolationMode == "LINEAR":
        steps = _all_steps(InputTensor.shape, OutputTensor.Sizes, Scales, *offsets, Antialiased)
        return _linear_interval(InputTensor, OutputTensor, steps)
    at = _all_coordinates(OutputTensor.Sizes, Scales, *offsets)
    return _nearest_interval(InputTensor, at, RoundingDirection)


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


def _shifted(at: Coordinates, input_offset: float) -> Coordinates:
    """Return the coordinates with how far from them elements are taken for an offset.

    Measured: where InputPixelOffset is below 0 or above 1, DirectML takes the elements for 0 or 1,
    but not at all places.
    """
    offset = single(input_offset)
    return replace(at, shift=offset - min(max(offset, 0.0), 1.0))


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
        return [[one] for one in map(_shifted, at, input_offsets)]
    offsets = list(zip(input_offsets, output_offsets, strict=True))
    steps: list[list[Coordinates]] = [[] for _ in scales]
    for before, after in pairwise(_all_sizes(input_sizes, output_sizes)):
        for axis, (size, to) in enumerate(zip(before, after, strict=True)):
            at_step = coordinates(to, to / size, *offsets[axis])
            steps[axis].append(_shifted(at_step, input_offsets[axis]))
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
        return in_blocks(stretched, tensor, changing[0], output)


def _linear_interval(
    tensor: Array, output: TensorDesc, steps: Sequence[Sequence[Coordinates]]
) -> tuple[Array, Array]:
    values = tensor.astype(np.float64)
    with np.errstate(all="ignore"):
        estimate = Estimate(values, np.abs(values), np.zeros_like(values))
        for axis, of_axis in enumerate(steps):
            for at in of_axis:
                estimate = interpolated_estimate(estimate, axis, at)
    dtype = output.DataType.dtype
    if dtype.kind == "f":
        lowest, highest = rounded_interval(estimate.values, estimate.errors, dtype)
        beyond = ~(np.abs(values) <= float(np.finfo(np.float32).max) / 2)
        if beyond.any():
            near = _near(beyond, steps) | ~np.isfinite(estimate.errors)
            lowest[near], highest[near] = -np.inf, np.inf
        return lowest, highest
    limits = np.iinfo(dtype)
    ends = estimate.values - estimate.errors, estimate.values + estimate.errors
    lowest, highest = (np.clip(end, limits.min, limits.max).astype(dtype) for end in ends)
    return lowest, highest


def _near(marked: Array, steps: Sequence[Sequence[Coordinates]]) -> Array:
    """Return which elements lie between marked ones and others, which may have a weight of 0.

    Measured: infinities and NaN make NaN of them, or not; so do differences that overflow.
    """
    for axis, of_axis in enumerate(steps):
        for at in of_axis:
            last = marked.shape[axis] - 1
            near = [at.values, at.values + at.shift]
            ends = [np.floor(one + error) for one in near for error in (-at.errors, at.errors)]
            places = (
                np.clip(end + step, 0, last).astype(np.intp) for end in ends for step in (0, 1)
            )
            marked = np.any([marked.take(place, axis) for place in places], axis=0)
    return marked


def _nearest(tensor: Array, at: Sequence[Coordinates], rounding: str) -> Array:
    places = [
        nearest(axis.values, size, rounding) for axis, size in zip(at, tensor.shape, strict=True)
    ]
    return _at_places(tensor, places)


def _nearest_interval(
    tensor: Array, at: Sequence[Coordinates], rounding: str
) -> tuple[Array, Array]:
    """Return the least and the greatest of the elements that rounding may lead to.

    Where one of them is NaN any result is right, since no interval has NaN and numbers.
    """
    choices: list[list[Array]] = []
    for axis, size in zip(at, tensor.shape, strict=True):
        low, high = (
            nearest(axis.values + error, size, rounding) for error in (-axis.errors, axis.errors)
        )
        choices.append([low] if (low == high).all() else [low, high])
    found = [_at_places(tensor, places) for places in product(*choices)]
    ends = _extreme(np.fmin, found), _extreme(np.fmax, found)
    if tensor.dtype.kind != "f" or len(found) == 1:
        return ends
    unordered = [np.isnan(one) for one in found]
    some_of_them = np.any(unordered, axis=0) & ~np.all(unordered, axis=0)
    return anything_where(some_of_them, ends)


def _extreme(function: Any, arrays: Sequence[Array]) -> Array:
    result = arrays[0]
    for other in arrays[1:]:
        result = function(result, other)
    return result


def _at_places(tensor: Array, places: Sequence[Array]) -> Array:
    growth = [len(to) / size for to, size in zip(places, tensor.shape, strict=True)]
    taken = tensor
    for axis in np.argsort(growth, kind="stable"):
        if not np.array_equal(places[axis], np.arange(tensor.shape[axis])):
            taken = taken.take(places[axis], int(axis))
    return taken.copy() if taken is tensor else taken
