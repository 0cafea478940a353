"""Read the tables of translation, `schemas/translation/TARGET.yaml`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from dmlconf.documents.reader import read_document
from dmlconf.expressions import Expression
from dmlconf.resources import schemas_directory

__all__ = ["TARGETS", "Entry", "Form", "Function", "Table", "table"]

TARGETS: Final = ("onnx", "webnn")


@dataclass(frozen=True, slots=True)
class Form:
    """One way to express an operator.

    Attributes:
        when: the condition that a desc must meet; None if every desc does.
        statements: the formulas, each an assignment; empty if such a desc cannot be expressed.
        declined: why such a desc cannot be expressed; empty if there are formulas.
        wide: whether the target computes FLOAT16 tensors in FLOAT32, since several operators would
            round several times where DirectML rounds once. A ScaleBias makes any form wide.
    """

    when: Expression | None
    statements: tuple[ast.Assign, ...] = ()
    declined: str = ""
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """How a target expresses an operator.

    Attributes:
        names: the target's names that stand for the operator: `-o Conv` selects CONVOLUTION.
        forms: the first whose condition holds is taken.
        like: the more general operator that is translated instead, with the fields that the
            catalogue has under `specialises`; empty if `forms` are used.
    """

    operator: str
    names: tuple[str, ...]
    forms: tuple[Form, ...]
    like: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """A formula that several operators share, such as `scaled_as(x, TYPE)`.

    Attributes:
        parameters: names in capitals stand for values, others for tensors.
    """

    parameters: tuple[str, ...]
    body: ast.expr


@dataclass(frozen=True, slots=True)
class Table:
    """The table of one target.

    Attributes:
        title: the target's name in messages, such as `WebNN`.
        specification: the address of the target's specification.
        domains: the domain, such as `com.microsoft`, of each operator outside ONNX's default
            operator set.
    """

    target: str
    title: str
    specification: str
    domains: Mapping[str, str]
    functions: Mapping[str, Function]
    entries: Mapping[str, Entry]

    def expresses(self, operator: str) -> bool:
        """Return whether at least one form of an operator has formulas."""
        entry = self.entries[operator]
        if entry.like:
            return self.expresses(entry.like)
        return any(form.statements for form in entry.forms)

    def names(self) -> Mapping[str, tuple[str, ...]]:
        """Return DirectML's operators by the target's name that stands for them."""
        named: dict[str, list[str]] = {}
        for entry in self.entries.values():
            for name in entry.names:
                named.setdefault(name, []).append(entry.operator)
        return {name: tuple(named[name]) for name in sorted(named)}


@cache
def table(target: str) -> Table:
    """Return the table of a target.

    Raises:
        InvalidFilesError: the table's file cannot be read.
        ValueError: a formula is not an assignment, or a condition is not an expression.
        SyntaxError: formulas cannot be parsed.
    """
    path = schemas_directory() / "translation" / f"{target}.yaml"
    data = read_document(path).data
    domains = {name: domain for domain, names in data.get("domains", {}).items() for name in names}
    functions = dict(map(_function, data.get("functions", {}).items()))
    entries = {name: _entry(name, entry) for name, entry in data["operators"].items()}
    return Table(target, data["title"], data["specification"], domains, functions, entries)


def _entry(operator: str, data: Mapping[str, Any]) -> Entry:
    like = data.get("like", "")
    forms = data.get("forms")
    if forms is None:
        forms = [data] if data.keys() & {"formulas", "declined"} else []
    return Entry(operator, tuple(data.get("names", ())), tuple(map(_form, forms)), like)


def _form(data: Mapping[str, Any]) -> Form:
    when = Expression(data["when"]) if "when" in data else None
    statements = ast.parse(data.get("formulas", "")).body
    assignments = tuple(each for each in statements if isinstance(each, ast.Assign))
    if len(assignments) != len(statements):
        raise ValueError(f"{data['formulas']}: each formula is an assignment")
    return Form(when, assignments, data.get("declined", ""), data.get("wide", False))


def _function(item: tuple[str, str]) -> tuple[str, Function]:
    head, body = item
    call = ast.parse(head, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    parameters = tuple(each.id for each in call.args if isinstance(each, ast.Name))
    return call.func.id, Function(parameters, ast.parse(body, mode="eval").body)
