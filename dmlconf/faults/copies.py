"""Operators that copy the wrong elements, or none."""

from __future__ import annotations

import math

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed

__all__ = ["lengths_not_clamped", "nothing_scattered", "window_read_without_gaps"]


def window_read_without_gaps(case: Case) -> Computed | None:
    """Return what SLICE1 copies of a window that is the whole input, with all strides 1.

    It copies the input from its beginning, as if the output had all elements of each row: of
    [[1, 2, 3, 4], [5, 6, 7, 8]] the output of sizes {2, 1} is [1, 2], not [1, 5].
    """
    desc, tensor = case.desc, case.inputs()["InputTensor"]
    if any(desc["InputWindowOffsets"]) or any(step != 1 for step in desc["InputWindowStrides"]):
        return None
    sizes = desc["OutputTensor"].Sizes
    if tuple(desc["InputWindowSizes"]) != tensor.shape or sizes == tensor.shape:
        return None
    copied = np.ascontiguousarray(tensor).ravel()[: math.prod(sizes)]
    return Computed({"OutputTensor": copied.reshape(sizes)})


def lengths_not_clamped(case: Case) -> Computed | None:
    """Return what REVERSE_SUBSEQUENCES gives for lengths beyond the axis: what lies after it.

    Of [4, 5, 6, 7] with a length of 9, the elements come from the places 8, 7, 6 and 5. These are
    the next rows of the tensor, and zeros after its last element.
    """
    inputs, axis = case.inputs(), case.desc["Axis"]
    tensor, lengths = inputs["InputTensor"], inputs["SequenceLengthsTensor"]
    if not case.desc["InputTensor"].Packed:
        return None
    size, step = tensor.shape[axis], math.prod(tensor.shape[axis + 1 :])
    counts = lengths.astype(np.uint32).astype(np.int64)
    shape = [size if at == axis else 1 for at in range(tensor.ndim)]
    places = np.arange(size, dtype=np.int64).reshape(shape)
    sources = np.where(places < counts, counts - 1 - places, places)
    elements = np.arange(tensor.size, dtype=np.int64).reshape(tensor.shape)
    offsets = (elements + (sources - places) * step) % (1 << 32)
    inside = offsets < tensor.size
    copied = tensor.ravel()[np.where(inside, offsets, 0)]
    return Computed({"OutputTensor": np.where(inside, copied, tensor.dtype.type(0))})


def nothing_scattered(case: Case) -> Computed | None:
    """Return the input, which SCATTER_ND leaves as it is if the indices have more dimensions.

    So it is if IndicesDimensionCount exceeds 4 and InputTensor has at most 4 dimensions.
    """
    desc = case.desc
    if desc["IndicesDimensionCount"] <= 4 or desc["InputTensor"].DimensionCount > 4:
        return None
    return Computed({"OutputTensor": case.inputs()["InputTensor"]})
