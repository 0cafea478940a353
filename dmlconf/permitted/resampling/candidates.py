"""Permitted results of RESAMPLE and UPSAMPLE_2D, whose coordinates are computed in FLOAT32.

Source: Direct3D 11.3 functional specification, 3.1: each operation rounds up or down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import anything_where, rounded_interval
from dmlconf.permitted.resampling.coordinates import NO_COORDINATE, UncertainCoordinates
from dmlconf.permitted.resampling.estimates import (
    Estimate,
    extrapolated_estimate,
    interpolated_estimate,
)
from dmlconf.precision.allowance import Interval
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.reference.resampling.interpolation import (
    along,
    elements_at,
    index_within,
    nearest,
)
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.float_limits import FLOAT16_EPSILON, LARGEST_FLOAT32, LEAST_SUBNORMAL_FLOAT16

__all__ = ["linear_candidates", "nearest_candidates"]

_MOST_CHOICES: Final = 125
"""The most combinations of straight lines (`_lines`) that are tried: five along each of 3 axes."""

_MOST_INDICES: Final = 5
"""The most indices along an axis that are tried for an output element."""

_FAR: Final = 2.0**22
"""A coordinate of this size may be off by 1 after a few FLOAT32 roundings."""

_BLOCK: Final = 1 << 17
"""About how many elements are computed at once."""


def nearest_candidates(
    tensor: Array, at: Sequence[UncertainCoordinates], rounding: str
) -> list[Interval]:
    """Return the candidates of NEAREST_NEIGHBOR: the elements to which rounding may lead."""
    choices = [_indices(axis, size, rounding) for axis, size in zip(at, tensor.shape, strict=True)]
    elements = (elements_at(tensor, indices) for indices in product(*choices))
    return [(element, element) for element in elements]


def _indices(at: UncertainCoordinates, size: int, rounding: str) -> list[Array]:
    """Return the indices along an axis to which rounding may lead.

    If there are more than _MOST_INDICES, only the first, the last, and the one without error.
    """
    low, own, high = (
        nearest(at.values + error, size, rounding) for error in (-at.errors, 0.0, at.errors)
    )
    reach = int(np.max(high - low, initial=0))
    if reach >= _MOST_INDICES:
        return [low, own, high]
    return [np.minimum(low + step, high) for step in range(reach + 1)]


def linear_candidates(
    tensor: Array,
    output: TensorDesc,
    steps: Sequence[Sequence[UncertainCoordinates]],
    input_offsets: Sequence[float],
) -> list[Interval]:
    """Return the candidates of LINEAR: one for each combination of lines along the axes.

    An interpolated value lies on a straight line through two elements. Every value between the
    lines of an axis is right if antialiasing takes several steps, or if there are more than
    _MOST_CHOICES combinations.

    Along an unchanged axis, a kernel may compute `first + 0 * (second - first)`. If an element is
    infinite, this is NaN, which is a further candidate.

    Args:
        steps: for each axis, the coordinates of each step of interpolation. There is one step, or
            with antialiasing several: each interpolates the result of the one before.
        input_offsets: the operator's InputPixelOffsets.
    """
    shifts = [_shift(offset) for offset in input_offsets]
    unchanged = _unchanged(tensor.shape, steps, shifts)
    leading = unchanged.index(False) if False in unchanged else len(unchanged)
    rows = tensor.reshape(-1, *tensor.shape[leading:])
    inner = [[], *steps[leading:]], [0.0, *shifts[leading:]]
    # Slices are computed in blocks, since an element takes 100 bytes or more.
    at_once = max(1, _BLOCK * len(rows) // max(rows.size, math.prod(output.Sizes)))
    blocks = [
        _linear_candidates(rows[start : start + at_once], output, *inner)
        for start in range(0, len(rows), at_once)
    ]
    candidates = [
        (_together(output, [low for low, _ in parts]), _together(output, [up for _, up in parts]))
        for parts in zip(*blocks, strict=True)
    ]
    may_be_nan: Array | bool = False
    for axes in _also_averaged(tensor.shape, steps, input_offsets):
        may_be_nan = may_be_nan | _near_special(tensor, steps, shifts, axes)
    if np.any(may_be_nan):
        low, high = candidates[0]
        nan = low.dtype.type(np.nan)
        candidates.append((np.where(may_be_nan, nan, low), np.where(may_be_nan, nan, high)))
    open_elements = _open_elements(steps, shifts)
    if np.any(open_elements):
        candidates = [
            anything_where(np.asarray(open_elements), interval) for interval in candidates
        ]
    return candidates


def _open_elements(
    steps: Sequence[Sequence[UncertainCoordinates]], shifts: Sequence[float]
) -> Array | bool:
    """Return where any value is right.

    Any value is right at a coordinate of an infinite or NaN offset. On an axis whose offset is
    below 0 or above 1 (`_shift`), any value is also right at a coordinate whose error is at least
    1, or whose size is at least `_FAR`.
    """
    open_elements: Array | bool = False
    for axis, (of_axis, shift) in enumerate(zip(steps, shifts, strict=True)):
        for at in of_axis:
            far = at.errors > NO_COORDINATE
            if shift:
                far |= (at.errors >= 1) | (np.abs(at.values) >= _FAR)
            # An element of the last step may read every element of an earlier step.
            read = along(far, axis, len(steps)) if at is of_axis[-1] else bool(far.any())
            open_elements = open_elements | read
    return open_elements


def _unchanged(
    sizes: Sequence[int], steps: Sequence[Sequence[UncertainCoordinates]], shifts: Sequence[float]
) -> list[bool]:
    return [
        not shift and all(at.is_whole(size) and not at.errors.any() for at in of_axis)
        for size, of_axis, shift in zip(sizes, steps, shifts, strict=True)
    ]


def _also_averaged(
    sizes: Sequence[int],
    steps: Sequence[Sequence[UncertainCoordinates]],
    input_offsets: Sequence[float],
) -> list[list[int]]:
    """Return, for each kernel, the unchanged axes along which it interpolates.

    Measured: UPSAMPLE_2D, and RESAMPLE of DirectML 1.8.0, always interpolate along two axes or
    more; if fewer change, they add the last unchanged axes. RESAMPLE of DirectML 1.10.1 to 1.15.4
    interpolates along the first axis if none changes.

    RESAMPLE1 of DirectML 1.8.2 and 1.9.1 also interpolates along an unchanged axis whose
    InputPixelOffset is neither 0 nor 0.5.
    """
    shifts = [_shift(offset) for offset in input_offsets]
    unchanged = [axis for axis, same in enumerate(_unchanged(sizes, steps, shifts)) if same]
    moved_back = [axis for axis in unchanged if input_offsets[axis] not in (0, 0.5)]
    averaged = [moved_back] if moved_back else []
    changing = len(sizes) - len(unchanged)
    if not changing:
        return [unchanged[-2:], unchanged[:1], *averaged]
    return [unchanged[-1:], *averaged] if changing == 1 else averaged


def _together(output: TensorDesc, parts: Sequence[Array]) -> Array:
    return np.concatenate(parts).reshape(output.Sizes)


def _linear_candidates(
    tensor: Array,
    output: TensorDesc,
    steps: Sequence[Sequence[UncertainCoordinates]],
    shifts: Sequence[float],
) -> list[Interval]:
    estimates = [Estimate.of(tensor)]
    with np.errstate(all="ignore"):
        for axis, (of_axis, shift) in enumerate(zip(steps, shifts, strict=True)):
            for at in of_axis:
                lines = _lines(at, shift)
                choices = [[line(of, axis) for line in lines] for of in estimates]
                if len(of_axis) > 1 or len(choices) * len(lines) > _MOST_CHOICES:
                    choices = [[_hull(of_one)] for of_one in choices]
                estimates = list(chain.from_iterable(choices))
    if output.DataType is DataType.FLOAT16:
        stored = max([1, *map(len, steps)]) - 1
        estimates = [_stored_between_steps(estimate, stored) for estimate in estimates]
    near = _near_special(tensor, steps, shifts, [])
    return [_rounded(estimate, output, near) for estimate in estimates]


def _stored_between_steps(estimate: Estimate, times: int) -> Estimate:
    """Return the estimate with the errors of `times` FLOAT16 stores of intermediates.

    Measured: in a graph, DirectML stores the result of each step but the last.
    """
    if not times:
        return estimate
    sizes = estimate.error_scales
    store = np.where(sizes > 0, FLOAT16_EPSILON * sizes + LEAST_SUBNORMAL_FLOAT16, 0.0)
    errors = estimate.errors + times * store
    return replace(estimate, errors=errors, quanta=np.zeros_like(estimate.quanta))


_Line = Callable[[Estimate, int], Estimate]
"""Returns points on lines through the elements of an estimate, along an axis."""


def _lines(at: UncertainCoordinates, shift: float) -> list[_Line]:
    """Return the lines on which values may lie: the documented one, and others if there is a shift.

    Measured: with a shift DirectML draws some lines through the two elements around the shifted
    coordinate. The weight is the fraction of the unshifted coordinate, or its distance from the
    first of the two elements.
    """
    lines: list[_Line] = [partial(_documented, at=at)]
    if not shift:
        return lines
    low, high = (np.floor(at.values + shift + error) for error in (-at.errors, at.errors))
    for starts in [low] if np.array_equal(low, high) else [low, high]:
        for weights in (at.values - starts, at.values - np.floor(at.values)):
            lines.append(partial(_drawn_elsewhere, at=at, starts=starts, weights=weights))
    return lines


def _documented(of: Estimate, axis: int, *, at: UncertainCoordinates) -> Estimate:
    return interpolated_estimate(of, axis, at)


def _drawn_elsewhere(
    of: Estimate, axis: int, *, at: UncertainCoordinates, starts: Array, weights: Array
) -> Estimate:
    return extrapolated_estimate(of, axis, at.errors, starts, weights)


def _hull(choices: Sequence[Estimate]) -> Estimate:
    """Return the first estimate, with errors that cover all others."""
    first = choices[0]
    if len(choices) == 1:
        return first
    reach = [np.abs(one.values - first.values) + one.errors for one in choices]
    error_scales = np.maximum.reduce([one.error_scales for one in choices])
    errors, nothing = np.maximum.reduce(reach), np.zeros_like(first.quanta)
    return replace(first, error_scales=error_scales, errors=errors, quanta=nothing)


def _shift(input_offset: float) -> float:
    """Return the distance of an offset from the interval 0 to 1: -0.5 for -0.5, 0.25 for 1.25."""
    offset = single(input_offset)
    return offset - min(max(offset, 0.0), 1.0)


def _rounded(estimate: Estimate, output: TensorDesc, near_special: Array | bool) -> Interval:
    """Return an estimate's interval in the output's type, where integers lose their fraction."""
    dtype, errors = output.DataType.dtype, estimate.bounds()
    if dtype.kind == "f":
        ends = rounded_interval(estimate.values, errors, dtype)
        # The difference of two interpolated values may overflow.
        overflows = 2 * estimate.error_scales > LARGEST_FLOAT32
        return anything_where(near_special | overflows | ~np.isfinite(errors), ends)
    limits = np.iinfo(dtype)
    low, high = estimate.values - errors, estimate.values + errors
    lowest, highest = (np.clip(end, limits.min, limits.max).astype(dtype) for end in (low, high))
    return lowest, highest


def _near_special(
    tensor: Array,
    steps: Sequence[Sequence[UncertainCoordinates]],
    shifts: Sequence[float],
    averaged: Sequence[int],
) -> Array | bool:
    """Return which results have an infinite, NaN or enormous neighbour, perhaps with weight 0.

    False if the tensor has no such element. Measured: such a neighbour may turn the result into
    NaN.

    Args:
        averaged: the unchanged axes along which a kernel interpolates.
    """
    marked = ~(np.abs(wide(tensor)) <= LARGEST_FLOAT32 / 2)
    if tensor.dtype.kind != "f" or not marked.any():
        return False
    unchanged = _unchanged(tensor.shape, steps, shifts)
    for axis, (of_axis, shift) in enumerate(zip(steps, shifts, strict=True)):
        if unchanged[axis] and axis not in averaged:
            continue
        for at in of_axis:
            size = marked.shape[axis]
            near = [at.values, at.values + shift]
            ends = [np.floor(one + error) for one in near for error in (-at.errors, at.errors)]
            indices = (index_within(end + step, size) for end in ends for step in (0, 1))
            marked = np.any([marked.take(index, axis) for index in indices], axis=0)
    return marked
