"""Simpler descs of operators, which `passes` tries for a case and `graph_passes` for nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import AttributeKind, Field, Operator
from dmlconf.diagnosis.reduction.number_ref import with_counts, with_sizes
from dmlconf.tensors.datatypes import DataType

__all__ = [
    "PLAINER",
    "each_tensor",
    "retyped",
    "simpler_attributes",
    "smaller_sizes",
    "tensors_of_value",
    "with_tensors",
    "without_dimension",
]

_FROM_ZERO: Final = frozenset(
    {
        "Axis",
        "Axes",
        "Offsets",
        "InputWindowOffsets",
        "StartPadding",
        "EndPadding",
        "OutputPadding",
        "BatchDimensionCount",
    }
)
"""Unsigned attributes whose simplest value is 0; that of other unsigned ones is 1."""


def tensors_of_value(value: Any) -> list[TensorDesc]:
    """Return the tensors in the value of a field."""
    items = value if isinstance(value, tuple) else (value,)
    return [item for item in items if isinstance(item, TensorDesc)]


def each_tensor(value: Any, change: Callable[[TensorDesc], TensorDesc]) -> Any:
    """Return the value of a tensor field with each tensor changed."""
    if isinstance(value, tuple):
        return tuple(change(item) for item in value)
    return value if value is None else change(value)


def with_tensors(
    operator: Operator, desc: Desc, change: Callable[[TensorDesc], TensorDesc]
) -> dict[str, Any]:
    """Return the desc with each tensor changed."""
    return {
        field.name: each_tensor(desc.get(field.name), change)
        if field.is_tensor
        else desc.get(field.name)
        for field in operator.fields
    }


def _plain(tensor: TensorDesc) -> TensorDesc:
    return TensorDesc(tensor.DataType, tensor.Sizes)


def _unflagged(tensor: TensorDesc) -> TensorDesc:
    return replace(tensor, Flags=(), GuaranteedBaseOffsetAlignment=0)


def _packed(tensor: TensorDesc) -> TensorDesc:
    return replace(tensor, Strides=None, DeclaredTensorSizeInBytes=None)


PLAINER: Final[tuple[Callable[[TensorDesc], TensorDesc], ...]] = (_plain, _unflagged, _packed)
"""Changes that make a tensor simpler: only data type and Sizes; no flags or alignment; packed."""


def without_dimension(operator: Operator, desc: Desc, dimension: int, rank: int) -> dict[str, Any]:
    """Return a desc without a dimension.

    Args:
        dimension: the index in a tensor of the largest rank; tensors of lower rank and shorter
            attributes lack the first dimensions. The only dimension of a tensor stays, and so does
            the only number of an attribute, except of Axes.
        rank: the largest rank of a tensor, in the desc or in its graph.
    """
    lower: dict[str, Any] = {}
    for field in operator.fields:
        value = desc.get(field.name)
        if field.is_tensor:
            lower[field.name] = each_tensor(
                value, partial(_tensor_without, dimension=dimension, rank=rank)
            )
        else:
            lower[field.name] = _attribute_without(field, value, dimension, rank)
    return with_counts(operator, lower)


def _tensor_without(tensor: TensorDesc, dimension: int, rank: int) -> TensorDesc:
    at = dimension - (rank - tensor.DimensionCount)
    if at < 0 or tensor.DimensionCount < 2:
        return tensor
    sizes = tensor.Sizes[:at] + tensor.Sizes[at + 1 :]
    strides = tensor.Strides
    if strides is not None and len(strides) == tensor.DimensionCount:
        strides = strides[:at] + strides[at + 1 :]
    return replace(with_sizes(replace(tensor, Strides=None), sizes), Strides=strides)


def _attribute_without(field: Field, value: Any, dimension: int, rank: int) -> Any:
    if field.name == "Axis" and isinstance(value, int):
        return value - (value > dimension)
    if field.name == "Axes" and isinstance(value, tuple):
        return tuple(axis - (axis > dimension) for axis in value if axis != dimension)
    if isinstance(value, tuple) and field.is_array and value:
        at = dimension - (rank - len(value))
        return value[:at] + value[at + 1 :] if at >= 0 and len(value) > 1 else value
    return value


def retyped(operator: Operator, desc: Desc, old: DataType, new: DataType) -> dict[str, Any]:
    """Return the desc with one data type replaced in all tensors and attributes."""

    def changed(tensor: TensorDesc) -> TensorDesc:
        # The declared size is in bytes.
        return (
            replace(tensor, DataType=new, DeclaredTensorSizeInBytes=None)
            if tensor.DataType is old
            else tensor
        )

    return {
        field.name: each_tensor(desc.get(field.name), changed)
        if field.is_tensor
        else _retyped_attribute(field, desc.get(field.name), old, new)
        for field in operator.fields
    }


def _retyped_attribute(field: Field, value: Any, old: DataType, new: DataType) -> Any:
    if isinstance(value, str) and value == str(old) and "DATA_TYPE" in field.base_type:
        return type(value)(new) if isinstance(value, DataType) else str(new)
    return value


def simpler_attributes(field: Field, value: Any) -> Iterator[Any]:
    """Yield values of an attribute that may be simpler; the search tries those that cost less."""
    if isinstance(value, tuple):
        numbers = bool(value) and all(isinstance(item, int) for item in value)
        for number in (0, 1) if numbers else ():
            if number or field.name in _FROM_ZERO or 0 in value:
                yield (number,) * len(value)
        for at, item in enumerate(value):
            for simpler in simpler_attributes(field, item):
                yield (*value[:at], simpler, *value[at + 1 :])
    elif isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int):
        for number in dict.fromkeys([0, 1, value // 2, value - (value > 0) + (value < 0)]):
            counts = field.attribute_kind is AttributeKind.UINT
            if number == 0 and counts and field.name not in _FROM_ZERO:
                continue  # DirectML accepts some counts of 0, but no page intends them.
            if abs(number) < abs(value) or value < 0 < number:
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


def smaller_sizes(size: int) -> list[int]:
    """Return the smaller sizes to try: 1, 2, 3, a quarter, a half, and one less."""
    targets = dict.fromkeys([1, 2, 3, size // 4, size // 2, size - 1])
    return [target for target in targets if 1 <= target < size]
