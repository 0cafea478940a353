"""The option `--resume`: continue a run that ended early, in its own log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dmlconf.cli.common.command import option
from dmlconf.cli.common.configuration import BACKEND_GROUP
from dmlconf.cli.common.path_types import FILE
from dmlconf.cli.output.console import say
from dmlconf.documents.files import exists, resolved
from dmlconf.documents.problems import printable
from dmlconf.run_log.log import Header

if TYPE_CHECKING:
    from dmlconf.run_log.earlier import EarlierRun

__all__ = ["earlier_run", "log_to_resume", "require_same_run", "resume_option"]

resume_option = option(
    "--resume",
    "resumed_log",
    type=FILE,
    metavar="LOG",
    group=BACKEND_GROUP,
    help="Continue the run of this log: keep its verdicts, run the remaining cases, and append to "
    "it. The other options must be those of that run.",
)


def log_to_resume(
    resumed_log: Path | None, log_file: Path | None, *, several: bool = False
) -> Path | None:
    """Return the file that `--resume` or `--log` names; None if neither is given.

    Args:
        several: whether the run has several logs, named after this file, which need not exist.

    Raises:
        click.UsageError: the options name different files; or the file of `--resume` is missing,
            `--log` is not given, and `several` is false.
    """
    if resumed_log is None:
        return log_file
    if log_file is not None and resolved(log_file) != resolved(resumed_log):
        message = f"--resume {resumed_log} writes to that log; --log names another, {log_file}"
        raise click.UsageError(printable(message))
    if log_file is None and not several and not exists(resumed_log):
        message = f"--resume {resumed_log}: there is no such log; start one with --log"
        raise click.UsageError(printable(message))
    return resumed_log


def earlier_run(resumed_log: Path | None) -> EarlierRun | None:
    """Return the run in the log to resume; None without a log, or without a run in it.

    Raises:
        InvalidLogError: the log cannot be continued.
    """
    if resumed_log is None or not exists(resumed_log):
        return None
    from dmlconf.run_log.earlier import read_earlier

    earlier = read_earlier(resumed_log)
    if earlier is None:
        say(printable(f"{resumed_log} holds no run yet; starting it now"))
    return earlier


def require_same_run(log: Path, earlier: EarlierRun, header: Header, *, quiet: bool) -> None:
    """Check that the log holds the same run; unless `quiet`, say how many cases are left.

    Raises:
        click.UsageError: plan, selection or environment differ.
    """
    from dmlconf.run_log.header_differences import (
        environment_differences,
        plan_differences,
        selection_differences,
    )

    different = [
        *plan_differences(earlier.header, header),
        *selection_differences(earlier.header, header),
        *environment_differences(earlier.header, header),
    ]
    if different:
        listed = "\n".join(f"  {each.text('there', 'here')}" for each in different)
        message = f"--resume {log}: the log belongs to another run; these differ:\n{listed}"
        raise click.UsageError(message)
    if not quiet:
        kept, left = len(earlier.places), header.selected - len(earlier.places)
        say(f"Resuming: {kept:,} of {header.selected:,} cases have verdicts, {left:,} are left")
