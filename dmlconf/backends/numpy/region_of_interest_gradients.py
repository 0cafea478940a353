"""The gradients of ROI_ALIGN and ROI_ALIGN1, of their input and of their regions.

Source: the page of DML_ROI_ALIGN_GRAD_OPERATOR_DESC; where samples lie, and what the gradient of a
region is made of, were measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from dmlconf.backends.numpy.region_of_interest import axes
from dmlconf.backends.numpy.region_sampling import (
    Reading,
    Samples,
    around,
    blocks,
    channels_last,
    possible_shifts,
    sample_counts,
    sample_places,
)
from dmlconf.backends.numpy.rounding import STEP, anything_where, rounded_interval
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = ["roi_align_grad", "roi_align_grad_interval"]

_OPERATIONS: Final = 12
"""FLOAT32 operations of one contribution, before it is added to others."""


def roi_align_grad(
    InputTensor: Array | None,
    InputGradientTensor: Array,
    ROITensor: Array,
    BatchIndicesTensor: Array,
    OutputGradientTensor: TensorDesc | None,
    OutputROIGradientTensor: TensorDesc | None,
    ReductionFunction: str,
    InterpolationMode: str,
    SpatialScaleX: float,
    SpatialScaleY: float,
    InputPixelOffset: float,
    OutputPixelOffset: float,
    MinimumSamplesPerOutput: int,
    MaximumSamplesPerOutput: int,
    AlignRegionsToCorners: bool,
) -> tuple[Array, ...]:
    """Return the gradient of the input and that of the regions, as far as they are asked for.

    Each gradient is shared out among the elements that its samples are made of, and MAX gives it to
    the first of the greatest samples. Samples outside get nothing, and count as 0 for MAX.

    The gradient of a region is that of the image between the four elements around each sample,
    whatever the mode, times the size of the input. The begin gets as much of it as the output is
    before the end, and the end the rest, both without regard to scales and offsets.

    Source: the page of DML_ROI_ALIGN_GRAD_OPERATOR_DESC; measured.
    """
    problem = _problem(**locals())
    outputs = OutputGradientTensor, OutputROIGradientTensor
    with np.errstate(all="ignore"):
        sums = problem.input_gradient, problem.region_gradient
        return tuple(
            sum_(errors=False)[0].reshape(output.Sizes).astype(output.DataType.dtype)
            for sum_, output in zip(sums, outputs, strict=True)
            if output is not None
        )


def roi_align_grad_interval(**fields: Any) -> tuple[tuple[Array, Array], ...]:
    """Return the least and the greatest right values of what `roi_align_grad` returns."""
    problem = _problem(**fields)
    outputs = fields["OutputGradientTensor"], fields["OutputROIGradientTensor"]
    found = []
    with np.errstate(all="ignore"):
        sums = problem.input_gradient, problem.region_gradient
        for sum_, output in zip(sums, outputs, strict=True):
            if output is not None:
                values, errors = (part.reshape(output.Sizes) for part in sum_(errors=True))
                ends = rounded_interval(values, errors, output.DataType.dtype)
                found.append(anything_where(np.isinf(errors), ends))
    return tuple(found)


def _problem(**fields: Any) -> _Problem:
    """Return the operator's fields as what is computed with."""
    gradients = channels_last(fields["InputGradientTensor"])
    regions, batches = fields["ROITensor"], fields["BatchIndicesTensor"]
    corners = fields["AlignRegionsToCorners"]
    y, x = axes(
        regions,
        gradients.shape[1:3],
        (fields["SpatialScaleY"], fields["SpatialScaleX"]),
        (fields["MinimumSamplesPerOutput"], fields["MaximumSamplesPerOutput"]),
        (fields["InputPixelOffset"], fields["OutputPixelOffset"]),
        corners=corners,
    )
    tensor = fields["InputTensor"]
    if tensor is None:
        tensor = np.zeros(fields["OutputGradientTensor"].Sizes)
    values = channels_last(tensor)
    batch = np.minimum(batches.ravel(), len(values) - 1).astype(np.intp)
    reading = Reading(values, batch, fields["InterpolationMode"] == "LINEAR", 0.0, corners)
    return _Problem(reading, y, x, gradients, fields["ReductionFunction"] == "MAX")


@dataclass(frozen=True)
class _Sample:
    """One sample of every output.

    Attributes:
        y, x: its coordinates, sizes {regions, rows} and {regions, columns}.
        shifts: by how much these may be off together, the first ones not at all.
        uncertain: the sizes of these shifts added up, {regions, rows, columns, 1}.
        gradient: what the sample has of the outputs' gradients, even if it is outside.
    """

    y: Array
    x: Array
    shifts: list[tuple[Array, Array]]
    uncertain: Array
    gradient: Array


@dataclass(frozen=True)
class _Problem:
    reading: Reading
    y: Samples
    x: Samples
    gradients: Array
    greatest: bool

    def samples(self) -> Iterator[_Sample]:
        """Yield the samples with their shares of the gradients."""
        first = self._first_greatest() if self.greatest else None
        counts = sample_counts(self.y, self.x)
        for place, (used, row, column) in enumerate(sample_places(self.y, self.x)):
            part = used / counts if first is None else first == place
            errors = self.y.errors[..., row], self.x.errors[..., column]
            shifts = [*product(possible_shifts(errors[0]), possible_shifts(errors[1]))][::-1]
            uncertain = errors[0][:, :, np.newaxis] + errors[1][:, np.newaxis]
            at = self.y.values[..., row], self.x.values[..., column]
            gradients = np.where(part > 0, self.gradients * part, 0)
            yield _Sample(*at, shifts, uncertain[..., np.newaxis], gradients)

    def _first_greatest(self) -> Array:
        """Return which sample of each output is the first of the greatest."""
        best = np.full(self.gradients.shape, -np.inf)
        first = np.zeros(best.shape, np.int64)
        for place, (used, row, column) in enumerate(sample_places(self.y, self.x)):
            seen = self.reading.at(self.y.values[..., row], self.x.values[..., column])
            better = used & (seen > best)
            np.copyto(best, seen, where=better)
            np.copyto(first, place, where=better)
        return first

    def input_gradient(self, *, errors: bool) -> tuple[Array, Array]:
        """Return the gradient of the input and how far it may be off; 0 unless that is asked for.

        Sizes {batches, channels, height, width}.
        """
        sums, magnitudes, terms, moved = (np.zeros(self.reading.values.size) for _ in range(4))
        for sample in self.samples():
            inside = self.reading.inside(sample.y, sample.x)
            gradient = np.where(inside, sample.gradient, 0)
            for row, column, share in self._touched(sample.y, sample.x):
                self._add(sums, row, column, gradient * share)
                if errors:
                    size = np.abs(gradient)
                    self._add(magnitudes, row, column, size * share)
                    self._add(terms, row, column, np.where(size > 0, 1.0, 0.0))
                    if self.reading.linear:
                        self._add(moved, row, column, size * sample.uncertain)
            for down, across in sample.shifts[1:] if errors else ():
                beyond = self._crosses(sample, down, across)
                for at in ((sample.y, sample.x), (sample.y + down, sample.x + across)):
                    for row, column, _ in self._touched(*at):
                        self._add(moved, row, column, np.abs(sample.gradient) * beyond)
        moved += magnitudes * (terms + _OPERATIONS) * STEP
        if errors:
            self._open_elements(moved)
        found, error = (
            np.moveaxis(part.reshape(self.reading.values.shape), -1, 1) for part in (sums, moved)
        )
        return found, error

    def _special(self, *, image: bool) -> Array:
        """Return which outputs have special gradients, or samples of special elements."""
        special = ~(np.abs(self.gradients) <= float(np.finfo(np.float32).max) / 4)
        reading = self.reading.special() if image else None
        if reading is not None:
            for used, row, column in sample_places(self.y, self.x):
                at = self.y.values[..., row], self.x.values[..., column]
                special |= used & (reading.nearest(*at) > 0)
        return special

    def _open_elements(self, errors: Array) -> None:
        """Set infinite errors around the samples of outputs with special numbers.

        A kernel may multiply these by a share of 0, or pass over them.
        """
        special = self._special(image=self.greatest)
        if not special.any():
            return
        near = np.zeros_like(errors)
        for used, row, column in sample_places(self.y, self.x):
            y, x = self.y.values[..., row], self.x.values[..., column]
            for down, across in product((-1, 0, 1), repeat=2):
                at = np.floor(y + 0.5) + down, np.floor(x + 0.5) + across
                self._add(near, *at, (used & special).astype(np.float64))
        errors[near > 0] = np.inf

    def region_gradient(self, *, errors: bool) -> tuple[Array, Array]:
        """Return the gradient of the regions and how far it may be off; 0 unless that is asked for.

        Sizes {regions, 4}.
        """
        found, moved = (np.empty((len(self.gradients), 4)) for _ in range(2))
        for regions in blocks(self.gradients.shape):
            found[regions], moved[regions] = self._of(regions)._region_gradient(errors=errors)
        if errors:
            moved[self._special(image=True).any(axis=(1, 2, 3))] = np.inf
        return found, moved

    def _of(self, regions: slice) -> _Problem:
        """Return what there is to compute for some regions."""
        axes_ = self.y.of(regions), self.x.of(regions)
        return _Problem(self.reading.of(regions), *axes_, self.gradients[regions], self.greatest)

    def _region_gradient(self, *, errors: bool) -> tuple[Array, Array]:
        found, moved = (np.zeros((len(self.gradients), 4)) for _ in range(2))
        height, width = (size - int(self.reading.edges) for size in self.reading.values.shape[1:3])
        behind = (
            self._shares(self.x)[:, np.newaxis, :, np.newaxis] * width,
            self._shares(self.y)[:, :, np.newaxis, np.newaxis] * height,
        )
        before = width - behind[0], height - behind[1]
        ends = before + behind
        terms = self.gradients[0].size * self.y.values.shape[-1] * self.x.values.shape[-1]
        for sample in self.samples():
            inside = self.reading.inside(sample.y, sample.x)
            gradient = np.where(inside, sample.gradient, 0)
            elements = self._elements(sample)
            slopes = self._slopes(sample, elements)
            corners = np.abs(elements).sum(axis=0) if errors else 0.0
            for place, end in enumerate(ends):
                slope = slopes[place % 2]
                found[:, place] += (slope * gradient * end).sum(axis=(1, 2, 3))
                if errors:
                    relative = sample.uncertain + (terms + _OPERATIONS) * STEP
                    for shift in sample.shifts[1:]:
                        relative = np.maximum(relative, 2.0 * self._crosses(sample, *shift))
                    size = np.abs(sample.gradient) * corners * end
                    moved[:, place] += (relative * size).sum(axis=(1, 2, 3))
        return found, moved

    def _shares(self, axis: Samples) -> Array:
        """Return how far each output is within its region, sizes {regions, outputs}."""
        outputs = axis.values.shape[1]
        length = (axis.counts * outputs - int(self.reading.edges))[:, np.newaxis]
        return np.where(length == 0, 0.5, np.arange(outputs) / np.maximum(length, 1))

    def _elements(self, sample: _Sample) -> list[Array]:
        """Return the elements around a sample: of the row before and of that behind."""
        return [self.reading.elements(*at) for at in product(around(sample.y), around(sample.x))]

    def _slopes(self, sample: _Sample, elements: Sequence[Array]) -> tuple[Array, Array]:
        """Return the slopes along x and y at a sample, between the elements around it."""
        down = (sample.y - np.floor(sample.y))[:, :, np.newaxis, np.newaxis]
        across = (sample.x - np.floor(sample.x))[:, np.newaxis, :, np.newaxis]
        top_left, top_right, bottom_left, bottom_right = elements
        upper, lower = top_right - top_left, bottom_right - bottom_left
        left, right = bottom_left - top_left, bottom_right - top_right
        return upper + down * (lower - upper), left + across * (right - left)

    def _touched(self, y: Array, x: Array) -> Iterator[tuple[Array, Array, Array | float]]:
        """Yield the rows and columns of what a sample is made of, and their shares."""
        if not self.reading.linear:
            yield np.floor(y + 0.5), np.floor(x + 0.5), 1.0
            return
        height, width = self.reading.values.shape[1:3]
        y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
        for row, column in product(around(y), around(x)):
            down = (1 - np.abs(y - row))[:, :, np.newaxis, np.newaxis]
            yield row, column, down * (1 - np.abs(x - column))[:, np.newaxis, :, np.newaxis]

    def _crosses(self, sample: _Sample, down: Array, across: Array) -> Array:
        """Tell which samples read other elements if shifted, sizes {regions, rows, columns, 1}."""
        at, shifted = (sample.y, sample.x), (sample.y + down, sample.x + across)
        half = 0.0 if self.reading.linear else 0.5
        rows, columns = (
            np.floor(one + half) != np.floor(other + half)
            for one, other in zip(at, shifted, strict=True)
        )
        beyond: Array = (rows[:, :, np.newaxis] | columns[:, np.newaxis])[..., np.newaxis]
        beyond |= self.reading.inside(*at) != self.reading.inside(*shifted)
        return beyond

    def _add(self, sums: Array, row: Array, column: Array, values: Array) -> None:
        """Add values to the elements at rows and columns, of all channels."""
        _, height, width, channels = self.reading.values.shape
        rows, columns = (
            np.fmin(np.fmax(at, 0), size - 1).astype(np.intp)
            for at, size in ((row, height), (column, width))
        )
        first = self.reading.batch[:, np.newaxis] * height + rows
        element = first[:, :, np.newaxis] * width + columns[:, np.newaxis]
        index = element[..., np.newaxis] * channels + np.arange(channels)
        sums += np.bincount(index.ravel(), values.ravel(), len(sums))
