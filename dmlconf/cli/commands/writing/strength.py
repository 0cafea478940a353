"""`dmlconf strength`: measure which defects a suite notices, and which a target excuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from dmlconf.cases.selecting.selection import CAPTURED_TAG, MODEL_TAG, graphs_in
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import Number, WholeNumber
from dmlconf.cli.options.backend import color_option, jobs_option
from dmlconf.cli.options.models import leave_out_models
from dmlconf.cli.options.nothing_selected import nothing_selected
from dmlconf.cli.options.reporting import files_of, parse_reports, report_option, write
from dmlconf.cli.options.selection import (
    load_chosen,
    paths_argument,
    selection_options,
    suite_paths,
)
from dmlconf.cli.output.console import say, warn
from dmlconf.cli.output.preflight import prepare_files
from dmlconf.cli.output.progress import progress
from dmlconf.reports.formats import STRENGTH_FORMATS
from dmlconf.reports.strength.figure import Setting
from dmlconf.reports.strength.measurement import FIGURES, Measurement, measured, render_table
from dmlconf.reports.strength.sizes import SIZES

__all__ = ["command"]

_THRESHOLDS: Final = tuple(
    name for kind in FIGURES.values() for name in kind.thresholds or (kind.name,)
)
"""The figures that `--fail-under` can name."""


def _thresholds(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, float]:
    """Return percentages by figure: `drivers=95` is for `drivers`, and `95` is for `defects`."""
    thresholds = {}
    for value in values:
        figure, equals, number = value.rpartition("=")
        figure = figure if equals else "defects"
        if figure not in _THRESHOLDS:
            known = ", ".join(_THRESHOLDS)
            message = f"{figure!r} is not a figure; choose one of {known}."
            raise click.BadParameter(message, context, parameter)
        if figure in thresholds:
            raise click.BadParameter(f"{figure} has two percentages; give one", context, parameter)
        thresholds[figure] = Number(0, 100).convert(number, parameter, context)
    return thresholds


@click.command(
    "strength", cls=Command, short_help="Measure the share of injected defects the suite notices."
)
@paths_argument
@selection_options
@jobs_option("1")
@option(
    "--figure",
    "chosen",
    multiple=True,
    type=click.Choice(tuple(FIGURES)),
    help="Measure only this figure: by defect and case, perturbation, driver defect, "
    "defect of size, graph, rewrite, expectation, or deviation of a target.",
)
@option(
    "--sample",
    type=WholeNumber(min=1),
    metavar="N",
    help="Try at most N cases of each operator and of each driver defect. An unexplained driver "
    "defect that fewer than three of them notice (if N is 1 or 2, none) is tried on all cases, and "
    "an operator that notices less than 99% of spoiled expectations on ten times as many.",
)
@option(
    "--seed",
    type=WholeNumber(min=0),
    default=0,
    metavar="N",
    help="The random seed for samples and for the elements to perturb.",
)
@report_option(STRENGTH_FORMATS)
@option(
    "--fail-under",
    "thresholds",
    multiple=True,
    callback=_thresholds,
    metavar="[FIGURE=]PERCENT",
    help="Fail if a figure is lower: defects (the lowest of any operator; also fails if a "
    "legitimate difference fails), cases, perturbations (the lowest of any kind), "
    "drivers, sizes, graphs, rewrites, expectations (the lowest of any operator), deviations "
    "(the lowest of any target).",
)
@option(
    "-v", "--verbose", is_flag=True, help="Show each kind of defect, and which cases are missing."
)
@option("-q", "--quiet", is_flag=True, help="Show no progress.")
@color_option
def command(
    paths: tuple[Path, ...],
    jobs: int | None,
    chosen: tuple[str, ...],
    sample: int | None,
    seed: int,
    report_options: tuple[str, ...],
    thresholds: dict[str, float],
    verbose: bool,
    quiet: bool,
    color: str,
    **selection: Any,
) -> int:
    """Corrupt correct outputs, and measure what share of the defects the suite notices.

    Figures are measured on the selected cases under PATHS (by default the bundled suite) that would
    pass in a run. Cases with the tag `model` are left out unless you ask for them, or for the
    figure sizes only.

    By defect and by case: kinds of defects of every operator. A defect is caught if the verdict of
    at least one case fails; "by case" counts every case that runs its code. Differences that
    hardware may legitimately show are injected too, and must not fail. Graphs have their own
    figure.

    By perturbation: in each output, a random element is 1% off, swapped with another, negated, off
    by one or some ULP away, or the largest is zeroed.

    By driver defect: realistic defects, many rebuilt from public reports, each tried on the cases
    that meet its conditions. For a defect that no case notices, the missing case is named. Defects
    that fewer than three cases notice are listed.

    By defect of size, only with --figure sizes: errors of kernels at the sizes of real layers,
    tried on the cases with the tag `model` and without the tag `captured`.

    By expectation, only with --figure expectations: each stated or recorded output is changed as
    in "By perturbation", and the case must fail.

    By graph, only with --figure graphs: errors of graph compilers, and deviations that they are
    allowed, tried at the nodes and edges of every graph.

    By rewrite, only with --figure rewrites: a rewrite of the catalogue counts if some graph passes
    after the rewrite. A condition of a rewrite counts if some graph that does not meet it fails
    after the rewrite.

    By deviation, only with --figure deviations: how many perturbations that fail by DirectML's
    documentation a deviation of ONNX or WebNN excuses.

    Exit codes: as for `run`; 1 if a figure is below --fail-under.
    """
    reports = parse_reports(report_options, STRENGTH_FORMATS)
    _, plan = load_chosen(paths, **selection)
    both = {MODEL_TAG, CAPTURED_TAG}
    models = [case for case in plan if both & {*case.template.tags} == {MODEL_TAG}]
    names = chosen or tuple(name for name, kind in FIGURES.items() if kind.usual)
    if names == (SIZES.name,):
        plan = models
    else:
        plan = leave_out_models(paths, plan, selection, "because they take long")
    if not plan:
        return nothing_selected(paths, selection)
    if all(FIGURES[name].graphs_only for name in names):
        plan = graphs_in(plan)
    if not plan:
        figures = " ".join(f"--figure {name}" for name in names)
        say(f"Error: no case was selected: {figures} measures graphs, and none is among the cases")
        return ExitCode.NOTHING_SELECTED
    prepare_files(files_of(reports))

    @contextmanager
    def shown(count: int) -> Iterator[Callable[[], None]]:
        with progress(count, quiet=quiet, color=color) as advance:
            yield lambda: advance(False)

    setting = Setting(plan, models, suite_paths(paths), jobs or 1, sample, seed, names, shown)
    measurement = measured(setting)
    for recording in setting.recordings if selection["challenge"] is None else ():
        warn(recording.stale_note(paths))
    table = render_table(measurement, verbose=verbose)
    written = write(reports, measurement, table, color, announce=not quiet)
    return _exit_code(measurement, thresholds) or (ExitCode.SUCCESS if written else ExitCode.OUTPUT)


def _exit_code(measurement: Measurement, thresholds: Mapping[str, float]) -> ExitCode:
    complaints = [
        complaint
        for name, least in thresholds.items()
        for complaint in measurement.complaints(name, least)
    ]
    for complaint in complaints:
        click.echo(f"Error: {complaint}", err=True)
    return ExitCode.FAILED if complaints else ExitCode.SUCCESS
