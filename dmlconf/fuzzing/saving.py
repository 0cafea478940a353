"""Write random cases as case files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dmlconf.cases.model import PlannedCase
from dmlconf.cases.writing.document_text import document_text
from dmlconf.documents.whole_files import write_whole

__all__ = ["case_file", "in_folder", "save_cases"]


def in_folder(planned: PlannedCase, folder: Path) -> PlannedCase:
    """Return the case with its file in this folder, where `save_cases` writes it."""
    about = planned.template.about
    location = replace(about.location, path=folder / about.location.path)
    template = replace(planned.template, about=replace(about, location=location))
    return replace(planned, template=template)


def save_cases(cases: Iterable[PlannedCase]) -> list[Path]:
    """Write cases to their files, replacing what is there, and return the files.

    Raises:
        OSError: a file cannot be written.
    """
    by_file: dict[Path, list[PlannedCase]] = {}
    for planned in cases:
        by_file.setdefault(planned.template.about.location.path, []).append(planned)
    for path, members in by_file.items():
        write_whole(path, case_file(members))
    return list(by_file)


def case_file(cases: Iterable[PlannedCase]) -> str:
    """Return the text of a case file with these cases, all of one operator or all of graphs."""
    members = list(cases)
    first = members[0].template
    head = {"operator": first.operator_name}
    if first.is_graph:
        head = {"graph": "made by dmlconf fuzz"}
    tags = list(first.tags[1:])
    entries = [dict(planned.template.data) for planned in members]
    document = {**head, "tags": tags, "cases": entries}
    return document_text(document)
