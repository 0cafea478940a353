"""Gradients of the operators that stretch and shrink a tensor along its axes.

Source: the operators' pages. Measured: the offsets are those of the gradients themselves, so that
InputPixelOffsets are what RESAMPLE1 has as OutputPixelOffsets, and the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.backends.numpy.interpolation import (
    Coordinates,
    along,
    coordinates,
    in_blocks,
    nearest,
    neighbours,
)
from dmlconf.backends.numpy.rounding import ANY_RESULT, STEP, anything_where, rounded_interval
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
    """Return what `resample_grad1` does with halves rounded up.

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

    Along each axis, the gradient with index i was made of what is at the coordinate

        x = (i - InputPixelOffset) / Scale - OutputPixelOffset

    LINEAR adds 1 - w of it to the element floor(x) and w to the next one, where w = x - floor(x);
    NEAREST_NEIGHBOR adds it to floor(x), or with RoundingDirection INCREASING to ceil(x). What
    belongs beyond an edge is added to that edge.

    Source: the page of DML_RESAMPLE_GRAD1_OPERATOR_DESC; which offset is which was measured.
    """
    gradient, output = InputGradientTensor, OutputGradientTensor
    along = _coordinates(gradient, Scales, InputPixelOffsets, OutputPixelOffsets)
    changing = [axis for axis, at in enumerate(along) if not at.is_whole(output.Sizes[axis])]

    def added_up(values: Array) -> Array:
        for axis in changing:
            at, size = along[axis], output.Sizes[axis]
            if InterpolationMode == "LINEAR":
                values = _spread(values, axis - changing[0] + 1, at, size)
            else:
                places = nearest(at.values, size, RoundingDirection)
                values = _summed(values, axis - changing[0] + 1, places, size)
        return values

    with np.errstate(all="ignore"):
        return in_blocks(added_up, gradient, min(changing, default=0), output)


def resample_grad1_magnitude(
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    InterpolationMode: str,
    RoundingDirection: str,
    Scales: Sequence[float],
    InputPixelOffsets: Sequence[float],
    OutputPixelOffsets: Sequence[float],
) -> Array:
    """Return the sums of absolute gradients, with what coordinates in FLOAT32 make of weights.

    LINEAR may multiply infinity or NaN by a weight of 0 or leave it out, and sums of enormous
    gradients may overflow on the way, so any result is right around these.
    """
    values = np.abs(InputGradientTensor.astype(np.float64))
    sizes = OutputGradientTensor.Sizes
    beyond = ~(values <= float(np.finfo(np.float32).max) / 4)
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
            beyond = _reached(beyond, axis, at, sizes[axis])
    if InterpolationMode == "LINEAR":
        values[beyond] = ANY_RESULT
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
    either side. Where infinity or NaN may, any result is right.
    """
    wide = InputGradientTensor.astype(np.float64)
    sizes = OutputGradientTensor.Sizes
    parts = [np.maximum(wide, 0), np.minimum(wide, 0)]
    certain, possible, terms = list(parts), list(parts), 1
    special = (~np.isfinite(wide)).astype(np.float64)
    uncertain = np.zeros_like(special)
    for axis, at in enumerate(_coordinates(wide, Scales, InputPixelOffsets, OutputPixelOffsets)):
        size = sizes[axis]
        low, high = (
            nearest(at.values + error, size, RoundingDirection) for error in (-at.errors, at.errors)
        )
        sure = along(low == high, axis, wide.ndim)
        with np.errstate(all="ignore"):
            certain = [_summed(np.where(sure, part, 0), axis, low, size) for part in certain]
            possible = [
                _summed(part, axis, low, size) + _summed(np.where(sure, 0, part), axis, high, size)
                for part in possible
            ]
        beside = np.where(sure, 0, special)
        uncertain = _summed(np.maximum(uncertain, beside), axis, low, size)
        special = _summed(special, axis, low, size)
        uncertain, special = (
            part + _summed(beside, axis, high, size) for part in (uncertain, special)
        )
        terms *= int(np.bincount(low).max() + np.bincount(high).max())
    with np.errstate(all="ignore"):
        lowest, highest = possible[1] + certain[0], possible[0] + certain[1]
        error = (possible[0] - possible[1]) * (STEP * terms)
    dtype = OutputGradientTensor.DataType.dtype
    least, _ = rounded_interval(lowest, error, dtype)
    _, greatest = rounded_interval(highest, error, dtype)
    return anything_where(uncertain > 0, (least, greatest))


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
    places = np.concatenate([first, second])
    order = np.argsort(places, kind="stable")
    weights = np.concatenate([1 - weight + more, weight + more])[order]
    return _weighted(values, axis, order % len(first), weights, places[order], size)


def _reached(marked: Array, axis: int, at: Coordinates, size: int) -> Array:
    """Return which elements lie next to a marked one: up to its neighbours' coordinates."""
    of_axis = np.moveaxis(marked, axis, 0)
    result = np.zeros((size, *of_axis.shape[1:]), bool)
    places = np.clip(np.floor(at.values), -1, size).astype(np.intp)
    first, last = np.roll(places - 1, 1), np.roll(places + 2, -1)
    first[0], last[-1] = 0, size - 1
    for place in np.flatnonzero(of_axis.reshape(len(places), -1).any(axis=1)):
        result[max(first[place], 0) : last[place] + 1] |= of_axis[place]
    return np.moveaxis(result, 0, axis)


def _summed(values: Array, axis: int, places: Array, size: int) -> Array:
    """Return sums of the elements along an axis that have the same place; places ascend."""
    count = len(places)
    return _weighted(values, axis, np.arange(count), np.ones(count), places, size)


def _weighted(
    values: Array, axis: int, elements: Array, weights: Array, places: Array, size: int
) -> Array:
    """Return sums of elements times weights.

    Args:
        values: the tensor.
        axis: along which there are the elements, and so many sums as the size tells.
        elements: which element each term has.
        weights: of the terms.
        places: which sum each term belongs to; these ascend.
        size: how many sums there are.
    """
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    counts = np.diff(starts, append=len(places))
    # Whole rows are read and added quicker than single elements.
    rows = np.ascontiguousarray(np.moveaxis(values, axis, 0))
    sums = np.zeros((size, *rows.shape[1:]))
    if counts.max() > len(starts):
        terms = rows.take(elements, 0) * along(weights, 0, values.ndim)
        sums[places[starts]] = np.add.reduceat(terms, starts, 0)
    else:
        for number in range(counts.max()):
            # The first term of each place, then the second one of those that have two, ...
            chosen = starts[counts > number] + number
            terms = rows.take(elements[chosen], 0)
            terms *= along(weights[chosen], 0, values.ndim)
            sums[places[chosen]] += terms
    return np.moveaxis(sums, 0, axis)
