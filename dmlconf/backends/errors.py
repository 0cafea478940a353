"""Why a backend cannot be used, in kinds with fields.

What can fail when: an option or its value is wrong (`OptionError`, `UnknownChoiceError`), a native
library is missing or is another one (`LibraryError`), a recording cannot be read or is of other
cases (`RecordingError`, `StaleRecordingError`), and worker processes do not start (`ProcessError`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dmlconf.backends.protocol import BackendError
from dmlconf.documents.problems import nearest, printable

__all__ = [
    "LibraryError",
    "OptionError",
    "ProcessError",
    "RecordingError",
    "StaleRecordingError",
    "UnknownChoiceError",
]


class OptionError(BackendError):
    """What stands behind a backend's name does not say how to make it."""


class UnknownChoiceError(OptionError):
    """An option names something that there is not.

    Attributes:
        what: what is chosen, such as `fault`.
        name: what was named.
        known: what could be.
    """

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        self.what, self.name, self.known = what, name, tuple(known)
        near = nearest(name, self.known)
        advice = f"did you mean {near}?" if near else f"one of {', '.join(self.known)}"
        super().__init__(f"there is no {what} {name!r}: {advice}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.name, self.known)


class LibraryError(BackendError):
    """A native library is not there, cannot be loaded, or lacks a function."""


class ProcessError(BackendError):
    """Worker processes cannot be started, or end as they start."""


class RecordingError(BackendError):
    """A file or folder is no recording that can be read.

    Attributes:
        path: the file or folder.
        reason: what is wrong with it, and what to do.
    """

    def __init__(self, path: Path, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(printable(f"{path}: {reason}"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.reason)


class StaleRecordingError(BackendError):
    """A recording to compare with has another desc or other inputs for some cases.

    Attributes:
        path: the recording.
        cases: identifiers of the stale cases.
        selected: how many cases were to be compared.
    """

    def __init__(self, path: Path, cases: Sequence[str], selected: int, hint: str) -> None:
        self.path, self.cases, self.selected = path, tuple(cases), selected
        super().__init__(
            f"{path} is stale: it has another desc or other inputs for {len(cases):,} of the "
            f"{selected:,} selected cases:",
            hint,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.cases, self.selected, self.hint)
