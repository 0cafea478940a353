"""The rewrites of graph compilers, and the rewritten graphs of cases.

`schemas/rewrites.yaml` says under which conditions a rewrite is right. A graph case with a
`rewrite` may break one condition. The rewritten graph, the case's mutant, then has wrong outputs,
so the case catches a compiler that applies the rewrite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.building.graph_build import build_graph
from dmlconf.cases.errors import CaseError
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.model import CaseTemplate, PlannedCase
from dmlconf.documents.problems import Problem, name_hint
from dmlconf.documents.reader import Document
from dmlconf.documents.schema import checked_document, problems_in
from dmlconf.resources import schemas_directory

__all__ = [
    "CaseRewrite",
    "Rewrite",
    "Source",
    "case_rewrite",
    "lint_rewrites",
    "rewrites",
    "rewritten",
]

_PARTS: Final = ("inputs", "constants", "nodes", "outputs")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a rewrite is from.

    Attributes:
        url: where it can be read; None if it was measured.
        says: what is found there, or what was measured; None if the URL says it all.
    """

    url: str | None
    says: str | None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A change that graph compilers make to graphs.

    Attributes:
        does: which nodes the rewrite replaces by which others.
        conditions: the conditions under which the rewrite is right, by name.
        sources: compilers that apply the rewrite, or reports of compilers that apply it wrongly.
    """

    name: str
    kind: str
    does: str
    conditions: Mapping[str, str]
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class CaseRewrite:
    """The rewrite that a case tests.

    Attributes:
        breaks: the condition that does not hold in the case; None where the rewrite is right.
    """

    name: str
    breaks: str | None


@cache
def rewrites() -> Mapping[str, Rewrite]:
    """Return the rewrites, by name.

    Raises:
        InvalidFilesError: `schemas/rewrites.yaml` is invalid.
    """
    return {
        entry["name"]: Rewrite(
            entry["name"],
            entry["kind"],
            entry["does"],
            entry["right_if"],
            tuple(_source(source) for source in entry["sources"]),
        )
        for entry in _document().data["rewrites"]
    }


def _source(entry: Mapping[str, Any]) -> Source:
    says = entry.get("says")
    if "measured" in entry:
        return Source(None, entry["measured"])
    if "page" in entry:
        return Source(entry["page"], says)
    repository = f"https://github.com/{entry['repository']}"
    if "file" in entry:
        revision = entry.get("revision", "HEAD")
        return Source(f"{repository}/blob/{revision}/{entry['file']}", says)
    part = f"issues/{entry['issue']}" if "issue" in entry else f"pull/{entry['pull_request']}"
    return Source(f"{repository}/{part}", says)


def lint_rewrites(path: Path | None = None) -> list[Problem]:
    """Return the problems of `schemas/rewrites.yaml`.

    Args:
        path: the file to check instead of dmlconf's own.
    """
    return problems_in(lambda: _document(path))


def _document(path: Path | None = None) -> Document:
    file = path or schemas_directory() / "rewrites.yaml"
    return checked_document(file, "rewrites", lambda document: document.repeated_names("rewrites"))


def case_rewrite(template: CaseTemplate) -> CaseRewrite | None:
    """Return the rewrite that a template's cases test; None for other cases.

    Raises:
        CaseError: there is no such rewrite, or it has no such condition.
        InvalidFilesError: as `rewrites`.
    """
    entry = template.data.get("rewrite")
    if entry is None:
        return None
    name, breaks = entry["name"], entry.get("breaks")
    _known(name, rewrites(), "rewrite", ("rewrite", "name"))
    if breaks is not None:
        conditions = rewrites()[name].conditions
        _known(breaks, conditions, f"condition of {name}", ("rewrite", "breaks"))
    return CaseRewrite(name, breaks)


def _known(name: str, known: Mapping[str, Any], what: str, where: tuple[str, ...]) -> None:
    if name not in known:
        message = f"schemas/rewrites.yaml has no {what} {name}"
        raise CaseError(where, message, name_hint(name, known))


def rewritten(planned: PlannedCase) -> GraphCase:
    """Return the mutant of a case, without an expectation.

    The inputs, constants, nodes and outputs in the case's `rewrite` are added to the graph, or
    replace those of the same name; null removes one. Nodes that feed nothing may remain.

    Raises:
        CaseError: the case has no rewrite, or the nodes do not make a graph.
    """
    template = _rewritten_template(planned.template)
    try:
        return build_graph(replace(planned, template=template), wired=False)
    except CaseError as error:
        raise _in_rewrite(error, planned.template.data["rewrite"]) from error


@lru_cache(maxsize=64)  # Cases of one template follow each other.
def _rewritten_template(template: CaseTemplate) -> CaseTemplate:
    if "rewrite" not in template.data:
        raise CaseError((), "the case has no `rewrite`")
    entry = {key: value for key, value in template.data.items() if key not in _LEFT_OUT}
    for part in _PARTS:
        changed = {**entry.get(part, {}), **template.data["rewrite"].get(part, {})}
        entry[part] = {name: value for name, value in changed.items() if value is not None}
    # The mutant must have the case's data. Without `expect`, its own `keeps_data` may be False
    # where that of the case is True; a challenge would then change only the mutant's data.
    challenge = None if template.keeps_data else template.challenge
    return replace(template, data=entry, challenge=challenge)


_LEFT_OUT: Final = (
    "rewrite",
    "expect",
    "origin",
    "recorded",
    "relation",
    "tolerance",
    "disputes",
)
"""Parts of a case's entry that say nothing about its mutant."""


def _in_rewrite(error: CaseError, entry: Mapping[str, Any]) -> CaseError:
    """Return an error in a mutant, located below `rewrite` if the wrong part is written there."""
    first, *others = [
        CaseError(
            ("rewrite", *each.where) if _is_there(each.where, entry) else each.where,
            f"the rewritten graph: {each.message}",
            each.hint,
        )
        for each in error.all()
    ]
    return CaseError(first.where, first.message, first.hint, others)


def _is_there(where: tuple[str | int, ...], entry: Mapping[str, Any]) -> bool:
    part, *rest = where or ("",)
    return bool(rest) and rest[0] in entry.get(str(part), {})
