"""Subclasses of `BackendError`, such as `LibraryError`, and the text of any exception."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dmlconf.backends.protocol import BackendError
from dmlconf.documents.problems import name_hint, printable

__all__ = [
    "AmbiguousBackendError",
    "LibraryError",
    "OptionError",
    "ProcessError",
    "RecordingError",
    "StaleRecordingError",
    "UnknownChoiceError",
    "described",
]


def described(error: Exception) -> str:
    """Return the type and the text of an exception, such as `KeyError: 'Axis'`.

    This works even if `str(error)` fails.
    """
    try:
        text = str(error)
    except Exception:
        text = "an exception whose text raises another one"
    return f"{type(error).__name__}: {text}"


class OptionError(BackendError):
    """A backend's name or the options after it are not valid."""


class UnknownChoiceError(OptionError):
    """A name is not one of the valid ones.

    Attributes:
        what: what the name stands for, such as `fault`.
    """

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        self.what, self.name, self.known = what, name, tuple(known)
        advice = name_hint(name, self.known, f"use one of {', '.join(self.known)}")
        super().__init__(f"there is no {what} {name!r}: {advice}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.name, self.known)


class AmbiguousBackendError(BackendError):
    """Several backends have the same name.

    Attributes:
        owners: what has a backend of this name, such as `acme-dml 1.2 (acme.backend:create)`.
    """

    def __init__(self, name: str, owners: Sequence[str]) -> None:
        self.name, self.owners = name, tuple(owners)
        super().__init__(
            f"the backend {name} is ambiguous: {' and '.join(owners)} each have one of this name; "
            "uninstall the one that you do not want"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.owners)


class LibraryError(BackendError):
    """A native library is missing, unusable or too old, or programs cannot be captured."""


class ProcessError(BackendError):
    """Processes cannot be started, have no temporary folder, or have died."""


class RecordingError(BackendError):
    """A file or folder cannot be used as a recording.

    Attributes:
        reason: what is wrong with it, and in some cases what to do.
    """

    def __init__(self, path: Path, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(printable(f"{path}: {reason}"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.reason)


class StaleRecordingError(BackendError):
    """A recording to compare with has a different desc or different inputs for some cases.

    Attributes:
        cases: identifiers of the cases that differ.
        selected: how many cases were to be compared.
    """

    def __init__(self, path: Path, cases: Sequence[str], selected: int, hint: str) -> None:
        self.path, self.cases, self.selected = path, tuple(cases), selected
        super().__init__(
            f"{path} is stale: it has a different desc or different inputs for {len(cases):,} of "
            f"the {selected:,} selected cases:",
            hint,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.cases, self.selected, self.hint)
