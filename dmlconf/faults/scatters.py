"""Faults of SCATTER_ND: it leaves out updates, or writes them to wrong elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.faults.computed import Computed
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.layout import element_offsets, packed_strides

__all__ = ["scattered_by_other_tuples", "scattered_by_other_tuples_in_a_graph"]

_KNOWN_DIMENSIONS: Final = 4
"""The most dimensions that the faulty kernel of SCATTER_ND can address."""


def scattered_by_other_tuples(case: Case) -> Computed | None:
    """Return SCATTER_ND's outputs if the updates or the indices have more than 4 dimensions.

    An index tuple selects a block of the input: an element, or a tensor of its last dimensions. The
    kernel addresses only the last 4 dimensions of the updates. Of updates with the sizes {3, 1, 2,
    2, 2}, it writes only the first 8 elements.

    If IndicesDimensionCount exceeds 4, elements also take wrong index tuples. An element takes the
    tuple that begins at number c of the flattened IndicesTensor. Here c is the element's coordinate
    along its block's first dimension, or 0 if the block is an element. Past the end, the last
    number is read. With the indices [2, 0] and the rows [10, 20] and [30, 40], column 0 of both
    rows goes to row 2, and column 1 to row 0.

    Numbers of IndicesTensor are read at multiples of its last stride, also in gaps. If blocks are
    elements, updates with strides are also read at wrong addresses.

    None if the input has more than 4 dimensions, or if IndicesDimensionCount is at most 4 and all
    updates are written.
    """
    scatter = _Scatter.of(case, compiled_as_graph=False)
    if scatter is None:
        return None
    if case.desc["IndicesDimensionCount"] > _KNOWN_DIMENSIONS:
        return scatter.by_other_tuples(indices_packed=False, updates_in_order=False)
    if scatter.written_count == scatter.updates.size:
        return None
    numbers = scatter.indices.ravel()
    first = np.arange(scatter.written_count) // math.prod(scatter.blocks) * scatter.length
    return scatter.written(
        [numbers[first + axis] for axis in range(scatter.length)],
        scatter.updates.ravel()[: scatter.written_count],
    )


def scattered_by_other_tuples_in_a_graph(case: Case) -> Computed | None:
    """Return SCATTER_ND's outputs in a graph if IndicesDimensionCount exceeds 4.

    The outputs are those of `scattered_by_other_tuples`, but dimensions of size 1 have the stride
    0. So if each tuple is one number, all elements take the first tuple. Along an input's dimension
    of size 1, each index counts as 0. CompileGraph may pack indices or updates with strides first.
    None if IndicesDimensionCount is at most 4, or if the input has more than 4 dimensions.
    """
    if case.desc["IndicesDimensionCount"] <= _KNOWN_DIMENSIONS:
        return None
    scatter = _Scatter.of(case, compiled_as_graph=True)
    if scatter is None:
        return None
    as_given, *packed = (
        partial(scatter.by_other_tuples, indices_packed=indices, updates_in_order=updates)
        for indices, updates in product((False, True), repeat=2)
    )
    return replace(as_given(), others=lambda: (compute() for compute in packed))


@dataclass(frozen=True, slots=True)
class _Scatter:
    """A SCATTER_ND whose input has at most 4 dimensions.

    Attributes:
        indices: the indices; the last dimension holds the numbers of one tuple.
        used: the sizes of the last InputDimensionCount dimensions of the input.
        compiled_as_graph: whether the strides of dimensions of size 1 are 0.
    """

    tensor: Array
    indices: Array
    updates: Array
    indices_desc: TensorDesc
    updates_desc: TensorDesc
    used: tuple[int, ...]
    compiled_as_graph: bool

    @staticmethod
    def of(case: Case, *, compiled_as_graph: bool) -> _Scatter | None:
        desc, inputs = case.desc, case.inputs()
        tensor = inputs["InputTensor"]
        if tensor.ndim > _KNOWN_DIMENSIONS:
            return None
        return _Scatter(
            tensor,
            inputs["IndicesTensor"],
            inputs["UpdatesTensor"],
            desc["IndicesTensor"],
            desc["UpdatesTensor"],
            tensor.shape[tensor.ndim - desc["InputDimensionCount"] :],
            compiled_as_graph,
        )

    @property
    def length(self) -> int:
        """How many numbers an index tuple has."""
        return self.indices_desc.Sizes[-1]

    @property
    def blocks(self) -> tuple[int, ...]:
        """The sizes of the block that an index tuple selects; () for a single element."""
        return self.used[self.length :]

    @property
    def written_count(self) -> int:
        """How many updates the kernel writes: the product of their last 4 sizes."""
        return math.prod(self.updates.shape[-_KNOWN_DIMENSIONS:])

    def by_other_tuples(self, *, indices_packed: bool, updates_in_order: bool) -> Computed:
        """Return the outputs if an element's coordinate in its block selects the index tuple.

        Args:
            indices_packed: whether the indices are packed before the kernel reads them.
            updates_in_order: whether the kernel reads the updates at the right addresses.
        """
        at = np.arange(self.written_count)
        blocks = self.blocks
        begin = np.unravel_index(at % math.prod(blocks), blocks)[0] if blocks else at * 0
        desc = self.indices_desc
        if indices_packed:
            desc = replace(desc, Strides=None, DeclaredTensorSizeInBytes=None)
        stride, last = self._strides(desc)[-1], _element_count(desc) - 1
        numbers, unknown_targets = [], np.zeros(self.written_count, bool)
        for axis in range(self.length):
            addresses = np.minimum((begin + axis) * stride, last)
            values, is_gap = _read(self.indices, desc, addresses)
            numbers.append(values)
            unknown_targets |= is_gap
        if blocks or updates_in_order:
            in_order = self.updates.ravel()[: self.written_count]
            return self.written(numbers, in_order, unknown_targets=unknown_targets)
        return self.written(numbers, *self._read_by_three_axes(), unknown_targets)

    def written(
        self,
        numbers: Sequence[Array],
        values: Array,
        unknown_values: Array | None = None,
        unknown_targets: Array | None = None,
    ) -> Computed:
        """Return the outputs; of several values for one element, the last is kept.

        Args:
            numbers: one array for each number of an index tuple, with an element for each value.
            values: the values, in the order of the updates.
            unknown_values: which of the values are unknown; None if none are.
            unknown_targets: which of the values have an unknown index; None if none have one.
        """
        at = np.arange(values.size)
        within = np.unravel_index(at % math.prod(self.blocks), self.blocks) if self.blocks else ()
        targets = np.zeros_like(at)
        for axis, size in enumerate(self.used):
            if axis < self.length:
                index = numbers[axis].astype(np.int64)
                index = np.where(index < 0, index + size, index)
            else:
                index = within[axis - self.length]
            targets = targets * size + (0 if self.compiled_as_graph and size == 1 else index)
        written, unknown = self.tensor.ravel().copy(), np.zeros(self.tensor.size, bool)
        anywhere = []
        for update, target in enumerate(targets):
            value_is_unknown = unknown_values is not None and unknown_values[update]
            if unknown_targets is not None and unknown_targets[update]:
                anywhere.append(values[update])
                unknown |= value_is_unknown
            elif 0 <= target < written.size:
                written[target] = values[update]
                unknown[target] = value_is_unknown
        shape, name = self.tensor.shape, "OutputTensor"
        return Computed(
            {name: written.reshape(shape)},
            unknown={name: unknown.reshape(shape)} if unknown.any() else {},
            anywhere={name: np.array(anywhere, written.dtype)} if anywhere else {},
        )

    def _strides(self, desc: TensorDesc) -> tuple[int, ...]:
        strides = desc.Strides or packed_strides(desc.Sizes)
        if not self.compiled_as_graph:
            return strides
        return tuple(0 if size == 1 else it for size, it in zip(desc.Sizes, strides, strict=True))

    def _read_by_three_axes(self) -> tuple[Array, Array]:
        """Return the updates as read by a kernel that merges the first two of four axes.

        With the last three strides s2, s3 and s4, element (a, b, c, d) of sizes {2, 2, 2, 2} is
        read at (2 a + b) * s2 + c * s3 + d * s4. Past the end of the memory, zeros are read.

        Returns:
            The elements, and which of them are unknown, since they lie in gaps of the memory.
        """
        strides = self._strides(self.updates_desc)
        *_, rows, columns = self.updates.shape
        at = np.arange(self.written_count)
        addresses = at // (rows * columns) * strides[-3] + at // columns % rows * strides[-2]
        addresses += at % columns * strides[-1]
        values, is_gap = _read(self.updates, self.updates_desc, addresses)
        return values, is_gap & (addresses < _element_count(self.updates_desc))


def _element_count(desc: TensorDesc) -> int:
    """Return how many elements a tensor's memory has room for, gaps included."""
    return desc.TotalTensorSizeInBytes * 8 // desc.DataType.bits


def _read(tensor: Array, desc: TensorDesc, addresses: Array) -> tuple[Array, Array]:
    """Return the elements at addresses of a tensor's memory, and which addresses have no element.

    Args:
        addresses: counted in elements; 0 is returned for addresses without an element.
    """
    own = element_offsets(desc.Sizes, desc.Strides or packed_strides(desc.Sizes)).ravel()
    order = np.argsort(own, kind="stable")
    last = np.maximum(np.searchsorted(own[order], addresses, side="right") - 1, 0)
    element = order[last]
    is_gap = own[element] != addresses
    return np.where(is_gap, tensor.dtype.type(0), tensor.ravel()[element]), is_gap
