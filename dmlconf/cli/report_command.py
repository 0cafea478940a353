"""`dmlconf report`: make reports from the log of an earlier run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dmlconf.cli.exit_codes import ExitCode
from dmlconf.cli.logs import latest_log
from dmlconf.cli.options import color_option, show_failures_option
from dmlconf.cli.reporting import parse_reports, show
from dmlconf.runner.log import read_log

__all__ = ["command"]


@click.command("report")
@click.argument("log", required=False, type=click.Path(path_type=Path))
@click.option("--report", "report_options", multiple=True, metavar="FORMAT[:FILE]",
              help="Also report as json, junit, markdown, svg or text.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show more of what did not simply pass.")
@click.option("-q", "--quiet", is_flag=True, help="Show failures and the last line only.")
@show_failures_option
@color_option
def command(log: Path | None, report_options: tuple[str, ...], **how: Any) -> int:
    """Make reports from a run LOG; from the latest run's where there is none.

    The exit code tells only whether the reports were made; the run's own is that of the run.
    """
    reports = parse_reports(report_options, log=log)
    path = log or latest_log()
    if path is None:
        raise click.UsageError("there is no earlier run: name a LOG")
    shown = show(read_log(path), reports, **how)
    return ExitCode.SUCCESS if shown else ExitCode.OUTPUT
