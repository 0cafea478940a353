"""Load suites: check their case files, plan their cases, and build a planned case."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.building.build import build
from dmlconf.cases.errors import CaseError
from dmlconf.cases.loading.discovery import case_files, distinct
from dmlconf.cases.loading.expansion import Expansion
from dmlconf.cases.loading.matrix import MatrixBudget, expand
from dmlconf.cases.loading.planned import of_each_template
from dmlconf.cases.loading.schema import (
    case_checker,
    desc_checker,
    entry_checker,
    graph_entry_checker,
)
from dmlconf.cases.loading.scope import may_hold
from dmlconf.cases.loading.shared import (
    entry_problems,
    entry_uses,
    in_order,
    is_shared,
    named_operators,
    page_of,
    shared_files,
    uses,
)
from dmlconf.cases.loading.validated import CheckedFile, Validated, is_valid
from dmlconf.cases.model import About, Case, CaseTemplate, Location, PlannedCase
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.model import Entry
from dmlconf.documents.files import UnreadableFileError, read_bytes
from dmlconf.documents.problems import InvalidFilesError, Problem
from dmlconf.documents.reader import Document, read_document
from dmlconf.documents.schema import Checker, schema_problems
from dmlconf.documents.store import Entries
from dmlconf.limits import LARGEST_DOCUMENT

__all__ = ["Suite", "built_case", "case_problems", "load_suite", "require_valid", "valid_case"]


@dataclass(frozen=True, slots=True)
class Suite:
    """The cases found under some paths: all wanted ones, and perhaps others.

    Attributes:
        digest: SHA-256 of the folder, name and content of every case file, in hexadecimal.
        expansions: matrices that are already expanded, by template.
        valid: templates whose first case is known to be valid (`is_valid`).
        challenge: as for `load_suite`.
    """

    templates: tuple[CaseTemplate, ...]
    digest: str
    expansions: Mapping[CaseTemplate, Expansion] = field(default_factory=dict)
    valid: frozenset[CaseTemplate] = frozenset()
    challenge: int | None = None

    def plan(self) -> Iterator[PlannedCase]:
        """Yield all cases, with matrices expanded.

        Raises:
            InvalidFilesError: a matrix cannot be expanded.
        """
        for template in self.templates:
            if template in self.expansions:
                yield from self.expansions[template].cases(template)
                continue
            try:
                yield from expand(template)
            except CaseError as error:
                raise InvalidFilesError(case_problems(template, error)) from error


def case_problems(template: CaseTemplate, error: CaseError) -> list[Problem]:
    """Return the errors of a template's case as problems, each with its location."""
    return _problems(read_document(template.about.location.path), template.index, error)


def _problems(document: Document, index: int, error: CaseError) -> list[Problem]:
    return [
        document.problem(("cases", index, *each.where), each.message, each.hint)
        for each in error.all()
    ]


def load_suite(
    paths: Sequence[Path],
    *,
    every_case: bool = False,
    known: Callable[[Path, bytes], bool] = lambda path, content: False,
    operators: Collection[str] = (),
    files: Collection[tuple[str, str]] = (),
    store: Entries | None = None,
    challenge: int | None = None,
) -> Suite:
    """Load the case files under the paths, and the shared files that the paths select.

    The folder `cases/gather`, for example, also selects GATHER's cases in `cases/shared`.

    Files are checked against the schemas; single cases and the first case of each matrix are built.
    Files that cannot hold a wanted case are not parsed.

    Args:
        every_case: build the other cases of matrices too, and check the constraints of all cases;
            not in files that are `known`.
        known: returns whether all cases of a file (its path and bytes) are known to be valid.
        operators: the wanted operators; empty for all.
        files: the wanted files, each by operator and name without extension; empty for all.
        store: keeps checked files, which are then not checked again; not used where `every_case`
            applies.
        challenge: changes the seeds and shifts of generated data; a number from 0 to 2**64 - 1.
            Cases that a page gives or that state outputs keep their data.

    Raises:
        InvalidFilesError: a path or a file has problems.
    """
    validated = None if store is None else Validated(store)
    checked: list[CheckedFile] = []
    problems: list[Problem] = []
    digest = sha256()
    shared = shared_files(paths)
    of_paths = case_files(paths, elsewhere=[path for path in paths if shared_files([path])])
    # Of shared files that are not under the paths, only the cases of selected operators are loaded.
    narrowed = set(shared).difference(of_paths) if shared else set()
    for path in distinct([*of_paths, *shared]) if shared else of_paths:
        content = _content(path)
        name = f"{path.parent.name}/{path.name}\0".encode("utf-8", "surrogateescape")
        digest.update(name)
        digest.update(content)
        digest.update(b"\0")
        if not may_hold(path, content, operators, files):
            continue
        try:
            every = every_case and not known(path, content)
            file = _checked(path, content, None if every else validated, every)
        except InvalidFilesError as error:
            problems += error.problems
            continue
        if path in narrowed:
            file = file.only(shared[path])
        checked.append(file.only(operators) if operators else file)
    if validated is not None:
        validated.close()
    templates = in_order(template for file in checked for template in file.templates)
    problems += _repeated(templates)
    if problems:
        raise InvalidFilesError(problems)
    expansions = {t: expansion for file in checked for t, expansion in file.expansions.items()}
    valid = frozenset(template for file in checked for template in file.valid)
    if challenge is not None:
        changed = {template: replace(template, challenge=challenge) for template in templates}
        templates = tuple(changed.values())
        expansions = {changed[template]: expansion for template, expansion in expansions.items()}
        valid = frozenset(changed[template] for template in valid)
    return Suite(templates, digest.hexdigest(), expansions, valid, challenge)


def _checked(
    path: Path, content: bytes, validated: Validated | None, every_case: bool
) -> CheckedFile:
    """Return a file's entries, from `validated` if it has them, else checked now."""
    stored = None if validated is None else validated.get(content)
    if stored is not None:
        return stored.checked(
            [
                _template(path, stored.data, operator, index, line)
                for (operator, index), line in zip(uses(stored.data), stored.lines, strict=True)
            ]
        )
    document = read_document(path)
    templates = _templates(document)
    first_cases: list[Case] = []
    problems = list(_unbuildable(document, templates, every_case, first_cases))
    if problems:
        raise InvalidFilesError(problems)
    # The file may have changed between two reads.
    if validated is None or _content(path) != content:
        return CheckedFile(tuple(templates))
    return validated.put(content, document.data, templates, first_cases)


def _content(path: Path) -> bytes:
    """Return a file's bytes; none if it cannot be read, which `read_document` then reports."""
    try:
        return read_bytes(path, LARGEST_DOCUMENT)
    except UnreadableFileError:
        return b""


def _templates(document: Document) -> list[CaseTemplate]:
    """Return the file's entries.

    Raises:
        InvalidFilesError: something does not fit the schemas or the catalogue. The errors of
            building the other entries are reported too.
    """
    problems = schema_problems(document, case_checker(), document.data)
    operators = {operator.name: operator for operator in _operators(document, problems)}
    problems += _page_problems(document, next(iter(operators.values()), None))
    entries, kind = _entries(document.data), _kind(document.data)
    problems += entry_problems(document, entries, operators)
    sound: list[CaseTemplate] = []
    for name, index in entry_uses(entries, operators):
        operator, entry = operators[name], entries[index]
        own = [
            *kind.problems(document, operator, index, entry),
            *_matrix_problems(document, index, entry),
        ]
        problems += own
        if not own and (not problems or kind.checker().is_valid(entry)):
            line = document.item_lines["cases"][index]
            sound.append(_template(document.path, document.data, operator.name, index, line))
        else:
            problems += kind.further_problems(document, index, entry)
    if problems:
        problems += _unbuildable(document, sound, every_case=False, first_cases=[])
        raise InvalidFilesError(
            sorted(problems, key=lambda problem: (problem.line, problem.column))
        )
    return sound


def _file_tags(data: Mapping[str, Any]) -> list[str]:
    tags = data.get("tags", [])
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


@dataclass(frozen=True, slots=True)
class _Kind:
    """How the entries of a file are checked: the cases of operators, or graphs.

    Attributes:
        checker: returns the checker of an entry, except its descs.
        problems: returns the problems with an entry's descs and, for an operator, with its expected
            outputs.
        further_problems: returns further problems of an entry that cannot be built.
        tags: the tags of every case, in addition to the file's.
    """

    checker: Callable[[], Checker]
    problems: Callable[[Document, Entry, int, Mapping[str, Any]], Iterable[Problem]]
    further_problems: Callable[[Document, int, Mapping[str, Any]], Iterable[Problem]]
    tags: tuple[str, ...] = ()


def _desc_problems(
    document: Document, operator: Entry, index: int, entry: Mapping[str, Any]
) -> list[Problem]:
    checker = desc_checker(operator.name, matrix="matrix" in entry)
    return schema_problems(document, checker, entry, ("cases", index))


def _node_problems(
    document: Document, operator: Entry, index: int, entry: Mapping[str, Any]
) -> Iterable[Problem]:
    from dmlconf.cases.loading.graph_problems import node_problems  # Not needed if cached.

    return node_problems(document, index, entry)


def _relation_problems(
    document: Document, index: int, entry: Mapping[str, Any]
) -> Iterable[Problem]:
    from dmlconf.cases.loading.graph_problems import relation_problems

    return relation_problems(document, index, entry)


_OF_OPERATORS: Final = _Kind(entry_checker, _desc_problems, lambda document, index, entry: ())
_OF_GRAPHS: Final = _Kind(
    graph_entry_checker,
    _node_problems,
    _relation_problems,
    ("graph",),
)


def _kind(data: Any) -> _Kind:
    """Return the kind of a file's entries: a file of graphs has the key `graph`."""
    return _OF_GRAPHS if isinstance(data, Mapping) and "graph" in data else _OF_OPERATORS


def _matrix_problems(document: Document, index: int, entry: Mapping[str, Any]) -> Iterator[Problem]:
    if "matrix" not in entry and ("let" in entry or "where" in entry):
        yield document.problem(("cases", index), "`let` and `where` need a `matrix`")


def _operators(document: Document, problems: list[Problem]) -> Iterator[Entry]:
    """Yield the file's known operators; add a problem for each unknown one."""
    if not isinstance(document.data, Mapping):
        return
    if _kind(document.data) is _OF_GRAPHS:
        yield catalogue.entry_of(GRAPHS)
        return
    for where, name in named_operators(document.data):
        try:
            yield catalogue.operator(name)
        except catalogue.UnknownOperatorError as error:
            problems.append(document.problem(where, error.message, error.hint))


def _page_problems(document: Document, operator: Entry | None) -> Iterator[Problem]:
    if operator is None:
        return
    page = document.data.get("page", operator.page)
    if isinstance(page, str) and page != operator.page and not catalogue.is_page(page):
        hint = f"{operator.page} describes {operator.name}"
        yield document.problem(("page",), f"there is no page {page}", hint)


def _entries(data: Any) -> list[Mapping[str, Any]]:
    """Return the entries; `{}` for one that is no mapping."""
    cases = data.get("cases") if isinstance(data, Mapping) else None
    entries = cases if isinstance(cases, list) else []
    return [entry if isinstance(entry, Mapping) else {} for entry in entries]


def _template(
    path: Path,
    data: Mapping[str, Any],
    operator: str,
    index: int,
    line: int,
) -> CaseTemplate:
    stem = path.stem
    entry = data["cases"][index]
    shared = is_shared(data)
    if shared:
        entry = {key: value for key, value in entry.items() if key != "operators"}
    name = entry.get("name", stem)
    identifier = f"{operator.lower()}/{stem}"
    example = entry.get("example")
    return CaseTemplate(
        identifier=identifier if name == stem else f"{identifier}/{name}",
        operator_name=operator,
        index=index,
        data=entry,
        tags=tuple(
            dict.fromkeys(
                [
                    stem,
                    *_kind(data).tags,
                    *_file_tags(data),
                    *entry.get("tags", ()),
                ]
            )
        ),
        about=About(
            location=Location(path, line),
            page=page_of(data, operator),
            example=None if example is None else str(example),
            note=entry.get("note"),
            recorded=entry.get("recorded"),
            documented=entry.get("documented"),
            origin=entry.get("origin"),
        ),
        shared=shared,
    )


def _unbuildable(
    document: Document,
    templates: Iterable[CaseTemplate],
    every_case: bool,
    first_cases: list[Case],
) -> Iterator[Problem]:
    """Yield the problems of each template's first case, and add that case to `first_cases`.

    With `every_case`, build each template's cases until one has problems, and add none.
    """
    from dmlconf.cases.loading.rewrites import case_rewrite, rewritten  # Not needed if cached.

    budget = MatrixBudget()
    for template in templates:
        try:
            for planned in expand(template, budget):
                case = build(planned)
                if case_rewrite(template) is not None:
                    rewritten(planned)
                if not every_case:
                    first_cases.append(case)
                    break
                _check_constraints(case)
        except CaseError as error:
            yield from _problems(document, template.index, error)


def require_valid(suite: Suite, plan: Iterable[PlannedCase]) -> None:
    """Raise `InvalidFilesError` if `valid_case` refuses a template's first case in the plan."""
    problems: list[Problem] = []
    templates: set[CaseTemplate] = set()
    for planned in of_each_template(plan):
        if planned.template in templates:
            continue
        templates.add(planned.template)
        if planned.template in suite.valid and _is_first(suite, planned):
            continue
        try:
            valid_case(planned)
        except InvalidFilesError as error:
            problems += error.problems
    if problems:
        raise InvalidFilesError(problems)


def _is_first(suite: Suite, planned: PlannedCase) -> bool:
    expansion = suite.expansions.get(planned.template)
    return expansion is None or planned.parameters == expansion.parameters(0)


def built_case(planned: PlannedCase) -> Case:
    """Build the planned case, which may break constraints.

    Raises:
        InvalidFilesError: the case cannot be built.
    """
    try:
        return build(planned)
    except CaseError as error:
        raise InvalidFilesError(case_problems(planned.template, error)) from error


def valid_case(planned: PlannedCase, recall: Callable[[Case], None] = lambda case: None) -> Case:
    """Build the planned case, and check its constraints.

    Args:
        recall: called with the built case before its constraints are checked. It may give the case
            what an earlier run derived from it (`Case.recall`), such as that it breaks none.

    Raises:
        InvalidFilesError: the case cannot be built, or it breaks enforced constraints and expects
            no rejection.
    """
    try:
        case = build(planned)
        recall(case)
        _check_constraints(case)
    except CaseError as error:
        raise InvalidFilesError(case_problems(planned.template, error)) from error
    return case


def _check_constraints(case: Case) -> None:
    if not is_valid(case):
        raise case.constraint_error()


def _repeated(templates: Iterable[CaseTemplate]) -> Iterator[Problem]:
    first: dict[str, CaseTemplate] = {}
    for template in templates:
        other = first.setdefault(template.identifier, template)
        if other is not template:
            message = f"{template.identifier} also names the case at {other.about.location}"
            error = CaseError((), message, "give each case its own `name`")
            yield from case_problems(template, error)
