"""Check, before a command does its work, that it may and can write its files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from dmlconf.documents.files import is_folder, remove_folders, require_writable, resolved
from dmlconf.documents.problems import printable

__all__ = ["prepare_files", "require_replaceable", "require_writable_file"]


def require_replaceable(
    option: str,
    file: Path,
    own: str | None = None,
    inputs: Iterable[Path] = (),
    *,
    resumed: bool = False,
) -> None:
    """Check that a command may replace a file: it is neither an input nor a file of another kind.

    Args:
        option: the option with its file, such as `--log run.jsonl`, for messages.
        own: the kind of the new file, as `recognised` names it; a file of this kind may be
            replaced. A run log, whose name may end in anything, replaces no other file but an empty
            one; a damaged recording or certificate is known by the end of its name.
        inputs: the files that the command reads.
        resumed: whether the file is a run log to resume, whose first line is checked later.

    Raises:
        click.UsageError: the file must not be replaced.
    """
    from dmlconf.documents.recognition import RUN_LOG, recognised

    for each in () if is_folder(file) else inputs:  # Writing over a folder fails later.
        if resolved(each) == resolved(file) or _is_same(each, file):
            message = f"{option} is a file that this command reads; name another one"
            raise click.UsageError(printable(message))
    # A folder in the path may not exist yet: `new/../keys.pem` is `keys.pem` once it does.
    target = resolved(file)
    kind = recognised(target)
    if kind is not None and kind != own:
        message = f"{option} is {kind}, which would be overwritten; name another file"
        raise click.UsageError(printable(message))
    if kind is None and own == RUN_LOG and not resumed and _has_content(target):
        message = f"{option} is not {own} and would be overwritten; name another file or remove it"
        raise click.UsageError(printable(message))


def _has_content(file: Path) -> bool:
    """Return whether a path is a regular file that is not empty."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size > 0


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False


def prepare_files(
    files: Sequence[tuple[str, Path]],
    *,
    inputs: Sequence[Path] = (),
    log: Path | None = None,
    resumed: bool = False,
) -> None:
    """Check that each file, except pipes and devices, can be written; create missing folders.

    Args:
        files: pairs of the option that names a file, for messages, and the file.
        log: the file that becomes a run log; it may replace a run log.
        resumed: whether the run in that log is continued.

    Raises:
        click.UsageError: a file cannot or must not be written. No new folder is left behind.
    """
    if not files:
        return
    from dmlconf.documents.recognition import RUN_LOG

    for option, file in files:
        own = RUN_LOG if file == log else None
        require_replaceable(option, file, own, inputs, resumed=resumed)
    folders: list[Path] = []
    for option, file in files:
        try:
            folders += require_writable_file(file)
        except (OSError, ValueError) as error:
            remove_folders(folders)
            reason = error.strerror if isinstance(error, OSError) else error
            message = f"{option} cannot be written: {reason}"
            raise click.UsageError(printable(message)) from error


def require_writable_file(file: Path) -> list[Path]:
    """Check that a file can be written, and return the folders that were created for it.

    Raises:
        OSError: the file cannot be written. Created folders are removed again if they are empty.
    """
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        if file.is_symlink():
            raise
        # An empty file left over would suggest a run that may never happen. The file itself is not
        # created and removed, since another run may begin to write to it in between.
        return require_writable(file.with_name(f".dmlconf.{os.getpid()}.tmp"))
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        os.close(os.open(file, os.O_WRONLY))
    # A pipe or device is left alone: a reader would take closing a pipe for the report's end.
    return []
