"""Read files of users, which may be pipes, devices or too large; make and remove folders."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BufferedReader
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, Final

__all__ = [
    "UnreadableFileError",
    "exists",
    "is_file",
    "is_folder",
    "make_folders",
    "open_regular",
    "read_bytes",
    "read_stream",
    "remove_folders",
    "require_writable",
    "resolved",
    "write_in",
]


class UnreadableFileError(Exception):
    """A file cannot be read; the message says why, without the file's name.

    Attributes:
        too_large: whether its size is the reason.
    """

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


def resolved(path: Path) -> Path:
    """Return the resolved path of a file; the path itself if it cannot be resolved."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # A loop of links is a RuntimeError before Python 3.13.
        return path


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder; False if looking it up fails."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Return whether a path is a regular file; False if looking it up fails."""
    try:
        return path.is_file()
    except OSError:
        return False


def exists(path: Path) -> bool:
    """Return whether a path exists; False if looking it up fails, as of a name that is too long."""
    try:
        return path.exists()
    except OSError:
        return False


def make_folders(folder: Path) -> list[Path]:
    """Create a folder and those above it that are missing.

    Returns:
        the created folders, the outermost first; none if `folder` exists, even as a file.

    Raises:
        OSError: a folder cannot be created. Folders that were created above it are removed again if
            they are empty.
    """
    created: list[Path] = []
    missing = list(takewhile(lambda each: not each.exists(), (folder, *folder.parents)))[::-1]
    for each in missing:
        try:
            each.mkdir()
        except OSError as error:
            if isinstance(error, FileExistsError) and each.is_dir():
                continue  # Another process was faster, and may write there at any moment.
            remove_folders(created)
            raise
        created.append(each)
    return created


def remove_folders(folders: Sequence[Path]) -> None:
    """Remove folders that `make_folders` returned, if they are empty."""
    for folder in reversed(folders):
        with suppress(OSError):
            folder.rmdir()


_MOST_REMOVALS: Final = 10
"""How often `write_in` makes a folder again that another process has removed."""


def write_in(folder: Path, write: Callable[[], object]) -> list[Path]:
    """Create missing folders as `make_folders` does, and call a function that writes a file there.

    If another process removes a folder before the file is there, as `require_writable` does, both
    are done again.

    Returns:
        the created folders.

    Raises:
        OSError: a folder cannot be created, or the function raises it. Created folders are removed
            again if they are empty.
    """
    for attempt in range(_MOST_REMOVALS + 1):
        created: list[Path] = []
        try:
            created = make_folders(folder)
            write()
            return created
        except FileNotFoundError:
            remove_folders(created)
            if folder.exists() or attempt == _MOST_REMOVALS:
                raise
        except OSError:
            remove_folders(created)
            raise
    raise AssertionError("the last attempt returns or raises")


def require_writable(temporary: Path) -> list[Path]:
    """Check that a file can be written; missing folders are created.

    Args:
        temporary: a file that no other process needs; it is removed again.

    Returns:
        the created folders.

    Raises:
        OSError: the file cannot be written. Created folders are removed again if they are empty.
    """

    def write() -> None:
        temporary.touch()
        # A process in another container may have the same number, and so the same file.
        temporary.unlink(missing_ok=True)

    return write_in(temporary.parent, write)


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; never block, as opening a named pipe would.

    Raises:
        UnreadableFileError: the path is not a regular file, or cannot be opened.
    """
    descriptor, _ = _opened(path)
    return os.fdopen(descriptor, "rb")


def _opened(path: Path) -> tuple[int, int]:
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        raise UnreadableFileError(_reason(error)) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise UnreadableFileError(f"is {_kind(status.st_mode)}, not a regular file")
    return descriptor, status.st_size


def read_bytes(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    Raises:
        UnreadableFileError: the path is not a regular file, cannot be read, or is too large.
    """
    descriptor, size = _opened(path)  # A stream would take twice as long.
    try:
        # `os.read` allocates as many bytes as it is asked for, so a small file asks for few.
        content = os.read(descriptor, min(size, limit) + 1)
        while len(content) <= limit and (more := os.read(descriptor, _rest(content, limit))):
            content += more
    except OSError as error:
        raise UnreadableFileError(_reason(error)) from error
    finally:
        os.close(descriptor)
    if len(content) > limit:
        size = max(size, len(content))
        message = f"is {size:,} bytes long; at most {limit:,} are read"
        raise UnreadableFileError(message, too_large=True)
    return content


_MOST_AT_ONCE: Final = 1 << 20
"""The most bytes of each read after the first."""


def _rest(content: bytes, limit: int) -> int:
    return min(limit + 1 - len(content), _MOST_AT_ONCE)


def read_stream(stream: BinaryIO, limit: int) -> bytes:
    """Return the content of an open file, such as a pipe, of at most `limit` bytes.

    Raises:
        UnreadableFileError: the file has more than `limit` bytes.
        OSError: the file cannot be read.
    """
    content = stream.read(limit + 1)
    if len(content) > limit:
        raise UnreadableFileError(f"has more than {limit:,} bytes", too_large=True)
    return content


def _reason(error: OSError | ValueError) -> str:
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "something else")
