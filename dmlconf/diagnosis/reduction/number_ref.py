"""References to the sizes, data types and attributes in a desc."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import Operator

__all__ = ["NumberRef", "number_at", "size_refs", "with_counts", "with_number", "with_sizes"]


@dataclass(frozen=True, slots=True)
class NumberRef:
    """A size, a data type or an attribute of a desc.

    `NumberRef("ATensor", None, 1)` is the second of ATensor's Sizes.

    Attributes:
        index: for an array of tensors, which one; otherwise None.
        dimension: for a tensor, which of its Sizes; None for its DataType, and for an attribute.
    """

    field: str
    index: int | None = None
    dimension: int | None = None


def size_refs(operator: Operator, desc: Desc) -> Iterator[NumberRef]:
    """Yield a reference to each of the Sizes, in the order of the fields."""
    for field in operator.fields:
        value = desc.get(field.name)
        if not field.is_tensor or value is None:
            continue
        tensors = enumerate(value) if field.is_array else [(None, value)]
        for index, tensor in tensors:
            for dimension in range(tensor.DimensionCount):
                yield NumberRef(field.name, index, dimension)


def number_at(desc: Desc, ref: NumberRef) -> Any:
    """Return the size or attribute that a reference names; for a data type, its tensor."""
    value = desc[ref.field]
    if ref.index is not None:
        value = value[ref.index]
    return value if ref.dimension is None else value.Sizes[ref.dimension]


def with_number(desc: Desc, ref: NumberRef, number: Any) -> dict[str, Any]:
    """Return the desc with another size or attribute at a reference, or with another tensor."""
    if ref.dimension is None:
        return _with_value(desc, ref.field, ref.index, number)
    value = desc[ref.field]
    tensor = value if ref.index is None else value[ref.index]
    sizes = list(tensor.Sizes)
    sizes[ref.dimension] = number
    return _with_value(desc, ref.field, ref.index, with_sizes(tensor, tuple(sizes)))


def _with_value(desc: Desc, field: str, index: int | None, value: Any) -> dict[str, Any]:
    if index is None:
        return {**desc, field: value}
    items = list(desc[field])
    items[index] = value
    return {**desc, field: tuple(items)}


def with_sizes(tensor: TensorDesc, sizes: tuple[int, ...]) -> TensorDesc:
    """Return a tensor with other Sizes.

    The strides stay if their number fits, and the declared size if it is large enough.
    """
    strides = tensor.Strides
    if strides is not None and len(strides) != len(sizes):
        strides = None
    smaller = replace(tensor, Sizes=sizes, Strides=strides)
    declared = tensor.DeclaredTensorSizeInBytes
    if declared is not None and declared < smaller.MinimumTensorSizeInBytes:
        smaller = replace(smaller, DeclaredTensorSizeInBytes=None)
    return smaller


def with_counts(operator: Operator, desc: Mapping[str, Any]) -> dict[str, Any]:
    """Return the desc with its count fields set to the lengths of its arrays; 0 without arrays."""
    counts = {
        count: next((len(desc[name]) for name in arrays if desc.get(name) is not None), 0)
        for count, arrays in operator.count_fields.items()
    }
    return {**desc, **counts}
