"""Decide without parsing a case file whether it may hold a wanted case."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.graph import GRAPHS

__all__ = ["may_hold", "shared_operators"]

_OPERATOR_LINE: Final = re.compile(rb"operator:[ \t]*['\"]?(\w+)")
_OPERATORS_LINE: Final = re.compile(rb"operators:[ \t]*\[([^\]#]*)\]")


def may_hold(
    path: Path, content: bytes, operators: Collection[str], files: Collection[tuple[str, str]]
) -> bool:
    """Return whether a file may hold a wanted case.

    Args:
        operators: the wanted operators; empty for all.
        files: the wanted files, each by operator and name without extension; empty for all.
    """
    if not operators and not files:
        return True
    # Nearly every file has `operator:`, and then no `operators:`.
    line = _first_line(_OPERATOR_LINE, content, b"operator:")
    if line is None:
        several = shared_operators(content)
        if several is not None:
            wanted = several.intersection(operators) if operators else several
            own = any((name, path.stem) in files for name in wanted)
            return bool(wanted) and (not files or own)
        return not _has_line(content, b"graph:") or _wanted_graphs(path, content, operators, files)
    try:
        name = catalogue.operator_name(line[1].decode())
    except LookupError:
        return True
    if operators and name not in operators:
        return False
    return not files or (name, path.stem) in files


def shared_operators(content: bytes) -> frozenset[str] | None:
    """Return the operators that a shared file may name; None for a file that is not shared."""
    if not _has_line(content, b"operators:"):
        return None
    line = _first_line(_OPERATORS_LINE, content, b"operators:")
    try:
        names = re.findall(r"\w+", line[1].decode()) if line else catalogue.case_folders()
        return frozenset(map(catalogue.operator_name, names))
    except (LookupError, UnicodeDecodeError):
        return frozenset(catalogue.case_folders())  # Reading the file says what is wrong.


def _first_line(pattern: re.Pattern[bytes], content: bytes, key: bytes) -> re.Match[bytes] | None:
    matches = (pattern.match(content, begin) for begin in _line_begins(content, key))
    return next(filter(None, matches), None)


def _line_begins(content: bytes, key: bytes) -> Iterator[int]:
    """Yield the offsets of the lines that begin with a key, faster than a regular expression."""
    if content.startswith(key):
        yield 0
    before = content.find(b"\n" + key)
    while before >= 0:
        yield before + 1
        before = content.find(b"\n" + key, before + 1)


def _has_line(content: bytes, key: bytes) -> bool:
    return content.startswith(key) or b"\n" + key in content


def _wanted_graphs(
    path: Path, content: bytes, operators: Collection[str], files: Collection[tuple[str, str]]
) -> bool:
    if operators and GRAPHS not in operators:
        entries = map(catalogue.operator, operators)
        names = (name for entry in entries for name in (entry.name, *entry.aliases))
        if not any(name.encode() in content for name in names):
            return False
    return not files or (GRAPHS, path.stem) in files
