"""RESAMPLE3, which stretches and shrinks a tensor along its axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
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
    "Resample3Desc",
    "coordinates_of_axes",
    "resample3",
    "steps_of_axes",
]


@dataclass(frozen=True, slots=True)
class Resample3Desc:
    """The fields of DML_RESAMPLE3_OPERATOR_DESC."""

    InputTensor: Array
    OutputTensor: TensorDesc
    InterpolationMode: str
    RoundingDirection: str
    Scales: Sequence[float]
    InputPixelOffsets: Sequence[float]
    OutputPixelOffsets: Sequence[float]
    Antialiased: bool


@of_fields(Resample3Desc)
def resample3(desc: Resample3Desc) -> Array:
    """InputTensor {D0, D1, ...} -> OutputTensor {E0, E1, ...}; FLOAT32, FLOAT16, INT8, UINT8

    Return the input at `(i - OutputPixelOffset) / Scale - InputPixelOffset` along each axis.

    At a coordinate x, NEAREST_NEIGHBOR reads the element ceil(x) with the RoundingDirection
    INCREASING, floor(x) with DECREASING, and floor(x + 1/2) with HALF_UP, which
    `interpolation.ROUNDING` explains. LINEAR interpolates; interpolated integers lose their
    fraction. Beyond an end, both modes read the outermost element.

    If Antialiased is true and a scale is below 1/2, LINEAR resamples in several steps. In a step,
    an axis of more than twice the output's size shrinks to the greatest power of two below its own
    size. Other axes get the output's size. From 100 to 10 elements, the sizes after the steps are
    64, 32, 16 and 10. The scale of a step is the ratio of the sizes after and before it.

    Source: the page of DML_RESAMPLE3_OPERATOR_DESC; coordinates outside the input, halves, integers
    and the steps were measured.
    """
    if desc.InterpolationMode == "LINEAR":
        return _linear(desc.InputTensor, desc.OutputTensor, steps_of_axes(desc))
    return _nearest(desc.InputTensor, coordinates_of_axes(desc), desc.RoundingDirection)


def coordinates_of_axes(desc: Resample3Desc) -> list[Coordinates]:
    """Return the coordinates along each axis of the output, for resampling in one step."""
    offsets = desc.InputPixelOffsets, desc.OutputPixelOffsets
    along = zip(desc.OutputTensor.Sizes, desc.Scales, *offsets, strict=True)
    return [coordinates(*axis) for axis in along]


def steps_of_axes(desc: Resample3Desc) -> list[list[Coordinates]]:
    """Return for each axis the coordinates of each step of LINEAR."""
    if not desc.Antialiased or min(desc.Scales) >= 0.5:
        return [[at] for at in coordinates_of_axes(desc)]
    offsets = list(zip(desc.InputPixelOffsets, desc.OutputPixelOffsets, strict=True))
    steps: list[list[Coordinates]] = [[] for _ in desc.Scales]
    for before, after in pairwise(_all_sizes(desc.InputTensor.shape, desc.OutputTensor.Sizes)):
        for axis, (size, to) in enumerate(zip(before, after, strict=True)):
            steps[axis].append(coordinates(to, to / size, *offsets[axis]))
    return steps


def _all_sizes(sizes: Sequence[int], targets: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the sizes of the input, and the sizes after each step of antialiased interpolation.

    The last step has the final sizes, even if the step before it had the same: from 100 to 60
    elements, the sizes are 100, 60 and 60.
    """
    yield sizes
    while True:
        sizes = [
            1 << (size - 1).bit_length() - 1 if size > 2 * to else to
            for size, to in zip(sizes, targets, strict=True)
        ]
        yield sizes
        if all(size <= 2 * to for size, to in zip(sizes, targets, strict=True)):
            break
    yield targets


def _linear(tensor: Array, output: TensorDesc, steps: Sequence[Sequence[Coordinates]]) -> Array:
    sizes = tensor.shape
    changing = [
        axis
        for axis, of_axis in enumerate(steps)
        if len(of_axis) > 1 or not of_axis[0].is_whole(sizes[axis])
    ]
    if not changing:
        return tensor.copy()
    # Axes that shrink most come first, so that few elements remain for the others.
    order = sorted(changing, key=lambda axis: (output.Sizes[axis] / sizes[axis], -axis))

    def stretched(values: Array) -> Array:
        for axis in order:
            for at in steps[axis]:
                values = interpolated(values, axis - changing[0] + 1, at)
        return values

    with np.errstate(all="ignore"):
        return in_leading_blocks(stretched, tensor, changing[0], output)


def _nearest(tensor: Array, at: Sequence[Coordinates], rounding: str) -> Array:
    indices = [
        nearest(axis.values, size, rounding) for axis, size in zip(at, tensor.shape, strict=True)
    ]
    return elements_at(tensor, indices)
