"""The gradients of ROI_ALIGN and ROI_ALIGN1, of their input and of their regions.

Source: the page of DML_ROI_ALIGN_GRAD_OPERATOR_DESC; where samples lie, and what the gradient of a
region is made of, were measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.rounding import STEP
from dmlconf.reference.regions.outputs import axes
from dmlconf.reference.regions.parts import Part, elements_of, first_greatest, touched
from dmlconf.reference.regions.sampling import (
    Reading,
    Samples,
    channels_last,
    sample_blocks,
)
from dmlconf.reference.regions.slopes import slope_scales, slopes
from dmlconf.tensors.datatypes import Array

__all__ = [
    "RoiAlignGradDesc",
    "gradient_problem",
    "roi_align_grad",
]

_SHARE_OPERATIONS: Final = 6
"""FLOAT32 operations of what a sample gives an element: what both coordinates leave of 1, their
product, that with the gradient, and a quotient, which may be the product with a reciprocal."""

_SLOPE_OPERATIONS: Final = 5
"""FLOAT32 operations of a slope: three differences, a product and a sum, each at most as large as
what the slope is a difference of."""

_WEIGHT_OPERATIONS: Final = 7
"""FLOAT32 operations of what a slope gives a region: the product with the gradient, two quotients
of two steps each, and two products."""


@dataclass(frozen=True, slots=True)
class RoiAlignGradDesc:
    """The fields of DML_ROI_ALIGN_GRAD_OPERATOR_DESC."""

    InputTensor: Array | None
    InputGradientTensor: Array
    ROITensor: Array
    BatchIndicesTensor: Array
    OutputGradientTensor: TensorDesc | None
    OutputROIGradientTensor: TensorDesc | None
    ReductionFunction: str
    InterpolationMode: str
    SpatialScaleX: float
    SpatialScaleY: float
    InputPixelOffset: float
    OutputPixelOffset: float
    MinimumSamplesPerOutput: int
    MaximumSamplesPerOutput: int
    AlignRegionsToCorners: bool


@of_fields(RoiAlignGradDesc)
def roi_align_grad(desc: RoiAlignGradDesc) -> tuple[Array, ...]:
    """[InputTensor {N, C, H, W}], InputGradientTensor {R, C, OH, OW}, ROITensor {1, ..., R, 4},
    BatchIndicesTensor {1, ..., R} -> [OutputGradientTensor {N, C, H, W}],
    [OutputROIGradientTensor {1, ..., R, 4}]; FLOAT32, FLOAT16; BatchIndicesTensor: UINT32

    Return the gradient of the input and that of the regions, as far as they are requested.

    Each gradient is shared out among the elements that its samples are made of, and MAX gives it to
    the first of the greatest samples. Samples outside get nothing, and count as 0 for MAX.

    The gradient of a region is that of the image between the four elements around each sample,
    whatever the mode, times the size of the input. The begin gets as much of it as the output is
    before the end, and the end the rest, both without regard to scales and offsets.

    Source: the page of DML_ROI_ALIGN_GRAD_OPERATOR_DESC; measured.
    """
    outputs = desc.OutputGradientTensor, desc.OutputROIGradientTensor
    with np.errstate(all="ignore"):
        problem = gradient_problem(desc)
        gradients = problem.input_gradient, problem.region_gradient
        return tuple(
            gradient().reshape(output.Sizes).astype(output.DataType.dtype)
            for gradient, output in zip(gradients, outputs, strict=True)
            if output is not None
        )


def gradient_problem(desc: RoiAlignGradDesc) -> _Problem:
    """Return the operator's fields as what is computed with."""
    gradients = channels_last(desc.InputGradientTensor)
    corners = desc.AlignRegionsToCorners
    y, x = axes(
        desc.ROITensor,
        gradients.shape[1:3],
        (desc.SpatialScaleY, desc.SpatialScaleX),
        (desc.MinimumSamplesPerOutput, desc.MaximumSamplesPerOutput),
        (desc.InputPixelOffset, desc.OutputPixelOffset),
        corners=corners,
    )
    tensor = desc.InputTensor
    if tensor is None:
        # Without the input there is no gradient of the regions, so the other one is wanted.
        assert desc.OutputGradientTensor is not None
        tensor = np.zeros(desc.OutputGradientTensor.Sizes)
    values = channels_last(tensor)
    batch = np.minimum(desc.BatchIndicesTensor.ravel(), len(values) - 1).astype(np.intp)
    reading = Reading(values, batch, desc.InterpolationMode == "LINEAR", 0.0, corners)
    return _Problem(reading, y, x, gradients, desc.ReductionFunction == "MAX")


@dataclass(frozen=True)
class _Problem:
    reading: Reading
    y: Samples
    x: Samples
    gradients: Array
    greatest: bool

    def parts(self) -> Iterator[Part]:
        """Yield the samples of some outputs after another."""
        for block in sample_blocks(self.y, self.x, self.gradients.shape[-1]):
            reading = self.reading.of(block)
            gradient = self.gradients[block.outputs][:, np.newaxis, np.newaxis]
            if self.greatest:
                chosen = first_greatest(reading.at(block.y, block.x), block.used)
                yield Part(block, reading, np.where(chosen, gradient, 0))
            else:
                shares = gradient / block.counts[:, np.newaxis, np.newaxis]
                yield Part(block, reading, np.where(block.used, shares, 0))

    def input_gradient(self) -> Array:
        """Return the gradient of the input, sizes {batches, channels, height, width}."""
        sums = np.zeros(self.reading.values.size)
        for part in self.parts():
            reading, gradient = part.reading, part.inner_gradient()
            for row, column, share in touched(reading, part.block.y, part.block.x):
                _add(sums, elements_of(reading, row, column), gradient * share)
        return self._channels_first(sums)

    def input_errors(self) -> tuple[Array, Array]:
        """Return how far the gradient of the input may be below and above; sizes as it has.

        A sample whose coordinate is uncertain gives an element between the least and the greatest
        of its shares, or nothing if it may be outside.
        """
        sizes = self.reading.values.size
        sums, below, above, error_scales, terms = (np.zeros(sizes) for _ in range(5))
        for part in self.parts():
            inner, certain = part.inner_gradient(), part.certainly_inside()
            possible = part.possible_gradient()
            size = np.abs(possible)
            for places, share in part.shares():
                contribution = inner * share.share
                ends = possible * np.where(certain, share.least, 0), possible * share.most
                _add(sums, places, contribution)
                _add(below, places, contribution - np.minimum(*ends))
                _add(above, places, np.maximum(*ends) - contribution)
                _add(error_scales, places, size * share.most)
                _add(terms, places, np.where(size * share.most > 0, 1.0, 0.0))
        error = _sum_errors(sums, error_scales, terms, _SHARE_OPERATIONS)
        self._open_elements(error)
        is_open = np.isinf(error)
        low, high = (np.where(is_open, np.inf, end + error) for end in (below, above))
        return self._channels_first(low), self._channels_first(high)

    def _channels_first(self, elements: Array) -> Array:
        """Return elements in the order of the input."""
        return np.moveaxis(elements.reshape(self.reading.values.shape), -1, 1)

    def _undefined(self) -> Array:
        """Return of which regions FLOAT32 holds no coordinates."""
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
        share of 0 or pass over, and wherever regions of unknown coordinates may be read. A sample
        beside the tensor is made of its first two elements, with a share of 0 for the second.
        """
        errors.reshape(len(self.reading.values), -1)[self.reading.batch[self._undefined()]] = np.inf
        special = self._special(image=self.greatest)
        if not special.any():
            return
        for block in sample_blocks(self.y, self.x, special.shape[-1]):
            chosen = block.used & special[block.outputs][:, np.newaxis, np.newaxis]
            reading = self.reading.of(block)
            height, width = self.reading.values.shape[1:3]
            y = np.floor(_beside_as_within(block.y, block.y_errors, height - 1) + 0.5)
            x = np.floor(_beside_as_within(block.x, block.x_errors, width - 1) + 0.5)
            for down, across in product((-1, 0, 1), repeat=2):
                errors[elements_of(reading, y + down, x + across)[chosen]] = np.inf

    def region_gradient(self) -> Array:
        """Return the gradient of the regions, sizes {regions, 4}."""
        total = np.zeros((len(self.gradients), 4))
        for part in self.parts():
            samples = part.block.y, part.block.x
            for axis in range(2):
                contribution = self._of_slopes(part, axis, [samples]).sum(axis=(1, 2))
                total[part.block.outputs[0], axis::2] += contribution
        return total

    def region_errors(self) -> tuple[Array, Array]:
        """Return how far the gradient of the regions may be below and above, sizes {regions, 4}.

        The slope at a sample is one of those at coordinates that are off by up to their error. All
        samples of a row have one y, and all of a column one x.
        """
        sums, below, above, positive, negative, differences, terms = (
            np.zeros((len(self.gradients), 4)) for _ in range(7)
        )
        for part in self.parts():
            regions, samples = part.block.outputs[0], (part.block.y, part.block.x)
            gradient = part.possible_gradient()
            size, jumps = np.abs(gradient), part.may_lie_beyond_an_element()
            terms[regions] += np.where(size > 0, 1.0, 0.0).sum(axis=(1, 2, 3, 4, 5))[:, np.newaxis]
            steepness = slopes(part.reading, *samples)
            scales = slope_scales(part.reading, *samples)
            for axis in range(2):
                of_region = regions, slice(axis, None, 2)
                right = self._of_slopes(part, axis, [samples]).sum(axis=(1, 2))
                low, high = self._slope_ends(part, axis)
                sums[of_region] += right
                below[of_region] += right - low
                above[of_region] += high - right
                term, whole = steepness[axis] * gradient, size * scales[axis]
                for total, sizes in (
                    (positive, np.where(jumps, whole, np.maximum(term, 0))),
                    (negative, np.where(jumps, whole, np.maximum(-term, 0))),
                    (differences, whole),
                ):
                    given = self._of_ends(part, axis, sizes.sum(axis=-1)).sum(axis=(1, 2))
                    total[of_region] += given
        # The begin's share may be what the end's leaves of the whole size.
        weighted = positive + negative
        for sizes in (positive, negative):
            sizes[:, :2] += weighted[:, 2:]
        for sizes in (weighted, differences):
            sizes[:, :2] += sizes[:, 2:]
        error = _sum_errors(sums, np.maximum(positive, negative), terms, 0)
        error += _SLOPE_OPERATIONS * STEP * differences
        error += _WEIGHT_OPERATIONS * STEP * weighted
        special = self._special(image=True).any(axis=(1, 2, 3)) | self._undefined()
        low, high = (
            np.where(special[:, np.newaxis], np.inf, end + error) for end in (below, above)
        )
        return low, high

    def _slope_ends(self, part: Part, axis: int) -> tuple[Array, Array]:
        """Return the least and the greatest that samples give the begin and the end of regions.

        Sizes {regions, 2}. What changes with y is the same for all samples of a row.
        """
        rows, columns = part.coordinates()
        places = [[(y, x) for x in columns] for y in rows]
        if axis == 1:
            places = [[(y, x) for y in rows] for x in columns]
        ends = [
            [self._of_slopes(part, axis, line, end) for line in places]
            for end in (np.minimum, np.maximum)
        ]
        least, most = np.minimum.reduce(ends[0]), np.maximum.reduce(ends[1])
        return least.sum(axis=(1, 2)), most.sum(axis=(1, 2))

    def _of_slopes(
        self,
        part: Part,
        axis: int,
        places: Sequence[tuple[Array, Array]],
        end: np.ufunc = np.maximum,
    ) -> Array:
        """Return what samples give the begin and the end of regions, as `_of_ends` does.

        Args:
            part: the samples.
            axis: 0 for x, 1 for y.
            places: coordinates that each sample may have.
            end: which of what these give is taken.
        """
        candidates = []
        for place in places:
            slope = slopes(part.reading, *place)[axis]
            inside = part.reading.inside(*place)
            candidates.append(np.where(inside, slope * part.gradient, 0).sum(axis=-1))
        return self._of_ends(part, axis, end.reduce(candidates))

    def _of_ends(self, part: Part, axis: int, values: Array) -> Array:
        """Return what the begin and the end of each region get of its samples' values.

        Sizes {regions, samples, outputs, 2}, along the other axis than the gradient's.

        Args:
            part: the samples.
            axis: 0 for x, 1 for y.
            values: sizes {regions, samples, samples, rows, columns}.
        """
        regions, rows, columns = part.block.outputs
        size = self.reading.values.shape[2 - axis] - int(self.reading.edges)
        shares = self._shares((self.x, self.y)[axis])[regions, (columns, rows)[axis]]
        ends = np.stack([size - shares * size, shares * size], axis=-1)
        indices = ("rabyx,rxe->raye", "rabyx,rye->rbxe")[axis]
        of_lines: Array = np.einsum(indices, values, ends)
        return of_lines

    def _shares(self, axis: Samples) -> Array:
        """Return how far each output is within its region, sizes {regions, outputs}."""
        outputs = axis.values.shape[-1]
        length = (axis.counts * outputs - int(self.reading.edges))[:, np.newaxis]
        return np.where(length == 0, 0.5, np.arange(outputs) / np.maximum(length, 1))


def _beside_as_within(places: Array, errors: Array, last: int) -> Array:
    """Return coordinates with those of the edge for samples that may be beside the tensor."""
    beside = (places > -1 - errors) & (places < last + 1 + errors)
    return np.where(beside, np.clip(places, 0, last), places)


def _sum_errors(sums: Array, error_scales: Array, terms: Array, operations: int) -> Array:
    """Return how far sums may be off that are added up in FLOAT32, in any order.

    Args:
        sums: what is added up.
        error_scales: the same of absolute values.
        terms: how many numbers are added up.
        operations: of FLOAT32, before a number is added.

    Source: docs/bounds.md, Sums.
    """
    by_chance = np.minimum(2 * terms, 4 + 3 * np.sqrt(terms)) * error_scales
    alike = terms * np.abs(sums)
    errors: Array = (by_chance + alike) * (STEP / 2) + operations * STEP * error_scales
    return errors


def _add(sums: Array, indices: Array, values: Array) -> None:
    """Add values to the elements with these indices."""
    np.add.at(sums, indices.ravel(), values.ravel())
