"""dmlconf's own page on an operator in Markdown.

It is made from the catalogue, the tables of other standards, and counts of the suite's cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from dmlconf.catalogue.constraints import common_constraint_names
from dmlconf.catalogue.model import Operator, SupportTable
from dmlconf.reports.markdown_text import cell, code, prose, table
from dmlconf.reports.operator_text import (
    field_note,
    level_lines,
    ranks_text,
    rule_text,
    special_case_text,
    typical_text,
)
from dmlconf.translation.names import standard_names

__all__ = ["operator_page"]

_DOCUMENTATION: Final = "https://learn.microsoft.com/windows/win32/api/directml"

_STANDARDS: Final = {"onnx": "ONNX", "webnn": "WebNN"}


def operator_page(entry: Operator, counts: Counter[str]) -> str:
    """Return the page of an operator; sections without content are left out.

    Args:
        counts: how many cases the operator has in the suite, by the name of their file, such as
            `documented`; for `graphs`, how many graphs have a node of it.
    """
    sections = (
        ("Struct", _struct(entry)),
        ("Support", _support(entry)),
        ("Feature levels of attributes and of combinations", _bullets(level_lines(entry))),
        ("Terms", _terms(entry)),
        ("Constraints", _constraints(entry)),
        ("Precision", _precision(entry)),
        ("In place", _in_place(entry)),
        ("Known errors of the page", _page_errors(entry)),
        ("Parts that no case can cover", _gaps(entry)),
        ("Cases in the suite", _cases(entry, counts)),
    )
    lines = [*_introduction(entry)]
    for title, content in sections:
        if written := list(content):
            lines += ["", f"## {title}", "", *written]
    return "\n".join(lines) + "\n"


def _coded(text: str) -> str:
    return cell(code(text))


def _introduction(entry: Operator) -> Iterator[str]:
    yield f"# {entry.name}"
    yield ""
    yield prose(entry.summary)
    yield ""
    number = code(f"DML_OPERATOR_{entry.name}")
    also = "".join(f", also {code(alias)}" for alias in entry.aliases)
    yield f"- {number} = {entry.type_value}{also}"
    yield f"- Since feature level {entry.since}"
    examples = (
        f" ({entry.examples} worked example{'s'[: entry.examples > 1]})" if entry.examples else ""
    )
    yield f"- [Official page]({_DOCUMENTATION}/{entry.page}){examples}"
    if names := list(_other_names(entry)):
        yield f"- Computes {'; '.join(names)}"
    if entry.specialises is not None:
        general = entry.specialises.operator
        fields = special_case_text(entry.specialises).removeprefix(general).strip()
        yield f"- Special case of [{general}]({general.lower()}.md) {prose(fields)}".rstrip()


def _other_names(entry: Operator) -> Iterator[str]:
    for standard, names in standard_names().items():
        own = [code(name) for name, operators in names.items() if entry.name in operators]
        if own:
            yield f"{_STANDARDS.get(standard, standard)} {', '.join(own)}"


def _struct(entry: Operator) -> Iterator[str]:
    yield code(entry.struct)
    yield ""
    rows = ((_coded(f.name), _coded(f.c_type), prose(field_note(f))) for f in entry.fields)
    yield from table(("Field", "Type", "Notes"), rows)


def _support(entry: Operator) -> Iterator[str]:
    for index, listed in enumerate(entry.support):
        if index:
            yield ""
        yield f"From feature level {max(listed.since, entry.since)}{_when(listed)}:"
        yield ""
        rows = (
            (_coded(tensor), ranks_text(support), ", ".join(support.data_types))
            for tensor, support in listed.tensors.items()
        )
        yield from table(("Tensor", "Ranks", "Data types"), rows)
    for tensor, data_types in entry.undocumented_data_types.items():
        yield ""
        yield f"{code(tensor)} also takes {', '.join(data_types)}, which no table lists."


def _when(listed: SupportTable) -> str:
    return f", if {code(str(listed.when))}" if listed.when is not None else ""


def _terms(entry: Operator) -> Iterator[str]:
    if entry.terms:
        yield "Expressions below share these names."
        yield ""
        rows = ((_coded(name), _coded(str(term))) for name, term in entry.terms.items())
        yield from table(("Name", "Value"), rows)


def _constraints(entry: Operator) -> Iterator[str]:
    if entry.constraints:
        rows = (
            (
                _coded(constraint.name),
                _coded(str(constraint.require)),
                cell(constraint.source) + ("" if constraint.enforced else ", not enforced"),
                prose(constraint.note or ""),
            )
            for constraint in entry.constraints
        )
        yield from table(("Name", "Condition", "Source", "Note"), rows)
        yield ""
    yield f"Every operator also has these: {', '.join(map(code, common_constraint_names()))}."


def _precision(entry: Operator) -> Iterator[str]:
    rows = (
        (
            _coded(output),
            _coded(rule_text(rule)),
            prose(rule.source),
            prose(typical_text(rule.typical)) if rule.typical is not None else "",
        )
        for output, rules in entry.precision.items()
        for rule in rules
    )
    yield from table(("Output", "Rule", "Source", "Measured"), rows)
    yield ""
    yield "If an output has several rules, the first whose condition is met applies."


def _in_place(entry: Operator) -> Iterator[str]:
    return _bullets(f"{code(p.output)} in place of {code(p.input)}" for p in entry.in_place)


def _page_errors(entry: Operator) -> Iterator[str]:
    if entry.page_errors:
        rows = ((prose(e.says), prose(e.right), prose(e.why)) for e in entry.page_errors)
        yield from table(("The page says", "Correct", "Why"), rows)


def _gaps(entry: Operator) -> Iterator[str]:
    return _bullets(
        f"{code(gap.tensor)} of {gap.ranks[0]} to {gap.ranks[1]} dimensions"
        f"{f' at feature level {gap.since}' if gap.since else ''}: {prose(gap.reason)}"
        for gap in entry.gaps
    )


def _cases(entry: Operator, counts: Counter[str]) -> Iterator[str]:
    rows = ((_coded(kind), f"{count:,}") for kind, count in sorted(counts.items()))
    yield from table(("File", "Cases"), (*rows, ("all", f"{counts.total():,}")))
    yield ""
    yield (
        f"`dmlconf list -o {entry.name}` lists them; "
        f"`dmlconf coverage -o {entry.name} --missing` shows how much of this page they cover."
    )


def _bullets(items: Iterable[str]) -> Iterator[str]:
    return (f"- {item}" for item in items)
