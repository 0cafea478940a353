"""The catalogue's values: operators, their fields, support, constraints and feature levels.

Precision rules are in `precision`, the bounds of indices in `bounds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

from dmlconf.catalogue.bounds import Bounds
from dmlconf.catalogue.precision import PrecisionEntry, PrecisionRule
from dmlconf.expressions import Expression, ExpressionError, Namespace, namespace
from dmlconf.tensors.datatypes import DataType

__all__ = [
    "FEATURE_LEVELS",
    "AttributeKind",
    "Constraint",
    "Entry",
    "Enumeration",
    "FeatureLevel",
    "Field",
    "FieldKind",
    "Gap",
    "InPlace",
    "LevelRequirement",
    "Operator",
    "PageError",
    "Specialisation",
    "Support",
    "SupportTable",
]

_LEVEL: Final = re.compile(r"(?:DML_FEATURE_LEVEL_)?(\d+)_(\d+)\Z")


class FeatureLevel(NamedTuple):
    """One `DML_FEATURE_LEVEL`; a higher level includes all lower ones."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `4_1` or `DML_FEATURE_LEVEL_4_1`, also if `FEATURE_LEVELS` lacks it.

        Raises:
            ValueError: the text has neither form.
        """
        match = _LEVEL.match(text)
        if match is None:
            raise ValueError(f"{text!r} is not a feature level such as 4_1")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.major}_{self.minor}"


FEATURE_LEVELS: Final = tuple(
    FeatureLevel.parse(level)
    for level in (
        "1_0",
        "2_0",
        "2_1",
        "3_0",
        "3_1",
        "4_0",
        "4_1",
        "5_0",
        "5_1",
        "5_2",
        "6_0",
        "6_1",
        "6_2",
        "6_3",
        "6_4",
    )
)
"""Every DML_FEATURE_LEVEL, the lowest first."""


class FieldKind(StrEnum):
    """The kind of a member of an operator desc."""

    INPUT = "input"
    OUTPUT = "output"
    ATTRIBUTE = "attribute"


class AttributeKind(StrEnum):
    """The kind of values that an attribute takes."""

    UINT = "UINT"
    INT = "INT"
    FLOAT = "FLOAT"
    BOOL = "BOOL"
    ENUM = "enum"
    SCALAR_UNION = "DML_SCALAR_UNION"
    SIZE_2D = "DML_SIZE_2D"
    SCALE_BIAS = "DML_SCALE_BIAS"
    OPERATOR = "DML_OPERATOR_DESC"


_ATTRIBUTE_KINDS: Final = {
    **{str(kind): kind for kind in AttributeKind},
    "float": AttributeKind.FLOAT,
}


@dataclass(frozen=True)
class Field:
    """One member of an operator desc.

    Attributes:
        c_type: the member's type in the header, such as `const UINT*`.
        count: for an array, the field that holds its length.
        type_field: for a scalar union, the field that selects the member in use.
        wraps: for a scalar union, whether -1 may stand for the largest unsigned number, as on the
            page of FILL_VALUE_SEQUENCE.
        without_effect: for an attribute that changes no result, why.
        bounds: for an input of indices or lengths, the values for which results are defined.
    """

    name: str
    kind: FieldKind
    c_type: str
    optional: bool = False
    count: str | None = None
    type_field: str | None = None
    wraps: bool = False
    without_effect: str | None = None
    bounds: Bounds | None = None

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor, or an array of tensors."""
        return self.kind is not FieldKind.ATTRIBUTE

    @property
    def is_array(self) -> bool:
        """Whether it is an array whose length another field holds."""
        return self.count is not None

    @cached_property
    def base_type(self) -> str:
        """The C type without `const` and `*`."""
        return self.c_type.removeprefix("const ").removesuffix("*").strip()

    @property
    def attribute_kind(self) -> AttributeKind:
        """The kind of values that the attribute takes; without meaning for a tensor."""
        return _ATTRIBUTE_KINDS.get(self.base_type, AttributeKind.ENUM)


@dataclass(frozen=True, slots=True)
class Support:
    """The lowest and highest rank, and the data types, that a table lists for one tensor."""

    ranks: tuple[int, int]
    data_types: tuple[DataType, ...]

    def has_rank(self, rank: int) -> bool:
        """Return whether a DimensionCount is among these ranks."""
        return self.ranks[0] <= rank <= self.ranks[1]


@dataclass(frozen=True, slots=True, eq=False)
class SupportTable:
    """One table in the page's section on tensor support.

    Attributes:
        since: the feature level from which on the table applies.
        when: the condition on the desc; None for all descs.
    """

    since: FeatureLevel
    tensors: Mapping[str, Support]
    when: Expression | None = None


@dataclass(frozen=True, slots=True)
class LevelRequirement:
    """A part of a desc, but no data type or rank, that needs a higher level than the operator.

    Attributes:
        part: a readable name, such as `a ScaleTensor without a BiasTensor`.
        source: `page`, `history` of the feature levels, or `measured` on a real DirectML.
    """

    since: FeatureLevel
    when: Expression
    part: str
    source: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition that a desc must meet.

    Attributes:
        name: the name that a case gives when it expects a rejection.
        source: `page`, `header`, or `measured` on a real DirectML.
        enforced: whether a real DirectML refuses descs that break the constraint.
        applies_to: for a constraint on all tensors, the kinds of tensors to which it applies.
    """

    name: str
    require: Expression
    source: str
    enforced: bool = True
    note: str | None = None
    applies_to: frozenset[FieldKind] = frozenset({FieldKind.INPUT, FieldKind.OUTPUT})


@dataclass(frozen=True, slots=True)
class InPlace:
    """An output that may share its buffer with an input."""

    output: str
    input: str


@dataclass(frozen=True, slots=True)
class PageError:
    """A known error on the page: what it says, what is correct, and how that is known."""

    says: str
    right: str
    why: str


@dataclass(frozen=True, slots=True)
class Enumeration:
    """An enum of the header.

    Attributes:
        prefix: the prefix of its constants' names, such as `DML_AXIS_DIRECTION_`.
        values: the constants' numbers, by name without the prefix.
        since: the feature levels of constants introduced later than the enum, by name.
    """

    name: str
    prefix: str
    values: Mapping[str, int]
    since: Mapping[str, FeatureLevel]


@dataclass(frozen=True, slots=True)
class Gap:
    """Cells of support tables that no case can cover.

    Attributes:
        ranks: the lowest and the highest rank.
        since: the feature level of the tables; None for all tables.
    """

    tensor: str
    ranks: tuple[int, int]
    reason: str
    since: FeatureLevel | None = None


@dataclass(frozen=True, slots=True)
class Specialisation:
    """How to express a special case by a more general operator.

    Fields of the same name have equal values in both operators.

    Attributes:
        operator: the more general operator.
        constants: fixed values of that operator's fields, by name; None for an absent field.
        computed: other fields of that operator, as expressions over the special case's fields.
        differs: what a real DirectML does differently, or None.
    """

    operator: str
    constants: Mapping[str, Any]
    computed: Mapping[str, Expression]
    differs: str | None = None


@dataclass(frozen=True, eq=False)
class Entry:
    """What the catalogue says of operators and of graphs alike.

    Attributes:
        name: as in the header, without `DML_OPERATOR_`; `GRAPHS` for a graph.
        page: the documentation page, without its ending.
    """

    name: str
    aliases: tuple[str, ...]
    struct: str
    since: FeatureLevel
    page: str
    summary: str
    fields: tuple[Field, ...]

    def field(self, name: str) -> Field:
        """Return the field of this name; raise KeyError if there is none."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    def of_kind(self, *kinds: FieldKind) -> Iterator[Field]:
        """Yield the fields of these kinds, in struct order."""
        known = self._fields_of_kinds
        if kinds not in known:
            known[kinds] = tuple(field for field in self.fields if field.kind in kinds)
        return iter(known[kinds])

    @cached_property
    def _fields_of_kinds(self) -> dict[tuple[FieldKind, ...], tuple[Field, ...]]:
        return {}

    @cached_property
    def count_fields(self) -> Mapping[str, tuple[str, ...]]:
        """The fields that hold lengths of arrays, each with the names of the arrays."""
        counted: dict[str, tuple[str, ...]] = {}
        for field in self.fields:
            if field.count is not None:
                counted[field.count] = (*counted.get(field.count, ()), field.name)
        return counted

    def names(self, values: Mapping[str, Any]) -> Namespace:
        """Return the namespace for expressions over a desc; `values` may have more than fields."""
        return namespace(values)

    @property
    def term_names(self) -> frozenset[str]:
        """The terms that expressions over the desc may name; a graph has none."""
        return frozenset()


@dataclass(frozen=True, eq=False)
class Operator(Entry):
    """Everything documented about one operator.

    Attributes:
        type_value: the number of its `DML_OPERATOR_TYPE`.
        family: the module of the reference with its function; None for a special case.
        support: tables of data types and ranks; those with the same condition, the newest first.
        undocumented_data_types: data types that DirectML accepts but no table lists, by tensor.
        terms: named expressions over the desc, for other expressions; a term may use earlier ones.
        precision: the rules of each output field; the first whose condition is met applies.
        examples: how many worked examples the page has.
        specialises: the more general operator of a special case, else None.
    """

    type_value: int
    family: str | None
    support: tuple[SupportTable, ...]
    undocumented_data_types: Mapping[str, tuple[DataType, ...]]
    terms: Mapping[str, Expression]
    constraints: tuple[Constraint, ...]
    in_place: tuple[InPlace, ...]
    precision: Mapping[str, tuple[PrecisionEntry, ...]]
    page_errors: tuple[PageError, ...]
    examples: int = 0
    gaps: tuple[Gap, ...] = ()
    level_requirements: tuple[LevelRequirement, ...] = ()
    specialises: Specialisation | None = None

    def names(self, values: Mapping[str, Any]) -> Namespace:
        """Return the namespace for expressions over a desc: its values and the terms.

        A term that cannot be evaluated, such as the size of an axis that does not exist, is left
        out.
        """
        names = namespace(values)
        for name, term in self.terms.items():
            with suppress(ExpressionError):
                names[name] = term.evaluate(names)
        return names

    @property
    def term_names(self) -> frozenset[str]:
        """The terms that expressions over the desc may name."""
        return frozenset(self.terms)

    def terms_in(self, expression: Expression) -> Mapping[str, Expression]:
        """Return the terms that an expression uses, directly or through another term."""
        used = set(expression.names)
        for name, term in reversed(tuple(self.terms.items())):
            if name in used:
                used |= term.names
        return {name: term for name, term in self.terms.items() if name in used}

    def rule(self, output: str, data_type: DataType, names: Namespace) -> PrecisionRule:
        """Return the precision rule of an output of a case; `names` has the values of its desc.

        Raises:
            KeyError: the operator has no output of this name.
            ExpressionError: a condition or the number of products cannot be evaluated.
        """
        entries = self.precision[output]
        holding = (entry for entry in entries if entry.holds(names))
        return next(holding, entries[-1]).rule(names, data_type)
