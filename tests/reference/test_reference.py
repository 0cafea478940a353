"""Every operator has its functions; those of GATHER and others agree with loops from the pages.

The tested code is in `dmlconf/reference/`, `dmlconf/permitted/` and `docs/bounds.md`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.catalogue.precision import RuleKind
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType
from tests.reference.functions import OWN_FUNCTIONS, function_of

INDEX_TYPES: list[Any] = [np.int32, np.int64, np.uint32, np.uint64]


def function_of_operator(name: str) -> Callable[..., Array]:
    """Return the function of an operator with one output."""
    return cast(Callable[..., Array], reference_function(name))


def coordinates(sizes: tuple[int, ...]) -> Any:
    return itertools.product(*map(range, sizes))


def numbered_tensor(sizes: tuple[int, ...]) -> Array:
    return np.arange(1, int(np.prod(sizes)) + 1, dtype=np.int32).reshape(sizes)


@st.composite
def shapes(draw: st.DrawFn, least: int = 1, greatest: int = 4) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(1, 4), min_size=least, max_size=greatest)))


def takes_the_fields(name: str, part: str = "") -> bool:
    entry = operator(name)
    fields = [field.name for field in entry.fields if field.name not in entry.count_fields]
    try:
        signature(function_of(name, part)).bind(**dict.fromkeys(fields))
    except TypeError:
        return False
    return True


def test_every_operator_has_a_function_of_its_fields() -> None:
    assert [name for name in operator_names() if not takes_the_fields(name)] == []


def test_every_function_documents_what_it_returns_and_the_source() -> None:
    for name in OWN_FUNCTIONS:
        assert "Source: " in (reference_function(name).__doc__ or ""), name


def test_every_error_scale_refers_to_its_derivation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "bounds.md").read_text("utf-8")
    headings = set(re.findall(r"^## (.+)$", page, re.M))
    for name in OWN_FUNCTIONS:
        rules = [rule for rules in operator(name).precision.values() for rule in rules]
        if any(rule.kind is RuleKind.ACCUMULATE for rule in rules):
            doc = function_of(name, "error_scale").__doc__ or ""
            section = re.search(r"docs/bounds\.md, ([^.]+)\.", doc)
            assert section, name
            assert " ".join(section[1].split()) in headings, name


def test_every_reference_to_a_derivation_names_a_section() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "bounds.md").read_text("utf-8")
    headings = set(re.findall(r"^##+ (.+)$", page, re.M))
    found = 0
    for path in sorted((root / "dmlconf" / "permitted").rglob("*.py")):
        text = " ".join(path.read_text("utf-8").split())
        for named in re.findall(r"docs/bounds\.md, ([A-Z][^.]*)\.", text):
            found += 1
            assert set(re.split(r", | and ", named)) <= headings, f"{path.name}: {named}"
    assert found > 50


def test_every_rule_has_the_functions_that_it_needs() -> None:
    parts = {
        RuleKind.ACCUMULATE: "error_scale",
        RuleKind.INTERVAL: "interval",
        RuleKind.ONE_OF: "candidates",
    }
    for name in operator_names():
        for rules in operator(name).precision.values():
            for part in {parts[rule.kind] for rule in rules if rule.kind in parts}:
                assert takes_the_fields(name, part), (name, part)


@given(shapes(), st.data())
def test_gather_reads_what_the_page_says(sizes: tuple[int, ...], data: st.DataObject) -> None:
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
def test_gather_bounds_the_offset_and_not_the_index(
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
    negative = index < 0 or (index_type is np.uint64 and index >= 1 << 63)
    low = (index + (sizes[axis] if negative else 0)) % (1 << 32)
    strides = [int(np.prod(sizes[d + 1 :])) for d in range(len(sizes))]
    for at in coordinates(out_sizes):
        moved = [low if d == axis else c for d, c in enumerate(at)]
        offset = sum(c * s for c, s in zip(moved, strides, strict=True)) % (1 << 32)
        assert result[at] == source.ravel()[min(offset, source.size - 1)]


@given(st.data())
def test_gather_reads_what_the_page_says_for_several_index_dimensions(data: st.DataObject) -> None:
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
def test_scatter_writes_what_the_page_says(sizes: tuple[int, ...], data: st.DataObject) -> None:
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
def test_join_puts_inputs_one_after_another(sizes: tuple[int, ...], data: st.DataObject) -> None:
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


def scanned(values: list[float], replaces: Callable[[float, float], bool]) -> int:
    best = 0
    for at, value in enumerate(values):
        if at and replaces(value, values[best]):
            best = at
    return best


@given(shapes(1, 3), st.data())
def test_argmin_scans_as_directml_does(sizes: tuple[int, ...], data: st.DataObject) -> None:
    axes = tuple(data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=3)))
    direction = data.draw(st.sampled_from(["INCREASING", "DECREASING"]))
    values = st.sampled_from([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-45])
    count = int(np.prod(sizes))
    source = np.array([data.draw(values) for _ in range(count)], np.float32).reshape(sizes)
    out_sizes = tuple(1 if axis in axes else size for axis, size in enumerate(sizes))
    output = TensorDesc(DataType.INT64, out_sizes)
    result = function_of_operator("ARGMIN")(source, output, axes, direction)
    assert result.dtype == np.int64
    increasing = direction == "INCREASING"
    for at in coordinates(out_sizes):
        row = source[tuple(slice(None) if i in axes else c for i, c in enumerate(at))]
        best = scanned(
            np.asarray(row).ravel().tolist(),
            lambda new, old: new < old if increasing else new <= old,
        )
        assert result.reshape(out_sizes)[at] == best
