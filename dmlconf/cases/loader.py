"""Load suites: find case files, check them, and plan their cases."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.build import build
from dmlconf.cases.errors import CaseError
from dmlconf.cases.matrix import expand
from dmlconf.cases.model import About, Case, CaseTemplate, ExpectedRejection, Location, PlannedCase
from dmlconf.cases.schema import case_checker, desc_checker, entry_checker
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.model import Operator
from dmlconf.documents.files import UnreadableFileError, read_bytes
from dmlconf.documents.problems import InvalidFilesError, Problem
from dmlconf.documents.reader import LARGEST_FILE_BYTES, Document, read_document
from dmlconf.documents.schema import schema_problems

__all__ = ["Suite", "case_files", "case_problems", "load_suite", "require_valid", "valid_case"]


@dataclass(frozen=True, slots=True)
class Suite:
    """All cases found under the given paths.

    Attributes:
        templates: the entries of the case files, in the order of the files.
        digest: SHA-256 of all case files, in hexadecimal.
    """

    templates: tuple[CaseTemplate, ...]
    digest: str

    def plan(self) -> Iterator[PlannedCase]:
        """Yield all cases, with matrices expanded.

        Raises:
            InvalidFilesError: a matrix cannot be expanded.
        """
        for template in self.templates:
            try:
                yield from expand(template)
            except CaseError as error:
                raise InvalidFilesError(case_problems(template, error)) from error


def case_problems(template: CaseTemplate, error: CaseError) -> list[Problem]:
    """Return what is wrong with a template's case, pointing at the places in its file."""
    return _problems(read_document(template.about.location.path), template.index, error)


def _problems(document: Document, index: int, error: CaseError) -> list[Problem]:
    return [
        document.problem(("cases", index, *fault.where), fault.message, fault.hint)
        for fault in error.all()
    ]


def case_files(paths: Iterable[Path]) -> list[Path]:
    """Return the case files under the paths, in the order of the paths and then by name.

    Raises:
        InvalidFilesError: a path is not there, or a folder holds no case file.
    """
    found: list[Path] = []
    problems = []
    for path in paths:
        try:
            inside = _files_under(path)
        except OSError as error:  # Such as a name that is too long.
            problems.append(Problem(path, f"cannot be read: {error.strerror}"))
            continue
        if inside is None:
            problems.append(Problem(path, "there is no such file or folder"))
        elif not inside:
            hint = "case files end in .yaml"
            problems.append(Problem(path, "the folder holds no case file", hint=hint))
        found += inside or ()
    if problems:
        raise InvalidFilesError(problems)
    return list(dict.fromkeys(found))


def _files_under(path: Path) -> list[Path] | None:
    """Return the case files of a folder, or a file itself; None where there is neither."""
    if not path.is_dir():
        return [path] if path.exists() else None
    return sorted(
        file for file in path.rglob("*") if file.suffix in (".yaml", ".yml") and not file.is_dir()
    )


def load_suite(
    paths: Sequence[Path],
    *,
    every_case: bool = False,
    operators: Collection[str] = (),
    files: Collection[tuple[str, str]] = (),
) -> Suite:
    """Load the case files under the paths.

    Every file is checked against the schemas. Single cases are built, and of a matrix the first
    one, so that what cannot be built is known before anything runs. Reading a large suite takes
    time, so files that no wanted case can be in may be passed over.

    Args:
        paths: files and folders.
        every_case: build all cases of every matrix as well.
        operators: read files of these operators only; all where there are none.
        files: read files of these operators and names (without ending) only; likewise.

    Raises:
        InvalidFilesError: with every problem of every file.
    """
    templates: list[CaseTemplate] = []
    problems: list[Problem] = []
    digest = sha256()
    for path in case_files(paths):
        content = _content(path)
        name = f"{path.parent.name}/{path.name}\0".encode("utf-8", "surrogateescape")
        digest.update(name + content + b"\0")
        if not _wanted(path, content, operators, files):
            continue
        try:
            document = read_document(path)
            loaded = _templates(document)
        except InvalidFilesError as error:
            problems += error.problems
            continue
        problems += _unbuildable(document, loaded, every_case)
        templates += loaded
    problems += _repeated(templates)
    if problems:
        raise InvalidFilesError(problems)
    return Suite(tuple(templates), digest.hexdigest())


_OPERATOR_LINE: Final = re.compile(rb"^operator:[ \t]*['\"]?(\w+)", re.MULTILINE)


def _content(path: Path) -> bytes:
    """Return a file's bytes; nothing of one that reading it as a document will refuse."""
    try:
        return read_bytes(path, LARGEST_FILE_BYTES)
    except UnreadableFileError:
        return b""


def _wanted(
    path: Path, content: bytes, operators: Collection[str], files: Collection[tuple[str, str]]
) -> bool:
    """Tell whether a file may hold a wanted case, from its name and the line of its operator."""
    if not operators and not files:
        return True
    line = _OPERATOR_LINE.search(content)
    if line is None:
        return True
    try:
        name = catalogue.operator_name(line[1].decode())
    except LookupError:
        return True
    if operators and name not in operators:
        return False
    return not files or (name, path.stem) in files


def _templates(document: Document) -> list[CaseTemplate]:
    """Return the file's entries, each of which fits the schemas.

    Raises:
        InvalidFilesError: some entry does not; the others are built, to tell of their faults too.
    """
    problems = schema_problems(document, case_checker(), document.data)
    operator = _operator(document, problems)
    problems += _page_problems(document, operator)
    sound: list[CaseTemplate] = []
    for index, entry in enumerate(_entries(document.data) if operator is not None else ()):
        assert operator is not None
        faults = _entry_problems(document, operator, index, entry)
        problems += faults
        if not faults and (not problems or entry_checker().is_valid(entry)):
            line = document.item_lines["cases"][index]
            sound.append(_template(document, operator, index, entry, line))
    if problems:
        problems += _unbuildable(document, sound, every_case=False)
        raise InvalidFilesError(sorted(problems, key=lambda found: (found.line, found.column)))
    return sound


def _entry_problems(
    document: Document, operator: Operator, index: int, entry: Mapping[str, Any]
) -> list[Problem]:
    checker = desc_checker(operator.name, matrix="matrix" in entry)
    problems = schema_problems(document, checker, entry, ("cases", index))
    if "matrix" not in entry and ("let" in entry or "where" in entry):
        problems.append(document.problem(("cases", index), "`let` and `where` need a `matrix`"))
    return problems


def _operator(document: Document, problems: list[Problem]) -> Operator | None:
    name = document.data.get("operator") if isinstance(document.data, Mapping) else None
    if not isinstance(name, str):
        return None
    try:
        return catalogue.operator(name)
    except catalogue.UnknownOperatorError as error:
        hint = f"did you mean {error.suggestion}?" if error.suggestion else None
        message = f"the catalogue has no operator {name}"
        problems.append(document.problem(("operator",), message, hint))
        return None


def _page_problems(document: Document, operator: Operator | None) -> Iterator[Problem]:
    """Yield what is wrong with the page; that of another operator may have examples of this one."""
    if operator is None:
        return
    page = document.data.get("page", operator.page)
    if isinstance(page, str) and page != operator.page and not catalogue.is_page(page):
        hint = f"{operator.page} describes {operator.name}"
        yield document.problem(("page",), f"there is no page {page}", hint)


def _entries(data: Any) -> list[Mapping[str, Any]]:
    """Return the entries that are mappings; the schema has told of all others."""
    cases = data.get("cases") if isinstance(data, Mapping) else None
    entries = cases if isinstance(cases, list) else []
    return [entry if isinstance(entry, Mapping) else {} for entry in entries]


def _template(
    document: Document, operator: Operator, index: int, entry: Mapping[str, Any], line: int
) -> CaseTemplate:
    stem = document.path.stem
    name = entry.get("name", stem)
    identifier = f"{operator.name.lower()}/{stem}"
    example = entry.get("example")
    return CaseTemplate(
        identifier=identifier if name == stem else f"{identifier}/{name}",
        operator_name=operator.name,
        index=index,
        data=entry,
        tags=tuple(dict.fromkeys([stem, *document.data.get("tags", ()), *entry.get("tags", ())])),
        about=About(
            location=Location(document.path, line),
            page=document.data.get("page", operator.page),
            example=None if example is None else str(example),
            note=entry.get("note"),
            recorded=entry.get("recorded"),
            documented=entry.get("documented"),
            origin=entry.get("origin"),
        ),
    )


def _unbuildable(
    document: Document, templates: Iterable[CaseTemplate], every_case: bool
) -> Iterator[Problem]:
    for template in templates:
        try:
            for planned in expand(template):
                case = build(planned)
                if not every_case:
                    break
                _check_constraints(case)
        except CaseError as error:
            yield from _problems(document, template.index, error)


def require_valid(plan: Iterable[PlannedCase]) -> None:
    """Refuse a plan if the first case of a template is one that `valid_case` refuses.

    Raises:
        InvalidFilesError: with the problem of each such template.
    """
    problems: list[Problem] = []
    seen: set[CaseTemplate] = set()
    for planned in plan:
        if planned.template in seen:
            continue
        seen.add(planned.template)
        try:
            valid_case(planned)
        except InvalidFilesError as error:
            problems += error.problems
    if problems:
        raise InvalidFilesError(problems)


def valid_case(planned: PlannedCase) -> Case:
    """Return the planned case.

    Raises:
        InvalidFilesError: it is a case of a matrix that cannot be built, or every backend must
            reject it, and it does not say so.
    """
    try:
        case = build(planned)
        _check_constraints(case)
    except CaseError as error:
        raise InvalidFilesError(case_problems(planned.template, error)) from error
    return case


def _check_constraints(case: Case) -> None:
    """Raise `CaseError` for a case that every backend must reject and that does not say so."""
    if isinstance(case.expectation, ExpectedRejection):
        return
    broken = case.violations()
    if broken:
        hint = "if that is what the case is for, write `expect: {rejected: E_INVALIDARG}`"
        message = f"{case.identifier} breaks {', '.join(broken)}, but expects no rejection"
        raise CaseError((), message, hint)


def _repeated(templates: Iterable[CaseTemplate]) -> Iterator[Problem]:
    first: dict[str, CaseTemplate] = {}
    for template in templates:
        other = first.setdefault(template.identifier, template)
        if other is not template:
            message = f"{template.identifier} also names the case at {other.about.location}"
            error = CaseError((), message, "give each case its own `name`")
            yield from case_problems(template, error)
