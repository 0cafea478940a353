"""Case files that several operators share.

The folder `SUITE/shared` is beside the folders of the operators, such as `SUITE/element_wise_add`.
A file such as `SUITE/shared/GROUP/invalid.yaml` names operators. Each of its entries counts as if
it stood in `SUITE/OPERATOR/invalid.yaml` of these operators, or only of those that the entry names.
The path of an operator's folder or file also selects the operator's shared cases.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.loading.discovery import files_under
from dmlconf.cases.loading.scope import shared_operators
from dmlconf.cases.model import CaseTemplate
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.documents.files import UnreadableFileError, is_folder, read_bytes, resolved
from dmlconf.documents.problems import InvalidFilesError, Problem
from dmlconf.documents.reader import Document
from dmlconf.limits import LARGEST_DOCUMENT

__all__ = [
    "KNOWN_PAGES",
    "SHARED",
    "entry_problems",
    "entry_uses",
    "in_order",
    "is_shared",
    "named_operators",
    "page_of",
    "shared_files",
    "uses",
]

KNOWN_PAGES: Final = "known_pages"
"""The key in a cached case file that holds the page of each operator."""

SHARED: Final = "shared"
"""The name of the folder of shared files."""


def is_shared(data: Any) -> bool:
    """Return whether a case file is for several operators."""
    return isinstance(data, Mapping) and "operators" in data


def uses(data: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the operator's name and the entry's index for each use of an entry by an operator."""
    names = [name for _, name in named_operators(data)] or [GRAPHS]
    return entry_uses(data["cases"], [catalogue.operator_name(name) for name in names])


def entry_uses(
    entries: Sequence[Mapping[str, Any]], operators: Iterable[str]
) -> list[tuple[str, int]]:
    """Return the uses of some entries, as `uses` does for a whole file.

    Args:
        operators: the file's operators, by their names in the catalogue.
    """
    own = [_own_operators(entry) for entry in entries]
    return [
        (operator, index)
        for operator in operators
        for index, only in enumerate(own)
        if not only or operator in only
    ]


def named_operators(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the names of a case file's operators, each with its location in the file."""
    if isinstance(data.get("operator"), str):
        yield ("operator",), data["operator"]
    several = data.get("operators")
    for index, name in enumerate(several if isinstance(several, list) else ()):
        if isinstance(name, str):
            yield ("operators", index), name


def _own_operators(entry: Mapping[str, Any]) -> frozenset[str]:
    """Return the known operators that an entry itself names."""
    names = entry.get("operators")
    operators = set()
    for name in names if isinstance(names, list) else ():
        with suppress(catalogue.UnknownOperatorError):
            operators.add(catalogue.operator_name(str(name)))
    return frozenset(operators)


def entry_problems(
    document: Document, entries: Sequence[Mapping[str, Any]], operators: Collection[str]
) -> Iterator[Problem]:
    """Yield the problems of the `operators` in single entries of a case file."""
    for index, entry in enumerate(entries):
        if "operators" not in entry:
            continue
        where = ("cases", index, "operators")
        if not is_shared(document.data):
            message = "an entry of a file with one operator belongs to that operator"
            hint = "name the operators of a shared file above its cases, under `operators`"
            yield document.problem(where, message, hint)
            continue
        names = entry["operators"]
        for number, name in enumerate(names if isinstance(names, list) else ()):
            if not _own_operators({"operators": [name]}) & {*operators}:
                message = f"{name} is not one of the file's operators"
                yield document.problem((*where, number), message, "add it to those above `cases`")


def page_of(data: Mapping[str, Any], operator: str) -> str:
    """Return the page that a case file names, or else the operator's."""
    known = data.get(KNOWN_PAGES, {}).get(operator)
    return str(data.get("page") or known or catalogue.entry_of(operator).page)


def shared_files(paths: Iterable[Path]) -> dict[Path, frozenset[str]]:
    """Return the shared files that the paths select, each with the selected operators.

    Args:
        paths: folders of operators, such as `cases/gather`, and files in these folders. Other paths
            have no shared files.

    Raises:
        InvalidFilesError: a folder cannot be read.
    """
    files: dict[Path, frozenset[str]] = {}
    names: dict[str, Path] = {}
    for path in paths:
        try:
            for name, operator in _shared_beside(path):
                file = names.setdefault(os.path.realpath(name), name)
                files[file] = files.get(file, frozenset()) | {operator}
        except OSError as error:
            raise InvalidFilesError([Problem(path, f"cannot be read: {error.strerror}")]) from error
    return files


def _shared_beside(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the shared files of an operator's folder or file, and the operator."""
    is_file = path.suffix in (".yaml", ".yml") and not is_folder(path)
    folder = path.parent if is_file else path
    name = (folder.name if folder.name not in ("", "..") else resolved(folder).name).upper()
    if name not in catalogue.case_folders():
        return
    suite = folder.parent if folder.name not in ("", "..") else folder / ".."
    for file in files_under(suite / SHARED) or ():
        if (not is_file or file.name == path.name) and name in _operators_of(file):
            yield file, name


def _operators_of(file: Path) -> frozenset[str]:
    try:
        return shared_operators(read_bytes(file, LARGEST_DOCUMENT)) or frozenset()
    except UnreadableFileError:
        return frozenset()


def in_order(templates: Iterable[CaseTemplate]) -> tuple[CaseTemplate, ...]:
    """Return entries in the order of their files, shared ones among those of their operator.

    Entries of a shared file `invalid.yaml` come where the operator's own `invalid.yaml` would, or
    stay where they are if the operator has no files of its own.
    """
    listed = list(templates)
    own: dict[str, list[tuple[str, int]]] = {}
    for index, template in enumerate(listed):
        if not template.shared:
            own.setdefault(template.operator_name, []).append((template.tags[0], index))

    def key(numbered: tuple[int, CaseTemplate]) -> tuple[float, bool, int]:
        index, template = numbered
        files = own.get(template.operator_name)
        if not template.shared or files is None:
            return index, False, index
        before = bisect_right([kind for kind, _ in files], template.tags[0])
        return files[before - 1][1] if before else files[0][1] - 0.5, True, index

    return tuple(template for _, template in sorted(enumerate(listed), key=key))
