"""The gradients of ROI_ALIGN and ROI_ALIGN1, of their input and of their regions.

Source: the page of DML_ROI_ALIGN_GRAD_OPERATOR_DESC; where samples lie, and what the gradient of a
region is made of, were measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.reference.regions.outputs import axes
from dmlconf.reference.regions.sampling import (
    Block,
    Reading,
    Samples,
    around,
    channels_last,
    possible_shifts,
    sample_blocks,
)
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
    """[InputTensor {N, C, H, W}], InputGradientTensor {R, C, OH, OW}, ROITensor {1, ..., R, 4},
    BatchIndicesTensor {1, ..., R} -> [OutputGradientTensor {N, C, H, W}],
    [OutputROIGradientTensor {1, ..., R, 4}]; FLOAT32, FLOAT16; BatchIndicesTensor: UINT32

    Return the gradient of the input and that of the regions, as far as they are asked for.

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
    intervals = []
    with np.errstate(all="ignore"):
        sums = problem.input_gradient, problem.region_gradient
        for sum_, output in zip(sums, outputs, strict=True):
            if output is not None:
                values, errors = (part.reshape(output.Sizes) for part in sum_(errors=True))
                ends = rounded_interval(values, errors, output.DataType.dtype)
                intervals.append(anything_where(np.isinf(errors), ends))
    return tuple(intervals)


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
class _Part:
    """The samples of some outputs, with their shares of the gradients.

    Attributes:
        block: where they lie.
        reading: how they read the tensor.
        gradient: what each has of the outputs' gradients, even if it is outside, sizes {regions,
            samples, samples, rows, columns, channels}.
    """

    block: Block
    reading: Reading
    gradient: Array

    def inner_gradient(self) -> Array:
        """Return what the samples inside have of the outputs' gradients."""
        return np.where(self.reading.inside(self.block.y, self.block.x), self.gradient, 0)

    def uncertain(self) -> Array:
        """Return how far coordinates may be off along both axes together, for all channels."""
        return (self.block.y_errors + self.block.x_errors)[..., np.newaxis]

    def shifts(self) -> list[tuple[Array, Array]]:
        """Return by how much coordinates may be off together, other than not at all."""
        down, across = possible_shifts(self.block.y_errors), possible_shifts(self.block.x_errors)
        return [*product(down, across)][:-1]

    def crossing(self, down: Array, across: Array) -> Array:
        """Tell which samples read other elements if shifted."""
        y, x = self.block.y, self.block.x
        half = 0.0 if self.reading.linear else 0.5
        rows, columns = (
            np.floor(at + half) != np.floor(at + shift + half)
            for at, shift in ((y, down), (x, across))
        )
        inside = self.reading.inside(y, x) != self.reading.inside(y + down, x + across)
        crossing: Array = rows | columns | inside[..., 0]
        return crossing

    def at(
        self, chosen: Array, down: Array | float, across: Array | float
    ) -> tuple[Reading, Array, Array]:
        """Return how chosen samples read the tensor, and their shifted coordinates, in a row."""
        block = self.block
        batch, y, x = (
            np.broadcast_to(of_samples, chosen.shape)[chosen]
            for of_samples in (self.reading.batch, block.y + down, block.x + across)
        )
        return replace(self.reading, batch=batch), y, x


@dataclass(frozen=True)
class _Problem:
    reading: Reading
    y: Samples
    x: Samples
    gradients: Array
    greatest: bool

    def parts(self) -> Iterator[_Part]:
        """Yield the samples of some outputs after another."""
        for block in sample_blocks(self.y, self.x, self.gradients.shape[-1]):
            reading = self.reading.of(block)
            gradient = self.gradients[block.outputs][:, np.newaxis, np.newaxis]
            if self.greatest:
                chosen = _first_greatest(reading.at(block.y, block.x), block.used)
                yield _Part(block, reading, np.where(chosen, gradient, 0))
            else:
                shares = gradient / block.counts[:, np.newaxis, np.newaxis]
                yield _Part(block, reading, np.where(block.used, shares, 0))

    def input_gradient(self, *, errors: bool) -> tuple[Array, Array]:
        """Return the gradient of the input and how far it may be off; 0 unless that is asked for.

        Sizes {batches, channels, height, width}.
        """
        sums, error_scales, terms, moved = (np.zeros(self.reading.values.size) for _ in range(4))
        for part in self.parts():
            reading, gradient = part.reading, part.inner_gradient()
            for row, column, share in _touched(reading, part.block.y, part.block.x):
                elements = _elements(reading, row, column)
                _add(sums, elements, gradient * share)
                if errors:
                    size = np.abs(gradient)
                    _add(error_scales, elements, size * share)
                    _add(terms, elements, np.where(size > 0, 1.0, 0.0))
                    if reading.linear:
                        _add(moved, elements, size * part.uncertain())
            if errors:
                _add_crossing(moved, part)
        if errors:
            moved += error_scales * (terms + _OPERATIONS) * STEP
            self._open_elements(moved)
        total, error = (
            np.moveaxis(part.reshape(self.reading.values.shape), -1, 1) for part in (sums, moved)
        )
        return total, error

    def _undefined(self) -> Array:
        """Tell of which regions FLOAT32 holds no coordinates."""
        return self.y.undefined | self.x.undefined

    def _special(self, *, image: bool) -> Array:
        """Return which outputs have special gradients, or samples of special elements."""
        special = ~(np.abs(self.gradients) <= float(np.finfo(np.float32).max) / 4)
        reading = self.reading.special() if image else None
        if reading is not None:
            for block in sample_blocks(self.y, self.x, special.shape[-1]):
                nearest = reading.of(block).nearest(block.y, block.x) > 0
                special[block.outputs] |= (block.used & nearest).any(axis=(1, 2))
        return special

    def _open_elements(self, errors: Array) -> None:
        """Set infinite errors where any result is right.

        That is around the samples of outputs with special numbers, which a kernel may multiply by a
        share of 0 or pass over, and wherever regions of unknown coordinates may be read.
        """
        errors.reshape(len(self.reading.values), -1)[self.reading.batch[self._undefined()]] = np.inf
        special = self._special(image=self.greatest)
        if not special.any():
            return
        for block in sample_blocks(self.y, self.x, special.shape[-1]):
            chosen = block.used & special[block.outputs][:, np.newaxis, np.newaxis]
            reading, y, x = self.reading.of(block), np.floor(block.y + 0.5), np.floor(block.x + 0.5)
            for down, across in product((-1, 0, 1), repeat=2):
                errors[_elements(reading, y + down, x + across)[chosen]] = np.inf

    def region_gradient(self, *, errors: bool) -> tuple[Array, Array]:
        """Return the gradient of the regions and how far it may be off; 0 unless that is asked for.

        Sizes {regions, 4}.
        """
        total, moved = (np.zeros((len(self.gradients), 4)) for _ in range(2))
        terms = self.gradients[0].size * self.y.values.shape[1] * self.x.values.shape[1]
        for part in self.parts():
            regions, y, x = part.block.outputs[0], part.block.y, part.block.x
            gradient = part.inner_gradient()
            elements = [part.reading.elements(*at) for at in product(around(y), around(x))]
            for axis, slope in enumerate(_slopes(y, x, elements)):
                total[regions, axis::2] += self._of_ends(part, axis, slope * gradient)
            if errors:
                relative = part.uncertain() + (terms + _OPERATIONS) * STEP
                for shift in part.shifts():
                    crossing = part.crossing(*shift)[..., np.newaxis]
                    relative = np.maximum(relative, 2.0 * crossing)
                error = relative * np.abs(part.gradient) * np.abs(elements).sum(axis=0)
                for axis in range(2):
                    moved[regions, axis::2] += self._of_ends(part, axis, error)
        if errors:
            moved[self._special(image=True).any(axis=(1, 2, 3)) | self._undefined()] = np.inf
        return total, moved

    def _of_ends(self, part: _Part, axis: int, values: Array) -> Array:
        """Return what the begin and the end of each region get of its samples' values.

        Args:
            part: the samples.
            axis: 0 for x, 1 for y.
            values: sizes as of the samples' gradients.
        """
        regions, rows, columns = part.block.outputs
        size = self.reading.values.shape[2 - axis] - int(self.reading.edges)
        shares = self._shares((self.x, self.y)[axis])[regions, (columns, rows)[axis]]
        of_outputs = values.sum(axis=(1, 2, 3 + axis, 5))
        ends = size - shares * size, shares * size
        return np.stack([(of_outputs * end).sum(axis=1) for end in ends], axis=1)

    def _shares(self, axis: Samples) -> Array:
        """Return how far each output is within its region, sizes {regions, outputs}."""
        outputs = axis.values.shape[-1]
        length = (axis.counts * outputs - int(self.reading.edges))[:, np.newaxis]
        return np.where(length == 0, 0.5, np.arange(outputs) / np.maximum(length, 1))


def _first_greatest(samples: Array, used: Array) -> Array:
    """Tell which sample of each output is the first of the greatest."""
    comparable = np.where(used & ~np.isnan(samples), samples, -np.inf)
    in_turn = comparable.reshape(len(samples), -1, *samples.shape[3:])
    first = in_turn.argmax(axis=1)[:, np.newaxis]
    place = np.arange(in_turn.shape[1])[:, np.newaxis, np.newaxis, np.newaxis]
    chosen: Array = (place == first).reshape(samples.shape)
    return chosen


def _slopes(y: Array, x: Array, elements: Sequence[Array]) -> tuple[Array, Array]:
    """Return the slopes along x and y at samples.

    Args:
        y, x: coordinates of the samples.
        elements: around these: of the row before and of that behind.
    """
    down, across = ((at - np.floor(at))[..., np.newaxis] for at in (y, x))
    top_left, top_right, bottom_left, bottom_right = elements
    upper, lower = top_right - top_left, bottom_right - bottom_left
    left, right = bottom_left - top_left, bottom_right - top_right
    return upper + down * (lower - upper), left + across * (right - left)


def _touched(reading: Reading, y: Array, x: Array) -> Iterator[tuple[Array, Array, Array | float]]:
    """Yield the rows and columns of what samples are made of, and their shares."""
    if not reading.linear:
        yield np.floor(y + 0.5), np.floor(x + 0.5), 1.0
        return
    height, width = reading.values.shape[1:3]
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    for row, column in product(around(y), around(x)):
        share = (1 - np.abs(y - row)) * (1 - np.abs(x - column))
        yield row, column, share[..., np.newaxis]


def _add_crossing(sums: Array, part: _Part) -> None:
    """Add the gradients of samples that may read other elements, to these and to their own."""
    size = np.abs(part.gradient)
    for shift in part.shifts():
        crossing = part.crossing(*shift)
        for way in ((0.0, 0.0), shift):
            reading, y, x = part.at(crossing, *way)
            for row, column, _ in _touched(reading, y, x):
                _add(sums, _elements(reading, row, column), size[crossing])


def _elements(reading: Reading, row: Array, column: Array) -> Array:
    """Return the indices of the elements at rows and columns, of all channels."""
    channels = reading.values.shape[-1]
    first = reading.places(row, column)[..., np.newaxis] * channels
    indices: Array = first + np.arange(channels)
    return indices


def _add(sums: Array, indices: Array, values: Array) -> None:
    """Add values to the elements with these indices."""
    np.add.at(sums, indices.ravel(), values.ravel())
