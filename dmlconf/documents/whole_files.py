"""Write a file as a whole, so that a process that is killed leaves the old file or the new one."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Final, Protocol

from dmlconf.documents.files import remove_folders, write_in

__all__ = ["FileHolder", "whole_file", "write_whole"]

_IN_PLACE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""The error numbers if no file can be created in a folder whose files may still be writable."""

_FIXED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV})
"""The error numbers of a file that can be written but not replaced.

It is mounted, as in a container, another user's in a folder such as `/tmp` or, on Windows, open.
"""


class FileHolder(Protocol):
    """Holds a file that is about to be replaced or written, such as `FileLock`."""

    def replace_by(self, other: Path, /) -> None:
        """Move another file to the path of this one, and let go of it."""

    def release(self) -> None:
        """Let go of the file."""


@dataclass(frozen=True, slots=True)
class _Unlocked:
    path: Path

    def replace_by(self, other: Path, /) -> None:
        other.replace(self.path)

    def release(self) -> None:
        pass


class _FixedFileError(Exception):
    """A file cannot be replaced, or not without another owner."""


@contextmanager
def whole_file(path: Path, hold: Callable[[Path], FileHolder] = _Unlocked) -> Iterator[BinaryIO]:
    """Yield a stream to a temporary file that replaces a file at the end of the block.

    If the block fails, or the process is killed, the old file stays as it was. A link stays a link:
    the file to which it leads is replaced. The new file has the mode, owner and group of the old
    one. Missing folders are created.

    Pipes, devices, `/dev/stdout`, and files that can be written but not replaced, such as those in
    read-only folders, are written in place.

    Args:
        path: the file, which need not exist.
        hold: takes hold of the file when it is about to be replaced or written; may raise.

    Raises:
        OSError: the file cannot be written. Created folders are removed again if they are empty.
    """
    target = _replaceable(path)
    if target is None:
        with _written_in_place(path, hold) as stream:
            yield stream
        return
    try:
        created, temporary, stream = _temporary(target)
    except _FixedFileError:
        with _written_in_place(target, hold) as stream:
            yield stream
        return
    try:
        try:
            with stream:
                yield stream
            _move(temporary, target, hold)
        finally:
            temporary.unlink(missing_ok=True)
    except BaseException:
        remove_folders(created)
        raise


def write_whole(path: Path, content: bytes | str) -> None:
    """Write bytes, or text as UTF-8 with its line ends as they are, as `whole_file` does.

    Raises:
        OSError: the file cannot be written.
    """
    with whole_file(path) as stream:
        stream.write(content if isinstance(content, bytes) else content.encode())


def _replaceable(path: Path) -> Path | None:
    """Return the file to which a path leads, which may be missing; None for what is no such file.

    An open file of this process, such as `/dev/stdout`, must not be replaced: what is written to it
    later would be lost.

    Raises:
        OSError: the path cannot be looked up, as in a loop of links.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            return None
    target = path
    while True:
        folder = os.path.realpath(target.parent)
        if folder == "/dev/fd" or folder.startswith("/proc/"):
            return None
        if not target.is_symlink():
            return target
        target = target.parent / target.readlink()


def _temporary(target: Path) -> tuple[list[Path], Path, BinaryIO]:
    """Create a temporary file beside a file; return created folders, its path and a stream to it.

    Raises:
        OSError: the file is read-only, or no temporary file can be created.
        _FixedFileError: the file can be written, but cannot be replaced by a new one.
    """
    status: os.stat_result | None = None
    with suppress(FileNotFoundError):
        os.close(os.open(target, os.O_WRONLY))
        status = target.stat()
    # The target's name with a suffix might be too long.
    temporary = target.with_name(f".dmlconf.{os.getpid()}.{token_hex(8)}.tmp")
    streams: list[BinaryIO] = []
    try:
        created = write_in(target.parent, lambda: streams.append(temporary.open("xb")))
    except OSError as error:
        if status is None or error.errno not in _IN_PLACE:
            raise
        raise _FixedFileError from error
    try:
        if status is not None:
            _make_alike(temporary, status)
    except BaseException:
        streams[0].close()
        temporary.unlink(missing_ok=True)
        raise
    return created, temporary, streams[0]


def _make_alike(temporary: Path, status: os.stat_result) -> None:
    """Give a file the owner, group and mode of another.

    Raises:
        _FixedFileError: this user may not, or the owner or group is none of this user namespace.
    """
    own = temporary.stat()
    try:
        if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
            os.chown(temporary, status.st_uid, status.st_gid)
        if own.st_mode != status.st_mode:
            temporary.chmod(stat.S_IMODE(status.st_mode))
    except OSError as error:
        raise _FixedFileError from error


def _move(temporary: Path, target: Path, hold: Callable[[Path], FileHolder]) -> None:
    try:
        hold(target).replace_by(temporary)
    except OSError as error:
        if error.errno not in _FIXED or not target.exists():
            raise
        with temporary.open("rb") as whole, _written_in_place(target, hold) as stream:
            shutil.copyfileobj(whole, stream)


@contextmanager
def _written_in_place(path: Path, hold: Callable[[Path], FileHolder]) -> Iterator[BinaryIO]:
    # Without O_NONBLOCK, opening a named pipe that nobody reads would block.
    flags = os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    holder = hold(path)
    try:
        with os.fdopen(os.open(path, flags), "wb") as stream:
            if hasattr(os, "set_blocking"):
                os.set_blocking(stream.fileno(), True)
            yield stream
    finally:
        holder.release()
