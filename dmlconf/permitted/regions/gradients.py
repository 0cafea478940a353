"""Permitted results of the gradients of ROI_ALIGN besides the reference's outputs.

Derived in docs/bounds.md, Gradients of regions of interest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np

from dmlconf.permitted.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.permitted.regions.parts import UncertainPart, slope_scales
from dmlconf.permitted.regions.sampling import (
    UncertainSamples,
    adrift,
    may_be_passed_over,
    special,
    uncertain,
    uncertain_block,
    uncertain_blocks,
)
from dmlconf.precision.accumulation import roundings
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.regions.gradients import (
    RoiAlignGradDesc,
    RoiGradients,
    add_at,
    placements,
    roi_gradients,
)
from dmlconf.reference.regions.parts import elements_of
from dmlconf.reference.regions.sampling import Placement
from dmlconf.reference.regions.slopes import slopes
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32, LEAST_SUBNORMAL_FLOAT32

__all__ = [
    "roi_align_grad_interval",
]

_SHARE_OPERATIONS: Final = 6
"""FLOAT32 operations that compute an element's share of a sample's gradient: two differences from
1, two products, and a quotient of two operations."""

_SLOPE_OPERATIONS: Final = 5
"""FLOAT32 operations that compute a slope: three differences, a product and a sum."""

_WEIGHT_OPERATIONS: Final = 7
"""FLOAT32 operations that compute a region's gradient from a slope: three products, and two
quotients of two operations each."""


@of_fields(RoiAlignGradDesc)
def roi_align_grad_interval(desc: RoiAlignGradDesc) -> tuple[Interval, ...]:
    """Return the intervals of the outputs of `roi_align_grad` that the desc has."""
    outputs = desc.OutputGradientTensor, desc.OutputROIGradientTensor
    intervals = []
    with np.errstate(all="ignore"):
        problem = _UncertainGradients.of(desc)
        gradients = problem.input_gradient, problem.region_gradient
        errors = problem.of_elements(placements(desc)).input_errors, problem.region_errors
        for gradient, error, output in zip(gradients, errors, outputs, strict=True):
            if output is not None:
                values, below, above = (
                    part.reshape(output.Sizes) for part in (gradient(), *error())
                )
                dtype = output.DataType.dtype
                ends = (
                    rounded_interval(values, below, dtype)[0],
                    rounded_interval(values, above, dtype)[1],
                )
                intervals.append(anything_where(np.isinf(below), ends))
    return tuple(intervals)


@dataclass(frozen=True)
class _UncertainGradients(RoiGradients):
    """The gradients of an operator for samples whose coordinates have errors."""

    y: UncertainSamples
    x: UncertainSamples

    @classmethod
    def of(cls, desc: RoiAlignGradDesc) -> _UncertainGradients:
        """Return what `roi_gradients` does, with the errors of the samples' coordinates."""
        right = roi_gradients(desc)
        y, x = map(uncertain, placements(desc))
        return cls(right.reading, y, x, right.gradients, right.greatest)

    def of_elements(self, placements: Sequence[Placement]) -> _UncertainGradients:
        """Return the gradients of kernels that look for the samples around each element.

        Args:
            placements: how the samples lie along y and along x.
        """
        y, x = (
            may_be_passed_over(samples, at, linear=self.reading.linear)
            for samples, at in zip((self.y, self.x), placements, strict=True)
        )
        return replace(self, y=y, x=x)

    def uncertain_parts(self) -> Iterator[UncertainPart]:
        """Yield the samples of all outputs, in parts."""
        for part in self.parts():
            block = uncertain_block(part.block, self.y, self.x)
            gradient = self.gradients[block.outputs][:, np.newaxis, np.newaxis]
            yield UncertainPart.of(block, part, gradient if self.greatest else None)

    def input_errors(self) -> tuple[Array, Array]:
        """Return how far OutputGradientTensor may be below and above the reference's.

        Both are infinite where any result is right. A sample gives an element a share between the
        least and the greatest that its uncertain coordinate permits. It may give nothing if it may
        be outside, or if another sample may be the first of the greatest.
        """
        sizes = self.reading.values.size
        sums, below, above, error_scales, terms = (np.zeros(sizes) for _ in range(5))
        for part in self.uncertain_parts():
            inner, certain = part.inner_gradient(), part.certainly_added()
            possible = part.possible_gradient()
            size = np.abs(possible)
            for elements, share in part.shares():
                contribution = inner * share.share
                ends = possible * np.where(certain, share.least, 0), possible * share.most
                add_at(sums, elements, contribution)
                add_at(below, elements, contribution - np.minimum(*ends))
                add_at(above, elements, np.maximum(*ends) - contribution)
                add_at(error_scales, elements, size * share.most)
                add_at(terms, elements, np.where(size * share.most > 0, 1.0, 0.0))
        error = _sum_errors(sums, error_scales, terms, _SHARE_OPERATIONS)
        error[error_scales > LARGEST_FLOAT32] = np.inf
        self._open_elements(error)
        is_open = np.isinf(error)
        low, high = (np.where(is_open, np.inf, end + error) for end in (below, above))
        return self.in_input_order(low), self.in_input_order(high)

    def _undefined(self) -> Array:
        """Return which regions have undefined coordinates, or samples whose element is open."""
        undefined = self.y.undefined | self.x.undefined
        for axis, at in ((1, self.y), (2, self.x)):
            undefined = undefined | adrift(self.reading, at, axis).any(axis=1)
        return undefined

    def _special(self, *, image: bool) -> Array:
        """Return which outputs have special gradients; if `image`, also which read such elements.

        Special numbers are infinite, NaN or so large that the sum of four may overflow. The result
        has the sizes {regions, rows, columns, channels}.
        """
        marked = ~(np.abs(self.gradients) <= LARGEST_FLOAT32 / 4)
        reading = special(self.reading) if image else None
        if reading is not None:
            for block in uncertain_blocks(self.y, self.x, marked.shape[-1]):
                nearest = reading.of(block).nearest(block.y, block.x) > 0
                marked[block.outputs] |= (block.used & nearest).any(axis=(1, 2))
        return marked

    def _open_elements(self, errors: Array) -> None:
        """Set infinite errors for elements for which any result is right.

        These are all elements of the batch of a region with undefined coordinates, or with a sample
        that may be at any of several elements, and the elements around the samples of an output
        with special numbers.
        """
        errors.reshape(len(self.reading.values), -1)[self.reading.batch[self._undefined()]] = np.inf
        marked = self._special(image=self.greatest)
        if not marked.any():
            return
        for block in uncertain_blocks(self.y, self.x, marked.shape[-1]):
            chosen = block.used & marked[block.outputs][:, np.newaxis, np.newaxis]
            reading = self.reading.of(block)
            height, width = self.reading.values.shape[1:3]
            y = np.floor(_beside_as_within(block.y, block.y_errors, height - 1) + 0.5)
            x = np.floor(_beside_as_within(block.x, block.x_errors, width - 1) + 0.5)
            for down, across in product((-1, 0, 1), repeat=2):
                errors[elements_of(reading, y + down, x + across)[chosen]] = np.inf

    def region_errors(self) -> tuple[Array, Array]:
        """Return how far OutputROIGradientTensor may be below and above the reference's.

        Sizes {regions, 4}; infinite where any result is right. A sample may have the slope at any
        coordinate within its error. An output's gradient may go to any sample that may be the first
        of the greatest.
        """
        sums, below, above, positive, negative, differences, terms = (
            np.zeros((len(self.gradients), 4)) for _ in range(7)
        )
        for part in self.uncertain_parts():
            regions, samples = part.block.outputs[0], (part.block.y, part.block.x)
            gradient = part.possible_gradient()
            size, jumps = np.abs(gradient), part.may_lie_beyond_an_element()
            terms[regions] += np.where(size > 0, 1.0, 0.0).sum(axis=(1, 2, 3, 4, 5))[:, np.newaxis]
            steepness = slopes(part.reading, *samples)
            scales = slope_scales(part.reading, *samples)
            for axis in range(2):
                of_region = regions, slice(axis, None, 2)
                right = self._of_slopes(part, axis, [samples]).sum(axis=(1, 2))
                low, high = self._slope_ends(part.without_doubt(), axis)
                for end, total in ((np.minimum, low), (np.maximum, high)):
                    total += self._slope_end_in_doubt(part, axis, end)
                sums[of_region] += right
                below[of_region] += right - low
                above[of_region] += high - right
                term, whole = steepness[axis] * gradient, size * scales[axis]
                for total, sizes in (
                    (positive, np.where(jumps, whole, np.maximum(term, 0))),
                    (negative, np.where(jumps, whole, np.maximum(-term, 0))),
                    (differences, whole),
                ):
                    shares = self.of_ends(part, axis, sizes.sum(axis=-1)).sum(axis=(1, 2))
                    total[of_region] += shares
        # A kernel may compute the share of the start as the size minus the share of the end.
        weighted = positive + negative
        for sizes in (positive, negative):
            sizes[:, :2] += weighted[:, 2:]
        for sizes in (weighted, differences):
            sizes[:, :2] += sizes[:, 2:]
        error = _sum_errors(sums, np.maximum(positive, negative), terms, 0)
        error += _SLOPE_OPERATIONS * STEP * differences
        error += _WEIGHT_OPERATIONS * STEP * weighted
        is_open = self._special(image=True).any(axis=(1, 2, 3)) | self._undefined()
        is_open = is_open[:, np.newaxis] | (weighted > LARGEST_FLOAT32)
        low, high = (np.where(is_open, np.inf, end + error) for end in (below, above))
        return low, high

    def _slope_ends(self, part: UncertainPart, axis: int) -> tuple[Array, Array]:
        """Return the least and the greatest gradients of the start and the end of regions.

        Sizes {regions, 2}. For axis 0, slopes along x, each sample has the x, and each row of
        samples the y, that makes the sum least or greatest. For axis 1, slopes along y, each sample
        has the y, and each column the x.
        """
        rows, columns = part.coordinates()
        coordinates = [[(y, x) for x in columns] for y in rows]
        if axis == 1:
            coordinates = [[(y, x) for y in rows] for x in columns]
        ends = [
            [self._of_slopes(part, axis, line, end) for line in coordinates]
            for end in (np.minimum, np.maximum)
        ]
        least, most = np.minimum.reduce(ends[0]), np.maximum.reduce(ends[1])
        return least.sum(axis=(1, 2)), most.sum(axis=(1, 2))

    def _slope_end_in_doubt(self, part: UncertainPart, axis: int, end: np.ufunc) -> Array:
        """Return the least or greatest gradients of outputs whose greatest sample is in doubt.

        Sizes {regions, 2}, or {1, 2} if no output is in doubt. For each channel, one of the
        candidate samples gets the gradient.

        Args:
            end: np.minimum or np.maximum.
        """
        if not part.in_doubt.any():
            return np.zeros((1, 2))
        none = np.inf if end is np.minimum else -np.inf
        terms = []
        for y, x in product(*part.coordinates()):
            inside = part.reading.inside(y, x)
            term = np.where(inside, slopes(part.reading, y, x)[axis] * part.in_doubt, 0)
            terms.append(np.where(part.may_be_chosen(y, x), term, none))
        extreme: Array = end.reduce(end.reduce(terms), axis=(1, 2), keepdims=True)
        extreme = np.where(np.isinf(extreme), 0, extreme).sum(axis=-1)
        total: Array = self.of_ends(part, axis, extreme).sum(axis=(1, 2))
        return total

    def _of_slopes(
        self,
        part: UncertainPart,
        axis: int,
        coordinates: Sequence[tuple[Array, Array]],
        end: np.ufunc = np.maximum,
    ) -> Array:
        """Return the gradients of the start and the end of regions, as `of_ends` does.

        Args:
            axis: 0 for x, 1 for y.
            end: chooses among the results for these coordinates: np.minimum or np.maximum.
        """
        candidates = [self.slope_terms(part, axis, y, x) for y, x in coordinates]
        return self.of_ends(part, axis, end.reduce(candidates))


def _beside_as_within(coordinates: Array, errors: Array, last: int) -> Array:
    """Return coordinates; those that may be less than one element outside are moved to the edge."""
    beside = (coordinates > -1 - errors) & (coordinates < last + 1 + errors)
    return np.where(beside, np.clip(coordinates, 0, last), coordinates)


def _sum_errors(sums: Array, error_scales: Array, terms: Array, operations: int) -> Array:
    """Return how far sums may be off if FLOAT32 adds them up in any order.

    In addition, each operation may be off by the least subnormal number, 2^-149.

    Args:
        operations: how many FLOAT32 operations make a number before it is added.

    Source: docs/bounds.md, Sums.
    """
    by_chance = roundings(terms) * error_scales
    alike = terms * np.abs(sums)
    errors: Array = (by_chance + alike) * (STEP / 2) + operations * STEP * error_scales
    errors += (terms * (operations + 1)) * LEAST_SUBNORMAL_FLOAT32
    return errors
