"""Which feature level a desc needs, by the documented tables of support."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from dmlconf.catalogue import loader
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import (
    AttributeKind,
    FeatureLevel,
    FieldKind,
    Operator,
    Support,
    SupportTable,
)
from dmlconf.tensors.datatypes import DataType

__all__ = ["data_types_of", "ranks_of", "required_level", "supported_tables"]

_TENSORS = (FieldKind.INPUT, FieldKind.OUTPUT)


def _fits(support: Support, tensor: TensorDesc) -> bool:
    least, greatest = support.ranks
    return least <= tensor.DimensionCount <= greatest and tensor.DataType in support.data_types


def supported_tables(operator: Operator, desc: Desc) -> Iterator[SupportTable]:
    """Yield the tables of support that list all of the desc's tensors, newest first."""
    tensors = [(field.name, tensor) for _, field, tensor in tensors_of(operator, desc, *_TENSORS)]
    for table in operator.support:
        if table.when is not None and not table.when.evaluate(operator.names(desc)):
            continue
        if all(name in table.tensors and _fits(table.tensors[name], t) for name, t in tensors):
            yield table


def required_level(operator: Operator, desc: Desc) -> FeatureLevel | None:
    """Return the lowest feature level that must support the desc; None where no table lists it.

    A nested operator needs the level that introduced it.
    """
    levels = [table.since for table in supported_tables(operator, desc)]
    nested = (loader.operator(item["operator"]).since for item in _nested(operator, desc))
    return max(min(levels), operator.since, *nested) if levels else None


def _nested(operator: Operator, desc: Desc) -> Iterator[Mapping[str, Any]]:
    for field in operator.of_kind(FieldKind.ATTRIBUTE):
        value = desc.get(field.name)
        if field.attribute_kind is AttributeKind.OPERATOR and value is not None:
            yield from value if field.is_array else (value,)


def _supports(operator: Operator, tensor: str) -> Iterator[Support]:
    return (table.tensors[tensor] for table in operator.support if tensor in table.tensors)


@cache
def data_types_of(operator: Operator, tensor: str) -> tuple[DataType, ...]:
    """Return every data type that some table lists for the tensor, newest table first."""
    listed = (name for support in _supports(operator, tensor) for name in support.data_types)
    return tuple(dict.fromkeys(listed))


@cache
def ranks_of(operator: Operator, tensor: str) -> tuple[int, ...]:
    """Return every rank that some table lists for the tensor, ascending."""
    ranks: set[int] = set()
    for support in _supports(operator, tensor):
        ranks.update(range(support.ranks[0], support.ranks[1] + 1))
    return tuple(sorted(ranks))
