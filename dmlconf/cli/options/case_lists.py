"""Lists of cases: those in the file of `--cases`, and those that failed in an earlier run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from dmlconf.documents.files import UnreadableFileError, is_folder, read_stream
from dmlconf.documents.problems import printable
from dmlconf.limits import LARGEST_LIST

__all__ = ["LATEST", "CaseList", "failed_cases", "listed_cases"]

LATEST: Final = "latest"
"""The value of `--failed` if the user gives it none."""


@dataclass(frozen=True, slots=True)
class CaseList:
    """Cases that an option or a log names.

    Attributes:
        name: `--case`, `--cases`, `--failed`, or `the log` for `diagnose --order`.
        cases: identifiers, their ends, names of matrices, handles, or patterns.
        source: the file of `--cases`, which may be `-`, or the log of `--failed`; otherwise empty.
        paths: for `--failed`, the paths of the earlier run; empty for the bundled suite and for
            other lists.
        backend: for `--failed`, the backend of the earlier run; empty for other lists.
    """

    name: str
    cases: tuple[str, ...]
    source: str = ""
    paths: tuple[str, ...] = ()
    backend: str = ""

    def __str__(self) -> str:
        return self.source


def listed_cases(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> CaseList | None:
    """Return the list that `--cases` names, in a file or on standard input.

    Each line has one case; empty lines and lines that begin with `#` are left out.

    Returns:
        None without the option, and while the shell completes a command.

    Raises:
        click.BadParameter: the file cannot be read, or names no case.
    """
    if value is None or ctx.resilient_parsing:
        return None
    try:
        if value == "-":
            content = read_stream(sys.stdin.buffer, LARGEST_LIST)
        else:
            with Path(value).open("rb") as stream:
                content = read_stream(stream, LARGEST_LIST)
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError, UnreadableFileError) as error:
        reason = str(error)
        if isinstance(error, OSError):
            reason = str(error.strerror)
        elif isinstance(error, UnicodeDecodeError):
            reason = "it is not UTF-8 text"
        raise click.BadParameter(printable(f"{value}: {reason}")) from error
    lines = (line.strip() for line in text.splitlines())
    cases = tuple(line for line in lines if line and not line.startswith("#"))
    if not cases:
        raise click.BadParameter(printable(f"{value} names no case"))
    return CaseList("--cases", cases, value)


def failed_cases(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> CaseList | None:
    """Return the cases that fail the run whose log `--failed` names.

    Returns:
        None without the option, and while the shell completes a command.

    Raises:
        click.UsageError: there is no earlier run, or the value is a folder or a YAML file.
        InvalidLogError: the log cannot be read, or is invalid.
    """
    if value is None or ctx.resilient_parsing:
        return None
    from dmlconf.cli.common.logs import latest_log
    from dmlconf.run_log.log import read_log

    path = latest_log() if value == LATEST else Path(value)
    if path is None:
        raise click.BadParameter("there is no earlier run: name its log, as --failed=LOG")
    if is_folder(path) or path.suffix in (".yaml", ".yml"):
        message = f"{path} is not a run log; if PATHS follow, write --failed={LATEST}"
        raise click.BadParameter(printable(message))
    # Checking a long log takes seconds; dmlconf wrote the latest log, so it is trusted.
    log = read_log(path, own=value == LATEST)
    cases = tuple(verdict.case for verdict in log.verdicts if verdict.status.fails_run)
    return CaseList("--failed", cases, str(path), log.header.paths, log.header.backend)
