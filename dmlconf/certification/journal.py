"""The journal of a certification: its outcomes on disk, from which it can be resumed.

JSON Lines: a head that says what is certified, then a line for each case with its outcome and the
elements of its outputs. A case runs again if its line is truncated or damaged, or if the outcome is
a breakdown, which the machine may have caused.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from dmlconf.certification.errors import CertificationError, RefusedError, UnwritableJournalError
from dmlconf.certification.json_text import canonical_json, parsed_json
from dmlconf.certification.outcomes import StoredOutcome, restored
from dmlconf.documents.files import make_folders
from dmlconf.documents.problems import printable
from dmlconf.workers.locks import FileLock, LockedError

__all__ = ["Journal", "journal_path"]

_FORMAT: Final = 1


def journal_path(output: Path) -> Path:
    """Return the path of a certificate's journal, kept until the certificate is written."""
    return output.with_name(f"{output.name}.partial")


class Journal:
    """Keeps outcomes on disk as they arrive; a context manager.

    Attributes:
        outcomes: the outcomes by the case's identifier.
    """

    def __init__(self, path: Path, head: Mapping[str, Any], *, resume: bool) -> None:
        """Open the journal, and make the folders that it needs.

        Args:
            head: what is certified.
            resume: whether to continue with what the file holds.

        Raises:
            CertificationError: the file cannot be written, is in use, belongs to another
                certification, or has outcomes without `resume`.
        """
        self.outcomes: dict[str, StoredOutcome] = {}
        self._path = path
        self._done = False
        self._head = {"format": _FORMAT, **head}
        try:
            make_folders(path.parent)
            self._lock = FileLock(path)
        except LockedError as error:
            raise self._error("is in use: another certification is writing to it") from error
        except OSError as error:
            raise self._error(f"cannot be written: {error.strerror or error}") from error
        try:
            if not path.is_file():
                raise self._error("is not a regular file; remove it")
            end = self._read(resume=resume)
            self._stream = path.open("r+b")
            self._stream.truncate(end)
            self._stream.seek(end)
            if not end:
                self._write(self._head)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # Closing flushes again what could not be written.
            self._stream.close()
        if self._done:
            self._lock.remove()
        else:
            self._lock.release()

    def done(self) -> None:
        """Remove the file at the end of the context."""
        self._done = True

    def add(self, outcome: StoredOutcome) -> None:
        """Store the outcome of a case.

        Raises:
            UnwritableJournalError: the file can no longer be written.
        """
        self.outcomes[outcome.line["case"]] = outcome
        contents = {
            digest: base64.b64encode(zlib.compress(content, 1)).decode()
            for digest, content in outcome.contents.items()
        }
        self._write({"line": outcome.line, "contents": contents})

    def _write(self, record: Mapping[str, Any]) -> None:
        try:
            self._stream.write(canonical_json(record) + b"\n")
            self._stream.flush()
        except OSError as error:
            reason = f"can no longer be written: {error.strerror or error}"
            message = f"{self._path} {reason}; add --resume to continue"
            raise UnwritableJournalError(printable(message)) from error

    def _read(self, *, resume: bool) -> int:
        """Read the outcomes, and return where the last whole line ends; 0 if no outcome is kept."""
        end = 0
        head: Mapping[str, Any] = {}
        with self._path.open("rb") as stream:
            for line in stream:
                if not line.endswith(b"\n"):
                    break  # The run died while it wrote this line.
                if end == 0:
                    head = _record(line)
                else:
                    self._take(_record(line, whole=True))
                end += len(line)
        if not self.outcomes:
            return 0
        self._require(head, resume=resume)
        return end

    def _require(self, head: Mapping[str, Any], *, resume: bool) -> None:
        if not resume:
            raise self._error(
                "is left over from an interrupted certification: add --resume to continue it, "
                "or remove the file"
            )
        for key in sorted(self._head.keys() | head.keys()):
            # JSON has no tuples, so the head is compared as it would be read.
            if head.get(key) != json.loads(canonical_json(self._head.get(key))):
                raise self._error(
                    f"was started with another {key.replace('_', ' ')}; "
                    "remove the file to start again"
                )

    def _take(self, record: Mapping[str, Any]) -> None:
        try:
            contents = {
                digest: zlib.decompress(base64.b64decode(text, validate=True))
                for digest, text in record["contents"].items()
            }
            outcome = restored(record["line"], contents)
        except (LookupError, AttributeError, TypeError, ValueError, zlib.error, RefusedError):
            return
        if "breakdown" not in outcome.line:
            self.outcomes[outcome.line["case"]] = outcome

    def _error(self, reason: str) -> CertificationError:
        return CertificationError(printable(f"{self._path} {reason}"))


def _record(line: bytes, *, whole: bool = False) -> Mapping[str, Any]:
    """Return the record in a line, empty if the line is damaged; `whole` as for `parsed_json`."""
    try:
        record = parsed_json(line, "the line", whole=whole)
    except RefusedError:
        return {}
    return record if isinstance(record, dict) else {}
