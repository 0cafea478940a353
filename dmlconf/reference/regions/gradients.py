"""ROI_ALIGN_GRAD: the gradients of ROI_ALIGN and ROI_ALIGN1 for their input and their regions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.regions.outputs import axes
from dmlconf.reference.regions.parts import Part, elements_of, first_greatest, touched
from dmlconf.reference.regions.sampling import (
    Placement,
    Reading,
    Samples,
    channels_last,
    sample_blocks,
)
from dmlconf.reference.regions.slopes import slopes
from dmlconf.tensors.datatypes import Array

__all__ = [
    "RoiAlignGradDesc",
    "RoiGradients",
    "add_at",
    "placements",
    "roi_align_grad",
    "roi_gradients",
]


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

    Return the gradients for the input and for the regions, or the one that the desc has.

    Samples lie where those of `roi_align1` do. With AVERAGE, the samples of an output share its
    gradient equally. With MAX, the greatest sample gets all of the gradient: of equal samples the
    first in row-major order, and NaN counts as the least. A sample passes its gradient on to the
    elements from which it is interpolated. Samples outside the input count as 0 for MAX and pass
    nothing on.

    Along an axis, a sample adds `gradient * slope * size` to the gradient of its region. `slope` is
    the slope between the four elements around the sample, whatever the interpolation mode, and
    `size` is the size of the input. If the sample belongs to output i, and each output has n
    samples, the region's end gets the share `i / (outputs * n)` and its start the rest. With
    AlignRegionsToCorners `size` and the divisor are less by 1, and 0 / 0 counts as 1/2. Batch
    indices are clamped to N - 1.

    Source: the page of DML_ROI_ALIGN_GRAD_OPERATOR_DESC; the coordinates of samples and the formula
    of a region's gradient were measured.
    """
    outputs = desc.OutputGradientTensor, desc.OutputROIGradientTensor
    with np.errstate(all="ignore"):
        problem = roi_gradients(desc)
        gradients = problem.input_gradient, problem.region_gradient
        return tuple(
            gradient().reshape(output.Sizes).astype(output.DataType.dtype)
            for gradient, output in zip(gradients, outputs, strict=True)
            if output is not None
        )


def roi_gradients(desc: RoiAlignGradDesc) -> RoiGradients:
    """Return the samples and the outputs' gradients of a desc."""
    tensor = desc.InputTensor
    if tensor is None:
        # OutputROIGradientTensor needs InputTensor, so OutputGradientTensor is the output.
        assert desc.OutputGradientTensor is not None
        tensor = np.zeros(desc.OutputGradientTensor.Sizes)
    values = channels_last(tensor)
    batch = np.minimum(desc.BatchIndicesTensor.ravel(), len(values) - 1).astype(np.intp)
    is_linear = desc.InterpolationMode == "LINEAR"
    reading = Reading(values, batch, is_linear, 0.0, desc.AlignRegionsToCorners)
    y, x = (placement.samples() for placement in placements(desc))
    gradients = channels_last(desc.InputGradientTensor)
    return RoiGradients(reading, y, x, gradients, desc.ReductionFunction == "MAX")


def placements(desc: RoiAlignGradDesc) -> tuple[Placement, Placement]:
    """Return the placement of the rows and of the columns of each region's samples."""
    return axes(
        desc.ROITensor,
        desc.InputGradientTensor.shape[2:],
        (desc.SpatialScaleY, desc.SpatialScaleX),
        (desc.MinimumSamplesPerOutput, desc.MaximumSamplesPerOutput),
        (desc.InputPixelOffset, desc.OutputPixelOffset),
        corners=desc.AlignRegionsToCorners,
    )


@dataclass(frozen=True)
class RoiGradients:
    """The samples and the outputs' gradients from which the operator's outputs are computed.

    Attributes:
        reading: how the input is read.
        y, x: the coordinates of the samples.
        gradients: the outputs' gradients, sizes {regions, rows, columns, channels}.
        greatest: whether only the first of an output's greatest samples gets the output's gradient.
    """

    reading: Reading
    y: Samples
    x: Samples
    gradients: Array
    greatest: bool

    def parts(self) -> Iterator[Part]:
        """Yield the samples of all outputs, a few outputs at a time."""
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
                add_at(sums, elements_of(reading, row, column), gradient * share)
        return self.in_input_order(sums)

    def in_input_order(self, elements: Array) -> Array:
        """Return flat elements with the sizes and the order of dimensions of the input."""
        return np.moveaxis(elements.reshape(self.reading.values.shape), -1, 1)

    def region_gradient(self) -> Array:
        """Return the gradient of the regions, sizes {regions, 4}."""
        total = np.zeros((len(self.gradients), 4))
        for part in self.parts():
            for axis in range(2):
                terms = self.slope_terms(part, axis, part.block.y, part.block.x)
                contribution = self.of_ends(part, axis, terms).sum(axis=(1, 2))
                total[part.block.outputs[0], axis::2] += contribution
        return total

    def slope_terms(self, part: Part, axis: int, y: Array, x: Array) -> Array:
        """Return the slopes along x (axis 0) or y (axis 1), times the samples' gradients.

        The products are added up over all channels; sizes {regions, samples, samples, rows,
        columns}.
        """
        slope = slopes(part.reading, y, x)[axis]
        inside = part.reading.inside(y, x)
        terms: Array = np.where(inside, slope * part.gradient, 0).sum(axis=-1)
        return terms

    def of_ends(self, part: Part, axis: int, values: Array) -> Array:
        """Return what the start and the end of each region get of the samples' values.

        Shares are added up over each row of samples for x (axis 0), and over each column for y
        (axis 1).

        Args:
            values: sizes {regions, samples, samples, rows, columns}.

        Returns:
            Sizes {regions, samples, rows, 2} for x and {regions, samples, columns, 2} for y.
        """
        regions, rows, columns = part.block.outputs
        size = self.reading.values.shape[2 - axis] - int(self.reading.edges)
        shares = self._shares((self.x, self.y)[axis])[regions, (columns, rows)[axis]]
        ends = np.stack([size - shares * size, shares * size], axis=-1)
        indices = ("rabyx,rxe->raye", "rabyx,rye->rbxe")[axis]
        of_lines: Array = np.einsum(indices, values, ends)
        return of_lines

    def _shares(self, axis: Samples) -> Array:
        """Return the share that the end of each output's region gets, sizes {regions, outputs}."""
        outputs = axis.values.shape[-1]
        length = (axis.counts * outputs - int(self.reading.edges))[:, np.newaxis]
        return np.where(length == 0, 0.5, np.arange(outputs) / np.maximum(length, 1))


def add_at(sums: Array, indices: Array, values: Array) -> None:
    """Add values to elements of `sums` by their flat indices, which may repeat."""
    np.add.at(sums, indices.ravel(), values.ravel())
