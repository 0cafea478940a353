"""Create, find, open, lock and check run logs, and remove old ones."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import file_digest
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import click

from dmlconf.documents.files import UnreadableFileError, open_regular
from dmlconf.documents.problems import printable
from dmlconf.documents.store import is_own_folder
from dmlconf.documents.whole_files import whole_file
from dmlconf.run_log.log import Footer, LogWriteError
from dmlconf.verdicts.verdict import Status
from dmlconf.workers.locks import FileLock, LockedError

if TYPE_CHECKING:
    from dmlconf.run_log.earlier import EarlierRun

__all__ = [
    "DIRECTORY_VARIABLE",
    "latest_log",
    "log_directory",
    "named_or_latest",
    "new_log",
    "new_temporary_log",
    "opened_log",
    "replace_log",
    "require_unchanged",
    "state_directory",
    "temporary_log_directory",
]

DIRECTORY_VARIABLE: Final = "DMLCONF_LOG_DIRECTORY"
KEPT_LOGS: Final = 20
"""This many of the latest logs, including the current one, are never removed for their age."""
KEPT_FOR: Final = timedelta(days=1)
"""A log that was written to within this time is removed only because of `KEPT_BYTES`."""
KEPT_BYTES: Final = 512 << 20
"""If logs take more bytes than this, the oldest are removed, except the latest log and those that
`KEPT_WHILE_WRITTEN` keeps."""
KEPT_WHILE_WRITTEN: Final = timedelta(minutes=15)
"""A log that was written to within this time is never removed: its run may still read it."""
_NOT_REGULAR: Final = "not a regular file; reports are read from the log, so it must be one"
_FIRST_BYTES: Final = 1 << 16
"""A log is created only if this many bytes fit on the disk."""


def log_directory() -> Path:
    """Return the folder for logs of runs without `--log`; the folder may be missing or read-only.

    Raises:
        OSError: this account has no home folder.
    """
    folder_name = os.environ.get(DIRECTORY_VARIABLE)
    return Path(folder_name) if folder_name else state_directory() / "runs"


def state_directory() -> Path:
    """Return the folder for files that dmlconf keeps between runs, such as run logs.

    On Linux it is `$XDG_STATE_HOME/dmlconf`, by default `~/.local/state/dmlconf`.

    Raises:
        OSError: this account has no home folder.
    """
    if sys.platform in ("win32", "darwin"):
        return Path(click.get_app_dir("dmlconf", roaming=False))
    state_home = os.environ.get("XDG_STATE_HOME")
    if state_home:
        return Path(state_home) / "dmlconf"
    try:
        return Path.home() / ".local" / "state" / "dmlconf"
    except RuntimeError as error:
        reason = "this account has no home folder; XDG_STATE_HOME names a folder, --log a file"
        raise OSError(errno.ENOENT, reason) from error


def temporary_log_directory() -> Path:
    """Return the folder for run logs when nothing can be written in `log_directory`.

    Raises:
        OSError: there is no folder for temporary files.
    """
    from dmlconf.workers.scratch import temporary_folder

    user = f"-{os.getuid()}" if hasattr(os, "getuid") else ""
    return temporary_folder() / f"dmlconf-runs{user}"


def new_log() -> Path:
    """Create an empty run log in `log_directory`, and remove old logs there.

    Raises:
        OSError: the log cannot be created, or the disk is full.
    """
    return _new_log(log_directory(), mode=0o777)


def new_temporary_log() -> Path:
    """Create an empty run log in `temporary_log_directory`, and remove logs as `new_log` does.

    Raises:
        OSError: as for `new_log`; or there is no folder for temporary files; or the folder of logs
            is not the user's own (`is_own_folder`).
    """
    return _new_log(temporary_log_directory(), mode=0o700)


def _new_log(directory: Path, mode: int) -> Path:
    directory.mkdir(mode=mode, parents=True, exist_ok=True)
    if mode == 0o700 and not is_own_folder(directory):
        raise OSError(errno.EPERM, f"{directory} belongs to another user")
    now = datetime.now(UTC)
    logs = _logs_in(directory)
    for old in logs[: -(KEPT_LOGS - 1)]:
        if _older_than(old, now - KEPT_FOR):
            _remove(old)
    for old in _beyond(logs, KEPT_BYTES):
        if _older_than(old, now - KEPT_WHILE_WRITTEN):
            _remove(old)
    stamp = now.strftime("%Y%m%dT%H%M%S.%f")
    log = directory / f"run-{stamp}-{os.getpid()}.jsonl"
    try:
        log.write_bytes(bytes(_FIRST_BYTES))  # On a full disk, files can be created but not filled.
        os.truncate(log, 0)
    except OSError as error:
        with suppress(OSError):
            log.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(log)) from error
    return log


def _remove(log: Path) -> None:
    """Remove a log, and the failing cases that `fuzz` has written beside it.

    A log to which a run is writing stays, even if that run has been stopped for a long time.
    """
    try:
        FileLock(log).remove()
    except (LockedError, OSError):  # It may be another user's in a shared folder.
        return
    if log.exists():  # It is open on Windows.
        return
    failing = log.with_suffix(".failures")
    if failing.exists():
        import shutil

        shutil.rmtree(failing, ignore_errors=True)


def _logs_in(directory: Path) -> list[Path]:
    return sorted(directory.glob("run-*.jsonl"))


def _beyond(logs: Sequence[Path], most: int) -> list[Path]:
    """Return the oldest logs without which the rest fits into `most` bytes; never the latest."""
    total = 0
    for at in range(len(logs) - 1, -1, -1):
        with suppress(FileNotFoundError):  # Another run removed it just now.
            total += logs[at].stat().st_size
        if total > most:
            return list(logs[: min(at + 1, len(logs) - 1)])
    return []


def _older_than(path: Path, moment: datetime) -> bool:
    try:
        return path.stat().st_mtime < moment.timestamp()
    except FileNotFoundError:  # Another run removed it just now.
        return False


def named_or_latest(log: Path | None) -> Path:
    """Return the log that the user names, else that of the latest run without `--log`.

    Raises:
        click.UsageError: the user names no log, and `latest_log` finds none.
    """
    path = log or latest_log()
    if path is None:
        raise click.UsageError("there is no earlier run: name a LOG")
    return path


def latest_log() -> Path | None:
    """Return the log of the latest run without `--log`; None if there is none.

    Temporary logs count too, unless `DMLCONF_LOG_DIRECTORY` names a writable folder.
    """
    logs: list[Path] = []
    with suppress(OSError):
        logs += _logs_in(log_directory())
    named = os.environ.get(DIRECTORY_VARIABLE)
    if not (named and _writable(Path(named))):
        with suppress(OSError):
            folder = temporary_log_directory()
            logs += _logs_in(folder) if is_own_folder(folder) else []
    return max(logs, key=lambda log: log.name, default=None)


def _writable(directory: Path) -> bool:
    """Return whether files can be created in a folder, which need not exist yet."""
    try:
        existing = next(
            (each for each in (directory, *directory.absolute().parents) if each.exists()), None
        )
    except OSError:  # A name is too long, or the user may not search a folder.
        return False
    return existing is not None and existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def _cut(path: Path, end: int) -> IO[str]:
    """Truncate a log after the last line to keep, and open it for appending."""
    with path.open("r+b") as stream:
        stream.truncate(end)
        stream.seek(end - 1)
        whole = stream.read(1) == b"\n"
        if not whole:  # The earlier run ended before it could end the line.
            stream.write(b"\n")
    return path.open("a", encoding="utf-8", newline="\n")


def require_unchanged(path: Path, stream: IO[str], begin: int, digest: str, footer: Footer) -> None:
    """Check at the end of a run that nothing else removed, replaced or changed its log.

    Args:
        stream: the run's stream to the log.
        begin: the offset in bytes at which the run's own text begins.
        digest: the SHA-256 of what the run wrote, in hexadecimal.
        footer: has the counts of verdicts that the error names.

    Raises:
        LogWriteError: the log was removed, replaced or changed, or cannot be read. The error's
            `failing` says whether a verdict fails the run.
    """
    what = "was changed by something else"
    try:
        with open_regular(path) as file:
            if not os.path.samestat(os.fstat(file.fileno()), os.fstat(stream.fileno())):
                what = "was replaced"
            else:
                file.seek(begin)
                if file_digest(file, "sha256").hexdigest() == digest:
                    return
    except (OSError, UnreadableFileError):
        what = "was removed"
    counts = ", ".join(f"{count:,} {status}" for status, count in footer.summary.items() if count)
    error = LogWriteError(
        f"the run log {printable(str(path))} {what} while the run went on, so no report can be "
        f"made from it; the run had reached these verdicts: {counts or 'none'}"
    )
    error.failing = any(footer.summary[status] for status in Status if status.fails_run)
    raise error


@contextmanager
def opened_log(
    path: Path, earlier: EarlierRun | None = None, *, resume: bool = False
) -> Iterator[IO[str]]:
    """Open a run log for writing, and lock it against other runs.

    Args:
        earlier: the run in the log to continue; None to empty the log first.
        resume: whether a log without an `earlier` run must not have got a run since then.

    Raises:
        click.UsageError: the file cannot be written or is not a regular file, or another run writes
            or wrote to it.
    """
    try:
        lock = FileLock(path)
        try:
            stream = _stream(path, earlier, resume=resume)
        except BaseException:
            lock.release()
            raise
    except LockedError as error:
        message = "another run is writing to it; give each run its own log"
        raise click.UsageError(printable(f"--log {path}: {message}")) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise click.UsageError(printable(f"--log {path}: {reason}")) from error
    try:
        yield stream
    finally:
        with suppress(OSError):  # Every line was flushed.
            stream.close()
        lock.release()


def replace_log(option: str, path: Path, write: Callable[[IO[str]], None]) -> None:
    """Write a whole log in place of one that may exist, unless a run is writing to that one.

    Args:
        option: the option that names the log, for messages.
        write: writes the new log; if it fails, the old one stays.

    Raises:
        click.UsageError: a run is writing to the log, or it is not a regular file.
        LogWriteError: the log cannot be written.
    """
    try:
        if path.exists():
            if not stat.S_ISREG(path.stat().st_mode):
                raise click.UsageError(printable(f"{option} {path}: {_NOT_REGULAR}"))
            FileLock(path).release()  # Writing may take a while.
        with (
            whole_file(path, FileLock) as file,
            TextIOWrapper(file, encoding="utf-8", newline="\n") as stream,
        ):
            write(stream)
    except LockedError as error:
        message = f"{option} {path}: a run is writing to it; give this log its own name"
        raise click.UsageError(printable(message)) from error
    except OSError as error:
        raise LogWriteError(f"{path} cannot be written: {error.strerror or error}") from error


def _stream(path: Path, earlier: EarlierRun | None, *, resume: bool) -> IO[str]:
    if not stat.S_ISREG(path.stat().st_mode):
        raise click.UsageError(printable(f"--log {path}: {_NOT_REGULAR}"))
    if (resume or earlier is not None) and _was_written_meanwhile(path, earlier):
        message = "another run wrote to it meanwhile; give each run its own log"
        raise click.UsageError(printable(f"--resume {path}: {message}"))
    if earlier is not None:
        return _cut(path, earlier.end)
    # Windows must not change line ends, since `require_unchanged` checks a digest of the text.
    return path.open("w", encoding="utf-8", newline="\n")


def _was_written_meanwhile(path: Path, earlier: EarlierRun | None) -> bool:
    """Return whether another run has written to a log since `earlier` was read from it."""
    if earlier is not None:
        return path.stat().st_size != earlier.size
    from dmlconf.run_log.earlier import read_earlier

    return read_earlier(path) is not None
