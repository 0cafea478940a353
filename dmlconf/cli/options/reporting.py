"""The options that say what is reported, such as `--report` and `-v`; write the reports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from dmlconf.cli.common.command import option
from dmlconf.cli.common.completion import completion_among
from dmlconf.cli.common.parameter_types import WholeNumber, WholeNumberOr
from dmlconf.cli.common.path_types import FILE
from dmlconf.cli.output.preflight import require_replaceable
from dmlconf.documents.files import resolved
from dmlconf.documents.problems import printable
from dmlconf.documents.whole_files import whole_file
from dmlconf.reports.formats import Formats, Report, parse_report
from dmlconf.run_log.log import RunLog

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

__all__ = [
    "REPORT_GROUP",
    "detail_options",
    "files_of",
    "log_option",
    "parse_reports",
    "report_option",
    "show",
    "write",
]

REPORT_GROUP: Final = "Report"

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Content = TypeVar("_Content")


def parse_reports(
    options: Sequence[str], formats: Formats[_Content], *, log: Path | None = None
) -> list[Report[_Content]]:
    """Return the reports that `--report FORMAT[:FILE]` asks for.

    Args:
        log: the file that `--log` names, if any.

    Raises:
        click.UsageError: a format is unknown, has a file but takes none, or lacks one after its
            colon; a file is named twice or must not be replaced; or two reports go to standard
            output.
    """
    try:
        reports = [parse_report(each, formats) for each in options]
    except ValueError as error:
        raise click.BadParameter(printable(str(error)), param_hint="--report") from error
    if sum(report.to_output for report in reports) > 1:
        message = "only one report can go to standard output; give the others a file"
        raise click.BadParameter(message, param_hint="--report")
    taken = {resolved(log)} if log else set()
    for _, file in files_of(reports):
        if resolved(file) in taken:
            message = f"{file} would be written twice; give each report and the log its own file"
            raise click.BadParameter(printable(message), param_hint="--report")
        taken.add(resolved(file))
    for name, file in files_of(reports):
        require_replaceable(name, file)
    return reports


def files_of(reports: Sequence[Report[_Content]]) -> list[tuple[str, Path]]:
    """Return the option and the file of each report that names a file."""
    return [(report.option, report.file) for report in reports if report.file is not None]


def report_option(formats: Formats[Any]) -> Callable[[_Function], _Function]:
    """Return a decorator that adds `--report` to a command that knows these formats."""
    names = ", ".join(formats)
    return option(
        "--report",
        "report_options",
        multiple=True,
        metavar="FORMAT[:FILE]",
        group=REPORT_GROUP,
        shell_complete=completion_among(formats),
        help=f"Also report in this format: {names}.",
    )


log_option: Final = option(
    "--log",
    "log_file",
    type=FILE,
    metavar="FILE",
    group=REPORT_GROUP,
    help="Write the run log here.",
)


def detail_options(function: _Function) -> _Function:
    """Add the options for what the terminal shows of a run; `show` takes their values."""
    options = (
        option(
            "--durations",
            default=0,
            type=WholeNumber(min=0),
            metavar="N",
            group=REPORT_GROUP,
            help="List the N slowest cases.",
        ),
        option(
            "-v",
            "--verbose",
            is_flag=True,
            group=REPORT_GROUP,
            help="Show more details of cases that did not simply pass.",
        ),
        option(
            "-q",
            "--quiet",
            is_flag=True,
            group=REPORT_GROUP,
            help="Show only failures and the last line.",
        ),
        option(
            "--show-failures",
            "failures",
            type=WholeNumberOr(WholeNumber(min=0), "all", lambda: sys.maxsize),
            metavar="N|all",
            group=REPORT_GROUP,
            help="Show N failures in full in the terminal (by default 3, with -v 50), spread "
            "over groups that share something.",
        ),
    )
    for add in reversed(options):
        function = add(function)
    return function


def show(
    log: RunLog,
    reports: Sequence[Report[RunLog]],
    *,
    verbose: bool,
    quiet: bool,
    color: str,
    durations: int = 0,
    failures: int | None = None,
) -> bool:
    """Print the table of a run, write reports, and return whether all could be written.

    Args:
        durations: how many of the slowest cases to list before the table.
        failures: how many failures to show; None for the default of `terminal.render`.
    """
    from rich.console import Group

    from dmlconf.reports.runs import terminal
    from dmlconf.reports.runs.summary import slowest_lines

    table = terminal.render(log, verbose=verbose, quiet=quiet, failures=failures)
    if durations:
        lines = [f"  {line}" for line in slowest_lines(log, durations)]
        table = Group(_plain(["Slowest cases", *lines, ""]), table)
    return write(reports, log, table, color, announce=not quiet)


def _plain(lines: Sequence[str]) -> Text:
    from rich.text import Text

    return Text("\n".join(map(printable, lines)), no_wrap=True, overflow="ignore")


def write(
    reports: Sequence[Report[_Content]],
    content: _Content,
    table: RenderableType,
    color: str,
    *,
    announce: bool = True,
) -> bool:
    """Print a table, write reports, and return whether all could be written.

    The table goes to standard error if a report takes standard output. If something cannot be
    written, a message on standard error says so; with `announce`, another names the files written.
    A reader that closes standard output is no failure.
    """
    from dmlconf.cli.output.console import make_console, say, warn

    wrote: list[str] = []
    to_output = any(report.to_output for report in reports)
    with _reported("the table") as problems:
        make_console(color, stderr=to_output).print(table, crop=False)
    for report in reports:
        if report.format.takes_file:
            parts = report.format.parts(content)
            with _reported(report.option) as more:
                _write_text(parts, report.file)
            problems += more
            if report.file is not None and not more:
                wrote.append(f"{report.file} ({report.format.name})")
    if announce and wrote:
        say(printable(f"Wrote {', '.join(wrote)}"))
    for report in reports:
        if report.format.publish is not None:
            with _reported(report.option) as more:
                warning = report.format.publish(content)
            problems += more
            if not more and warning:
                warn(f"{report.option}: {warning}")
    return not problems


@contextmanager
def _reported(output: str) -> Iterator[list[str]]:
    """Yield a list; if the block cannot write `output`, print why, and add this to the list."""
    from dmlconf.cli.output.console import say, silenced_when_closed

    problems: list[str] = []
    try:
        with silenced_when_closed():
            yield problems
    except OSError as error:
        problems.append(f"Error: {output} could not be written: {error.strerror or error}")
        say(problems[0])


def _write_text(parts: Iterator[str], file: Path | None) -> None:
    if file is not None:
        with whole_file(file) as stream:
            stream.writelines(map(_encoded, parts))
        return
    # A pipe's own encoding, on Windows for example, may lack characters of the report.
    sys.stdout.flush()
    last = ""
    for last in parts:
        sys.stdout.buffer.write(_encoded(last))
    if not last.endswith("\n"):
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
