"""Gradients of the operators that stretch and shrink a tensor along its axes.

Source: the operators' pages. Measured: the offsets are those of the gradients themselves, so that
InputPixelOffsets are what RESAMPLE1 has as OutputPixelOffsets, and the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.backends.numpy.interpolation import Coordinates, coordinates, nearest, neighbours
from dmlconf.backends.numpy.rounding import STEP, rounded_interval
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = [
    "resample_grad",
    "resample_grad1",
    "resample_grad1_interval",
    "resample_grad1_magnitude",
    "resample_grad_interval",
    "resample_grad_magnitude",
]


def resample_grad(
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    InterpolationMode: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> Array:
    """Return what each element contributed to: the sums of the incoming gradients.

    Halves belong to the next element.

    Source: the page of DML_RESAMPLE_GRAD_OPERATOR_DESC; halves were measured.
    """
    return resample_grad1(
        InputGradientTensor,
        OutputGradientTensor,
        InterpolationMode,
        "HALF_UP",
        Scales,
        InputPixelOffsets,
        OutputPixelOffsets,
    )


def resample_grad_magnitude(
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    InterpolationMode: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> Array:
    """Return the sums of absolute gradients, as for `resample_grad1`."""
    return resample_grad1_magnitude(
        InputGradientTensor,
        OutputGradientTensor,
        InterpolationMode,
        "HALF_UP",
        Scales,
        InputPixelOffsets,
        OutputPixelOffsets,
    )


def resample_grad_interval(
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    InterpolationMode: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> tuple[Array, Array]:
    """Return the least and the greatest right values, as for `resample_grad1`."""
    return resample_grad1_interval(
        InputGradientTensor,
        OutputGradientTensor,
        InterpolationMode,
        "HALF_UP",
        Scales,
        InputPixelOffsets,
        OutputPixelOffsets,
    )


def resample_grad1(
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    InterpolationMode: str,
    RoundingDirection: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> Array:
    """Return what each element contributed to: the weighted sums of the incoming gradients.

    Source: the page of DML_RESAMPLE_GRAD1_OPERATOR_DESC.
    """
    values = InputGradientTensor.astype(np.float64)
    sizes = OutputGradientTensor.Sizes
    with np.errstate(all="ignore"):
        for axis, at in enumerate(
            _coordinates(values, Scales, InputPixelOffsets, OutputPixelOffsets)
        ):
            if at.is_whole(sizes[axis]):
                continue
            if InterpolationMode == "LINEAR":
                values = _spread(values, axis, at, sizes[axis])
            else:
                places = nearest(at.values, sizes[axis], RoundingDirection)
                values = _summed(values, axis, places, sizes[axis])
        return values.astype(OutputGradientTensor.DataType.dtype)


def resample_grad1_magnitude(
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    InterpolationMode: str,
    RoundingDirection: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> Array:
    """Return the sums of absolute gradients, with what coordinates in FLOAT32 make of weights."""
    values = np.abs(InputGradientTensor.astype(np.float64))
    sizes = OutputGradientTensor.Sizes
    with np.errstate(all="ignore"):
        for axis, at in enumerate(
            _coordinates(values, Scales, InputPixelOffsets, OutputPixelOffsets)
        ):
            if InterpolationMode == "LINEAR":
                # The rule permits an error of at least STEP times the magnitude.
                values = _spread(values, axis, at, sizes[axis], at.errors / STEP)
            else:
                places = nearest(at.values, sizes[axis], RoundingDirection)
                values = _summed(values, axis, places, sizes[axis])
    return values


def resample_grad1_interval(
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    InterpolationMode: str,
    RoundingDirection: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> tuple[Array, Array]:
    """Return the least and the greatest right sums where each gradient belongs to one element.

    Gradients whose coordinate is nearer to a boundary than the error of FLOAT32 may belong to
    either side.
    """
    wide = InputGradientTensor.astype(np.float64)
    sizes = OutputGradientTensor.Sizes
    parts = [np.maximum(wide, 0), np.minimum(wide, 0)]
    certain, possible, terms = list(parts), list(parts), 1
    for axis, at in enumerate(_coordinates(wide, Scales, InputPixelOffsets, OutputPixelOffsets)):
        size = sizes[axis]
        low, high = (
            nearest(at.values + error, size, RoundingDirection) for error in (-at.errors, at.errors)
        )
        sure = _along((low == high).astype(np.float64), axis, wide.ndim)
        with np.errstate(all="ignore"):
            certain = [_summed(part * sure, axis, low, size) for part in certain]
            possible = [
                _summed(part, axis, low, size) + _summed(part * (1 - sure), axis, high, size)
                for part in possible
            ]
        terms *= int(np.bincount(low).max() + np.bincount(high).max())
    lowest, highest = possible[1] + certain[0], possible[0] + certain[1]
    error = (possible[0] - possible[1]) * (STEP * terms)
    dtype = OutputGradientTensor.DataType.dtype
    least, _ = rounded_interval(lowest, error, dtype)
    _, greatest = rounded_interval(highest, error, dtype)
    return least, greatest


def _coordinates(
    gradient: Array,
    scales: Sequence[float],
    input_offsets: Sequence[float],
    output_offsets: Sequence[float],
) -> list[Coordinates]:
    """Return where in the other gradient each element of a gradient belongs."""
    return [
        coordinates(*axis)
        for axis in zip(gradient.shape, scales, output_offsets, input_offsets, strict=True)
    ]


def _spread(
    values: Array, axis: int, at: Coordinates, size: int, more: Array | float = 0.0
) -> Array:
    """Add each element to its two neighbours, by their weights and so much more."""
    first, second, weight = neighbours(at.values, size)
    before = values * _along(1 - weight + more, axis, values.ndim)
    behind = values * _along(weight + more, axis, values.ndim)
    result = _summed(before, axis, first, size)
    result += _summed(behind, axis, second, size)
    return result


def _summed(values: Array, axis: int, places: Array, size: int) -> Array:
    """Return sums of the elements along an axis that have the same place; places ascend."""
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    sums = np.add.reduceat(values, starts, axis)
    if len(starts) == size:
        return sums
    shape = [size if place == axis else extent for place, extent in enumerate(values.shape)]
    result = np.zeros(shape)
    result[(slice(None),) * axis + (places[starts],)] = sums
    return result


def _along(values: Array, axis: int, rank: int) -> Array:
    return values.reshape([-1 if place == axis else 1 for place in range(rank)])
