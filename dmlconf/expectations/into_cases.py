"""Write the outputs of a device into case files as the expectations of the cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.protocol import Breakdown, Declined, Outcome, Rejection
from dmlconf.backends.recording.digest import outputs_problem
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.cases.writing.export import exported_name
from dmlconf.cases.writing.insertion import (
    UnsuitableLayoutError,
    entry_lines,
    is_block,
    with_expectations,
)
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.documents.problems import Problem
from dmlconf.documents.reader import Document, read_document
from dmlconf.judging.contradictions import contradictions_of
from dmlconf.judging.undefined import without_excused_faults
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.tensors.datatypes import Array

__all__ = ["Refusal", "changed_files", "device_name", "expected_of", "unsuitable"]

MOST_LISTED: Final = 256
"""The most elements of an output that is written into the case file; a larger one gets a file.

Members of an array, such as `OutputTensors` of SPLIT, are always written into the case file."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why nothing is written into a case."""

    case: str
    message: str


def unsuitable(plan: Iterable[PlannedCase]) -> Iterator[Problem]:
    """Yield a problem for each reason why outputs cannot be written into an entry.

    An entry that several operators share has only that problem.

    Raises:
        InvalidFilesError: a case file cannot be read any more.
    """
    seen = set()
    for planned in plan:
        data, location = planned.template.data, planned.template.about.location
        if location in seen:
            continue
        seen.add(location)
        document = read_document(location.path)
        if planned.template.shared:
            message = "several operators share the entry, and each gives outputs of its own"
            hint = "record it to a file: `dmlconf record ... -o NAME.dmlrec`"
            yield document.problem(("cases", planned.template.index), message, hint)
            continue
        for key, message, hint in _REFUSED:
            if key in data:
                where = ("cases", planned.template.index, key)
                yield document.problem(where, message, hint, key=True)
        if not is_block(document, planned.template.index):
            message = "the entry is within braces, so no lines can be added to it"
            hint = "write it as lines of its own: name, desc and so on"
            yield document.problem(("cases", planned.template.index), message, hint)


_REFUSED: Final = (
    (
        "matrix",
        "a matrix stands for many cases, so no outputs can be written into it",
        "record it to a file: `dmlconf record ... -o NAME.dmlrec`; or select others, by --case",
    ),
    (
        "expect",
        "the case already states what it expects",
        "remove `expect` (and `recorded`) to record it again; or select others, by --case",
    ),
    ("relation", "a case with a relation has no expected outputs", "select others, by --case"),
    (
        "origin",
        "`origin` says that the expected values are from elsewhere",
        "remove it, as they will be recorded; or select others, by --case",
    ),
)


def device_name(environment: Mapping[str, Any]) -> str:
    """Return the text of a case's field `recorded`, such as `DirectML 1.15.4`.

    Without a version in the environment, the text is the backend's name alone.
    """
    name = str(environment["backend"])
    shown = "DirectML" if name == "directml" else name
    return f"{shown} {environment.get('version') or ''}".strip()


def expected_of(case: Case, outcome: Outcome) -> dict[str, Array] | Refusal:
    """Return the outputs to write into a case, by tensor, or why none can be written.

    Outputs that contradict the reference may be written only if the case disputes it.
    """

    def refused(message: str) -> Refusal:
        return Refusal(case.identifier, message)

    if isinstance(outcome, Declined):
        return refused(outcome.reason)
    if isinstance(outcome, Breakdown):
        return refused(f"{outcome.kind}: {outcome.message}")
    if isinstance(outcome, Rejection):
        by = f"{outcome.stage} refused it with {outcome.hresult}"
        return refused(f"{by}, and the catalogue calls it valid")
    outcome = without_excused_faults(case, outcome)
    if outcome.faults:
        return refused(f"{outcome.faults[0].kind}: {outcome.faults[0].message}")
    wrong = outputs_problem(case, outcome)
    if wrong is not None:
        return refused(wrong)
    allowances = CaseAllowances(case)
    contradiction = next(contradictions_of(case, outcome.arrays, allowances), None)
    if contradiction is not None and case.disputes is None:
        return refused(
            f"{contradiction.message}. If the reference is wrong, add `disputes: reference` "
            "and a note to the case, and record it again"
        )
    return dict(outcome.arrays)


def changed_files(
    recorded: Iterable[tuple[PlannedCase, Mapping[str, Array]]],
    device: str,
    save: Callable[[Path, Array], None],
) -> Iterator[tuple[Path, str] | Refusal]:
    """Yield the path and the new text of each case file that has recorded cases.

    If no lines can be inserted into a file, or a recorded case was changed there after it was
    loaded, yield a refusal for each of the file's recorded cases.

    Args:
        device: the text that `device_name` returns.
        save: writes a large array to the given path; called before the case file's text is yielded.

    Raises:
        InvalidFilesError: a case file cannot be read any more.
    """
    by_file: dict[Path, _Additions] = {}
    names = _FileNames()
    for planned, outputs in recorded:
        path = planned.template.about.location.path
        additions = by_file.setdefault(path, _Additions())
        additions.cases.append(planned)
        additions.lines[planned.template.index] = entry_lines(
            device, _by_field(planned, path, outputs, additions, names)
        )
    for path, additions in by_file.items():
        document: Document = read_document(path)
        if not all(_is_in(document, planned) for planned in additions.cases):
            for planned in additions.cases:
                yield Refusal(planned.identifier, f"{path} was changed while the cases ran")
            continue
        try:
            text = with_expectations(document, additions.lines)
        except UnsuitableLayoutError as error:
            lines = "; ".join(line.strip() for each in additions.lines.values() for line in each)
            for planned in additions.cases:
                yield Refusal(planned.identifier, f"{path}: {error}. It would be: {lines}")
            continue
        for name, array in additions.arrays.items():
            save(path.parent / name, array)
        yield path, text


def _is_in(document: Document, planned: PlannedCase) -> bool:
    """Return whether a file still has a case's entry at its place."""
    try:
        entry = document.data["cases"][planned.template.index]
    except (LookupError, TypeError):
        return False
    return repr(entry) == repr(planned.template.data)  # NaN differs from itself.


@dataclass(slots=True)
class _Additions:
    """Additions to one case file: lines by entry, and large arrays by the name of their file."""

    cases: list[PlannedCase] = field(default_factory=list)
    lines: dict[int, list[str]] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)


@dataclass(slots=True)
class _FileNames:
    """Names of new files of arrays.

    Attributes:
        taken: by folder, the texts of its case files, followed by the new names.
    """

    taken: dict[Path, str] = field(default_factory=dict)

    def new(self, folder: Path, stem: str) -> str:
        """Return a name that begins with `stem`, and does not occur in `taken`."""
        if folder not in self.taken:
            self.taken[folder] = ""
            for file in folder.glob("*.yaml"):
                with suppress(OSError):
                    self.taken[folder] += file.read_text("utf-8", "replace")
        names = (f"{stem}{'' if number == 1 else f'-{number}'}.npy" for number in count(1))
        name = next(name for name in names if name not in self.taken[folder])
        self.taken[folder] += f"\n{name}"
        return name


def _by_field(
    planned: PlannedCase,
    path: Path,
    outputs: Mapping[str, Array],
    additions: _Additions,
    names: _FileNames,
) -> dict[str, Array | Sequence[Array] | str]:
    """Return the outputs by field; add large ones to `additions`, and return their file names."""
    fields: dict[str, Array | Sequence[Array] | str] = {}
    members: dict[str, list[Array]] = {}
    for name, array in outputs.items():
        tensor = TensorRef.of(name)
        if tensor.index is not None:
            members.setdefault(tensor.field, []).append(array)
        elif array.size > MOST_LISTED:
            file = names.new(path.parent, f"{exported_name(planned.identifier)}.{name}")
            additions.arrays[file] = array
            fields[name] = file
        else:
            fields[name] = array
    return {**fields, **members}
