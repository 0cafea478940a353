"""`dmlconf waive`: draft a file of waivers from the failures of a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import click

from dmlconf.cases.identifiers import AmbiguousNameError, identifier_matcher, resolved
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.completion import complete_case
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.logs import named_or_latest
from dmlconf.cli.common.parameter_types import TEXT
from dmlconf.cli.common.path_types import ANY_PATH, FILE
from dmlconf.cli.options.unknown_names import did_you_mean
from dmlconf.cli.output.console import say
from dmlconf.cli.output.files import write_new
from dmlconf.documents.problems import printable
from dmlconf.excuses.waiver_draft import draft
from dmlconf.excuses.waiver_file import NO_LINK
from dmlconf.run_log.log import RunLog, read_log

__all__ = ["command"]


def _link(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if value != NO_LINK and not re.fullmatch(r"https?://\S+", value):
        raise click.BadParameter(printable(f"{value!r} is not an address such as https://..."))
    return value


def _day(ctx: click.Context, parameter: click.Parameter, value: str | None) -> date | None:
    try:
        day = None if value is None else date.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(
            printable(f"{value!r} is not a date such as 2027-03-31")
        ) from error
    if day is not None and day < datetime.now(UTC).date():
        raise click.BadParameter(f"{day} has passed, so the waivers would hold in no run")
    return day


def _chosen(log: RunLog, names: Sequence[str]) -> set[str]:
    """Return the failing cases that identifiers, patterns or handles name; refuse other names."""
    failing = [verdict.case for verdict in log.verdicts if verdict.status.fails_run]
    try:
        full, unknown = resolved(names, failing)
    except AmbiguousNameError as error:
        raise click.BadParameter(printable(str(error)), param_hint="--case") from error
    if unknown:
        hint = did_you_mean(unknown[0], failing)
        message = f"--case {unknown[0]}: no such case failed in the run{hint}"
        raise click.UsageError(printable(message))
    return set(filter(identifier_matcher(full), failing))


@click.command("waive", cls=Command, short_help="Write waivers for what failed in a run.")
@click.argument("log", required=False, type=ANY_PATH)
@option(
    "-o",
    "--output",
    "file",
    type=FILE,
    metavar="FILE",
    help="Write here instead of to standard output; never over a file that exists.",
)
@option(
    "--link", default=NO_LINK, callback=_link, metavar="URL", help="Where the failures are tracked."
)
@option(
    "--until",
    callback=_day,
    metavar="DAY",
    help="The last day on which the waivers hold, such as 2027-03-31; by default 90 days "
    "after the run.",
)
@option(
    "--case",
    "cases",
    type=TEXT,
    multiple=True,
    metavar="CASE",
    shell_complete=complete_case,
    help="Waive only this case, or those that match a pattern; an identifier or a handle.",
)
def command(
    log: Path | None, file: Path | None, link: str, until: date | None, cases: tuple[str, ...]
) -> int:
    """Write waivers for what failed in the run of LOG, by default the latest run.

    Each waiver is for one operator, kind of failure and, for refusals, HRESULT and call. A run
    refuses the file until you have filled in why the cases fail; then pass it to `run --waivers`.

    Exit codes: 0 the waivers were written; 2 wrong usage; 3 an invalid log; 5 nothing failed.
    """
    run = read_log(named_or_latest(log))
    text = draft(run, link, until, _chosen(run, cases) if cases else None)
    if text is None:
        say("Error: nothing failed or broke, so there is nothing to waive")
        return ExitCode.NOTHING_SELECTED
    if file is None:
        click.echo(text, nl=False)
        return ExitCode.SUCCESS
    write_new(file, text)
    say(f"Wrote {file}. Write why the cases fail in place of each TODO, then type:")
    again = ["--failed", *([str(log)] if log else []), "--waivers", str(file)]
    say(f"  dmlconf run {shlex.join(again)}")
    return ExitCode.SUCCESS
