"""Goals of random cases: every second case gets one of these properties on purpose, if possible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.loader import enumeration
from dmlconf.catalogue.model import AttributeKind, Field, FieldKind, Operator, SupportTable
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.conditions import conditions_of
from dmlconf.fuzzing.domains import nested_operators, uses_nested_operator
from dmlconf.fuzzing.solving import PRESENT
from dmlconf.fuzzing.terms import Change, Changes
from dmlconf.tensors.layout import LAYOUTS

__all__ = ["Goal", "Part", "goals_of"]

_LAYOUTS: Final = tuple(name for name in LAYOUTS if name != "channels-last")
"""All layouts but `channels-last`, so that a seed gives the same cases as in earlier versions."""


class Part:
    """The kinds of goals."""

    DATA_TYPE: Final = "data type"
    RANK: Final = "rank"
    VALUE: Final = "value"
    PRESENT: Final = "present"
    ACTIVATION: Final = "activation"
    LAYOUT: Final = "layout"
    FLAG: Final = "flag"
    ANY: Final = "any"


@dataclass(frozen=True, slots=True)
class Goal:
    """A property that a random case should have.

    Attributes:
        part: one of the kinds in `Part`.
        field: the field that has the property; empty for `Part.ANY`.
        value: such as a data type or a rank; for `Part.PRESENT`, whether the field is present.
    """

    part: str
    field: str = ""
    value: Any = None

    def __str__(self) -> str:
        return f"{self.part} {self.field} {self.value}" if self.field else self.part

    def fits(self, table: SupportTable) -> bool:
        """Return whether the goal can be reached with a support table's data types and ranks."""
        row = table.tensors.get(self.field)
        if self.part == Part.DATA_TYPE:
            return row is not None and self.value in row.data_types
        if self.part == Part.RANK:
            return row is not None and row.has_rank(self.value)
        return True

    def holds(self, desc: Desc) -> bool:
        """Return whether a desc reaches the goal or, for a layout or a flag, has the tensor."""
        value = desc.get(self.field) if self.field else None
        match self.part:
            case Part.DATA_TYPE:
                return any(tensor.DataType is self.value for tensor in _tensors(value))
            case Part.RANK:
                return any(len(tensor.Sizes) == self.value for tensor in _tensors(value))
            case Part.VALUE:
                return bool(value == self.value)
            case Part.PRESENT:
                return (value is not None) is self.value
            case Part.ACTIVATION:
                nested = value if isinstance(value, tuple) else (value,)
                return any(each and each["operator"] == self.value for each in nested)
            case Part.LAYOUT | Part.FLAG:
                return value is not None
        return True

    def changes(self, desc: Desc, chance: Chance) -> Changes:
        """Return changes by which a desc comes nearer to the goal; none if the goal is reached.

        An absent field is added first; a second call, with the new desc, gives it the property.
        """
        if self.part == Part.ANY or self.holds(desc):
            return ()
        if desc[self.field] == ():
            return (((self.field,), (PRESENT,)),)
        if self.part == Part.PRESENT:
            return ((((self.field,), PRESENT if self.value else None)),)
        if desc[self.field] is None:
            return (((self.field,), PRESENT),)
        value = desc[self.field]
        match self.part:
            case Part.DATA_TYPE:
                return (self._of_tensor(value, chance, ("DataType",), self.value),)
            case Part.RANK:
                tensor = next(iter(_tensors(value)), None)
                sizes = (1, 2, 3, 1, 2, 3, 1, 2)[: self.value] if tensor is None else tensor.Sizes
                longer = (*((1,) * 8), *sizes)[-self.value :]
                return (self._of_tensor(value, chance, ("Sizes",), longer),)
            case Part.ACTIVATION:
                inner = (chance.below(len(value)),) if isinstance(value, tuple) else ()
                return (((self.field, *inner, "operator"), self.value),)
        return (((self.field,), self.value),)

    def _of_tensor(self, value: Any, chance: Chance, path: tuple[str, ...], new: Any) -> Change:
        inner = (chance.below(len(value)),) if isinstance(value, tuple) else ()
        return ((self.field, *inner, *path), new)


def _tensors(value: Any) -> tuple[TensorDesc, ...]:
    if isinstance(value, TensorDesc):
        return (value,)
    return value if isinstance(value, tuple) else ()


@cache
def goals_of(operator: Operator) -> tuple[Goal, ...]:
    """Return the goals of an operator, in the order of its fields."""
    goals: dict[Goal, None] = {}
    for field in operator.fields:
        if field.optional:
            goals |= dict.fromkeys(Goal(Part.PRESENT, field.name, each) for each in (True, False))
        if field.is_tensor:
            goals |= dict.fromkeys(_tensor_goals(operator, field))
        elif uses_nested_operator(field):
            names = nested_operators(operator, field.name)
            goals |= dict.fromkeys(Goal(Part.ACTIVATION, field.name, name) for name in names)
        elif not field.is_array:
            values = (each for each in _values(field) if _is_permitted(operator, field, each))
            goals |= dict.fromkeys(Goal(Part.VALUE, field.name, each) for each in values)
    return tuple(goals)


def _is_permitted(operator: Operator, field: Field, value: Any) -> bool:
    """Return whether a value meets the constraints that concern this field alone."""
    return all(
        condition.holds({field.name: value})
        for condition in conditions_of(operator)
        if condition.fields == {field.name}
    )


def _values(field: Field) -> tuple[Any, ...]:
    if field.attribute_kind is AttributeKind.BOOL:
        return (False, True)
    if field.attribute_kind is AttributeKind.ENUM and field.base_type != "DML_TENSOR_DATA_TYPE":
        return tuple(enumeration(field.base_type).values)
    return ()


def _tensor_goals(operator: Operator, field: Field) -> Iterator[Goal]:
    for table in operator.support:
        row = table.tensors[field.name]
        yield from (Goal(Part.DATA_TYPE, field.name, each) for each in row.data_types)
        for rank in range(row.ranks[0], row.ranks[1] + 1):
            if not _is_gap(operator, field.name, rank):
                yield Goal(Part.RANK, field.name, rank)
    for layout in _LAYOUTS:
        if layout != "broadcast" or field.kind is FieldKind.INPUT:
            yield Goal(Part.LAYOUT, field.name, layout)
    if field.kind is FieldKind.INPUT:
        yield Goal(Part.FLAG, field.name, "OWNED_BY_DML")


def _is_gap(operator: Operator, field: str, rank: int) -> bool:
    return any(
        gap.tensor == field and gap.since is None and gap.ranks[0] <= rank <= gap.ranks[1]
        for gap in operator.gaps
    )
