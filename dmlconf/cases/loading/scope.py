"""Decide from a few lines of a case file whether it may hold a wanted case."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.graph import GRAPHS

__all__ = ["may_hold"]

_OPERATOR_LINE: Final = re.compile(rb"^operator:[ \t]*['\"]?(\w+)", re.MULTILINE)
_GRAPH_LINE: Final = re.compile(rb"^graph:", re.MULTILINE)


def may_hold(
    path: Path, content: bytes, operators: Collection[str], files: Collection[tuple[str, str]]
) -> bool:
    """Return whether a file may hold a wanted case, from its name and the line of its operator.

    Args:
        path: the file.
        content: its bytes.
        operators: the wanted ones; empty for all.
        files: the wanted files, each by operator and name without extension; empty for all.
    """
    if not operators and not files:
        return True
    line = _OPERATOR_LINE.search(content)
    if line is None:
        return not _GRAPH_LINE.search(content) or _wanted_graphs(path, content, operators, files)
    try:
        name = catalogue.operator_name(line[1].decode())
    except LookupError:
        return True
    if operators and name not in operators:
        return False
    return not files or (name, path.stem) in files


def _wanted_graphs(
    path: Path, content: bytes, operators: Collection[str], files: Collection[tuple[str, str]]
) -> bool:
    """Return whether a file of graphs may hold a wanted one: graphs match by their nodes too."""
    if operators and GRAPHS not in operators:
        entries = map(catalogue.operator, operators)
        names = (name for entry in entries for name in (entry.name, *entry.aliases))
        if not any(name.encode() in content for name in names):
            return False
    return not files or (GRAPHS, path.stem) in files
