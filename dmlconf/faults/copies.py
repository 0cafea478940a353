"""Faults of SLICE1, SLICE_GRAD and REVERSE_SUBSEQUENCES, which copy the wrong elements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.tensors.datatypes import Array

__all__ = [
    "lengths_not_clamped",
    "window_read_without_gaps",
    "window_written_without_gaps",
]


def window_read_without_gaps(case: Case) -> Computed | None:
    """Return SLICE1's outputs if the kernel merges axes and ignores gaps.

    The kernel merges an axis that the window spans with the axis before it, if both have the stride
    1. It then copies consecutive elements. With a window over all of [[1, 2, 3, 4], [5, 6, 7, 8]],
    an output of sizes {2, 1} is [[1], [2]], not [[1], [5]]. None if no axes are merged.
    """
    desc, tensor = case.desc, case.inputs()["InputTensor"]
    sizes = desc["OutputTensor"].Sizes
    axes = _merged_axes(tensor.shape, desc, sizes)
    if len(axes) == len(sizes):
        return None
    copied = np.ascontiguousarray(tensor).reshape([axis.size for axis in axes])
    for number, axis in enumerate(axes):
        copied = copied.take(axis.picked(), number)
    return Computed({"OutputTensor": copied.reshape(sizes)})


def window_written_without_gaps(case: Case) -> Computed | None:
    """Return SLICE_GRAD's outputs if the kernel merges axes and ignores gaps.

    Axes are merged as in `window_read_without_gaps`. In a 2x4 tensor, [[1], [5]] becomes [[1, 5, 0,
    0], [0, 0, 0, 0]], not [[1, 0, 0, 0], [5, 0, 0, 0]]. None if no axes are merged, or if an
    element would be written before the tensor.
    """
    desc, gradient = case.desc, case.inputs()["InputGradientTensor"]
    sizes = desc["OutputGradientTensor"].Sizes
    axes = _merged_axes(sizes, desc, gradient.shape)
    if len(axes) == len(sizes) or any(axis.picked().min(initial=0) < 0 for axis in axes):
        return None
    written = np.zeros([axis.size for axis in axes], gradient.dtype)
    counts = [axis.count for axis in axes]
    written[np.ix_(*(axis.picked() for axis in axes))] = gradient.reshape(counts)
    return Computed({"OutputGradientTensor": written.reshape(sizes)})


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis, the window along the axis, and how many elements of the window are picked."""

    size: int
    offset: int
    window: int
    step: int
    count: int

    def picked(self) -> Array:
        begin = self.offset if self.step > 0 else self.offset + self.window - 1
        return begin + self.step * np.arange(self.count)


def _merged_axes(
    sizes: Sequence[int], desc: Mapping[str, Any], counts: Sequence[int]
) -> list[_Axis]:
    """Return the axes; an axis of stride 1 that the window spans is merged with one before it.

    The axis before it must have the stride 1, too. `counts`: how many elements are picked by axis.
    """
    windows = zip(
        sizes,
        desc["InputWindowOffsets"],
        desc["InputWindowSizes"],
        desc["InputWindowStrides"],
        counts,
        strict=True,
    )
    axes: list[_Axis] = []
    for axis in (_Axis(*window) for window in windows):
        whole = (axis.offset, axis.window, axis.step) == (0, axis.size, 1)
        if axes and axes[-1].step == 1 and whole:
            outer = axes.pop()
            axes.append(
                _Axis(
                    outer.size * axis.size,
                    outer.offset * axis.size,
                    outer.window * axis.size,
                    1,
                    outer.count * axis.count,
                )
            )
        else:
            axes.append(axis)
    return axes


def lengths_not_clamped(case: Case) -> Computed | None:
    """Return REVERSE_SUBSEQUENCES's outputs if lengths are not clamped to the size of the axis.

    With a length of 9, a row of 4 elements gets the elements 8, 7, 6 and 5 places after its
    beginning. They belong to later rows, or are zeros after the tensor's end. None if the input is
    not packed.
    """
    inputs, axis = case.inputs(), case.desc["Axis"]
    tensor, lengths = inputs["InputTensor"], inputs["SequenceLengthsTensor"]
    if not case.desc["InputTensor"].Packed:
        return None
    size, step = tensor.shape[axis], math.prod(tensor.shape[axis + 1 :])
    counts = lengths.astype(np.uint32).astype(np.int64)
    shape = [size if at == axis else 1 for at in range(tensor.ndim)]
    indices = np.arange(size, dtype=np.int64).reshape(shape)
    sources = np.where(indices < counts, counts - 1 - indices, indices)
    elements = np.arange(tensor.size, dtype=np.int64).reshape(tensor.shape)
    offsets = (elements + (sources - indices) * step) % (1 << 32)
    inside = offsets < tensor.size
    copied = tensor.ravel()[np.where(inside, offsets, 0)]
    return Computed({"OutputTensor": np.where(inside, copied, tensor.dtype.type(0))})
