"""GATHER and SCATTER_ELEMENTS agree with loops written from their pages; so do TILE and JOIN.

The tested code is in `dmlconf/reference/movement/indexing.py` and
`dmlconf/reference/movement/copies.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType

INDEX_TYPES: list[Any] = [np.int32, np.int64, np.uint32, np.uint64]


def function_of_operator(name: str) -> Callable[..., Array]:
    return cast(Callable[..., Array], reference_function(name))


def coordinates(sizes: tuple[int, ...]) -> Any:
    return itertools.product(*map(range, sizes))


def numbered_tensor(sizes: tuple[int, ...]) -> Array:
    """Return an INT32 tensor of 1, 2, 3 and so on."""
    return np.arange(1, int(np.prod(sizes)) + 1, dtype=np.int32).reshape(sizes)


@st.composite
def shapes(draw: st.DrawFn, least: int = 1, greatest: int = 4) -> tuple[int, ...]:
    """Draw sizes from 1 to 4."""
    return tuple(draw(st.lists(st.integers(1, 4), min_size=least, max_size=greatest)))


@given(shapes(), st.data())
def test_gather_reads_along_the_axis_from_either_end(
    sizes: tuple[int, ...], data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, len(sizes) - 1))
    count = data.draw(st.integers(1, 5))
    index_type = data.draw(st.sampled_from(INDEX_TYPES))
    least = -sizes[axis] if np.issubdtype(index_type, np.signedinteger) else 0
    drawn = data.draw(st.lists(st.integers(least, sizes[axis] - 1), min_size=count, max_size=count))
    source = numbered_tensor(sizes)
    indices = np.array(drawn, index_type).reshape((1,) * (len(sizes) - 1) + (count,))
    out_sizes = (*sizes[:axis], count, *sizes[axis + 1 :])
    output = TensorDesc(DataType.INT32, out_sizes)
    result = function_of_operator("GATHER")(source, indices, output, axis, 1)
    for at in coordinates(out_sizes):
        index = drawn[at[axis]]
        read = (*at[:axis], index + sizes[axis] if index < 0 else index, *at[axis + 1 :])
        assert result[at] == source[read]


@given(shapes(1, 3), st.data())
def test_gather_clamps_the_offset_of_an_element_and_not_the_index(
    sizes: tuple[int, ...], data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, len(sizes) - 1))
    index_type = data.draw(st.sampled_from(INDEX_TYPES))
    limits = np.iinfo(index_type)
    index = data.draw(st.integers(int(limits.min), int(limits.max)) | st.integers(0, 20))
    source = numbered_tensor(sizes)
    indices = np.full((1,) * len(sizes), index, index_type)
    out_sizes = (*sizes[:axis], 1, *sizes[axis + 1 :])
    output = TensorDesc(DataType.INT32, out_sizes)
    result = function_of_operator("GATHER")(source, indices, output, axis, 1)
    # Offsets are numbers of 32 bits; a UINT64 index from 2^63 on counts as negative.
    negative = index < 0 or (index_type is np.uint64 and index >= 1 << 63)
    low = (index + (sizes[axis] if negative else 0)) % (1 << 32)
    strides = [int(np.prod(sizes[d + 1 :])) for d in range(len(sizes))]
    for at in coordinates(out_sizes):
        moved = [low if d == axis else c for d, c in enumerate(at)]
        offset = sum(c * s for c, s in zip(moved, strides, strict=True)) % (1 << 32)
        assert result[at] == source.ravel()[min(offset, source.size - 1)]


@given(st.data())
def test_gather_replaces_the_axis_by_the_dimensions_of_the_indices(data: st.DataObject) -> None:
    rank = data.draw(st.integers(2, 4))
    dimensions = data.draw(st.integers(0, rank))
    axis = data.draw(st.integers(max(0, dimensions - 1), rank - 1))
    leading = max(0, dimensions - 1)
    sizes = (1,) * leading + tuple(data.draw(st.integers(1, 3)) for _ in range(rank - leading))
    used = tuple(data.draw(st.integers(1, 3)) for _ in range(dimensions))
    source = numbered_tensor(sizes)
    indices = np.array(
        [data.draw(st.integers(0, sizes[axis] - 1)) for _ in range(int(np.prod(used)))], np.uint32
    ).reshape((1,) * (rank - dimensions) + used)
    full = sizes[:axis] + used + sizes[axis + 1 :]
    out_sizes = ((1,) * rank + full)[-rank:]
    output = TensorDesc(DataType.INT32, out_sizes)
    result = function_of_operator("GATHER")(source, indices, output, axis, dimensions)
    flat = result.reshape(full)
    for at in coordinates(full):
        index = indices.reshape(used)[at[axis : axis + dimensions]]
        assert flat[at] == source[(*at[:axis], index, *at[axis + dimensions :])]


@given(shapes(2, 3), st.data())
def test_gather_gives_each_leading_row_its_own_indices(
    sizes: tuple[int, ...], data: st.DataObject
) -> None:
    sizes = (sizes[0] + 1, *sizes[1:])
    count = data.draw(st.integers(1, 3))
    axis = len(sizes) - 1
    index_sizes = (sizes[0],) + (1,) * (len(sizes) - 2) + (count,)
    drawn = [data.draw(st.integers(0, sizes[axis] - 1)) for _ in range(int(np.prod(index_sizes)))]
    indices = np.array(drawn, np.uint32).reshape(index_sizes)
    if len(sizes) == 3 and sizes[1] != 1:
        indices = indices[:, :, :].repeat(sizes[1], axis=1)
    source = numbered_tensor(sizes)
    out_sizes = (*sizes[:-1], count)
    output = TensorDesc(DataType.INT32, out_sizes)
    result = function_of_operator("GATHER")(source, indices, output, axis, 1)
    for at in coordinates(out_sizes):
        assert result[at] == source[(*at[:-1], indices[at])]


@given(shapes(), st.data())
def test_scatter_writes_each_update_at_its_index_along_the_axis(
    sizes: tuple[int, ...], data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, len(sizes) - 1))
    count = data.draw(st.integers(1, sizes[axis]))
    index_type = data.draw(st.sampled_from(INDEX_TYPES))
    index_sizes = (*sizes[:axis], count, *sizes[axis + 1 :])
    order = st.permutations(range(sizes[axis]))
    indices = np.zeros(index_sizes, index_type)
    for at in coordinates((*sizes[:axis], *sizes[axis + 1 :])):
        row = (*at[:axis], slice(None), *at[axis:])
        indices[row] = data.draw(order)[:count]
    source, updates = numbered_tensor(sizes), -numbered_tensor(index_sizes)
    expected = source.copy()
    for at in coordinates(index_sizes):
        expected[(*at[:axis], int(indices[at]), *at[axis + 1 :])] = updates[at]
    output = TensorDesc(DataType.INT32, sizes)
    result = function_of_operator("SCATTER_ELEMENTS")(source, indices, updates, output, axis)
    assert result.reshape(sizes).tolist() == expected.tolist()


@given(shapes(), st.data())
def test_tile_repeats_every_dimension(sizes: tuple[int, ...], data: st.DataObject) -> None:
    repeats = tuple(data.draw(st.integers(1, 3)) for _ in sizes)
    out_sizes = tuple(s * r for s, r in zip(sizes, repeats, strict=True))
    source = numbered_tensor(sizes)
    result = function_of_operator("TILE")(source, TensorDesc(DataType.INT32, out_sizes), repeats)
    for at in coordinates(out_sizes):
        assert result[at] == source[tuple(c % s for c, s in zip(at, sizes, strict=True))]


@given(shapes(), st.data())
def test_join_puts_inputs_one_after_another_along_the_axis(
    sizes: tuple[int, ...], data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, len(sizes) - 1))
    lengths = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    tensors = [
        numbered_tensor((*sizes[:axis], length, *sizes[axis + 1 :])) + 100 * number
        for number, length in enumerate(lengths)
    ]
    out_sizes = (*sizes[:axis], sum(lengths), *sizes[axis + 1 :])
    result = function_of_operator("JOIN")(tensors, TensorDesc(DataType.INT32, out_sizes), axis)
    for at in coordinates(out_sizes):
        start = at[axis]
        for tensor in tensors:
            if start < tensor.shape[axis]:
                break
            start -= tensor.shape[axis]
        assert result[at] == tensor[(*at[:axis], start, *at[axis + 1 :])]
