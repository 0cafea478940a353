"""`dmlconf fuzz`: generate random cases, run them on a backend, and report."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, Final

import click
from click.core import ParameterSource

from dmlconf.backends.subject import REFERENCE
from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cases.model import CaseTemplate, PlannedCase
from dmlconf.catalogue.graph import is_graphs
from dmlconf.catalogue.loader import operator_names
from dmlconf.cli.common.cache import checked_files
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.configuration import BACKEND_GROUP
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.logs import opened_log, replace_log, require_unchanged
from dmlconf.cli.common.parameter_types import Number, WholeNumber
from dmlconf.cli.common.path_types import FOLDER
from dmlconf.cli.options.backend import backend_option, color_option, early_end_options
from dmlconf.cli.options.device import DeviceOptions, single_device_options
from dmlconf.cli.options.named_operators import expand_operators, operator_option
from dmlconf.cli.options.reporting import (
    REPORT_GROUP,
    detail_options,
    files_of,
    log_option,
    parse_reports,
    report_option,
    show,
)
from dmlconf.cli.options.run_exit_code import NO_KNOWN_FAULTS_HELP, Demands, run_exit_code
from dmlconf.cli.output.console import say
from dmlconf.cli.output.files import require_folder
from dmlconf.cli.output.preflight import prepare_files
from dmlconf.cli.output.progress import advancing, progress
from dmlconf.cli.runs.fuzz_reduction import Trial, reduce_groups
from dmlconf.cli.runs.logged_run import default_log, failures_folder, is_in_memory
from dmlconf.diagnosis.shared_properties import shared_properties
from dmlconf.engine.consumers import logging_to, run_through
from dmlconf.engine.core import Engine
from dmlconf.engine.events import Event, Judged
from dmlconf.engine.run import How, Rounds, Run
from dmlconf.engine.target import local_target
from dmlconf.fuzzing.graphs import MOST_NODES
from dmlconf.fuzzing.plan import Fuzz, Kind
from dmlconf.fuzzing.planted_rewrites import plantable, rewrite_files
from dmlconf.fuzzing.saving import in_folder, save_cases
from dmlconf.judging.conclusion import JudgeOptions
from dmlconf.reports.formats import RUN_FORMATS
from dmlconf.run_log.log import LogWriter, RunLog, read_log, rewrite
from dmlconf.verdicts.verdict import Verdict

__all__ = ["command"]

_CASES: Final = 100
"""How many cases of each operator, or how many graphs, without --cases, --time and --number."""
_ROUND: Final = 100
"""The most cases of a round; --time ends a run only between rounds."""

_MOST_SAVED: Final = 100
"""The most failing cases of one group that are written."""

_CHOICE_GROUP: Final = "Choose what to generate"


def _operators(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    names: list[str] = []
    for value in values:
        if is_graphs(value):
            raise click.BadParameter("use --graphs to generate graphs", context, parameter)
        names += expand_operators(context, parameter, (value,))
    return tuple(dict.fromkeys(names))


@click.command("fuzz", cls=Command, short_help="Generate random cases, run them, and report.")
@backend_option(
    "The backend to test, such as directml.",
    required=True,
    group=BACKEND_GROUP,
)
@operator_option(
    "Generate cases of this operator; of all operators if none is given.",
    callback=_operators,
    group=_CHOICE_GROUP,
)
@option(
    "--graphs",
    is_flag=True,
    group=_CHOICE_GROUP,
    help="Generate graphs of these operators instead of single operators.",
)
@option(
    "--nodes",
    default=MOST_NODES,
    show_default=True,
    type=WholeNumber(1, 100),
    metavar="N",
    group=_CHOICE_GROUP,
    help="Generate graphs of at most N random nodes.",
)
@option(
    "--rewrites/--no-rewrites",
    default=True,
    group=_CHOICE_GROUP,
    help="Plant a rewrite of graph compilers, or a near miss of one, in a random third of the "
    "graphs.",
)
@option(
    "--invalid",
    is_flag=True,
    group=_CHOICE_GROUP,
    help="Generate cases that break one constraint each, which the backend must refuse.",
)
@option(
    "--seed",
    type=WholeNumber(min=0),
    metavar="N",
    group=_CHOICE_GROUP,
    help="Generate the cases of this seed; a random one if not given. With the same choices, the "
    "same seed and number give the same case on every machine.",
)
@option(
    "--cases",
    "count",
    type=WholeNumber(min=1),
    metavar="N",
    group=_CHOICE_GROUP,
    help=f"Generate N cases of each operator, or N graphs; {_CASES} without --time and --number.",
)
@option(
    "--time",
    "seconds",
    type=Number(0, min_open=True),
    metavar="SECONDS",
    group=_CHOICE_GROUP,
    help="Generate cases for this long, and end with a whole round.",
)
@option(
    "--number",
    "numbers",
    multiple=True,
    type=WholeNumber(min=0),
    metavar="N",
    group=_CHOICE_GROUP,
    help="Generate only the case of this number, for each operator.",
)
@single_device_options
@option("--no-known-faults", is_flag=True, group=BACKEND_GROUP, help=NO_KNOWN_FAULTS_HELP)
@early_end_options
@option(
    "--save",
    "folder",
    type=FOLDER,
    metavar="FOLDER",
    group=REPORT_GROUP,
    help="Write failing cases as case files here, some of each group; "
    "by default beside the run log.",
)
@option(
    "--reduce",
    "reduce_seconds",
    default=60.0,
    show_default=True,
    type=Number(0),
    metavar="SECONDS",
    group=REPORT_GROUP,
    help="Reduce one failing case of each group, taking this long in total; 0 turns this off.",
)
@log_option
@report_option(RUN_FORMATS)
@detail_options
@color_option
def command(
    backend: str,
    operators: tuple[str, ...],
    graphs: bool,
    nodes: int,
    rewrites: bool,
    invalid: bool,
    seed: int | None,
    count: int | None,
    seconds: float | None,
    numbers: tuple[int, ...],
    device_options: DeviceOptions,
    no_known_faults: bool,
    fail_fast: bool,
    max_failures: int | None,
    folder: Path | None,
    reduce_seconds: float,
    log_file: Path | None,
    report_options: tuple[str, ...],
    durations: int,
    verbose: bool,
    quiet: bool,
    failures: int | None,
    color: str,
) -> int:
    """Generate random cases, run them on a backend, and report.

    The catalogue calls the cases valid, except with --invalid. The reference gives the expected
    values. Exit codes are those of `dmlconf run`.
    """
    if sum(map(bool, (count, seconds, numbers))) > 1:
        raise click.UsageError("--cases, --time and --number exclude each other")
    if graphs and invalid:
        raise click.UsageError("--graphs and --invalid exclude each other")
    if not graphs:
        _refuse_options_of_graphs(click.get_current_context())
    reports = parse_reports(report_options, RUN_FORMATS, log=log_file)
    name = device_options.tested(backend)
    seed = int.from_bytes(os.urandom(4), "little") if seed is None else seed
    kind = Kind.GRAPHS if graphs else Kind.INVALID if invalid else Kind.VALID
    chosen_operators = operators or tuple(operator_names())
    planted = _plantable_rewrites(chosen_operators) if graphs and rewrites else ()
    fuzz = Fuzz(chosen_operators, seed, kind, nodes, planted)
    files = files_of(reports)
    files += [(f"--log {log_file}", log_file)] if log_file else []
    prepare_files(files, log=log_file)
    known = device_options.known_limits()
    chosen = list(dict.fromkeys(numbers)) or (None if seconds else list(range(count or _CASES)))
    total = None if chosen is None else fuzz.width * len(chosen)
    cases: dict[str, PlannedCase] = {}
    options: dict[str, Any] = {"seed": seed, "operator": list(operators)}
    options |= {"kind": str(kind)} | ({"nodes": nodes, "rewrites": rewrites} if graphs else {})
    options |= {"time": seconds} if seconds else {}
    options |= {"no_known_faults": True} if no_known_faults else {}
    log = log_file or default_log()
    folder = folder or failures_folder(log)
    require_folder(folder, "--save")
    if not quiet:
        say(f"Failing cases will be in {folder}")
    run = Run(
        suite=Suite((), fuzz.digest),
        paths=(str(folder),),
        suite_paths=(),
        plan=(),
        chosen=Rounds(_rounds(fuzz, folder, chosen, seconds, cases), total),
        how=How(
            name,
            device_options.limits(),
            known,
            compare_unfused=False,
            known_faults=not no_known_faults,
        ),
        against=REFERENCE,
        most_failures=1 if fail_fast else max_failures,
        options=options,
    )

    def forget_passes(event: Event) -> None:
        if isinstance(event, Judged) and not event.verdict.status.fails_run:
            cases.pop(event.verdict.case)

    with Engine(run, local_target(run.how)) as engine:
        with progress(total, quiet=quiet, color=color) as advance, opened_log(log) as stream:
            consumers = [advancing(advance), forget_passes]
            writer, begin = LogWriter(stream), stream.tell()
            footer = run_through(engine, logging_to(writer), consumers)
            require_unchanged(log, stream, begin, writer.digest, footer)
        written = read_log(log, own=True)
        # The header has no number with --time, and too large a one if the run ended early.
        if len(written.verdicts) != total:
            _rewrite(log, written)
            written = read_log(log, own=True)
        shown = show(
            written,
            reports,
            verbose=verbose,
            quiet=quiet,
            color=color,
            durations=durations,
            failures=failures,
        )
        chosen_cases = _save(folder, written, cases)
        if reduce_seconds:
            judging = JudgeOptions(known, known_faults=not no_known_faults)
            trial = Trial(engine.backend, engine.expected.against, judging)
            reduce_groups(folder, chosen_cases, trial, reduce_seconds)
    code, complaints = run_exit_code(footer, Demands())
    for complaint in complaints:
        say(f"Error: {complaint}")
    if not quiet:
        say(f"The seed is {seed}")
    if code:
        say(f"The run log is {log}")
    return code or (ExitCode.SUCCESS if shown else ExitCode.OUTPUT)


def _refuse_options_of_graphs(ctx: click.Context) -> None:
    """Refuse options that are only for graphs, unless they come from the configuration."""
    for name, spelling in (("nodes", "--nodes"), ("rewrites", "--no-rewrites")):
        typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if typed and not (name == "rewrites" and ctx.params[name]):
            raise click.UsageError(f"{spelling} is for graphs; add --graphs")


def _plantable_rewrites(operators: tuple[str, ...]) -> tuple[CaseTemplate, ...]:
    files = rewrite_files()
    suite = load_suite(files, store=checked_files()) if files else Suite((), "")
    return plantable(suite.templates, operators)


def _rounds(
    fuzz: Fuzz,
    folder: Path,
    numbers: list[int] | None,
    seconds: float | None,
    cases: dict[str, PlannedCase],
) -> Iterator[list[PlannedCase]]:
    """Yield generated cases in rounds, and add each case to `cases`, by identifier.

    Args:
        folder: the folder in which a case's file will be if it fails.
        numbers: the numbers of the cases to generate; None for all from 0 on.
        seconds: after how long no further round begins; None for no limit.
    """
    end = None if seconds is None else monotonic() + seconds
    generated = iter(fuzz.cases(numbers))
    while batch := [in_folder(each, folder) for each in islice(generated, _ROUND)]:
        cases.update((planned.identifier, planned) for planned in batch)
        yield batch
        if end is not None and monotonic() >= end:
            return


def _rewrite(path: Path, log: RunLog) -> None:
    """Write a log with the number of cases; unless it is in memory, it is replaced at once."""
    if is_in_memory(path):
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            rewrite(log, LogWriter(stream))
    else:
        replace_log("--log", path, lambda stream: rewrite(log, LogWriter(stream)))


def _save(
    folder: Path, log: RunLog, cases: dict[str, PlannedCase]
) -> list[tuple[PlannedCase, Verdict]]:
    """Write failing cases, and return one of each group with its verdict; none if writing fails."""
    groups = [group.failures for group in shared_properties(log)]
    chosen = [cases[verdict.case] for group in groups for verdict in group[:_MOST_SAVED]]
    if not chosen:
        return []
    try:
        paths = save_cases(sorted(chosen, key=lambda each: each.template.index))
    except OSError as error:
        say(f"Error: --save {folder} could not be written: {error.strerror or error}")
        return []
    saved = "failing case is" if len(chosen) == 1 else "failing cases are"
    written = "file" if len(paths) == 1 else "files"
    say(f"{len(chosen):,} {saved} in {folder} ({len(paths):,} {written})")
    return [(cases[group[0].case], group[0]) for group in groups]
