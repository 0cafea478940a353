"""Recordings on disk: a single file FOLDER/NAME.dmlrec, or files FOLDER/<operator>/NAME.dmlrec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Final

from dmlconf.backends import subject
from dmlconf.backends.errors import RecordingError
from dmlconf.backends.protocol import BackendError, Outputs, Rejection
from dmlconf.backends.recording.file import SUFFIX, manifest_of, read_head, read_recording
from dmlconf.backends.recording.model import Entry, Mismatch, Recording
from dmlconf.cases.model import Case
from dmlconf.catalogue.loader import case_folders
from dmlconf.documents.files import UnreadableFileError, is_folder, open_regular
from dmlconf.documents.problems import printable

__all__ = [
    "StoredRecording",
    "by_operator",
    "part_path",
    "recording_path",
    "recording_paths",
    "same_outcomes",
    "same_source",
]

_MOST_PARTS: Final = 4
"""How many parts are kept in memory; few suffice, since cases come operator by operator."""


class StoredRecording:
    """A recording, whose files are read when needed.

    Attributes:
        single: whether one file holds all of the recording.
    """

    def __init__(self, path: Path) -> None:
        """Name a recording by its path FOLDER/NAME.dmlrec."""
        self.path = path
        try:
            self.single = path.exists()
        except OSError:  # Such as a name that is too long: reading the file says why.
            self.single = True
        self._parts: dict[str, Recording | None] = {}

    def files(self, operators: Iterable[str] | None = None) -> dict[str, Path]:
        """Return the file with each operator's cases; None means all operators.

        Operators without a file are left out. If there is a single file, all operators have it.
        """
        names = case_folders() if operators is None else operators
        if self.single:
            return dict.fromkeys(names, self.path)
        paths = {name: part_path(self.path, name) for name in names}
        return {name: path for name, path in paths.items() if path.is_file()}

    def heads(self, operators: Iterable[str] | None = None) -> Iterator[tuple[Path, Recording]]:
        """Yield the files of these operators, and the recording in each without its entries.

        Raises:
            BackendError: as for `read_head`.
        """
        for path in dict.fromkeys(self.files(operators).values()):
            yield path, read_head(path)

    def head(self) -> Recording:
        """Return the recording without its entries, from its first file.

        Raises:
            BackendError: as for `read_head`; also if files have different sources, as in
                `same_source`.
        """
        heads = list(self.heads()) or [(self.path, read_head(self.path))]
        first_path, first = heads[0]
        for path, head in heads:
            if not same_source(head, first):
                message = (
                    f"{path} and {first_path} were recorded with different backends, adapters or "
                    "drivers; record one of them again, or name one file"
                )
                raise BackendError(printable(message))
        return first

    def digest(self) -> str:
        """Return the SHA-256 of the single file, or of a list of the files' digests.

        Raises:
            BackendError: a file cannot be read.
        """
        if self.single:
            return _file_digest(self.path)
        lines = "".join(f"{name} {_file_digest(path)}\n" for name, path in self.files().items())
        return sha256(lines.encode()).hexdigest()

    def part(self, operator: str) -> Recording | None:
        """Return the recording in an operator's file or in the single file; None without a file.

        Raises:
            BackendError: as for `read_recording`.
        """
        key = "" if self.single else operator
        if key not in self._parts:
            path = self.path if self.single else self.files([operator]).get(operator)
            if len(self._parts) >= _MOST_PARTS:
                del self._parts[next(iter(self._parts))]
            self._parts[key] = read_recording(path) if path else None
        return self._parts[key]

    def mismatch(self, case: Case) -> Mismatch | None:
        """Return why the recording does not have the case's outcome; None if it has it.

        Raises:
            BackendError: as for `part`.
        """
        part = self.part(case.operator_name)
        return part.mismatch(case) if part else Mismatch.MISSING

    def find(self, case: Case) -> Outputs | Rejection | Mismatch:
        """Return the case's outcome, or why the recording does not have it.

        Raises:
            BackendError: as for `part`.
        """
        part = self.part(case.operator_name)
        return part.find(case) if part else Mismatch.MISSING


def _file_digest(path: Path) -> str:
    try:
        with open_regular(path) as stream:
            return file_digest(stream, "sha256").hexdigest()
    except (OSError, UnreadableFileError) as error:
        reason = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise RecordingError(path, reason) from error


def part_path(path: Path, operator: str) -> Path:
    """Return the file of one operator's cases, in a recording with a file for each operator."""
    return path.parent / operator.lower() / path.name


def recording_paths(folder: Path) -> list[Path]:
    """Return FOLDER/NAME.dmlrec for each of a folder's recordings that have a file per operator."""
    names = {
        file.name
        for operator in case_folders()
        for file in (folder / operator.lower()).glob(f"*{SUFFIX}")
    }
    return [folder / name for name in sorted(names)]


def recording_path(path: Path) -> Path:
    """Return the path of a recording that the user names by its path or its folder.

    Raises:
        BackendError: the folder has no recording, or several, or cannot be read.
    """
    if not is_folder(path):
        return path
    try:
        paths = list(dict.fromkeys([*sorted(path.glob(f"*{SUFFIX}")), *recording_paths(path)]))
    except OSError as error:
        raise RecordingError(path, f"cannot be read: {error.strerror or error}") from error
    if len(paths) == 1:
        return paths[0]
    if not paths:
        reason = f"the folder has no recording (a file that ends in {SUFFIX})"
    else:
        reason = f"the folder has several recordings; name one: {', '.join(map(str, paths))}"
    raise RecordingError(path, reason)


def by_operator(recording: Recording) -> Mapping[str, Recording]:
    """Split a recording into one for each operator."""
    entries: dict[str, dict[str, Entry]] = {}
    for identifier, entry in recording.entries.items():
        name = identifier.partition("/")[0].upper()
        entries.setdefault(name, {})[identifier] = entry
    return {name: replace(recording, entries=part) for name, part in sorted(entries.items())}


def same_source(one: Recording, other: Recording) -> bool:
    """Return whether two recordings have the same capabilities, subject and `device_details`."""
    same_environment = subject.same_source(one.environment, other.environment)
    return same_environment and one.capabilities == other.capabilities


def same_outcomes(one: Recording, other: Recording) -> bool:
    """Return whether two recordings have the same source, case digests and outcomes, bit by bit."""
    if not same_source(one, other) or one.entries.keys() != other.entries.keys():
        return False
    manifests = [manifest_of(each) for each in (one, other)]
    (first, first_outputs), (second, second_outputs) = manifests
    return first["cases"] == second["cases"] and first_outputs == second_outputs
