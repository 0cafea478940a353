"""Which feature level a desc needs, and which of its parts need it.

The parts are the operator, the tensors, attribute values that a later level introduced, and what
the catalogue lists under `level_requirements`. A nested operator has these parts except tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dmlconf.catalogue import loader
from dmlconf.catalogue.desc import Desc
from dmlconf.catalogue.model import (
    AttributeKind,
    FeatureLevel,
    FieldKind,
    Operator,
    Support,
    SupportTable,
)
from dmlconf.catalogue.support import (
    Form,
    desc_values,
    tables_that_hold,
    tables_that_list,
    tensor_forms,
)
from dmlconf.documents.wording import counted

__all__ = [
    "LevelNeed",
    "highest_level",
    "level_needs",
    "required_level",
    "spoken_level",
    "tables_in_effect",
]


@dataclass(frozen=True, slots=True)
class LevelNeed:
    """A part of a desc, such as `PaddingMode WRAP`, and the feature level that it needs."""

    level: FeatureLevel
    part: str


def level_needs(operator: Operator, desc: Desc) -> tuple[LevelNeed, ...]:
    """Return the needs of the parts of a desc, the operator first.

    The tensors are one part, which needs the lowest level with a table that lists all of them. The
    part is left out if the operator needs that level anyway, or if there is no such table.
    """
    needs = tuple(_needs_of_attributes(operator, desc))
    listing = tables_that_list(operator, desc)
    level = min((table.since for table in listing), default=operator.since)
    if level <= operator.since:
        return needs
    return *needs, LevelNeed(level, _part_of_tensors(operator, desc, listing, level))


def required_level(operator: Operator, desc: Desc) -> FeatureLevel | None:
    """Return the level from which on devices must support the desc.

    None if no table lists the data types and ranks of all of its tensors.
    """
    if not tables_that_list(operator, desc):
        return None
    return highest_level(level_needs(operator, desc))


def tables_in_effect(operator: Operator, desc: Desc) -> Iterator[SupportTable]:
    """Yield the tables that list all of the desc's tensors and are in effect for the desc.

    These are the tables above the level that the rest of the desc needs, and the newest of the
    tables at or below that level.
    """
    level = highest_level(_needs_of_attributes(operator, desc))
    for table in tables_that_list(operator, desc):
        yield table
        if table.since <= level:
            return


def highest_level(needs: Iterable[LevelNeed]) -> FeatureLevel:
    """Return the highest level of one or more needs."""
    return max(need.level for need in needs)


def spoken_level(needs: Sequence[LevelNeed]) -> str:
    """Return the highest level and what needs it: `feature level 6_4 for PaddingMode WRAP`."""
    level = highest_level(needs)
    parts = dict.fromkeys(need.part for need in needs if need.level == level)
    return f"feature level {level} for {' and '.join(parts)}"


def _needs_of_attributes(operator: Operator, desc: Desc) -> Iterator[LevelNeed]:
    """Yield the needs of everything except the tensors' data types and ranks."""
    yield LevelNeed(operator.since, f"DML_OPERATOR_{operator.name}")
    for field in operator.of_kind(FieldKind.ATTRIBUTE):
        value = desc.get(field.name)
        if field.attribute_kind is AttributeKind.ENUM:
            since = loader.enumeration(field.base_type).since.get(str(value))
            if since is not None:
                yield LevelNeed(since, f"{field.name} {value}")
        elif field.attribute_kind is AttributeKind.OPERATOR and value is not None:
            for nested in value if field.is_array else (value,):
                yield from _needs_of_nested(field.name, nested)
    if operator.level_requirements:
        names = operator.names(desc_values(operator, desc))
        for requirement in operator.level_requirements:
            if requirement.when.holds(names):
                yield LevelNeed(requirement.since, requirement.part)


def _needs_of_nested(field: str, nested: Mapping[str, Any]) -> Iterator[LevelNeed]:
    name = nested["operator"]
    whole, *parts = _needs_of_attributes(loader.operator(name), nested)
    yield LevelNeed(whole.level, f"{field} {name}")
    for need in parts:
        yield LevelNeed(need.level, f"{need.part} of {field} {name}")


def _part_of_tensors(
    operator: Operator, desc: Desc, listing: tuple[SupportTable, ...], level: FeatureLevel
) -> str:
    part = _newest_part(tables_that_hold(operator, desc), tensor_forms(operator, desc), level)
    chosen = {name for table in listing if table.when is not None for name in table.when.names}
    values = ", ".join(f"{name} {desc.get(name)}" for name in sorted(chosen))
    return f"{part} with {values}" if values else part


@lru_cache(maxsize=4096)
def _newest_part(
    tables: tuple[SupportTable, ...], forms: frozenset[Form], level: FeatureLevel
) -> str:
    """Return the tensors that no table below the level lists, such as `ATensor of FLOAT16`.

    If older tables list a tensor's data type, its rank is named; if they list both, but not
    together, both are named. If they list each tensor, only the combination of tensors is new.
    """
    older = [table for table in tables if table.since < level]
    tensors: dict[str, list[str]] = {}
    for form in sorted(forms):
        rows = [table.tensors[form.tensor] for table in older if form.tensor in table.tensors]
        new = _new_of(form, rows)
        if new is not None:
            tensors.setdefault(new, []).append(form.tensor)
    parts = [f"{_listed(names)} of {new}" for new, names in tensors.items()]
    return ", ".join(parts) or "these data types and ranks together"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _new_of(form: Form, rows: list[Support]) -> str | None:
    data_type, rank = f"{form.data_type}", counted(form.rank, "dimension")
    if any(form.fits(row) for row in rows):
        return None
    if not any(form.data_type in row.data_types for row in rows):
        return data_type
    if not any(row.has_rank(form.rank) for row in rows):
        return rank
    return f"{data_type} and {rank}"
