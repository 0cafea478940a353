"""The page docs/runtimes.md in Markdown: what other runtimes have in place of each operator."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from dmlconf.reports.markdown_text import cell, code, escaped, table
from dmlconf.translation.tables import TARGETS, Entry, Table
from dmlconf.translation.tables import table as table_of

__all__ = ["runtimes_page"]

_BEGIN = """\
# Operators on other runtimes

What ONNX and WebNN have in place of each operator of DirectML, by the tables of
`schemas/translation/`, and what of it they lack. A name is that of the target's operator; where
there is none, a formula of several operators may express it, or `no` says why nothing does.
`dmlconf coverage --target onnx` counts the cases that can be expressed so; what runtimes then do
wrong is in [findings](findings.md).
"""


def runtimes_page() -> str:
    """Return the page: a table of all operators with their counterparts in each target."""
    tables = [table_of(target) for target in TARGETS]
    names = list(tables[0].entries)
    counts = ", ".join(f"{each.title} {sum(map(each.expresses, names))}" for each in tables)
    lines = [_BEGIN, f"Of {len(names)} operators: {counts}.", ""]
    rows = ((name, *(_on(each, name) for each in tables)) for name in sorted(names))
    lines += table(("Operator", *(each.title for each in tables)), rows)
    return "\n".join(lines).rstrip() + "\n"


def _on(known: Table, operator: str) -> str:
    """Return the target's counterpart and what it lacks, or `no` and why there is none."""
    entry = known.entries[operator]
    own = entry
    while not own.forms and own.like:
        own = known.entries[own.like]
    missing = "; ".join(cell(escaped(each)) for each in _reasons(own))
    if not known.expresses(operator):
        return f"no: {missing}"
    has = ", ".join(map(code, entry.names or own.names)) or "a formula"
    return f"{has}; not {missing}" if missing else has


def _reasons(entry: Entry) -> Iterable[str]:
    return dict.fromkeys(
        reason for form in entry.forms for reason in _of_form(form.declined, form.statements)
    )


def _of_form(declined: str, statements: Iterable[ast.Assign]) -> Iterator[str]:
    if declined:
        yield declined
    for node in (part for each in statements for part in ast.walk(each)):
        match node:
            case ast.Call(func=ast.Name(id="declined"), args=[ast.Constant(value=str(reason))]):
                yield reason
