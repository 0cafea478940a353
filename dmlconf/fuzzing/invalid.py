"""Make cases that a backend must refuse: each breaks exactly one constraint of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from dmlconf.cases.model import PlannedCase
from dmlconf.cases.writing.desc_entry import desc_entry
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.constraints import violations
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import AttributeKind, FieldKind, Operator
from dmlconf.catalogue.support import data_types_of
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.conditions import conditions_of
from dmlconf.fuzzing.operators import planned
from dmlconf.fuzzing.search import valid_desc
from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.layout import packed_strides

__all__ = ["breakable", "invalid_case", "invalid_desc"]

_ATTEMPTS: Final = 6
_KIND: Final = "fuzz-invalid"


def invalid_case(name: str, seed: int, number: int) -> PlannedCase:
    """Return the invalid case that an operator, a seed and a number determine.

    Constraints take turns. A constraint is passed over if no desc is found that breaks only it.
    """
    operator = catalogue.operator(name)
    chance = Chance(seed, _KIND, name, number)
    names = breakable(operator)
    shift = Chance(seed, _KIND, name).below(len(names))
    for turn in range(len(names)):
        constraint = names[(number + turn + shift) % len(names)]
        desc = invalid_desc(operator, constraint, chance)
        if desc is not None:
            entry = {
                "name": str(number),
                "desc": desc_entry(operator, desc, {}),
                "expect": {"rejected": "E_INVALIDARG", "constraint": constraint},
            }
            return planned(operator, seed, number, entry, _KIND)
    raise AssertionError(f"no desc of {name} breaks one constraint only")


@cache
def breakable(operator: Operator) -> tuple[str, ...]:
    """Return the names of the enforced constraints that invalid cases may break."""
    own = (condition.name for condition in conditions_of(operator) if condition.enforced)
    return (*own, *_CHANGES)


def invalid_desc(operator: Operator, constraint: str, chance: Chance) -> Desc | None:
    """Return a desc that breaks only this constraint; None if none is found."""
    for _ in range(_ATTEMPTS):
        table = chance.pick(operator.support)
        broken = None if constraint in _CHANGES else constraint
        desc = valid_desc(
            operator, table, chance, lambda desc: True, lambda desc, drafts: desc, broken=broken
        )
        if desc is None:
            continue
        candidates = [desc] if broken else _changed(operator, desc, constraint, chance)
        for candidate in candidates:
            if violations(operator, candidate, documented=True) == (constraint,):
                return candidate
    return None


def _changed(operator: Operator, desc: Desc, constraint: str, chance: Chance) -> Iterator[Desc]:
    """Yield changed descs that may break a constraint of `_CHANGES`."""
    fields = list(operator.of_kind(FieldKind.INPUT, FieldKind.OUTPUT))
    if constraint == "supported-data-type":
        yield from _other_types(operator, desc, chance)
        return
    for field in chance.shuffled(fields):
        value = desc[field.name]
        if constraint.startswith("output-") and field.kind is not FieldKind.OUTPUT:
            continue
        if isinstance(value, TensorDesc):
            tensor = _CHANGES[constraint](value, chance)
            yield {**desc, field.name: tensor}
        elif value:
            index = chance.below(len(value))
            tensor = _CHANGES[constraint](value[index], chance)
            yield {**desc, field.name: (*value[:index], tensor, *value[index + 1 :])}


def _other_types(operator: Operator, desc: Desc, chance: Chance) -> Iterator[Desc]:
    """Yield descs in which one data type is replaced by one that some tensor does not support."""
    tensors = {f.name: desc[f.name] for f in operator.fields if f.is_tensor and desc[f.name]}
    present = [each for value in tensors.values() for each in _all(value)]
    for old in dict.fromkeys(tensor.DataType for tensor in present):
        for new in chance.shuffled(list(DataType)):
            if all(new in data_types_of(operator, name) for name in tensors):
                continue
            change = {
                name: tuple(_retyped(each, old, new) for each in value)
                if isinstance(value, tuple)
                else _retyped(value, old, new)
                for name, value in tensors.items()
            }
            yield {**desc, **change, **_type_attributes(operator, desc, old, new)}


def _type_attributes(
    operator: Operator, desc: Desc, old: DataType, new: DataType
) -> Mapping[str, Any]:
    """Return new values for attributes that name the old data type, and for scalars of it."""
    changed: dict[str, Any] = {}
    for field in operator.of_kind(FieldKind.ATTRIBUTE):
        if field.attribute_kind is AttributeKind.ENUM and desc[field.name] == str(old):
            changed[field.name] = str(new)
        if field.type_field is not None and desc[field.type_field] == str(old):
            changed[field.name] = 1
    return changed


def _all(value: Any) -> tuple[TensorDesc, ...]:
    return value if isinstance(value, tuple) else (value,)


def _retyped(tensor: TensorDesc, old: DataType, new: DataType) -> TensorDesc:
    return replace(tensor, DataType=new) if tensor.DataType is old else tensor


def _fewer_bytes(tensor: TensorDesc, chance: Chance) -> TensorDesc:
    return replace(tensor, DeclaredTensorSizeInBytes=tensor.MinimumTensorSizeInBytes - 4)


def _odd_alignment(tensor: TensorDesc, chance: Chance) -> TensorDesc:
    return replace(tensor, GuaranteedBaseOffsetAlignment=chance.pick((1, 8, 24, 48, 100)))


def _overlapping(tensor: TensorDesc, chance: Chance) -> TensorDesc:
    strides = list(packed_strides(tensor.Sizes))
    longer = [index for index, size in enumerate(tensor.Sizes) if size > 1]
    if longer:
        strides[chance.pick(longer)] = 0
    return replace(tensor, Strides=tuple(strides))


def _owned(tensor: TensorDesc, chance: Chance) -> TensorDesc:
    return replace(tensor, Flags=("OWNED_BY_DML",))


def _unchanged(tensor: TensorDesc, chance: Chance) -> TensorDesc:
    return tensor


_CHANGES: Final[Mapping[str, Callable[[TensorDesc, Chance], TensorDesc]]] = {
    "supported-data-type": _unchanged,
    "total-size-holds-all-elements": _fewer_bytes,
    "base-offset-alignment": _odd_alignment,
    "output-strides-do-not-overlap": _overlapping,
    "output-not-owned-by-dml": _owned,
}
"""Constraints that all operators share, each but the first with a change that may break it."""
