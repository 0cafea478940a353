"""Nested operators: those that a slot of a desc may hold, and those of a case.

GRU has two slots in ActivationDescs: `f` for the gates, and `g` for the new state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Final

from dmlconf.catalogue.loader import operator_names, operator_sets
from dmlconf.catalogue.model import AttributeKind, Field, Operator
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.expressions import ExpressionError

__all__ = ["nested_of_case", "nested_operators"]

_MOST_SLOTS: Final = 7
"""The most slots that an array of nested operators is assumed to have."""


def nested_operators(operator: Operator) -> Iterator[str]:
    """Yield each slot with each operator that it may hold: `ActivationDescs[1] ACTIVATION_TANH`."""
    for field in operator.fields:
        if not field.is_tensor and field.attribute_kind is AttributeKind.OPERATOR:
            permitted = [name for name in operator_names() if _permitted(operator, field, name)]
            for slot in _slots(operator, field):
                yield from (f"{slot} {name}" for name in permitted)


def nested_of_case(operator: Operator, desc: Mapping[str, Any]) -> Iterator[str]:
    """Yield the slots and nested operators of a desc, named as by `nested_operators`."""
    for field in operator.fields:
        if field.is_tensor or field.attribute_kind is not AttributeKind.OPERATOR:
            continue
        value = desc.get(field.name)
        if isinstance(value, Mapping):
            yield f"{field.name} {value['operator']}"
        elif value is not None:
            slots = _slots(operator, field)
            for at, nested in enumerate(value):
                yield f"{slots[at % len(slots)]} {nested['operator']}"


@cache
def _slots(operator: Operator, field: Field) -> list[str]:
    """Return the slots of a field: its name or, for an array, its elements for one direction."""
    if not field.is_array:
        return [field.name]
    counts = [count for count in range(1, _MOST_SLOTS + 1) if _may_count(operator, field, count)]
    return [str(TensorRef(field.name, at)) for at in range(max(counts, default=1))]


def _may_count(operator: Operator, field: Field, count: int) -> bool:
    """Return whether an array may have `count` elements for one direction."""
    names = {**operator.names({field.count or "": count}), "DirectionCount": 1}
    return all(
        constraint.require.evaluate(names)
        for constraint in operator.constraints
        if field.count in constraint.require.names
        and constraint.require.names <= {field.count, "DirectionCount"}
    )


def _permitted(operator: Operator, field: Field, name: str) -> bool:
    """Return whether constraints on this field alone permit an operator; False without any."""
    nested = {"operator": name}
    names = operator.names({**operator_sets(), field.name: (nested,) if field.is_array else nested})
    about = {field.name, *operator_sets()}
    permitted = False
    for constraint in operator.constraints:
        if field.name in constraint.require.names and constraint.require.names <= about:
            with suppress(ExpressionError):
                if not constraint.require.evaluate(names):
                    return False
                permitted = True
    return permitted
