"""`dmlconf report`: generate reports from the log of an earlier run, or a scoreboard of several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dmlconf.cli.common.command import Command, arguments
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.logs import named_or_latest
from dmlconf.cli.common.path_types import ANY_PATH
from dmlconf.cli.options.backend import color_option
from dmlconf.cli.options.reporting import detail_options, parse_reports, report_option, show, write
from dmlconf.reports.formats import RUN_FORMATS, SCOREBOARD_FORMATS
from dmlconf.run_log.log import read_log

__all__ = ["command"]


@click.command("report", cls=Command, short_help="Generate reports from the log of a run.")
@arguments("logs", type=ANY_PATH)
@report_option(RUN_FORMATS)
@detail_options
@color_option
def command(logs: tuple[Path, ...], report_options: tuple[str, ...], color: str, **how: Any) -> int:
    """Generate reports from a run LOG; by default from that of the latest run.

    Several LOGS give a scoreboard, operators by runs, as html, json or markdown. The exit code
    shows only whether the reports could be written, not how the run ended.
    """
    if len(logs) > 1:
        _refuse_options_of_one_run(click.get_current_context())
        return _scoreboard(logs, report_options, color, quiet=how["quiet"])
    reports = parse_reports(report_options, RUN_FORMATS, log=logs[0] if logs else None)
    log = read_log(named_or_latest(logs[0] if logs else None))
    shown = show(log, reports, color=color, **how)
    return ExitCode.SUCCESS if shown else ExitCode.OUTPUT


def _refuse_options_of_one_run(ctx: click.Context) -> None:
    """Refuse options that a scoreboard lacks, unless they come from the configuration."""
    of_one_run = {"verbose": "-v", "durations": "--durations", "failures": "--show-failures"}
    for name, spelling in of_one_run.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            message = f"{spelling} shows a single run, and a scoreboard has several; give one LOG"
            raise click.UsageError(message)


def _scoreboard(
    logs: tuple[Path, ...], report_options: tuple[str, ...], color: str, *, quiet: bool
) -> int:
    from dmlconf.reports.comparisons.scoreboard import render_terminal, scoreboard

    reports = parse_reports(report_options, SCOREBOARD_FORMATS)
    board = scoreboard([read_log(path) for path in logs], list(map(str, logs)))
    shown = write(reports, board, render_terminal(board), color, announce=not quiet)
    return ExitCode.SUCCESS if shown else ExitCode.OUTPUT
