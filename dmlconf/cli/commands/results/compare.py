"""`dmlconf compare`: what changed from one run to others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dmlconf.cli.common.command import Command, arguments, option
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import Number
from dmlconf.cli.common.path_types import ANY_PATH
from dmlconf.cli.options.backend import color_option
from dmlconf.cli.options.reporting import REPORT_GROUP, parse_reports, report_option, write
from dmlconf.cli.options.run_exit_code import severity
from dmlconf.cli.options.timing import FACTOR, FAIL_SLOWER_HELP, too_slow
from dmlconf.cli.output.console import say
from dmlconf.cli.runs.run_sources import read_run
from dmlconf.reports.formats import COMPARISON_FORMATS

if TYPE_CHECKING:
    from dmlconf.comparison.compare import Comparison

__all__ = ["command"]


@click.command("compare", cls=Command, short_help="Show what changed between two runs.")
@click.argument("base", type=ANY_PATH)
@arguments("new", required=True, type=ANY_PATH)
@option(
    "--drift",
    type=Number(0, min_open=True),
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="A passing case has drifted if it uses this much more of its limit.",
)
@option(
    "--suite",
    multiple=True,
    type=ANY_PATH,
    metavar="PATH",
    help="The case files that recordings belong to; the bundled suite by default.",
)
@option("--fail-slower", type=FACTOR, metavar="FACTOR", help=FAIL_SLOWER_HELP)
@report_option(COMPARISON_FORMATS)
@option("-v", "--verbose", is_flag=True, group=REPORT_GROUP, help="List every case that changed.")
@option(
    "-q",
    "--quiet",
    is_flag=True,
    group=REPORT_GROUP,
    help="Show only new failures, what they share, runs that stand alone, and the last line.",
)
@color_option
def command(
    base: Path,
    new: tuple[Path, ...],
    drift: float,
    suite: tuple[Path, ...],
    fail_slower: float | None,
    report_options: tuple[str, ...],
    verbose: bool,
    quiet: bool,
    color: str,
) -> int:
    """Compare each run NEW with BASE: run logs, recordings or certificates.

    Shows how their environments differ, then which cases are new failures, are fixed, still fail,
    changed bits within the rule or drifted toward their limit, and which operators take longer on
    the device than noise explains. With two or more runs NEW, it also shows in which cases one run
    alone fails or alone passes.

    Exit codes, of which the first that applies counts: 1 a new failure, or --fail-slower is not
    met; 6 a run NEW is incomplete; 7 a run NEW has no case in common with BASE; 8 a report could
    not be written.
    """
    from rich.console import Group

    from dmlconf.comparison.compare import compare
    from dmlconf.comparison.outliers import FEWEST_RUNS, outliers
    from dmlconf.reports.comparisons.changes import render_terminal
    from dmlconf.reports.comparisons.outliers import render_outliers

    reports = parse_reports(report_options, COMPARISON_FORMATS)
    old = read_run(base, suite)
    runs = [read_run(path, suite) for path in new]
    compared: list[tuple[Comparison, tuple[str, str]]] = [
        (compare(old, run, drift), (str(base), str(path)))
        for path, run in zip(new, runs, strict=True)
    ]

    parts = [
        render_terminal(comparison, names, verbose=verbose, quiet=quiet)
        for comparison, names in compared
    ]
    if len(runs) + 1 >= FEWEST_RUNS:
        parts += render_outliers(outliers([old, *runs]), [str(base), *map(str, new)])
    shown = write(reports, compared, Group(*parts), color, announce=not quiet)
    complaints = [
        complaint
        for comparison, _ in compared
        for complaint in too_slow(comparison.timing, fail_slower)
    ]
    for complaint in complaints:
        say(complaint)
    codes = [_exit_code(comparison) for comparison, _ in compared]
    codes += [ExitCode.FAILED] if complaints else []
    codes += [] if shown else [ExitCode.OUTPUT]
    return max(codes, key=severity)


def _exit_code(comparison: Comparison) -> ExitCode:
    if comparison.fails_newly:
        return ExitCode.FAILED
    if not comparison.new.complete:
        return ExitCode.INCOMPLETE
    return ExitCode.SUCCESS if comparison.shared else ExitCode.NOTHING_CHECKED
