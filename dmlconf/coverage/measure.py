"""Compare a suite's cases with what the catalogue documents for each operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.desc import tensors_of
from dmlconf.catalogue.levels import LevelNeed, tables_in_effect
from dmlconf.catalogue.loader import enumeration
from dmlconf.catalogue.model import AttributeKind, FieldKind, Operator, SupportTable
from dmlconf.coverage.nested import nested_of_case, nested_operators
from dmlconf.expressions import namespace

__all__ = ["KINDS", "OperatorCoverage", "Part", "documented_parts", "measure"]

KINDS: Final = ("documented", "matrix", "boundary", "invalid")
"""The kinds of cases that are counted, by their tags."""


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One documented part of an operator that a case can cover.

    Attributes:
        kind: `support`, `attribute`, `nested`, `optional`, `level`, `example` or `constraint`.
        name: what it is, such as `TransA NONE` of the kind `attribute`.
    """

    kind: str
    name: str


@dataclass(slots=True)
class OperatorCoverage:
    """What a suite covers of one operator.

    Attributes:
        cases: number of cases by kind.
        recorded: number of recorded cases.
        parts: number of cases that cover each documented part, without parts in `gaps`.
        gaps: why no case can cover a documented part.
    """

    operator: str
    total: int = 0
    cases: Counter[str] = field(default_factory=Counter)
    recorded: int = 0
    parts: dict[Part, int] = field(default_factory=dict)
    gaps: Mapping[Part, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[Part]:
        """Parts that no case covers."""
        return [part for part, count in self.parts.items() if not count]

    def share(self, kind: str | None = None) -> tuple[int, int]:
        """Return how many parts of a kind, or of all, are covered, and how many there are."""
        counts = [n for part, n in self.parts.items() if kind in (None, part.kind)]
        return sum(map(bool, counts)), len(counts)


def measure(
    operators: Iterable[Operator],
    cases: Iterable[Case],
    recorded: Callable[[Case], bool],
    advance: Callable[[], None] = lambda: None,
) -> dict[str, OperatorCoverage]:
    """Return what the cases cover of each operator, by the operator's name.

    Args:
        recorded: returns whether a recording has a case.
    """
    coverage = {operator.name: _without_cases(operator) for operator in operators}
    for case in cases:
        row = coverage.get(case.operator_name)
        if row is not None:
            row.total += 1
            row.cases.update(tag for tag in case.tags if tag in KINDS)
            row.recorded += recorded(case)
            for part in set(_covered_parts(case)) & row.parts.keys():
                row.parts[part] += 1
        advance()
    return coverage


def _without_cases(operator: Operator) -> OperatorCoverage:
    gaps = dict(_gaps(operator))
    parts = {part: 0 for part in documented_parts(operator) if part not in gaps}
    return OperatorCoverage(operator.name, parts=parts, gaps=gaps)


def _gaps(operator: Operator) -> Iterator[tuple[Part, str]]:
    for gap in operator.gaps:
        for table in operator.support:
            if gap.since in (None, table.since) and gap.tensor in table.tensors:
                for data_type in table.tensors[gap.tensor].data_types:
                    for rank in range(gap.ranks[0], gap.ranks[1] + 1):
                        yield _cell(table, gap.tensor, data_type, rank), gap.reason


def documented_parts(operator: Operator) -> Iterator[Part]:
    """Yield the documented parts of an operator, also those that no case can cover.

    Two kinds of parts are left out: enum values that are excluded by an enforced constraint on
    nothing but the attribute, and attributes whose values are data types.
    """
    for table in operator.support:
        for tensor, support in table.tensors.items():
            for data_type in support.data_types:
                for rank in range(support.ranks[0], support.ranks[1] + 1):
                    yield _cell(table, tensor, data_type, rank)
    for entry in operator.of_kind(FieldKind.ATTRIBUTE):
        if entry.attribute_kind is AttributeKind.ENUM and entry.base_type not in _TYPES:
            for value in enumeration(entry.base_type).values:
                if not _refused(operator, entry.name, value):
                    yield Part("attribute", f"{entry.name} {value}")
        elif entry.attribute_kind is AttributeKind.BOOL:
            yield Part("attribute", f"{entry.name} true")
            yield Part("attribute", f"{entry.name} false")
    for nested in nested_operators(operator):
        yield Part("nested", nested)
    for entry in operator.fields:
        if entry.optional:
            yield Part("optional", f"{entry.name} present")
            yield Part("optional", f"{entry.name} absent")
    for requirement in operator.level_requirements:
        yield _level(LevelNeed(requirement.since, requirement.part))
    for number in range(1, operator.examples + 1):
        yield Part("example", str(number))
    for constraint in operator.constraints:
        if constraint.enforced:
            yield Part("constraint", constraint.name)


def _refused(operator: Operator, attribute: str, value: str) -> bool:
    return any(
        constraint.enforced
        and constraint.require.names == {attribute}
        and not constraint.require.evaluate(namespace({attribute: value}))
        for constraint in operator.constraints
    )


_TYPES: Final = frozenset({"DML_TENSOR_DATA_TYPE"})
"""Enums whose values are data types, which the kind `support` counts."""


def _cell(table: SupportTable, tensor: str, data_type: str, rank: int) -> Part:
    when = f" where {table.when.source}" if table.when else ""
    return Part("support", f"{tensor} {data_type}, rank {rank}, at {table.since}{when}")


def _level(need: LevelNeed) -> Part:
    return Part("level", f"{need.level} for {need.part}")


def _covered_parts(case: Case) -> Iterator[Part]:
    if case.about.example is not None:
        yield Part("example", str(case.about.example).partition(",")[0])
    if isinstance(case.expectation, ExpectedRejection):
        if case.expectation.constraint:
            yield Part("constraint", case.expectation.constraint)
        return
    tensors = list(tensors_of(case.entry, case.desc))
    for table in tables_in_effect(case.operator, case.desc):
        for _, entry, tensor in tensors:
            yield _cell(table, entry.name, tensor.DataType, tensor.DimensionCount)
    yield from _attributes(case.operator, case.desc)
    for nested in nested_of_case(case.operator, case.desc):
        yield Part("nested", nested)
    yield from map(_level, case.level_needs)


def _attributes(operator: Operator, desc: Mapping[str, object]) -> Iterator[Part]:
    for entry in operator.fields:
        value = desc.get(entry.name)
        if entry.optional:
            yield Part("optional", f"{entry.name} {'absent' if value is None else 'present'}")
        if entry.kind is FieldKind.ATTRIBUTE and isinstance(value, bool):
            yield Part("attribute", f"{entry.name} {str(value).lower()}")
        elif entry.kind is FieldKind.ATTRIBUTE and isinstance(value, str):
            yield Part("attribute", f"{entry.name} {value}")
