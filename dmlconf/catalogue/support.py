"""The data types and ranks that the documented support tables list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from dmlconf.catalogue.desc import Desc, tensors_of
from dmlconf.catalogue.model import Operator, Support, SupportTable
from dmlconf.expressions import Namespace
from dmlconf.tensors.datatypes import DataType

__all__ = [
    "Form",
    "data_types_of",
    "desc_values",
    "ranks_of",
    "tables_that_hold",
    "tables_that_list",
    "tensor_forms",
]


class Form(NamedTuple):
    """The field, data type and number of dimensions of a tensor, which support tables list."""

    tensor: str
    data_type: DataType
    rank: int

    def fits(self, support: Support) -> bool:
        """Return whether a table's row lists the tensor."""
        lowest, highest = support.ranks
        return lowest <= self.rank <= highest and self.data_type in support.data_types


def tensor_forms(operator: Operator, desc: Desc) -> frozenset[Form]:
    """Return the forms of the tensors that a desc has."""
    return frozenset(
        Form(field.name, tensor.DataType, tensor.DimensionCount)
        for _, field, tensor in tensors_of(operator, desc)
    )


def desc_values(operator: Operator, desc: Desc) -> Mapping[str, Any]:
    """Return a desc's values, None for each field that it lacks."""
    return {field.name: desc.get(field.name) for field in operator.fields}


def tables_that_hold(
    operator: Operator, desc: Desc, names: Namespace | None = None
) -> tuple[SupportTable, ...]:
    """Return the tables whose condition the desc meets; of equal conditions, the newest first.

    Args:
        names: the desc's values and the operator's terms; None to compute them.

    Raises:
        ExpressionError: a table's condition cannot be evaluated.
    """
    if all(table.when is None for table in operator.support):
        return operator.support
    if names is None:
        names = operator.names(desc_values(operator, desc))
    return tuple(
        table for table in operator.support if table.when is None or table.when.evaluate(names)
    )


def tables_that_list(operator: Operator, desc: Desc) -> tuple[SupportTable, ...]:
    """Return the tables that list all of the desc's tensors, in the order of `tables_that_hold`.

    Raises:
        ExpressionError: a table's condition cannot be evaluated.
    """
    return _listing(tables_that_hold(operator, desc), tensor_forms(operator, desc))


@lru_cache(maxsize=4096)
def _listing(tables: tuple[SupportTable, ...], forms: frozenset[Form]) -> tuple[SupportTable, ...]:
    return tuple(
        table
        for table in tables
        if all(
            form.tensor in table.tensors and form.fits(table.tensors[form.tensor]) for form in forms
        )
    )


def _supports(operator: Operator, tensor: str) -> Iterator[Support]:
    return (table.tensors[tensor] for table in operator.support if tensor in table.tensors)


@cache
def data_types_of(operator: Operator, tensor: str) -> tuple[DataType, ...]:
    """Return every data type that any table lists for the tensor, in the order of the tables."""
    listed = (name for support in _supports(operator, tensor) for name in support.data_types)
    return tuple(dict.fromkeys(listed))


@cache
def ranks_of(operator: Operator, tensor: str) -> tuple[int, ...]:
    """Return every rank that any table lists for the tensor, ascending."""
    ranks: set[int] = set()
    for support in _supports(operator, tensor):
        ranks.update(range(support.ranks[0], support.ranks[1] + 1))
    return tuple(sorted(ranks))
