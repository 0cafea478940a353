"""The passes of a reduction: each tries changes of one kind until none is kept any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np

from dmlconf.cases.graph_case import GraphCase
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import AttributeKind, Field
from dmlconf.diagnosis.reduction.cost import type_cost
from dmlconf.diagnosis.reduction.data import simpler_values
from dmlconf.diagnosis.reduction.graphs import reduce_nodes
from dmlconf.diagnosis.reduction.places import (
    Place,
    counted,
    number_at,
    size_places,
    with_number,
    with_sizes,
)
from dmlconf.diagnosis.reduction.reduce import Search
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["PASSES"]

_MOST_PLACES_PAIRED: Final = 12

_FROM_ZERO: Final = frozenset(
    {"Axis", "ActiveAxis", "Axes", "Offsets", "InputWindowOffsets", "StartPadding", "EndPadding",
     "OutputPadding", "BatchDimensionCount"}
)  # fmt: skip
"""Unsigned attributes of which 0 is the plainest value; of the others 1 is."""


def _reduce_sizes(search: Search) -> None:
    """Make each size as small as can be, and with it those that depend on it."""
    if isinstance(search.case, GraphCase):
        return
    again = True
    while again:
        again = False
        for place in list(size_places(search.case.operator, search.case.desc)):
            while _reduce_size(search, place):
                again = True


def _reduce_size(search: Search, place: Place) -> bool:
    desc = search.case.desc
    try:
        size = number_at(desc, place)
    except (TypeError, IndexError, KeyError):
        return False  # Another change took the dimension away.
    targets = dict.fromkeys([1, 2, 3, size // 4, size // 2, size - 1])
    return any(
        search.attempt_desc(smaller)
        for target in targets
        if 1 <= target < size
        for smaller in _resized(search, place, size, target)
    )


def _resized(search: Search, place: Place, size: int, target: int) -> Iterator[Desc]:
    """Yield valid descs with another number at a place."""
    operator, desc = search.case.operator, search.case.desc
    if search.rejected:
        yield with_number(desc, place, target)
        return
    places = list(size_places(operator, desc))
    sizes = {each: number_at(desc, each) for each in places}
    alike = [each for each in places if sizes[each] == size]
    from_end = {each: (each.dimension or 0) - _rank(desc, each) for each in places}
    groups = [
        [place],
        [each for each in alike if from_end[each] == from_end[place]],
        [each for each in alike if each.dimension == place.dimension],
        alike,
    ]
    if len(alike) <= _MOST_PLACES_PAIRED:
        others = [each for each in alike if each != place]
        groups += [[place, *some] for count in (1, 2) for some in combinations(others, count)]
    tried: set[frozenset[Place]] = set()
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
    yield from _proportional(search, sizes, place, size, target)


def _rank(desc: Desc, place: Place) -> int:
    value = desc[place.field]
    tensor = value if place.index is None else value[place.index]
    rank: int = tensor.DimensionCount
    return rank


def _proportional(
    search: Search, sizes: dict[Place, int], place: Place, size: int, target: int
) -> Iterator[Desc]:
    """Yield descs of which every size that is a multiple of one becomes less in proportion."""
    changed = search.case.desc
    for each, old in sizes.items():
        if old % size == 0:
            changed = with_number(changed, each, old // size * target)
    valid = search.repaired(changed, frozenset({place}))
    if valid is not None:
        yield valid
    # One other size may follow by a rule that no equation states.
    for each, old in sizes.items():
        if each != place and old > 1:
            for other in dict.fromkeys([1, old * target // size, old - (size - target)]):
                if 1 <= other < old:
                    both = with_number(with_number(search.case.desc, place, target), each, other)
                    valid = search.repaired(both, frozenset({place, each}))
                    if valid is not None:
                        yield valid


def _reduce_ranks(search: Search) -> None:
    """Take dimensions of size 1 away from all tensors, and from what is told for each of them."""
    if isinstance(search.case, GraphCase):
        return
    while any(search.attempt_desc(desc) for desc in _lower_ranks(search)):
        pass


def _lower_ranks(search: Search) -> Iterator[Desc]:
    operator, desc = search.case.operator, search.case.desc
    tensors = [t for value in desc.values() for t in _tensors(value)]
    rank = max((tensor.DimensionCount for tensor in tensors), default=0)
    for dimension in range(rank if rank > 1 else 0):
        lower: dict[str, Any] = {}
        for field in operator.fields:
            value = desc.get(field.name)
            if field.is_tensor:
                value = _each(value, partial(_without_dimension, dimension=dimension, rank=rank))
            else:
                value = _attribute_without(field, value, dimension, rank)
            lower[field.name] = value
        candidate = counted(operator, lower)
        yield candidate
        valid = search.repaired(candidate, frozenset())
        if valid is not None:
            yield valid


def _tensors(value: Any) -> list[TensorDesc]:
    items = value if isinstance(value, tuple) else (value,)
    return [item for item in items if isinstance(item, TensorDesc)]


def _each(value: Any, change: Callable[[TensorDesc], TensorDesc]) -> Any:
    if isinstance(value, tuple):
        return tuple(change(item) for item in value)
    return value if value is None else change(value)


def _without_dimension(tensor: TensorDesc, dimension: int, rank: int) -> TensorDesc:
    at = dimension - (rank - tensor.DimensionCount)
    if at < 0 or tensor.DimensionCount < 2:
        return tensor
    sizes = tensor.Sizes[:at] + tensor.Sizes[at + 1 :]
    strides = tensor.Strides
    if strides is not None and len(strides) == tensor.DimensionCount:
        strides = strides[:at] + strides[at + 1 :]
    return replace(with_sizes(replace(tensor, Strides=None), sizes), Strides=strides)


def _attribute_without(field: Field, value: Any, dimension: int, rank: int) -> Any:
    if field.name in ("Axis", "ActiveAxis") and isinstance(value, int):
        return value - (value > dimension)
    if field.name == "Axes" and isinstance(value, tuple):
        return tuple(axis - (axis > dimension) for axis in value if axis != dimension)
    if isinstance(value, tuple) and field.is_array and value:
        at = dimension - (rank - len(value))
        return value[:at] + value[at + 1 :] if at >= 0 and len(value) > 1 else value
    return value


def _reduce_tensors(search: Search) -> None:
    """Leave optional fields out, then layouts and flags."""
    if isinstance(search.case, GraphCase):
        return
    operator = search.case.operator
    for field in operator.fields:
        if field.optional and search.case.desc.get(field.name) is not None:
            _attempt_repaired(search, {**search.case.desc, field.name: None}, Place(field.name))
        value = search.case.desc.get(field.name)
        if field.is_array and isinstance(value, tuple):
            _shorten(search, field.name)
    if search.case.in_place:
        search.attempt(replace(search.case, in_place={}))
    for plain in (_plain, _unflagged, _packed):
        desc = {f.name: search.case.desc.get(f.name) for f in operator.fields}
        changed = {
            f.name: _each(desc[f.name], plain) if f.is_tensor else desc[f.name]
            for f in operator.fields
        }
        if not search.attempt_desc(changed):
            for field in operator.fields:
                value = search.case.desc.get(field.name)
                if field.is_tensor and value is not None:
                    search.attempt_desc({**search.case.desc, field.name: _each(value, plain)})


def _plain(tensor: TensorDesc) -> TensorDesc:
    return TensorDesc(tensor.DataType, tensor.Sizes)


def _packed(tensor: TensorDesc) -> TensorDesc:
    return replace(tensor, Strides=None, DeclaredTensorSizeInBytes=None)


def _unflagged(tensor: TensorDesc) -> TensorDesc:
    return replace(tensor, Flags=(), GuaranteedBaseOffsetAlignment=0)


def _shorten(search: Search, name: str) -> None:
    """Leave items of an array, and of those of the same length, out, from the end."""
    arrays = next(names for names in search.case.operator.count_fields.values() if name in names)
    for at in reversed(range(len(search.case.desc[name]))):
        desc = search.case.desc
        if len(desc[name]) > max(at, 1):
            shorter = {
                each: desc[each][:at] + desc[each][at + 1 :]
                for each in arrays
                if desc.get(each) is not None
            }
            _attempt_repaired(search, {**desc, **shorter})


def _attempt_repaired(search: Search, desc: Desc, *places: Place) -> bool:
    """Try a desc as it is, and repaired with these places fixed."""
    desc = counted(search.case.operator, desc)
    if search.attempt_desc(desc):
        return True
    valid = search.repaired(desc, frozenset(places))
    return valid is not None and search.attempt_desc(valid)


def _reduce_types(search: Search) -> None:
    """Give tensors the most common data types."""
    if isinstance(search.case, GraphCase):
        return
    types = {t.DataType for value in search.case.desc.values() for t in _tensors(value)}
    for old in sorted(types, key=type_cost, reverse=True):
        for new in sorted(DataType, key=type_cost):
            if type_cost(new) < type_cost(old) and _attempt_type(search, old, new):
                break


def _attempt_type(search: Search, old: DataType, new: DataType) -> bool:
    def retyped(tensor: TensorDesc) -> TensorDesc:
        # What the desc declares is in bytes.
        return (
            replace(tensor, DataType=new, DeclaredTensorSizeInBytes=None)
            if tensor.DataType is old
            else tensor
        )

    desc = {
        field.name: _each(search.case.desc.get(field.name), retyped)
        if field.is_tensor
        else _retyped_attribute(field, search.case.desc.get(field.name), old, new)
        for field in search.case.operator.fields
    }
    return _attempt_repaired(search, desc)


def _retyped_attribute(field: Field, value: Any, old: DataType, new: DataType) -> Any:
    if isinstance(value, str) and value == str(old) and "DATA_TYPE" in field.base_type:
        return type(value)(new) if isinstance(value, DataType) else str(new)
    return value


def _reduce_attributes(search: Search) -> None:
    """Make attributes 0, 1 or the first of their constants."""
    if isinstance(search.case, GraphCase):
        return
    operator = search.case.operator
    for field in operator.fields:
        if field.is_tensor or field.name in operator.count_fields:
            continue
        again = True
        while again:
            value = search.case.desc.get(field.name)
            again = any(
                _attempt_repaired(
                    search, {**search.case.desc, field.name: simpler}, Place(field.name)
                )
                for simpler in _simpler(field, value)
            )


def _simpler(field: Field, value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        numbers = bool(value) and all(isinstance(item, int) for item in value)
        for number in (0, 1) if numbers else ():
            if number or field.name in _FROM_ZERO or 0 in value:
                yield (number,) * len(value)
        for at, item in enumerate(value):
            for simpler in _simpler(field, item):
                yield (*value[:at], simpler, *value[at + 1 :])
    elif isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int):
        for number in dict.fromkeys([0, 1, value // 2, value - (value > 0) + (value < 0)]):
            counts = field.attribute_kind is AttributeKind.UINT
            if number == 0 and counts and field.name not in _FROM_ZERO:
                continue  # DirectML takes some counts of 0, but no page means them.
            if abs(number) < abs(value) or number > value:
                yield number
    elif isinstance(value, float):
        if value not in (0.0, 1.0):
            yield from (0.0, 1.0)
        if value == 1.0:
            yield 0.0
    elif isinstance(value, str) and field.attribute_kind is AttributeKind.ENUM:
        values = list(catalogue.enumeration(field.base_type).values)
        if value in values and "DATA_TYPE" not in field.base_type:
            yield from values[: values.index(value)]
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, float) and item not in (0.0, 1.0):
                yield from ({**value, key: number} for number in (0.0, 1.0))


def _reduce_data(search: Search) -> None:
    """Make elements 0, or at least 1."""
    if search.rejected:
        return
    for name in list(search.case.data):
        again = True
        while again:
            array = search.case.data[name]
            again = isinstance(array, np.ndarray) and any(
                search.attempt_data({**_arrays(search), name: simpler})
                for simpler in simpler_values(name, array)
            )


def _arrays(search: Search) -> dict[str, Array]:
    return {n: data for n, data in search.case.data.items() if isinstance(data, np.ndarray)}


PASSES: Final[tuple[Callable[[Search], None], ...]] = (
    reduce_nodes,
    _reduce_sizes,
    _reduce_ranks,
    _reduce_tensors,
    _reduce_types,
    _reduce_attributes,
    _reduce_data,
)
"""The passes, those that make the most of a case go away first."""
