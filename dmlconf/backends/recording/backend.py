"""The backend `recording:PATH`: replays the recorded outcomes of another backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dmlconf.backends.errors import OptionError
from dmlconf.backends.protocol import Breakdown, BreakdownKind, Capabilities, Environment, Outcome
from dmlconf.backends.recording.model import Mismatch
from dmlconf.backends.recording.store import StoredRecording, recording_path
from dmlconf.cases.model import Case

__all__ = ["RecordingBackend", "create"]


class RecordingBackend:
    """A recording as a backend. A case that it lacks, or that has changed, breaks down."""

    def __init__(self, stored: StoredRecording) -> None:
        """Replay a recording.

        Raises:
            BackendError: as for `StoredRecording.head`, or a file cannot be read.
        """
        self._stored = stored
        self._head = stored.head()
        self._digest = stored.digest()

    def environment(self) -> Environment:
        """Return the recorded adapter and driver, and the recorded environment as a detail."""
        recorded = self._head.environment
        return Environment(
            backend="recording",
            version=f"{recorded['backend']} {recorded['version']}",
            adapter=recorded["adapter"],
            driver=recorded["driver"],
            details={
                "file": str(self._stored.path),
                "sha256": self._digest,
                "recorded": dict(recorded),
            },
        )

    def capabilities(self) -> Capabilities:
        """Return the feature level and the data types of the recorded backend."""
        return self._head.capabilities

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield the recorded outcome of each case.

        Raises:
            BackendError: as for `StoredRecording.find`.
        """
        for case in cases:
            entry = self._stored.find(case)
            yield Breakdown(BreakdownKind.ERROR, entry) if isinstance(entry, Mismatch) else entry

    def close(self) -> None:
        """Do nothing: no file is open."""


def create(argument: str) -> RecordingBackend:
    """Create the backend from the path after `recording:`.

    Raises:
        BackendError: there is not exactly one usable recording at the path.
    """
    if not argument:
        raise OptionError("name the recording to replay: recording:FILE or recording:FOLDER")
    return RecordingBackend(StoredRecording(recording_path(Path(argument))))
