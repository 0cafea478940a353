"""Read and check files of waivers: operators, cases and names in conditions must exist.

The files' JSON Schema is `schemas/waivers.schema.json`. The module `waivers` applies waivers to
verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.identifiers import is_pattern, scope_of
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Location
from dmlconf.catalogue.loader import UnknownOperatorError, operator_name
from dmlconf.documents.problems import InvalidFilesError, Problem, name_hint
from dmlconf.documents.reader import Document
from dmlconf.documents.schema import checked_document
from dmlconf.documents.store import Entries
from dmlconf.excuses.condition_problems import condition_problems, operator_problems
from dmlconf.excuses.scope import Scope, VersionRange, parse_version, unknown_names
from dmlconf.excuses.waivers import Bound, Devices, Waiver
from dmlconf.expressions import Expression
from dmlconf.resources import cases_directory
from dmlconf.verdicts.verdict import ReasonKind

__all__ = ["NO_LINK", "REJECTIONS", "UNEXPLAINED", "WaiverFile", "read_waivers"]

NO_LINK: Final = "none yet"
"""The link of a waiver whose failure is not tracked yet."""

UNEXPLAINED: Final = "TODO: say why these cases fail."
"""The beginning of the reason in a draft, which a person must replace."""

REJECTIONS: Final = (ReasonKind.REJECTED_SUPPORTED, ReasonKind.WRONG_REJECTION)
"""The kinds of failure for which a waiver may name an HRESULT."""

_MOST_PATTERNS: Final = 1000
"""The most patterns in a file; each case may be compared with them all."""


@dataclass(frozen=True, slots=True)
class WaiverFile:
    """A file of waivers."""

    document: Document
    waivers: tuple[Waiver, ...]

    def require_cases(self, paths: Sequence[Path], store: Entries | None) -> None:
        """Raise an error if waivers name cases that neither the paths nor the bundled suite have.

        Args:
            paths: files and folders of cases.
            store: keeps checked files, so that the suite is read quickly.

        Raises:
            InvalidFilesError: with a problem for each unknown name, or with those of an invalid
                case file.
        """
        patterns = {
            name: ("waivers", number, "cases", index)
            for number, data in enumerate(self.document.data["waivers"])
            for index, name in enumerate(data.get("cases", ()))
        }
        suites = [suite for suite in ([*paths], [cases_directory()]) if suite]
        unknown = list(patterns)
        for suite in suites:
            unknown = unknown_names(unknown, _identifiers(suite, unknown, store))
        if unknown:
            exact = [name for name in unknown if not is_pattern(name)]
            near = [
                name for suite in suites for name in _identifiers(suite, exact, store, others=True)
            ]
            raise InvalidFilesError(
                [_unknown(self.document, patterns[n], n, near) for n in unknown]
            )


def _identifiers(
    paths: Sequence[Path], names: Iterable[str], store: Entries | None, *, others: bool = False
) -> list[str]:
    """Return the identifiers in the files that may have cases of these names.

    Args:
        others: return those in the other files of their operators, too.
    """
    sought = [name for name in names if _may_exist(name)]
    if not sought:
        return []
    operators, files = scope_of(sought)
    suite = load_suite(paths, operators=operators, files=() if others else files, store=store)
    return [case.identifier for case in suite.plan()]


def _may_exist(name: str) -> bool:
    """Return whether a name or pattern begins with an operator, as each identifier does."""
    first, slash, _ = name.partition("/")
    if is_pattern(first):
        return True
    try:
        operator_name(first)
    except UnknownOperatorError:
        return False
    return bool(slash)


def _unknown(
    document: Document, where: tuple[str | int, ...], name: str, known: Sequence[str]
) -> Problem:
    if is_pattern(name):
        return document.problem(where, f"no case matches {name}", "`dmlconf list` names the cases")
    names = [*known, *{identifier.partition("[")[0] for identifier in known}]
    hint = name_hint(name, names, "`dmlconf list` names the cases")
    return document.problem(where, f"there is no case {name}", hint)


def read_waivers(path: Path) -> WaiverFile:
    """Read a file of waivers.

    Raises:
        InvalidFilesError: the file cannot be read, does not fit its schema, or has problems such
            as unknown names.
    """
    document = checked_document(path, "waivers", _problems)
    lines = document.item_lines["waivers"]
    return WaiverFile(
        document,
        tuple(
            _waiver(data, Location(path, line))
            for data, line in zip(document.data["waivers"], lines, strict=True)
        ),
    )


def _problems(document: Document) -> Iterator[Problem]:
    patterns = sum(map(_patterns, document.data["waivers"]))
    if patterns > _MOST_PATTERNS:
        message = f"{patterns:,} patterns with * or ?; at most {_MOST_PATTERNS:,}"
        yield document.problem(("waivers",), message, "name the cases, or use wider patterns")
    yield from document.repeated_names("waivers")
    for index, data in enumerate(document.data["waivers"]):
        where = ("waivers", index)
        if data["reason"].startswith(UNEXPLAINED):
            message = f"{data['name']} excuses failures for no reason yet"
            hint = "write why these cases fail in place of the TODO"
            yield document.problem((*where, "reason"), message, hint)
        try:
            date.fromisoformat(data["until"])
        except ValueError:
            yield document.problem((*where, "until"), f"{data['until']} is not a date")
        operators, cases = data.get("operators", ()), data.get("cases", ())
        yield from operator_problems(document, (*where, "operators"), operators)
        if "where" in data:
            condition = data["where"]
            yield from condition_problems(document, (*where, "where"), condition, operators, cases)
        for key in ("drivers", "directml"):
            versions = _range(data.get("devices", {}).get(key, {}))
            if versions.first and not VersionRange(last=versions.last).holds(versions.first):
                written = data["devices"][key]
                message = f"{written['first']} is newer than {written['last']}"
                yield document.problem((*where, "devices", key), message)


def _patterns(data: Mapping[str, Any]) -> int:
    names = data.get("cases", ()), data.get("devices", {}).get("adapters", ())
    return sum(is_pattern(name) for each in names for name in each)


def _waiver(data: Mapping[str, Any], location: Location) -> Waiver:
    devices = data.get("devices", {})
    operators = data.get("operators")
    return Waiver(
        name=data["name"],
        reason=" ".join(data["reason"].split()),
        link=data["link"],
        until=date.fromisoformat(data["until"]),
        scope=Scope(
            operators=None if operators is None else frozenset(map(operator_name, operators)),
            cases=frozenset(data["cases"]) if "cases" in data else None,
            where=Expression(data["where"]) if "where" in data else None,
        ),
        failure=ReasonKind(data["failure"]),
        rejection=data.get("rejection"),
        bound=Bound(**data.get("bound", {})),
        devices=Devices(
            adapters=tuple(devices.get("adapters", ())),
            drivers=_range(devices["drivers"]) if "drivers" in devices else None,
            directml=_range(devices["directml"]) if "directml" in devices else None,
        ),
        intermittent=data.get("intermittent", False),
        location=location,
    )


def _range(data: Mapping[str, str]) -> VersionRange:
    first, last = (parse_version(data[end]) if end in data else None for end in ("first", "last"))
    return VersionRange(first, last)
