"""Sources of expected outcomes that cases do not state, such as recordings and the reference.

`expectations` uses no recording of the subject under test, and no backend with the name and options
of the tested one.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dmlconf.backends import registry
from dmlconf.backends.errors import StaleRecordingError
from dmlconf.backends.protocol import BackendError, Outcome, Outputs, Rejection
from dmlconf.backends.recording.samples import filled
from dmlconf.backends.subject import REFERENCE, Subject, is_independent, subject_of
from dmlconf.cases.loading.loader import Suite, valid_case
from dmlconf.cases.loading.planned import of_each_template
from dmlconf.cases.model import Case, PlannedCase, Provenance
from dmlconf.documents.files import resolved
from dmlconf.documents.store import Entries
from dmlconf.documents.wording import counted, first_lines
from dmlconf.engine.session import OpenBackend, no_expectation, reference, source_digest
from dmlconf.judging.judge import Against, Recorded

# Modules that read recordings are imported in functions, since many runs read none.
if TYPE_CHECKING:
    from dmlconf.backends.recording.store import StoredRecording

__all__ = [
    "AUTO",
    "Expectations",
    "RecordingAgainst",
    "expectations",
    "recorded_in",
    "states_all",
    "suite_expectations",
    "suite_recordings",
]

AUTO: Final = "auto"
"""Stands for the suite's recordings, then the reference. The reference never judges itself."""

_FOLDER: Final = "recordings"
_MOST_NAMED: Final = 10
"""The most stale cases in a message, and the most operators in a command."""

_REFUSAL_OF_DESC: Final = frozenset({"E_INVALIDARG"})
"""The HRESULT by which DirectML refuses a desc; others may depend on the recorded device."""


class RecordingAgainst:
    """Gives recorded outcomes, and lists stale cases: those that changed since the recording."""

    def __init__(
        self, path: Path, subject: Subject | None = None, store: Entries | None = None
    ) -> None:
        """Take the path of a recording, without reading it.

        Args:
            subject: the subject under test, whose recordings are not used; None to use all.
            store: keeps the identifiers of each file's cases, so that no file is decoded in vain.
        """
        self.path = path
        self.stale: list[str] = []
        self._subject, self._store = subject, store
        self._for_subject = f" for {subject}"
        self._stored: StoredRecording | None = None
        self._digests: dict[str, str] = {}
        self._cases: dict[str, frozenset[str]] = {}
        self._stale_operators: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process opens the files anew.
        return RecordingAgainst, (self.path, self._subject, self._store)

    def __call__(self, case: Case) -> Recorded | None:
        """Return the recorded outcome; None if there is none that can be used.

        Raises:
            BackendError: the operator's file cannot be read.
        """
        from dmlconf.backends.recording.model import Mismatch

        if self._is_known_to_lack(case):
            return None
        part = self._stored_recording().part(case.operator_name)
        if part is None or (self._subject and not is_independent(part.environment, self._subject)):
            return None
        outcome = part.find(case)
        if outcome is Mismatch.STALE:
            self.stale.append(case.identifier)
            self._stale_operators.add(case.operator_name)
        if isinstance(outcome, Mismatch):
            return None
        if isinstance(outcome, Rejection) and outcome.hresult not in _REFUSAL_OF_DESC:
            return None
        earlier = part.environment["backend"] == REFERENCE
        return Recorded(outcome, Provenance.REFERENCE if earlier else Provenance.RECORDED)

    def digest(self, operator: str) -> str | None:
        """Return the digest of the file with an operator's cases, and the subject under test.

        The result is None if a case of the operator was stale, which a cached judgement would hide.
        """
        if operator in self._stale_operators:
            return None
        return self.content_digest(operator) + self._for_subject

    def content_digest(self, operator: str) -> str:
        """Return the SHA-256 of the file with an operator's cases; empty if there is none."""
        if operator not in self._digests:
            path = self._stored_recording().files([operator]).get(operator)
            self._digests[operator] = sha256(path.read_bytes()).hexdigest() if path else ""
        return self._digests[operator]

    def _is_known_to_lack(self, case: Case) -> bool:
        """Return whether the recording lacks the case; False without a store or a file.

        The list of recorded cases is stored, so that later runs need not decode the file.
        """
        operator = case.operator_name
        if self._store is None or not self.content_digest(operator):
            return False
        if operator not in self._cases:
            content = f"recorded cases\0{self.content_digest(operator)}"
            key = sha256(content.encode()).hexdigest()
            known = self._store.get(key)
            if not isinstance(known, list):
                part = self._stored_recording().part(operator)
                known = [] if part is None else list(part.entries)
                self._store.put(key, known)
            self._cases[operator] = frozenset(known)
        return case.identifier not in self._cases[operator]

    def _stored_recording(self) -> StoredRecording:
        from dmlconf.backends.recording.store import StoredRecording

        self._stored = self._stored or StoredRecording(self.path)
        return self._stored

    def stale_note(self, suite_paths: Iterable[Path]) -> str | None:
        """Return a note on stale cases, with a command to record them again; None without any."""
        if not self.stale:
            return None
        stale = list(dict.fromkeys(self.stale))  # A case may run more than once.
        cases = counted(len(stale), "case")
        names = "\n".join(first_lines(stale, _MOST_NAMED))
        paths = [self.path.parent.parent] if self.path.parent.name == _FOLDER else suite_paths
        again = _record_command(paths, self._stored_recording(), stale)
        return (
            f"{self.path} has another desc or other inputs for {cases}"
            f" and was not used there:\n{names}\nRecord again: {again}"
        )


@dataclass(frozen=True, slots=True)
class Expectations:
    """The source of the expected outcomes of a run; worker processes get copies.

    Attributes:
        name: the source, for the log's header, such as `recording:PATH, else numpy`.
        recordings: the recordings that `against` reads.
        note: what the user should know before the run, if anything.
    """

    name: str
    against: Against
    recordings: tuple[RecordingAgainst, ...] = ()
    note: str | None = None


def states_all(planned: PlannedCase) -> bool:
    """Return whether a case states a refusal, a relation, or all outputs of `output_names`."""
    template = planned.template
    expect = template.data.get("expect", {})
    alone = "rejected" in expect or template.has_relation
    return alone or all(name in expect for name in template.output_names)


def expectations(
    against: str,
    tested: OpenBackend,
    suite: Suite,
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
    store: Entries | None = None,
) -> Expectations:
    """Return the source of the expected outcomes that cases do not state.

    Args:
        against: `auto`, or a backend as named on the command line.
        suite_paths: the paths that the suite was loaded from.
        store: as in `RecordingAgainst`.

    Raises:
        BackendError: the backend, or a recording, cannot be used for the plan.
        InvalidFilesError: a case of a matrix cannot be built.
    """
    subject = subject_of(tested.environment)
    if against == AUTO and subject[0] == REFERENCE and all(map(states_all, of_each_template(plan))):
        return Expectations(REFERENCE, no_expectation)
    if against == AUTO:
        return _automatic(tested, subject, plan, suite_paths, store)
    name = registry.parse(against)
    if name.name == "recording":
        return _recorded(against, Path(name.options), subject, suite, plan, suite_paths)
    if name.name == REFERENCE == subject[0]:
        return Expectations(against, no_expectation)
    return Expectations(against, reference(against, tested.name))


def suite_expectations(paths: Sequence[Path]) -> tuple[Against, tuple[RecordingAgainst, ...]]:
    """Return a source of expected outcomes, and the suite's recordings that it reads.

    Recordings of all subjects count. The reference gives the outcomes that they lack.
    """
    recordings = tuple(RecordingAgainst(path) for path in suite_recordings(paths))
    backend = registry.create(registry.parse(REFERENCE))
    return _First(recordings, lambda case: next(iter(backend.run([case])))), recordings


def recorded_in(paths: Iterable[Path]) -> Callable[[Case], bool]:
    """Return a function that says whether a recording has the outcome of a case."""
    from dmlconf.backends.recording.store import StoredRecording

    recordings = [StoredRecording(path) for path in paths]
    return lambda case: any(recording.mismatch(case) is None for recording in recordings)


def suite_recordings(paths: Iterable[Path]) -> list[Path]:
    """Return the suite's own recordings: of each path, or else of its parent or grandparent.

    A folder's recordings are the files FOLDER/recordings/NAME.dmlrec, and one FOLDER/NAME.dmlrec
    for all files FOLDER/OPERATOR/NAME.dmlrec.
    """
    from dmlconf.backends.recording.file import SUFFIX
    from dmlconf.backends.recording.store import recording_paths

    recordings: dict[Path, Path] = {}
    for path in paths:
        for folder in (path, *resolved(path).parents[:2]):
            single_files = sorted((folder / _FOLDER).glob(f"*{SUFFIX}"))
            inside = [*recording_paths(folder), *single_files]
            recordings.update({resolved(file): file for file in inside})
            if inside:
                break
    return list(recordings.values())


def _automatic(
    tested: OpenBackend,
    subject: Subject,
    plan: Sequence[PlannedCase],
    paths: Sequence[Path],
    store: Entries | None,
) -> Expectations:
    recordings = tuple(
        RecordingAgainst(path, subject, store)
        for path in suite_recordings(paths)
        if _has_independent_part(path, subject, plan)
    )
    names = [f"recording:{one.path}" for one in recordings]
    otherwise = no_expectation if subject[0] == REFERENCE else reference(REFERENCE, tested.name)
    if subject[0] != REFERENCE or not names:
        names.append(REFERENCE)
    return Expectations(", else ".join(names), _First(recordings, otherwise), recordings)


def _recorded(
    against: str,
    path: Path,
    subject: Subject,
    suite: Suite,
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
) -> Expectations:
    from dmlconf.backends.recording.store import StoredRecording, recording_path

    path = recording_path(path)
    stored = StoredRecording(path)
    _require_fresh(stored, suite, plan, suite_paths)
    if not stored.files(_operators(plan)):
        note = (
            f"{path} has no recording of the selected operators: "
            "what the cases do not state is unchecked"
        )
        return Expectations(against, no_expectation, note=note)
    if not _has_independent_part(path, subject, plan):
        note = (
            f"{path} was recorded on the backend under test itself, so it proves nothing: "
            "what the cases do not state is unchecked"
        )
        return Expectations(against, no_expectation, note=note)
    source = RecordingAgainst(path, subject)
    return Expectations(against, source, (source,))


def _has_independent_part(path: Path, subject: Subject, plan: Sequence[PlannedCase]) -> bool:
    """Return whether a file of a recording for the plan's operators may judge a subject.

    The heads of all these files are read, so that errors show before the run.
    """
    from dmlconf.backends.recording.store import StoredRecording

    heads = [head for _, head in StoredRecording(path).heads(_operators(plan))]
    return any(is_independent(head.environment, subject) for head in heads)


def _operators(plan: Iterable[PlannedCase]) -> list[str]:
    return list(dict.fromkeys(planned.template.operator_name for planned in of_each_template(plan)))


def _require_fresh(
    stored: StoredRecording,
    suite: Suite,
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
) -> None:
    from dmlconf.backends.recording.model import Mismatch

    path = stored.path
    if not stored.files(_operators(plan)):
        stored.head()  # Raises an error if there is no recording at all.
    mismatches = {planned.identifier: stored.mismatch(valid_case(planned)) for planned in plan}
    if set(mismatches.values()) == {Mismatch.MISSING} and not _knows_any(stored, suite):
        count = counted(len(plan), "selected case")
        raise BackendError(f"{path} was made for another suite: it has none of the {count}")
    stale = [
        identifier for identifier, mismatch in mismatches.items() if mismatch is Mismatch.STALE
    ]
    if stale:
        again = f"Record again: {_record_command(suite_paths, stored, stale)}"
        raise StaleRecordingError(
            path, stale, len(plan), "\n".join([*first_lines(stale, _MOST_NAMED), again])
        )


def _knows_any(stored: StoredRecording, suite: Suite) -> bool:
    for planned in suite.plan():
        part = stored.part(planned.template.operator_name)
        if part is not None and planned.identifier in part.entries:
            return True
    return False


@dataclass(frozen=True, slots=True)
class _First:
    """Gives the outcome of the first recording with a usable one, else of the reference.

    The reference also gives elements that a recording does not keep.
    """

    recordings: Sequence[Against]
    reference: Against

    def digest(self, operator: str) -> str | None:
        digests = [source_digest(each)(operator) for each in (*self.recordings, self.reference)]
        return None if None in digests else ", else ".join(map(str, digests))

    def __call__(self, case: Case) -> Outcome | Recorded | None:
        answers = (recording(case) for recording in self.recordings)
        answer = next((answer for answer in answers if answer is not None), None)
        if answer is None:
            return self.reference(case)
        outcome = answer.outcome if isinstance(answer, Recorded) else answer
        if not isinstance(outcome, Outputs) or not outcome.samples:
            return answer
        right = self.reference(case)
        if not isinstance(right, Outputs):
            return answer
        whole = filled(case, outcome, right)
        if isinstance(answer, Recorded):
            return replace(answer, outcome=whole, right=right.arrays)
        return whole


def _record_command(paths: Iterable[Path], stored: StoredRecording, cases: Sequence[str]) -> str:
    """Return a command that records at least these cases again."""
    operators = list(dict.fromkeys(case.partition("/")[0].upper() for case in cases))
    first = next(iter(stored.heads(operators)))[1]
    words = ["dmlconf", "record", *map(str, paths), "-b", first.backend]
    if stored.single:
        return shlex.join([*words, "-o", str(stored.path)])
    chosen = operators if len(operators) <= _MOST_NAMED else []
    words += [word for name in chosen for word in ("--operator", name)]
    return shlex.join([*words, "-o", str(stored.path.parent), "--name", stored.path.stem])
