"""Show reports: the table in the terminal, and those that `--report` asks for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dmlconf.documents.problems import printable
from dmlconf.reports.registry import FORMATS, parse_report
from dmlconf.runner.log import RunLog

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["parse_reports", "show", "write"]

Report = tuple[str, Path | None]


def parse_reports(
    options: Sequence[str], formats: Collection[str] = FORMATS, *, log: Path | None = None
) -> list[Report]:
    """Return the formats and files that `--report FORMAT[:FILE]` names.

    Args:
        options: what the user gave.
        formats: the formats that the command knows.
        log: the run log, if a file was named for it.

    Raises:
        click.BadParameter: a format is unknown, or one file or standard output is to hold two.
    """
    try:
        reports = [parse_report(option, formats) for option in options]
    except ValueError as error:
        raise click.BadParameter(printable(str(error)), param_hint="--report") from error
    if sum(file is None for _, file in reports) > 1:
        message = "only one report can go to standard output; give the others a file"
        raise click.BadParameter(message, param_hint="--report")
    taken = {_resolved(log)} if log else set()
    for _, file in reports:
        if file is not None and _resolved(file) in taken:
            message = f"{file} would be written twice; give each report and the log its own file"
            raise click.BadParameter(printable(message), param_hint="--report")
        taken |= {_resolved(file)} if file else set()
    return reports


def _resolved(file: Path) -> Path:
    """Return what a file's name stands for; the name itself where the current folder is gone."""
    try:
        return file.resolve()
    except OSError:
        return file


def show(
    log: RunLog,
    reports: Sequence[Report],
    *,
    verbose: bool,
    quiet: bool,
    failures: int | None,
    color: str,
) -> bool:
    """Write a run's reports and its table; return whether all could be written.

    Args:
        log: the run's log.
        reports: formats and files.
        verbose: as `terminal.render` has it.
        quiet: as `terminal.render` has it.
        failures: as `terminal.render` has it.
        color: as `--color` has it.
    """
    from dmlconf.reports import terminal

    table = terminal.render(log, verbose=verbose, quiet=quiet, failures=failures)
    return write(reports, lambda name: FORMATS[name](log), table, color)


def write(
    reports: Sequence[Report], render: Callable[[str], str], table: RenderableType, color: str
) -> bool:
    """Write reports and a table; a report on standard output sends the table to the other.

    What cannot be written is said on standard error, and keeps nothing else from being written. A
    reader of standard output that leaves has seen what it wanted.

    Args:
        reports: formats and files.
        render: returns the text of a format.
        table: what the terminal shows.
        color: as `--color` has it.

    Returns:
        whether everything could be written.
    """
    from dmlconf.cli.console import make_console

    to_output = any(file is None for _, file in reports)
    with _reported("the table") as problems:
        make_console(color, stderr=to_output).print(table, crop=False)
    for name, file in reports:
        text = render(name)
        with _reported(f"--report {name}:{file}" if file else f"--report {name}") as more:
            _write_text(text, file)
        problems += more
    return not problems


@contextmanager
def _reported(output: str) -> Iterator[list[str]]:
    """Say on standard error what could not be written, and note it in the list."""
    from dmlconf.cli.console import say, silenced_when_closed

    problems: list[str] = []
    try:
        with silenced_when_closed():
            yield problems
    except OSError as error:
        problems.append(f"Error: {output} could not be written: {error.strerror or error}")
        say(problems[0])


def _write_text(text: str, file: Path | None) -> None:
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        # A named pipe that nobody reads is refused; opening it the usual way would wait.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(file, flags | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(descriptor, "wb") as stream:
            if hasattr(os, "set_blocking"):
                os.set_blocking(descriptor, True)
            stream.write(_encoded(text))
        return
    # A pipe's own encoding, on Windows for one, may lack characters of the report.
    sys.stdout.flush()
    sys.stdout.buffer.write(_encoded(text if text.endswith("\n") else f"{text}\n"))
    sys.stdout.buffer.flush()


def _encoded(text: str) -> bytes:
    """Return the text in UTF-8, which lacks what names of files may have."""
    return text.encode("utf-8", "backslashreplace")
