"""Show a run's reports: the table in the terminal, and those that `--report` asks for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from dmlconf.documents.problems import printable
from dmlconf.reports.registry import FORMATS, parse_report
from dmlconf.runner.log import RunLog

__all__ = ["parse_reports", "show"]

Report = tuple[str, Path | None]


def parse_reports(options: Sequence[str]) -> list[Report]:
    """Return the formats and files that `--report FORMAT[:FILE]` names.

    Raises:
        click.BadParameter: a format is unknown, or two reports go to standard output.
    """
    try:
        reports = [parse_report(option) for option in options]
    except ValueError as error:
        raise click.BadParameter(printable(str(error)), param_hint="--report") from error
    if sum(file is None for _, file in reports) > 1:
        message = "only one report can go to standard output; give the others a file"
        raise click.BadParameter(message, param_hint="--report")
    return reports


def show(log: RunLog, reports: Sequence[Report], *, verbose: bool, quiet: bool, color: str) -> None:
    """Write the reports and the table; a report on standard output sends the table to the other.

    Raises:
        click.UsageError: a report's file cannot be written.
    """
    from dmlconf.cli.console import make_console
    from dmlconf.reports import terminal

    to_output = [name for name, file in reports if file is None]
    console = make_console(color, stderr=bool(to_output))
    console.print(terminal.render(log, verbose=verbose, quiet=quiet), crop=False)
    for name, file in reports:
        text = FORMATS[name](log)
        if file is None:
            # A pipe's own encoding, on Windows for one, may lack characters of the report.
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode() if text.endswith("\n") else f"{text}\n".encode())
            sys.stdout.buffer.flush()
            continue
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"--report {name}:{file}: {error.strerror}") from error
