"""Find the documented or measured constraints that a desc breaks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.loader import operator_sets, tensor_constraints
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.catalogue.support import desc_values, tables_that_hold
from dmlconf.expressions import Namespace, namespace

__all__ = [
    "GENERAL_CONSTRAINTS",
    "broken_by_tensor",
    "common_constraint_names",
    "constraint_names",
    "violations",
]

GENERAL_CONSTRAINTS: Final = {
    "required-field": "A field that is not optional is present.",
    "supported-data-type": (
        "A support table for the desc's attributes lists the data type, or it is known to be "
        "accepted."
    ),
    "supported-dimension-count": (
        "A support table for the desc's attributes lists the tensor's DimensionCount."
    ),
}
"""Constraints that follow from an operator's fields and tables, with what they require."""


def constraint_names(operator: Operator) -> frozenset[str]:
    """Return the names of all constraints on the operator."""
    own = (constraint.name for constraint in operator.constraints)
    return frozenset({*own, *common_constraint_names()})


def common_constraint_names() -> tuple[str, ...]:
    """Return the names of the constraints that every operator has."""
    return *GENERAL_CONSTRAINTS, *(constraint.name for constraint in tensor_constraints())


def violations(operator: Operator, desc: Desc, *, documented: bool = False) -> tuple[str, ...]:
    """Return the names of the enforced constraints that the desc breaks, the operator's own last.

    A constraint that cannot be evaluated counts as broken.

    Args:
        documented: whether to include the operator's own constraints that DirectML does not
            enforce.
    """
    broken = dict.fromkeys(_broken_fields(operator, desc))
    names = operator.names({**operator_sets(), **desc_values(operator, desc)})
    tables = tables_that_hold(operator, desc, names)
    for _, field, tensor in tensors_of(operator, desc):
        broken.update(dict.fromkeys(broken_by_tensor(field.kind, tensor)))
        rows = [table.tensors[field.name] for table in tables if field.name in table.tensors]
        extra = operator.undocumented_data_types.get(field.name, ())
        if not any(tensor.DataType in (*row.data_types, *extra) for row in rows):
            broken["supported-data-type"] = None
        if not any(row.has_rank(tensor.DimensionCount) for row in rows):
            broken["supported-dimension-count"] = None
    broken.update(dict.fromkeys(_broken_by_operator(operator, names, documented=documented)))
    return tuple(broken)


def _broken_fields(operator: Operator, desc: Desc) -> Iterator[str]:
    for field in operator.fields:
        if desc.get(field.name) is None and not field.optional:
            yield "required-field"


@lru_cache(maxsize=4096)
def broken_by_tensor(kind: FieldKind, tensor: TensorDesc) -> tuple[str, ...]:
    """Return the names of the enforced `tensor_constraints` that a tensor of this kind breaks."""
    values = namespace({"Tensor": tensor})
    return tuple(
        constraint.name
        for constraint in tensor_constraints()
        if constraint.enforced
        and kind in constraint.applies_to
        and not constraint.require.holds(values)
    )


def _broken_by_operator(
    operator: Operator, values: Namespace, *, documented: bool
) -> Iterator[str]:
    for constraint in operator.constraints:
        if (constraint.enforced or documented) and not constraint.require.holds(values):
            yield constraint.name
