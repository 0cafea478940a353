"""`dmlconf strength`: how many possible defects a suite notices, in several figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from dmlconf.cases.selecting.selection import MODEL_TAG, graphs_in
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.options.backend import Number, color_option, jobs_option
from dmlconf.cli.options.models import leave_out_models
from dmlconf.cli.options.reporting import parse_reports, report_option, write
from dmlconf.cli.options.selection import (
    load_chosen,
    nothing_selected,
    paths_argument,
    selection_options,
    suite_paths,
)
from dmlconf.cli.output.console import warn
from dmlconf.cli.output.progress import progress
from dmlconf.reports.formats import STRENGTH_FORMATS
from dmlconf.reports.strength import defects as report
from dmlconf.reports.strength import measurement as figures
from dmlconf.reports.strength.cases import case_share
from dmlconf.reports.strength.drivers import driver_share
from dmlconf.reports.strength.expectations import weak_operators
from dmlconf.reports.strength.measurement import Measurement
from dmlconf.reports.strength.perturbations import weak_kinds
from dmlconf.reports.strength.sizes import size_share
from dmlconf.strength.drivers.catalogue import driver_defects, size_defects
from dmlconf.strength.drivers.figure import DriverFigure
from dmlconf.strength.drivers.parallel import measure_drivers
from dmlconf.strength.graph_figure import graph_share
from dmlconf.strength.measure import Method, Strength
from dmlconf.strength.parallel import (
    measure_expectations_in_processes,
    measure_graphs_in_processes,
    measure_in_processes,
    measure_rewrites_in_processes,
)
from dmlconf.strength.rewrite_figure import rewrite_lines, rewrite_share
from dmlconf.strength.sampling import sampled

__all__ = ["command"]

_FIGURES: Final = ("defects", "perturbations", "drivers")
_OF_MODELS: Final = "sizes"
"""The figure of the cases of models, which takes long and is measured only on request."""
_OF_GRAPHS: Final = "graphs"
"""The figure of graph compilers, likewise."""

_OF_REWRITES: Final = "rewrites"
"""The figure of the catalogue of rewrites, likewise."""

_OF_EXPECTATIONS: Final = "expectations"
"""The figure of what cases expect, likewise."""

_THRESHOLDS: Final = (
    "defects",
    "cases",
    "perturbations",
    "drivers",
    _OF_MODELS,
    _OF_GRAPHS,
    _OF_REWRITES,
    _OF_EXPECTATIONS,
)


def _thresholds(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, float]:
    """Parse `drivers=95` as a figure and a percentage; without a figure it is for `defects`."""
    thresholds = {}
    for value in values:
        figure, _, number = value.rpartition("=")
        figure = figure or "defects"
        if figure not in _THRESHOLDS:
            known = ", ".join(_THRESHOLDS)
            message = f"{figure!r} is not a figure; choose one of {known}."
            raise click.BadParameter(message, context, parameter)
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
    type=click.Choice((*_FIGURES, _OF_MODELS, _OF_GRAPHS, _OF_REWRITES, _OF_EXPECTATIONS)),
    help="Measure only this figure: by defect and case, perturbation, driver defect, "
    "defect of size, graph, rewrite, or expectation.",
)
@option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Try at most N cases of each operator and of each driver defect. An unexplained driver "
    "defect that they miss is tried on all cases.",
)
@option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="The random seed for samples and places of perturbations.",
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
    "drivers, sizes, graphs, rewrites, expectations (the lowest of any operator).",
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

    Figures, for every case under PATHS (by default the bundled suite) that would pass in a run:

    By defect and by case: kinds of defects of every operator. A defect is caught if the verdict of
    at least one case fails; "by case" counts every case that runs its code. Differences that
    hardware may legitimately show are injected too, and must not fail. Graphs have their own
    figure.

    By perturbation: one element of each output is 1% off, zeroed, swapped with another, negated,
    off by one, or some ULP away, at a random place.

    By driver defect: a catalogue of realistic defects, many rebuilt from public reports, each
    tried on the cases that meet its conditions. A defect that survives names the missing case.

    By defect of size, only with --figure sizes: errors of kernels at the sizes of real layers,
    tried on the cases with the tag `model`.

    By expectation, only with --figure expectations: each output that a case states or that was
    recorded is spoiled as by perturbation, and the case must fail.

    By graph, only with --figure graphs: errors of graph compilers, and deviations that they are
    allowed, tried at every place of every graph.

    By rewrite, only with --figure rewrites: each rewrite of the catalogue has a graph in which the
    rewritten graph passes, and each of its conditions one in which it fails.

    Exit codes: as for `run`; 1 if a figure is below --fail-under.
    """
    reports = parse_reports(report_options, STRENGTH_FORMATS)
    _, plan = load_chosen(paths, **selection)
    models = [case for case in plan if MODEL_TAG in case.template.tags]
    figure_names = chosen or _FIGURES
    if figure_names == (_OF_MODELS,):
        plan = models
    else:
        plan = leave_out_models(paths, plan, selection, "because they take long")
    if not plan:
        return nothing_selected(paths, selection)
    if set(figure_names) <= {_OF_GRAPHS, _OF_REWRITES}:
        plan = graphs_in(plan)
        if not plan:
            return nothing_selected(paths, selection)
    processes = jobs or 1
    method = Method("defects" in figure_names, "perturbations" in figure_names, seed)
    strength, drivers, sizes, graphs, expected = Strength(), None, None, None, None
    of_rewrites = None
    if method.defects or method.perturbations:
        cases = sampled(plan, sample, seed)
        with progress(len(cases), quiet=quiet, color=color) as advance:
            strength, recordings = measure_in_processes(
                cases, suite_paths(paths), processes, lambda: advance(False), method
            )
        for recording in recordings if selection["challenge"] is None else ():
            warn(recording.stale_note(paths))
    if "drivers" in figure_names:
        with progress(len(plan), quiet=quiet, color=color) as advance:
            survey, noticed = measure_drivers(
                plan, suite_paths(paths), processes, sample, seed, lambda: advance(False)
            )
        drivers = DriverFigure.of(driver_defects(), survey, noticed)
    if _OF_MODELS in figure_names:
        with progress(len(models), quiet=quiet, color=color) as advance:
            survey, noticed = measure_drivers(
                models,
                suite_paths(paths),
                processes,
                sample,
                seed,
                lambda: advance(False),
                size_defects(),
            )
        sizes = DriverFigure.of(size_defects(), survey, noticed)
    if _OF_GRAPHS in figure_names:
        cases = sampled(graphs_in(plan), sample, seed)
        with progress(len(cases), quiet=quiet, color=color) as advance:
            graphs = measure_graphs_in_processes(
                cases, suite_paths(paths), processes, lambda: advance(False)
            )
    if _OF_REWRITES in figure_names:
        cases = [case for case in plan if "rewrite" in case.template.data]
        with progress(len(cases), quiet=quiet, color=color) as advance:
            of_rewrites = measure_rewrites_in_processes(
                cases, suite_paths(paths), processes, lambda: advance(False)
            )
    if _OF_EXPECTATIONS in figure_names:
        cases = sampled(plan, sample, seed)
        with progress(len(cases), quiet=quiet, color=color) as advance:
            expected = measure_expectations_in_processes(
                cases, suite_paths(paths), processes, lambda: advance(False), seed
            )
    measured = Measurement(
        strength=strength,
        drivers=drivers,
        defects=method.defects,
        perturbations=method.perturbations,
        seed=seed,
        sample=sample,
        sizes=sizes,
        graphs=graphs,
        expectations=expected,
        rewrites=of_rewrites,
    )
    table = figures.render_table(measured, verbose=verbose)
    written = write(reports, measured, table, color, announce=not quiet)
    return _exit_code(measured, thresholds) or (ExitCode.SUCCESS if written else ExitCode.OUTPUT)


def _exit_code(measured: Measurement, thresholds: Mapping[str, float]) -> ExitCode:
    if not thresholds:
        return ExitCode.SUCCESS
    complaints = [
        complaint
        for figure, threshold in thresholds.items()
        for complaint in _CHECKS[figure](measured, threshold)
    ]
    for complaint in complaints:
        click.echo(f"Error: {complaint}", err=True)
    return ExitCode.FAILED if complaints else ExitCode.SUCCESS


def _weak_operators(measured: Measurement, least: float) -> list[str]:
    rows = report.operator_strengths(measured.strength)
    complaints = [
        f"{row.operator}: {report.share(row.caught, row.injected):.2f}% of its defects caught, "
        f"fewer than {least:g}%"
        for row in rows
        if report.share(row.caught, row.injected) < least
    ]
    if not rows:
        complaints.append("no defect was injected")
    if measured.strength.refused:
        complaints.append(f"{len(measured.strength.refused):,} legitimate differences fail")
    return complaints


def _weak_cases(measured: Measurement, least: float) -> list[str]:
    share = case_share(measured.noticed)
    return [f"by case: {share:.2f}%, less than {least:g}%"] if share < least else []


def _weak_perturbations(measured: Measurement, least: float) -> list[str]:
    return [
        f"{one.kind} ({one.operators}): {one.share:.2f}% noticed, less than "
        f"{min(least, one.target):g}%"
        for one in weak_kinds(measured.strength.perturbed, least)
    ]


def _weak_drivers(measured: Measurement, least: float) -> list[str]:
    if measured.drivers is None:
        return ["driver defects were not measured"]
    share = driver_share(measured.drivers)
    return [f"by driver defect: {share:.2f}%, less than {least:g}%"] if share < least else []


def _weak_sizes(measured: Measurement, least: float) -> list[str]:
    if measured.sizes is None:
        return ["defects of size were not measured"]
    share = size_share(measured.sizes)
    return [f"by defect of size: {share:.2f}%, less than {least:g}%"] if share < least else []


def _weak_graphs(measured: Measurement, least: float) -> list[str]:
    if measured.graphs is None:
        return ["defects of graph compilers were not measured"]
    noticed = graph_share(measured.graphs)
    complaints = [f"by graph: {noticed:.2f}%, less than {least:g}%"] if noticed < least else []
    refused = sum(len(tally.unexpected) for tally in measured.graphs.variants.values())
    return complaints + ([f"{refused:,} correct variants of graphs fail"] if refused else [])


def _weak_rewrites(measured: Measurement, least: float) -> list[str]:
    if measured.rewrites is None:
        return ["rewrites of graph compilers were not measured"]
    proven = rewrite_share(measured.rewrites)
    if proven >= least:
        return []
    return [f"by rewrite: {proven:.2f}%, less than {least:g}%", *rewrite_lines(measured.rewrites)]


def _weak_expectations(measured: Measurement, least: float) -> list[str]:
    if measured.expectations is None:
        return ["spoiled expectations were not measured"]
    return [
        f"by expectation: {operator} notices {noticed:.2f}%, less than {least:g}%"
        for operator, noticed in weak_operators(measured.expectations, least).items()
    ] + [f"by expectation: {case} fails as it is" for case in measured.expectations.failing]


_CHECKS: Final[Mapping[str, Callable[[Measurement, float], list[str]]]] = {
    "defects": _weak_operators,
    "cases": _weak_cases,
    "perturbations": _weak_perturbations,
    "drivers": _weak_drivers,
    _OF_MODELS: _weak_sizes,
    _OF_GRAPHS: _weak_graphs,
    _OF_REWRITES: _weak_rewrites,
    _OF_EXPECTATIONS: _weak_expectations,
}
