"""Text about operators from the catalogue, for the terminal and for pages."""

from __future__ import annotations

import json

from dmlconf.catalogue.loader import enumeration
from dmlconf.catalogue.model import (
    AttributeKind,
    Field,
    FieldKind,
    Operator,
    Specialisation,
    Support,
)
from dmlconf.catalogue.precision import PrecisionEntry, RuleKind, Typical

__all__ = [
    "field_note",
    "level_lines",
    "ranks_text",
    "rule_text",
    "special_case_text",
    "typical_text",
]


def special_case_text(of: Specialisation) -> str:
    """Return the general operator, its fixed or computed fields, and what else differs.

    For example, RESAMPLE2 is `RESAMPLE3 with Antialiased = false`.
    """
    values = {
        **{name: json.dumps(value) for name, value in of.constants.items()},
        **{name: str(expression) for name, expression in of.computed.items()},
    }
    fields = " and ".join(f"{name} = {value}" for name, value in values.items())
    differs = f". {of.differs}" if of.differs else ""
    return f"{of.operator} with {fields}{differs}" if fields else f"{of.operator}{differs}"


def field_note(field: Field) -> str:
    """Return the properties of a field apart from its type, such as `input, optional`."""
    notes = [] if field.kind is FieldKind.ATTRIBUTE else [str(field.kind)]
    if field.count:
        notes.append(f"{field.count} of them")
    if field.optional:
        notes.append("optional")
    if field.without_effect:
        notes.append(f"without effect: {field.without_effect}")
    return ", ".join(notes)


def ranks_text(support: Support) -> str:
    """Return the ranks that a support table lists for a tensor: `1 to 8`, or a single one."""
    lowest, highest = support.ranks
    return str(lowest) if lowest == highest else f"{lowest} to {highest}"


def level_lines(entry: Operator) -> list[str]:
    """Return the feature levels of parts of a desc that may differ from the operator's."""
    lines = [
        f"{since} for {field.name} {constant}"
        for field in entry.of_kind(FieldKind.ATTRIBUTE)
        if field.attribute_kind is AttributeKind.ENUM
        for constant, since in enumeration(field.base_type).since.items()
        if since > entry.since
    ]
    lines += [
        f"{requirement.since} for {requirement.part} ({requirement.source})"
        for requirement in entry.level_requirements
    ]
    lines += [
        f"that of its operator for {field.name}"
        for field in entry.of_kind(FieldKind.ATTRIBUTE)
        if field.attribute_kind is AttributeKind.OPERATOR
    ]
    return lines


def rule_text(rule: PrecisionEntry) -> str:
    """Return a rule in words, such as `ulp 1 if OutputTensor.DataType == 'FLOAT32'`.

    A limit of 0 for all data types is left out.
    """
    limits = [f"{name} {limit:g}" for name, limit in (rule.limits or {}).items()]
    limit_text = ", ".join(limits) or (f"{rule.limit:g}" if rule.limit else "")
    products = f"of {rule.products} products" if rule.products else ""
    when = f"if {rule.when}" if rule.when else ""
    kind = "one of several candidates" if rule.kind is RuleKind.ONE_OF else str(rule.kind)
    return " ".join(filter(None, (kind, limit_text, products, when)))


def typical_text(typical: Typical) -> str:
    """Return the largest used share of the limit, by data type, and how it was measured."""
    shares = ", ".join(f"{share:g} for {name}" for name, share in typical.shares.items())
    when = f" when {typical.when}" if typical.when else ""
    return f"Largest share of the limit used: {shares}{when}. Measured: {typical.measured}"
