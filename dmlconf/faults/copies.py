"""Formulas of known faults in which an operator copies the wrong elements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.tensors.datatypes import Array

__all__ = [
    "lengths_not_clamped",
    "scattered_by_other_tuples",
    "scattered_by_other_tuples_in_a_graph",
    "window_read_without_gaps",
    "window_written_without_gaps",
]

_KNOWN_DIMENSIONS: Final = 4
"""The number of dimensions that SCATTER_ND's kernel for small inputs can address."""


def window_read_without_gaps(case: Case) -> Computed | None:
    """Return the outputs of SLICE1 if the output is smaller than the window.

    If the window spans a whole axis with a stride of 1, and the axis before it has a stride of 1
    too, the kernel merges both into one axis. It then copies consecutive elements: from
    [[1, 2, 3, 4], [5, 6, 7, 8]] an output of sizes {2, 1} gets [1, 2], not [1, 5].
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
    """Return the outputs of SLICE_GRAD if its gradient leaves out elements of a whole axis.

    Axes are merged as in `window_read_without_gaps`: the gradient [[1], [5]] of a window that is
    all of a 2x4 tensor becomes [[1, 5, 0, 0], [0, 0, 0, 0]], not [[1, 0, 0, 0], [5, 0, 0, 0]].
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
    """An axis of a tensor, and how many elements of it a window picks."""

    size: int
    offset: int
    window: int
    step: int
    count: int

    def picked(self) -> Array:
        """Return the coordinates of the elements."""
        begin = self.offset if self.step > 0 else self.offset + self.window - 1
        return begin + self.step * np.arange(self.count)


def _merged_axes(
    sizes: Sequence[int], desc: Mapping[str, Any], counts: Sequence[int]
) -> list[_Axis]:
    """Return the axes; each axis that the window covers whole is merged with the axis before it."""
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
    """Return the outputs of REVERSE_SUBSEQUENCES if lengths beyond the axis are not clamped.

    For [4, 5, 6, 7] with a length of 9, the elements are read at the indices 8, 7, 6 and 5. There
    are the next rows of the tensor, and zeros after its last element.
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


def scattered_by_other_tuples(case: Case) -> Computed | None:
    """Return the outputs of SCATTER_ND if the input has at most 4 dimensions, and the updates more.

    The kernel addresses only the last 4 dimensions of the updates. If the updates are 3 rows of
    2x2x2 blocks, with sizes {3, 1, 2, 2, 2}, it writes only the first row. With the sizes
    {1, 3, 2, 2, 2} it is right.

    If IndicesDimensionCount exceeds 4, elements also take wrong index tuples. An element with the
    coordinate c along the first dimension of its block takes the tuple that begins at index c of
    all indices; without blocks it takes the first tuple. Beyond the last index, the last one is
    read again. For the indices [2, 0], both rows {10, 20} and {30, 40} are written to column 0 of
    row 2 and column 1 of row 0, so that 30 and 40 stay there.
    """
    if case.desc["IndicesDimensionCount"] > _KNOWN_DIMENSIONS:
        if not case.desc["IndicesTensor"].Packed:
            return None
        return _scattered(case, other_tuples=True, compiled_as_graph=False)
    return _scattered(case, other_tuples=False, compiled_as_graph=False)


def scattered_by_other_tuples_in_a_graph(case: Case) -> Computed | None:
    """Return the outputs of SCATTER_ND in a graph if IndicesDimensionCount exceeds 4.

    They are those of `scattered_by_other_tuples`, except that dimensions of size 1 have a stride of
    0. If each tuple is one number, the last dimension of the indices has size 1, so every element
    takes the first tuple: for the indices [2, 0], both rows are written to row 2. Along a dimension
    of size 1 of the input, every index is taken for 0.
    """
    desc = case.desc
    if desc["IndicesDimensionCount"] <= _KNOWN_DIMENSIONS:
        return None
    if desc["IndicesTensor"].Sizes[-1] > 1 and not desc["IndicesTensor"].Packed:
        return None
    return _scattered(case, other_tuples=True, compiled_as_graph=True)


def _scattered(case: Case, *, other_tuples: bool, compiled_as_graph: bool) -> Computed | None:
    desc, inputs = case.desc, case.inputs()
    tensor, updates = inputs["InputTensor"], inputs["UpdatesTensor"]
    known = math.prod(updates.shape[-_KNOWN_DIMENSIONS:])
    if tensor.ndim > _KNOWN_DIMENSIONS or (known == updates.size and not other_tuples):
        return None
    used = tensor.shape[tensor.ndim - desc["InputDimensionCount"] :]
    indices = inputs["IndicesTensor"]
    length, numbers = indices.shape[-1], indices.ravel()
    blocks = used[length:]
    block = math.prod(blocks)
    at = np.arange(known)
    within = np.unravel_index(at % block, blocks) if blocks else ()
    begin = (within[0] if blocks else np.zeros_like(at)) if other_tuples else at // block * length
    if compiled_as_graph and length == 1:
        begin = np.zeros_like(at)
    values, unknown = updates.ravel()[:known], np.zeros(known, bool)
    strides = desc["UpdatesTensor"].Strides
    if other_tuples and strides is not None:
        if not compiled_as_graph and updates.ndim == _KNOWN_DIMENSIONS:
            values, unknown = _read_by_three_axes(updates, strides)
        elif not desc["UpdatesTensor"].Packed:
            return None
    targets = np.zeros_like(at)
    for axis, size in enumerate(used):
        if axis < length:
            index = numbers[np.minimum(begin + axis, numbers.size - 1)].astype(np.int64)
            index = np.where(index < 0, index + size, index)
        else:
            index = within[axis - length]
        targets = targets * size + (0 if compiled_as_graph and size == 1 else index)
    written, anything = tensor.ravel().copy(), np.zeros(tensor.size, bool)
    inside = (targets >= 0) & (targets < written.size)
    for target, value, is_unknown in zip(
        targets[inside], values[inside], unknown[inside], strict=True
    ):
        written[target], anything[target] = value, is_unknown
    outputs = {"OutputTensor": written.reshape(tensor.shape)}
    of_gaps = {"OutputTensor": anything.reshape(tensor.shape)} if anything.any() else {}
    return Computed(outputs, unknown=of_gaps)


def _read_by_three_axes(updates: Array, strides: Sequence[int]) -> tuple[Array, Array]:
    """Return the updates as a kernel reads them that merges the first two axes.

    Element 15 of 2x2x2x2 is read at 3 times the second stride, plus the third and the last one, and
    not at the sum of all four strides. Past the last element, zeros are read.

    Returns:
        The updates in their order, and which of them lie in gaps between elements, whose content is
            unknown.
    """
    addresses = np.zeros(updates.shape, np.intp)
    for axis, (size, stride) in enumerate(zip(updates.shape, strides, strict=True)):
        shape = [size if at == axis else 1 for at in range(updates.ndim)]
        addresses += np.arange(size).reshape(shape) * stride
    memory = np.zeros(int(addresses.max()) + 1, updates.dtype)
    is_gap = np.ones(memory.size, bool)
    memory[addresses], is_gap[addresses] = updates, False
    *_, rows, columns = updates.shape
    at = np.arange(updates.size)
    read = at // (rows * columns) * strides[1] + at // columns % rows * strides[2]
    read += at % columns * strides[3]
    inside = read < memory.size
    read = np.where(inside, read, 0)
    return np.where(inside, memory[read], updates.dtype.type(0)), inside & is_gap[read]
