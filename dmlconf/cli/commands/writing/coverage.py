"""`dmlconf coverage`: how much a suite covers, and how much of it a target can express."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from dmlconf.cases.loading.loader import Suite, valid_case
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.cases.selecting.selection import without_models
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import UnknownOperatorError, entry_of, operator_names
from dmlconf.catalogue.model import Entry, Operator
from dmlconf.cli.common.cache import figure_cache
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import Number
from dmlconf.cli.options.backend import color_option
from dmlconf.cli.options.named_operators import operator_option
from dmlconf.cli.options.reporting import files_of, parse_reports, report_option, write
from dmlconf.cli.options.selection import load, paths_argument, suite_paths
from dmlconf.cli.output.preflight import prepare_files
from dmlconf.cli.output.progress import progress
from dmlconf.coverage.captured import CapturedUses
from dmlconf.coverage.combinations.measure import CombinationCoverage, measure_combinations
from dmlconf.coverage.expressible import measure_target
from dmlconf.coverage.graphs import graph_coverage
from dmlconf.coverage.measure import measure
from dmlconf.coverage.networks import network_coverage
from dmlconf.coverage.questions import QuestionCoverage, measure_questions
from dmlconf.documents.problems import printable
from dmlconf.engine.against import recorded_in, suite_recordings
from dmlconf.reports.formats import COMBINATION_FORMATS, COVERAGE_FORMATS, QUESTION_FORMATS, Report
from dmlconf.reports.suites import combinations as combination_report
from dmlconf.reports.suites import coverage as report
from dmlconf.reports.suites import expressible as target_report
from dmlconf.reports.suites import questions as question_report
from dmlconf.reports.suites.coverage import Coverage
from dmlconf.reports.suites.shares import HasShare, percentage, total_share
from dmlconf.translation.tables import TARGETS

__all__ = ["command"]


@dataclass(frozen=True, slots=True)
class _Options:
    """What to show, and which share to demand.

    Attributes:
        missing: whether to list what no case covers; with a target, why cases cannot be expressed.
        excluded: with --combinations, whether to list impossible pairs of values, too.
        fail_under: the least share in percent; None if any will do.
    """

    missing: bool
    excluded: bool
    fail_under: float | None
    quiet: bool
    color: str

    def exit_code(self, rows: Sequence[HasShare], *, written: bool) -> int:
        """Return the exit code; `written` says whether all reports could be written."""
        covered, of = total_share(rows)
        if self.fail_under is not None and 100 * covered < self.fail_under * of:
            share = f"{percentage(covered, of):.2f}%"
            click.echo(f"Error: {share} is below {self.fail_under:g}%", err=True)
            return ExitCode.FAILED
        return ExitCode.SUCCESS if written else ExitCode.OUTPUT


@click.command("coverage", cls=Command, short_help="Show how much of the documentation is covered.")
@paths_argument
@operator_option("Only this operator.", parameter="names")
@option(
    "--questions",
    is_flag=True,
    help="Show which questions of schemas/questions.yaml the cases ask.",
)
@option(
    "--combinations",
    is_flag=True,
    help="Show which pairs of values of the operators' parameters the cases have.",
)
@option(
    "--target",
    type=click.Choice(TARGETS),
    help="Show how many of the cases this specification can express, and why not the others.",
)
@option("--missing", is_flag=True, help="List what no case covers; with --target, why.")
@option(
    "-v",
    "--verbose",
    is_flag=True,
    help="With --combinations: list impossible pairs as well, with the reason.",
)
@report_option(COVERAGE_FORMATS)
@option(
    "--fail-under", type=Number(0, 100), metavar="PERCENT", help="Fail if a lower share is covered."
)
@option("-q", "--quiet", is_flag=True, help="Show no progress.")
@color_option
def command(
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    questions: bool,
    combinations: bool,
    target: str | None,
    missing: bool,
    verbose: bool,
    report_options: tuple[str, ...],
    fail_under: float | None,
    quiet: bool,
    color: str,
) -> int:
    """Show which parts of the documentation the suite under PATHS covers.

    For each operator: its cases by kind, those recorded on a real DirectML, and how many documented
    parts have a case. Parts are cells of the support tables (tensor, data type, rank, feature
    level), values of attributes, optional fields present and absent, worked examples, constraints.
    For each published network: how many of its layers have a case with the tag `model`. For
    graphs: which operators feed which; each pair is listed in a --report, or if few operators are
    selected. For captured models: how many operators, data types, values of attributes and
    neighbours they use, and how many of these only captured cases have, which --missing lists.

    With --target: how many cases of each operator have a counterpart in ONNX or WebNN, and why the
    others have none. Nothing runs.

    With --questions: whether a case asks each question of schemas/questions.yaml, such as whether
    integers are right where 32 bits end, of each operator and data type that it can concern.

    With --combinations: whether each possible pair of values of an operator's parameters, such as
    TransA = TRANSPOSE with rows = tile + 1, has a case. Parameters are data types, numbers of
    dimensions, layouts, flags, enumerations, optional fields, sizes and classes of data.

    With --questions and --combinations, cases with the tag `model` do not count.

    Exit codes: as for `run`; 1 if the share is below --fail-under.
    """
    if questions + combinations + (target is not None) > 1:
        raise click.UsageError("--questions, --combinations and --target exclude each other")
    if verbose and not combinations:
        raise click.UsageError("-v needs --combinations")
    if target is not None and report_options:
        raise click.UsageError("--target shows a table only; leave out --report")
    others = questions or combinations
    reports = [] if others else parse_reports(report_options, COVERAGE_FORMATS)
    on_pairs = parse_reports(report_options, COMBINATION_FORMATS) if combinations else []
    on_questions = parse_reports(report_options, QUESTION_FORMATS) if questions else []
    prepare_files([*files_of(reports), *files_of(on_pairs), *files_of(on_questions)])
    options = _Options(missing, verbose, fail_under, quiet, color)
    entries = _entries(names)
    suite = load(paths, operators={entry.name for entry in entries})
    if target is not None:
        return _target(target, entries, suite, options)
    if combinations:
        return _combinations(entries, suite, on_pairs, options)
    if questions:
        return _questions(entries, suite, on_questions, options)
    recorded = recorded_in(suite_recordings(suite_paths(paths)))
    return _documentation(entries, suite, recorded, reports, options)


def _entries(names: Sequence[str]) -> list[Entry]:
    try:
        return [entry_of(name) for name in names or (*operator_names(), GRAPHS)]
    except UnknownOperatorError as error:
        raise click.UsageError(printable(str(error))) from error


def _planned(entries: Iterable[Entry], suite: Suite) -> list[PlannedCase]:
    names = {entry.name for entry in entries}
    return [planned for planned in suite.plan() if planned.template.operator_name in names]


def _cases(plan: Collection[PlannedCase]) -> Iterator[Case]:
    """Build the cases; constraints of which a run has found none broken are not checked again."""
    cache = figure_cache(len(plan))
    for planned in plan:
        yield valid_case(planned) if cache is None else valid_case(planned, cache.recall)


def _documentation(
    entries: Sequence[Entry],
    suite: Suite,
    recorded: Callable[[Case], bool],
    reports: Sequence[Report[Coverage]],
    options: _Options,
) -> int:
    operators = [entry for entry in entries if isinstance(entry, Operator)]
    plan = _planned(operators, suite)
    uses = CapturedUses()
    with progress(len(plan), quiet=options.quiet, color=options.color) as advance:
        cases = uses.counting(_cases(plan))
        coverage = measure(operators, cases, recorded, lambda: advance(False))
    rows = [coverage[name] for name in sorted(coverage)]
    width = shutil.get_terminal_size((80, 24)).columns
    graphs = graph_coverage(suite.plan(), coverage.keys())
    captured = uses.coverage(suite.plan(), graphs)
    figures = Coverage(rows, network_coverage(plan), graphs, captured)
    table = report.render_table(figures, width=width, missing=options.missing)
    written = write(reports, figures, table, options.color, announce=not options.quiet)
    return options.exit_code(rows, written=written)


def _target(target: str, entries: Sequence[Entry], suite: Suite, options: _Options) -> int:
    plan = _planned(entries, suite)
    with progress(len(plan), quiet=options.quiet, color=options.color) as advance:
        rows = measure_target(_cases(plan), target, lambda: advance(False))
    table = target_report.render_table(rows, missing=options.missing)
    return options.exit_code(rows, written=write([], rows, table, options.color))


def _combinations(
    entries: Sequence[Entry],
    suite: Suite,
    reports: Sequence[Report[Sequence[CombinationCoverage]]],
    options: _Options,
) -> int:
    plan, _ = without_models(_planned(entries, suite))
    with progress(len(plan), quiet=options.quiet, color=options.color) as advance:
        rows = measure_combinations(entries, _cases(plan), lambda: advance(False))
    ordered = [rows[name] for name in sorted(rows)]
    table = combination_report.render_table(
        ordered, missing=options.missing, excluded=options.excluded
    )
    written = write(reports, ordered, table, options.color, announce=not options.quiet)
    return options.exit_code(ordered, written=written)


def _questions(
    entries: Sequence[Entry],
    suite: Suite,
    reports: Sequence[Report[Sequence[QuestionCoverage]]],
    options: _Options,
) -> int:
    operators = [entry for entry in entries if isinstance(entry, Operator)]
    chosen = {entry.name for entry in entries}
    plan, _ = without_models(_planned(entries, suite))
    with progress(len(plan), quiet=options.quiet, color=options.color) as advance:
        rows = measure_questions(operators, _cases(plan), lambda: advance(False))
    ordered = [rows[name] for name in sorted(rows) if name in chosen]
    table = question_report.render_table(ordered, missing=options.missing)
    written = write(reports, ordered, table, options.color, announce=not options.quiet)
    return options.exit_code(ordered, written=written)
