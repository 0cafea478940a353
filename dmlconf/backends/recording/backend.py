"""The backend `recording:FILE`: gives the outcomes that another backend had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from dmlconf.backends.protocol import (
    BackendError,
    Breakdown,
    BreakdownKind,
    Capabilities,
    Environment,
    Outcome,
)
from dmlconf.backends.recording.file import read_recording
from dmlconf.backends.recording.model import Gap, Recording
from dmlconf.cases.model import Case

__all__ = ["RecordingBackend", "create"]


class RecordingBackend:
    """A recording as a backend; what it cannot tell is a breakdown that says why."""

    def __init__(self, path: Path, file_digest: str, recording: Recording) -> None:
        """Replay a recording.

        Args:
            path: the file that it was read from.
            file_digest: the file's SHA-256.
            recording: what it holds.
        """
        self._path = path
        self._file_digest = file_digest
        self._recording = recording

    def environment(self) -> Environment:
        """Return the recorded backend's adapter and driver, and all else that it ran on."""
        recorded = self._recording.environment
        return Environment(
            backend="recording",
            version=f"{recorded['backend']} {recorded['version']}",
            adapter=recorded["adapter"],
            driver=recorded["driver"],
            details={
                "file": str(self._path),
                "sha256": self._file_digest,
                "recorded": dict(recorded),
            },
        )

    def capabilities(self) -> Capabilities:
        """Return what the recorded backend could run."""
        return self._recording.capabilities

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield the recorded outcome of each case."""
        for case in cases:
            found = self._recording.find(case)
            yield Breakdown(BreakdownKind.ERROR, found) if isinstance(found, Gap) else found

    def close(self) -> None:
        """Give nothing back: the file was read at once."""


def create(argument: str) -> RecordingBackend:
    """Make the backend from what stands behind `recording:` on the command line.

    Raises:
        BackendError: there is no file, or it is not a recording.
    """
    if not argument:
        raise BackendError("name the file to replay, as recording:FILE")
    path = Path(argument)
    recording = read_recording(path)
    return RecordingBackend(path, sha256(path.read_bytes()).hexdigest(), recording)
