"""`dmlconf strength`: what share of injected defects a suite catches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from dmlconf.cli.console import warn
from dmlconf.cli.exit_codes import ExitCode
from dmlconf.cli.options import (
    Number,
    color_option,
    jobs_option,
    load_chosen,
    nothing_selected,
    paths_argument,
    selection_options,
    suite_paths,
)
from dmlconf.cli.progress import progress
from dmlconf.cli.reporting import parse_reports, write
from dmlconf.strength import report
from dmlconf.strength.measure import Strength
from dmlconf.strength.parallel import measure_in_processes

__all__ = ["command"]

_FORMATS: Final[Mapping[str, Callable[[Strength], str]]] = {
    "json": report.render_json,
    "markdown": report.render_markdown,
}


@click.command("strength")
@paths_argument
@selection_options
@jobs_option("1")
@click.option("--report", "report_options", multiple=True, metavar="FORMAT[:FILE]",
              help="Also report as json or markdown.")  # fmt: skip
@click.option("--fail-under", type=Number(0, 100), metavar="PERCENT",
              help="Fail where an operator's share is lower, or a legitimate difference fails.",
              )  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show each kind of defect.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@color_option
def command(
    paths: tuple[Path, ...],
    jobs: int | None,
    report_options: tuple[str, ...],
    fail_under: float | None,
    verbose: bool,
    quiet: bool,
    color: str,
    **selection: Any,
) -> int:
    """Inject defects into correct outputs, and tell which share the suite catches.

    Every case under PATHS (the bundled suite where there are none) that a run would pass gets
    each defect in turn. A defect is caught if the verdict of at least one case fails; one that
    stays within the operator's precision rule everywhere is counted apart. Differences that
    hardware may legitimately show are injected too, and must not fail.

    Exit codes: as `run`; 1 where a figure is below --fail-under.
    """
    reports = parse_reports(report_options, _FORMATS)
    _, plan = load_chosen(paths, **selection)
    if not plan:
        return nothing_selected(paths, selection["tags"], selection["identifiers"])
    with progress(len(plan), quiet=quiet, color=color) as advance:
        strength, recordings = measure_in_processes(
            plan, suite_paths(paths), jobs or 1, lambda: advance(False)
        )
    for recording in recordings:
        warn(recording.stale_note(paths))
    table = report.render_table(strength, verbose=verbose)
    written = write(reports, lambda name: _FORMATS[name](strength), table, color)
    return _exit_code(strength, fail_under) or (ExitCode.SUCCESS if written else ExitCode.OUTPUT)


def _exit_code(strength: Strength, fail_under: float | None) -> ExitCode:
    if fail_under is None:
        return ExitCode.SUCCESS
    rows = report.operator_strengths(strength)
    weak = [row for row in rows if report.share(row.caught, row.injected) < fail_under]
    for row in weak:
        told = f"{row.operator}: {report.share(row.caught, row.injected):.2f}%"
        click.echo(f"Error: {told} of its defects caught, fewer than {fail_under:g}%", err=True)
    return ExitCode.FAILED if weak or strength.refused or not rows else ExitCode.SUCCESS
