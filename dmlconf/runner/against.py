"""What gives the expected outcomes of cases that state none: recordings, the reference, or both.

A backend is never judged by itself: neither by a backend of the same name, nor by what was recorded
with the same files on the same adapter and driver, nor the reference by a recording of it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dmlconf.backends import registry
from dmlconf.backends.protocol import BackendError, Environment, Outcome, Rejection
from dmlconf.cases.loader import Suite
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.catalogue.loader import operator
from dmlconf.catalogue.model import FieldKind
from dmlconf.runner.judge import Against, Recorded
from dmlconf.runner.session import OpenBackend, built, nobody, reference

# What reads recordings is imported where it is needed: a run of one case may need none.
if TYPE_CHECKING:
    from dmlconf.backends.recording.model import Recording

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
"""The suite's own recordings, and the reference where they tell nothing."""

_REFERENCE: Final = "numpy"
_FOLDER: Final = "recordings"
_MOST_NAMED: Final = 10

_TELLING: Final = frozenset({"E_INVALIDARG"})
"""HRESULTs by which DirectML judges a desc; by others it tells of the device that it ran on."""


class RecordingAgainst:
    """Gives recorded outcomes, and remembers the cases for which the recording is stale.

    The recording is read when it is first asked: cases that state all themselves need none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stale: list[str] = []

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process reads the file itself.
        return RecordingAgainst, (self.path,)

    @cached_property
    def recording(self) -> Recording:
        """The recording.

        Raises:
            BackendError: it cannot be read.
        """
        from dmlconf.backends.recording.file import read_recording

        return read_recording(self.path)

    def __call__(self, case: Case) -> Outcome | Recorded | None:
        """Return the recorded outcome; None where the recording cannot tell."""
        from dmlconf.backends.recording.model import Gap

        found = self.recording.find(case)
        if found is Gap.STALE:
            self.stale.append(case.identifier)
        if isinstance(found, Gap):
            return None
        if isinstance(found, Rejection) and found.hresult not in _TELLING:
            return None
        by_reference = self.recording.environment["backend"] == _REFERENCE
        return found if by_reference else Recorded(found)

    def stale_note(self, suite_paths: Iterable[Path]) -> str | None:
        """Say which cases the recording could not tell any more, and what to do about it."""
        if not self.stale:
            return None
        count = len(self.stale)
        plural = "s" if count != 1 else ""
        paths = [self.path.parent.parent] if self.path.parent.name == _FOLDER else suite_paths
        again = _record_command(paths, self.recording.backend, self.path)
        return (
            f"{self.path} has another desc or other inputs for {count:,} case{plural}"
            f" and was not used there:\n{_named(self.stale)}\nRecord again: {again}"
        )


@dataclass(frozen=True, slots=True)
class Expectations:
    """What gives the expected outcomes of a run; a worker process gets a copy.

    Attributes:
        name: for the log.
        against: gives them.
        recordings: those that may be asked.
        note: what the user must know before the run, or None.
    """

    name: str
    against: Against
    recordings: tuple[RecordingAgainst, ...] = ()
    note: str | None = None


def states_all(planned: PlannedCase) -> bool:
    """Tell whether a case states all that is expected of it, and so asks nobody else."""
    expect = planned.template.data.get("expect", {})
    outputs = operator(planned.template.operator_name).of_kind(FieldKind.OUTPUT)
    return "rejected" in expect or all(field.name in expect for field in outputs)


def expectations(
    given: str,
    tested: OpenBackend,
    suite: Suite,
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
) -> Expectations:
    """Return what gives the expected outcomes of cases that state none.

    Args:
        given: `auto`, or a backend as named on the command line.
        tested: the backend under test.
        suite: what the plan was chosen from.
        plan: the cases that will run.
        suite_paths: where the suite was loaded from.

    Raises:
        BackendError: there is no such backend, or its recording cannot be used for the plan.
        InvalidFilesError: a case of a matrix cannot be built.
    """
    subject = _subject(tested.environment)
    if given == AUTO and subject[0] == _REFERENCE and all(map(states_all, plan)):
        return Expectations(_REFERENCE, nobody)
    if given == AUTO:
        return _automatic(tested, subject, suite_paths)
    name = registry.parse(given)
    if name.name == "recording":
        return _recorded(given, Path(name.options), subject, suite, plan, suite_paths)
    if name.name == _REFERENCE == subject[0]:
        return Expectations(given, nobody)
    return Expectations(given, reference(given, tested.name))


def suite_expectations(paths: Sequence[Path]) -> tuple[Against, tuple[RecordingAgainst, ...]]:
    """Return what tells of a suite, whoever is under test: its recordings, else the reference."""
    recordings = tuple(RecordingAgainst(path) for path in suite_recordings(paths))
    backend = registry.create(registry.parse(_REFERENCE))
    return _First([*recordings, lambda case: next(iter(backend.run([case])))]), recordings


def recorded_in(paths: Iterable[Path]) -> Callable[[Case], bool]:
    """Return what tells whether one of the recordings has a case as it is now."""
    recordings = [RecordingAgainst(path).recording for path in paths]
    return lambda case: any(recording.gap(case) is None for recording in recordings)


def suite_recordings(paths: Iterable[Path]) -> list[Path]:
    """Return the suite's own recordings: in the folder `recordings` of a path or just above it."""
    from dmlconf.backends.recording.file import SUFFIX

    found: dict[Path, Path] = {}
    for path in paths:
        for folder in (path, *path.resolve().parents[:2]):
            inside = sorted((folder / _FOLDER).glob(f"*{SUFFIX}"))
            found.update({file.resolve(): file for file in inside})
            if inside:
                break
    return list(found.values())


def _automatic(tested: OpenBackend, subject: _Subject, paths: Sequence[Path]) -> Expectations:
    from dmlconf.backends.recording.file import read_environment

    recordings = tuple(
        RecordingAgainst(path)
        for path in suite_recordings(paths)
        if not _judges_itself(read_environment(path), subject)
    )
    names = [f"recording:{one.path}" for one in recordings]
    sources: list[Against] = list(recordings)
    if subject[0] != _REFERENCE:
        sources.append(reference(_REFERENCE, tested.name))
    if subject[0] != _REFERENCE or not names:
        names.append(_REFERENCE)
    return Expectations(", else ".join(names), _First(sources), recordings)


def _recorded(
    given: str,
    path: Path,
    subject: _Subject,
    suite: Suite,
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
) -> Expectations:
    from dmlconf.backends.recording.file import read_recording

    recording = read_recording(path)
    _require_fresh(path, recording, suite, plan, suite_paths)
    if _judges_itself(recording.environment, subject):
        note = (
            f"{path} was recorded on the backend under test itself, so it proves nothing: "
            "what the cases do not state is unchecked"
        )
        return Expectations(given, nobody, note=note)
    source = RecordingAgainst(path)
    return Expectations(given, source, (source,))


def _require_fresh(
    path: Path,
    recording: Recording,
    suite: Suite,
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
) -> None:
    from dmlconf.backends.recording.model import Gap

    gaps = {planned.identifier: recording.gap(built(planned)) for planned in plan}
    if recording.suite_digest != suite.digest and set(gaps.values()) == {Gap.MISSING}:
        count = f"{len(plan):,} selected case{'s' if len(plan) != 1 else ''}"
        raise BackendError(f"{path} was made for another suite: it has none of the {count}")
    stale = [identifier for identifier, gap in gaps.items() if gap is Gap.STALE]
    if stale:
        raise BackendError(
            f"{path} is stale: it has another desc or other inputs for {len(stale):,} of the "
            f"{len(plan):,} selected cases:\n{_named(stale)}\n"
            f"Record again: {_record_command(suite_paths, recording.backend, path)}"
        )


_Subject = tuple[Any, ...]
"""What is judged, or judges: backend, version, adapter, driver, and digests of their files."""


def _subject(environment: Environment | Mapping[str, Any]) -> _Subject:
    found = asdict(environment) if isinstance(environment, Environment) else environment
    found = found["details"].get("recorded", found) if found["backend"] == "recording" else found
    digests = {key: value for key, value in found["details"].items() if key.endswith("sha256")}
    return *(found[key] for key in ("backend", "version", "adapter", "driver")), digests


def _judges_itself(recorded: Mapping[str, Any], subject: _Subject) -> bool:
    both_reference = str(recorded["backend"]) == _REFERENCE == str(subject[0])
    return both_reference or _subject(recorded) == subject


@dataclass(frozen=True, slots=True)
class _First:
    """Asks each source until one can tell."""

    sources: Sequence[Against]

    def __call__(self, case: Case) -> Outcome | Recorded | None:
        answers = (source(case) for source in self.sources)
        return next((answer for answer in answers if answer is not None), None)


def _named(cases: Sequence[str]) -> str:
    lines = [f"  {case}" for case in cases[:_MOST_NAMED]]
    if len(cases) > _MOST_NAMED:
        lines.append(f"  and {len(cases) - _MOST_NAMED:,} more")
    return "\n".join(lines)


def _record_command(paths: Iterable[Path], backend: str, file: Path) -> str:
    return shlex.join(["dmlconf", "record", *map(str, paths), "-b", backend, "-o", str(file)])
