"""The passes that reduce an operator's case; `graph_passes` has those for graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import Desc
from dmlconf.diagnosis.reduction.changes import (
    PLAINER,
    each_tensor,
    retyped,
    simpler_attributes,
    smaller_sizes,
    tensors_of_value,
    with_tensors,
    without_dimension,
)
from dmlconf.diagnosis.reduction.cost import type_cost
from dmlconf.diagnosis.reduction.data import index_limits, simpler_values
from dmlconf.diagnosis.reduction.number_ref import (
    NumberRef,
    number_at,
    size_refs,
    with_counts,
    with_number,
)
from dmlconf.diagnosis.reduction.search import Search
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["PASSES", "reduce_data"]

_MOST_SIZES_PAIRED: Final = 12
"""If at most this many sizes are equal, pairs and triples of them are changed together, too."""


def _reduce_sizes(search: Search) -> None:
    again = True
    while again:
        again = False
        for ref in list(size_refs(search.case.operator, search.case.desc)):
            while _reduce_size(search, ref):
                again = True


def _reduce_size(search: Search, ref: NumberRef) -> bool:
    desc = search.case.desc
    try:
        size = number_at(desc, ref)
    except (TypeError, IndexError, KeyError):
        return False  # Another change removed the dimension.
    return any(
        search.attempt_desc(smaller)
        for target in smaller_sizes(size)
        for smaller in _resized(search, ref, size, target)
    )


def _resized(search: Search, ref: NumberRef, size: int, target: int) -> Iterator[Desc]:
    """Yield descs in which a size is `target`, alone or together with equal and dependent sizes."""
    operator, desc = search.case.operator, search.case.desc
    if search.rejected:
        yield with_number(desc, ref, target)
        return
    refs = list(size_refs(operator, desc))
    sizes = {each: number_at(desc, each) for each in refs}
    alike = [each for each in refs if sizes[each] == size]
    from_end = {each: (each.dimension or 0) - _rank(desc, each) for each in refs}
    groups = [
        [ref],
        [each for each in alike if from_end[each] == from_end[ref]],
        [each for each in alike if each.dimension == ref.dimension],
        alike,
    ]
    if len(alike) <= _MOST_SIZES_PAIRED:
        others = [each for each in alike if each != ref]
        groups += [[ref, *some] for count in (1, 2) for some in combinations(others, count)]
    tried: set[frozenset[NumberRef]] = set()
    for group in groups:
        fixed = frozenset(group)
        if fixed in tried:
            continue
        tried.add(fixed)
        changed = desc
        for each in group:
            changed = with_number(changed, each, target)
        valid = search.repaired(changed, fixed)
        if valid is not None:
            yield valid
    yield from _proportional(search, sizes, ref, size, target)


def _rank(desc: Desc, ref: NumberRef) -> int:
    value = desc[ref.field]
    tensor = value if ref.index is None else value[ref.index]
    rank: int = tensor.DimensionCount
    return rank


def _proportional(
    search: Search, sizes: dict[NumberRef, int], ref: NumberRef, size: int, target: int
) -> Iterator[Desc]:
    """Yield descs in which a size shrinks with its multiples, or with one other size."""
    changed = search.case.desc
    for each, old in sizes.items():
        if old % size == 0:
            changed = with_number(changed, each, old // size * target)
    valid = search.repaired(changed, frozenset({ref}))
    if valid is not None:
        yield valid
    # Another size may depend on this one by a rule that is no equation.
    for each, old in sizes.items():
        if each != ref and old > 1:
            for other in dict.fromkeys([1, old * target // size, old - (size - target)]):
                if 1 <= other < old:
                    both = with_number(with_number(search.case.desc, ref, target), each, other)
                    valid = search.repaired(both, frozenset({ref, each}))
                    if valid is not None:
                        yield valid


def _reduce_ranks(search: Search) -> None:
    while any(search.attempt_desc(desc) for desc in _lower_ranks(search)):
        pass


def _lower_ranks(search: Search) -> Iterator[Desc]:
    operator, desc = search.case.operator, search.case.desc
    tensors = [t for value in desc.values() for t in tensors_of_value(value)]
    rank = max((tensor.DimensionCount for tensor in tensors), default=0)
    for dimension in range(rank if rank > 1 else 0):
        candidate = without_dimension(operator, desc, dimension, rank)
        yield candidate
        valid = search.repaired(candidate, frozenset())
        if valid is not None:
            yield valid


def _reduce_tensors(search: Search) -> None:
    operator = search.case.operator
    for field in operator.fields:
        if field.optional and search.case.desc.get(field.name) is not None:
            _attempt_repaired(search, {**search.case.desc, field.name: None}, NumberRef(field.name))
        value = search.case.desc.get(field.name)
        if field.is_array and isinstance(value, tuple):
            _shorten(search, field.name)
    if search.case.in_place:
        search.attempt(replace(search.case, in_place={}))
    for plain in PLAINER:
        if not search.attempt_desc(with_tensors(operator, search.case.desc, plain)):
            for field in operator.fields:
                value = search.case.desc.get(field.name)
                if field.is_tensor and value is not None:
                    plainer = {**search.case.desc, field.name: each_tensor(value, plain)}
                    search.attempt_desc(plainer)


def _shorten(search: Search, name: str) -> None:
    """Remove items of an array and of arrays with the same count field, the last items first."""
    arrays = next(names for names in search.case.entry.count_fields.values() if name in names)
    for at in reversed(range(len(search.case.desc[name]))):
        desc = search.case.desc
        if len(desc[name]) > max(at, 1):
            shorter = {
                each: desc[each][:at] + desc[each][at + 1 :]
                for each in arrays
                if desc.get(each) is not None
            }
            _attempt_repaired(search, {**desc, **shorter})


def _attempt_repaired(search: Search, desc: Desc, *refs: NumberRef) -> bool:
    """Try a desc with its count fields set, and then repaired without changing `refs`."""
    desc = with_counts(search.case.operator, desc)
    if search.attempt_desc(desc):
        return True
    valid = search.repaired(desc, frozenset(refs))
    return valid is not None and search.attempt_desc(valid)


def _reduce_types(search: Search) -> None:
    types = {t.DataType for value in search.case.desc.values() for t in tensors_of_value(value)}
    for old in sorted(types, key=type_cost, reverse=True):
        for new in sorted(DataType, key=type_cost):
            if type_cost(new) < type_cost(old) and _attempt_repaired(
                search, retyped(search.case.operator, search.case.desc, old, new)
            ):
                break


def _reduce_attributes(search: Search) -> None:
    operator = search.case.operator
    for field in operator.fields:
        if field.is_tensor or field.name in operator.count_fields:
            continue
        again = True
        while again:
            value = search.case.desc.get(field.name)
            again = any(
                _attempt_repaired(
                    search, {**search.case.desc, field.name: simpler}, NumberRef(field.name)
                )
                for simpler in simpler_attributes(field, value)
            )


def reduce_data(search: Search) -> None:
    """Make the elements of inputs simpler, at best 0; nothing if the case must be rejected."""
    if search.rejected:
        return
    indices = index_limits(search.case.graph)
    for name in list(search.case.data):
        again = True
        while again:
            array = search.case.data[name]
            again = isinstance(array, np.ndarray) and any(
                search.attempt_data({**_arrays(search), name: simpler})
                for simpler in simpler_values(array, index=name in indices)
            )


def _arrays(search: Search) -> dict[str, Array]:
    return {n: data for n, data in search.case.data.items() if isinstance(data, np.ndarray)}


PASSES: Final[tuple[Callable[[Search], None], ...]] = (
    _reduce_sizes,
    _reduce_ranks,
    _reduce_tensors,
    _reduce_types,
    _reduce_attributes,
    reduce_data,
)
"""The passes; those that remove the most come first."""
