"""The numbers of a desc that a reduction changes, each by its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import Operator

__all__ = ["Place", "counted", "number_at", "size_places", "with_number", "with_sizes"]


@dataclass(frozen=True, slots=True)
class Place:
    """A number of a desc.

    Attributes:
        field: the field's name.
        index: for an array of tensors or of numbers, which item; None if it is not an array.
        dimension: for a tensor, which of its Sizes; None for an attribute.
    """

    field: str
    index: int | None = None
    dimension: int | None = None


def size_places(operator: Operator, desc: Desc) -> Iterator[Place]:
    """Yield the places of all Sizes, in the order of the fields."""
    for field in operator.fields:
        value = desc.get(field.name)
        if not field.is_tensor or value is None:
            continue
        tensors = enumerate(value) if field.is_array else [(None, value)]
        for index, tensor in tensors:
            for dimension in range(tensor.DimensionCount):
                yield Place(field.name, index, dimension)


def number_at(desc: Desc, place: Place) -> Any:
    """Return the number at a place."""
    value = desc[place.field]
    if place.index is not None:
        value = value[place.index]
    return value if place.dimension is None else value.Sizes[place.dimension]


def with_number(desc: Desc, place: Place, number: Any) -> dict[str, Any]:
    """Return the desc with another number at a place."""
    if place.dimension is None:
        return _with_value(desc, place.field, place.index, number)
    value = desc[place.field]
    tensor = value if place.index is None else value[place.index]
    sizes = list(tensor.Sizes)
    sizes[place.dimension] = number
    return _with_value(desc, place.field, place.index, with_sizes(tensor, tuple(sizes)))


def _with_value(desc: Desc, field: str, index: int | None, value: Any) -> dict[str, Any]:
    if index is None:
        return {**desc, field: value}
    items = list(desc[field])
    items[index] = value
    return {**desc, field: tuple(items)}


def with_sizes(tensor: TensorDesc, sizes: tuple[int, ...]) -> TensorDesc:
    """Return a tensor with other Sizes, and with its strides if they still fit."""
    strides = tensor.Strides
    if strides is not None and len(strides) != len(sizes):
        strides = None
    smaller = replace(tensor, Sizes=sizes, Strides=strides)
    declared = tensor.DeclaredTensorSizeInBytes
    if declared is not None and declared < smaller.MinimumTensorSizeInBytes:
        smaller = replace(smaller, DeclaredTensorSizeInBytes=None)
    return smaller


def counted(operator: Operator, desc: Mapping[str, Any]) -> dict[str, Any]:
    """Return the desc with its count fields set to the lengths of its arrays."""
    counts = {
        count: next((len(desc[name]) for name in arrays if desc.get(name) is not None), 0)
        for count, arrays in operator.count_fields.items()
    }
    return {**desc, **counts}
