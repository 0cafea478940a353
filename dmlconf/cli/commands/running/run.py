"""`dmlconf run`: run cases on a backend, and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import click

from dmlconf.backends import registry
from dmlconf.backends.registry import BackendName
from dmlconf.cli.common.cache import checked_files, figure_cache
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.configuration import BACKEND_GROUP, configuration_file
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import WholeNumber
from dmlconf.cli.common.path_types import EXISTING_FILE, FOLDER
from dmlconf.cli.options.backend import (
    backend_option,
    backend_options,
    color_option,
    directml_option,
    early_end_options,
    jobs_option,
    with_directml,
)
from dmlconf.cli.options.case_lists import CaseList
from dmlconf.cli.options.circumstances import parse_circumstances
from dmlconf.cli.options.models import without_unasked_models
from dmlconf.cli.options.nothing_selected import nothing_selected
from dmlconf.cli.options.reporting import (
    REPORT_GROUP,
    detail_options,
    files_of,
    log_option,
    parse_reports,
    report_option,
)
from dmlconf.cli.options.resumption import log_to_resume, resume_option
from dmlconf.cli.options.run_exit_code import (
    EXIT_GROUP,
    NO_KNOWN_FAULTS_HELP,
    WAIVERS_HELP,
    Demands,
    demand_options,
    severity,
)
from dmlconf.cli.options.selection import (
    load_runnable,
    paths_argument,
    recorded_options,
    selection_options,
    suite_paths,
)
from dmlconf.cli.options.shards import empty_shard, shard_of, shard_options
from dmlconf.cli.options.targets import (
    check_scheduler_options,
    connected,
    opened_targets,
    scheduler_options,
)
from dmlconf.cli.options.timing import FACTOR, FAIL_SLOWER_HELP
from dmlconf.cli.output.console import say, warn
from dmlconf.cli.output.preflight import prepare_files
from dmlconf.cli.runs.history import require_history
from dmlconf.cli.runs.run_target import Presentation, run_and_report
from dmlconf.engine.against import AUTO
from dmlconf.engine.run import How, Run
from dmlconf.engine.shards import Shard
from dmlconf.excuses.substrate import NO_SUBSTRATE, read_substrate
from dmlconf.reports.formats import RUN_FORMATS
from dmlconf.reports.runs.left_out import WITHOUT_MODELS, left_out_note
from dmlconf.run_log.header_differences import MODELS_LEFT_OUT
from dmlconf.run_log.log import read_log
from dmlconf.verdicts.verdict import Status
from dmlconf.workers.execution import limits_of

__all__ = ["command"]


_QUICK: Final = (
    "--quick leaves out most combinations of attributes, sizes and data types, most graphs, and "
    "layers of networks: it does not find defects that only these show"
)

_MOST_RUNS: Final = 1_000_000
"""The most times that `--repeat` and `--retries` run a case."""


@click.command("run", cls=Command, short_help="Run cases and report.")
@paths_argument
@backend_option(
    "The backend to test: numpy (the default), directml, recording:PATH, or a plugin's.",
    "-b",
    "--backend",
    "backends",
    multiple=True,
    group=BACKEND_GROUP,
)
@backend_option(
    "The source of expected values that a case does not state: auto (the suite's recordings, "
    "then numpy), numpy or recording:PATH.",
    "--against",
    default=AUTO,
    show_default=True,
    group=BACKEND_GROUP,
)
@directml_option
@selection_options
@shard_options
@jobs_option("as many as pay off for numpy and recordings, otherwise 1")
@backend_options
@option(
    "--repeat",
    default=1,
    show_default=True,
    type=WholeNumber(1, _MOST_RUNS),
    metavar="N",
    group=BACKEND_GROUP,
    help="Run each case N times; the first failure counts.",
)
@option(
    "--shuffle",
    type=WholeNumber(min=0),
    metavar="SEED",
    group=BACKEND_GROUP,
    help="Run the cases in a random order determined by the seed.",
)
@option(
    "--retries",
    default=0,
    show_default=True,
    type=WholeNumber(0, _MOST_RUNS),
    metavar="N",
    group=BACKEND_GROUP,
    help="Run each failing case N more times; one that then passes "
    "still counts as failed, as not reproducible.",
)
@resume_option
@scheduler_options
@option(
    "--compare-unfused/--no-compare-unfused",
    default=None,
    group=BACKEND_GROUP,
    help="Also run each graph's nodes one by one, or do not: shows whether a graph that fails "
    "is correct that way, and how many elements have the same bits. By default done on "
    "backends that compile graphs.",
)
@option(
    "--circumstances",
    multiple=True,
    metavar="NAMES|all|none",
    callback=parse_circumstances,
    group=BACKEND_GROUP,
    help="Also run each case repeated, rebound and so on, as applications "
    "do (docs/circumstances.md); by default under the cheap circumstances, if the backend has "
    "any.",
)
@option(
    "--waivers",
    "waiver_file",
    metavar="FILE",
    group=EXIT_GROUP,
    type=EXISTING_FILE,
    help=WAIVERS_HELP,
)
@option("--no-known-faults", is_flag=True, group=EXIT_GROUP, help=NO_KNOWN_FAULTS_HELP)
@early_end_options
@demand_options
@option(
    "--slower-than",
    "slower_than",
    metavar="LOG",
    group=EXIT_GROUP,
    type=EXISTING_FILE,
    help="Report operators that take longer on the device than in this earlier run log, by "
    "more than noise explains.",
)
@option("--fail-slower", type=FACTOR, metavar="FACTOR", group=EXIT_GROUP, help=FAIL_SLOWER_HELP)
@log_option
@report_option(RUN_FORMATS)
@detail_options
@option(
    "--dump",
    "dump_folder",
    type=FOLDER,
    metavar="FOLDER",
    group=REPORT_GROUP,
    help="Run failing cases once more, and write each with its inputs and "
    "its expected, allowed and actual outputs as .npy files.",
)
@option(
    "--history",
    is_flag=True,
    group=REPORT_GROUP,
    help="Add the run to the history at the end: the one that DMLCONF_HISTORY names, or a file "
    "in your data folder (docs/history.md).",
)
@color_option
def command(
    paths: tuple[Path, ...],
    backends: tuple[str, ...],
    against: str,
    directml: str | None,
    shard: Shard | None,
    shard_log: Path | None,
    jobs: int | None,
    timeout: float,
    worker_memory: int,
    substrate: Path | None,
    repeat: int,
    shuffle: int | None,
    retries: int,
    resumed_log: Path | None,
    scheduler: str | None,
    by_adapter: bool,
    compare_unfused: bool | None,
    circumstances: tuple[str, ...],
    fail_fast: bool,
    max_failures: int | None,
    fail_on: tuple[Status, ...],
    min_passed: float | None,
    waiver_file: Path | None,
    no_known_faults: bool,
    slower_than: Path | None,
    fail_slower: float | None,
    log_file: Path | None,
    report_options: tuple[str, ...],
    durations: int,
    verbose: bool,
    quiet: bool,
    failures: int | None,
    dump_folder: Path | None,
    history: bool,
    color: str,
    **selection: Any,
) -> int:
    """Run the cases under PATHS (by default the bundled suite) and report.

    On numpy and recordings, cases with the tag `model` are left out unless you ask for them.

    Exit codes: 0 nothing fails the run; 1 a verdict does, or --fail-on, --min-passed or
    --fail-slower; 2 wrong usage; 3 an invalid file; 4 a backend that cannot be used; 5
    no case selected; 6 an incomplete run; 7 nothing passed or was waived; 8 a report that could not
    be written; 70 a bug in dmlconf itself.
    """
    check_scheduler_options(scheduler, by_adapter=by_adapter, dump_folder=dump_folder)
    log_file = log_to_resume(resumed_log, log_file, several=by_adapter)
    reports = parse_reports(report_options, RUN_FORMATS, log=log_file)
    parsed = [registry.parse(name) for name in backends or ("numpy",)]
    names = with_directml(parsed, directml)
    if len(names) > 1 and (log_file is not None or files_of(reports)):
        option_name = "--report to a file" if log_file is None else "--log"
        raise click.UsageError(f"{option_name} takes one backend: give each its own run")
    if against != AUTO:
        registry.parse(against)
    if fail_slower is not None and slower_than is None:
        raise click.UsageError("--fail-slower compares with an earlier run: add --slower-than LOG")
    base_run = read_log(slower_than) if slower_than else None
    if history:
        require_history()
    accepted = None
    if waiver_file:
        from dmlconf.excuses.waiver_file import read_waivers

        accepted = read_waivers(waiver_file)
    suite, plan = load_runnable(paths, **selection)
    if accepted is not None:
        accepted.require_cases(paths, checked_files())
    if not plan:
        return nothing_selected(paths, selection)
    if verbose and selection.get("quick"):
        say(_QUICK)
    files = files_of(reports)
    files += [(f"--log {log_file}", log_file)] if log_file else []
    files += [(f"--dump {dump_folder}", dump_folder / "case.yaml")] if dump_folder else []
    others = (waiver_file, substrate, slower_than, shard_log)
    inputs = _inputs(paths, names, against, selection, *others)
    prepare_files(files, inputs=inputs, log=log_file, resumed=resumed_log is not None)
    known = read_substrate(substrate) if substrate else NO_SUBSTRATE
    given = {
        "repeat": repeat if repeat > 1 else None,
        "shuffle": shuffle,
        "retries": retries or None,
        "substrate": _sha256_of(substrate),
        "waivers": None if waiver_file is None else str(waiver_file),
        "waivers_sha256": _sha256_of(waiver_file),
        "no_known_faults": no_known_faults or None,
    }
    given = {name: value for name, value in given.items() if value is not None}
    options = recorded_options(selection) | given | {"against": against}
    shown = Presentation(
        log_file=log_file,
        resume=resumed_log is not None,
        reports=reports,
        dump_folder=dump_folder,
        demands=Demands(fail_on, min_passed),
        base_run=base_run,
        fail_slower=fail_slower,
        details={
            "verbose": verbose,
            "quiet": quiet,
            "color": color,
            "durations": durations,
            "failures": failures,
        },
        history=history,
    )
    codes: list[ExitCode] = []
    # A large plan must be freed before the last backend's reports read the log into memory.
    loaded = [(suite, plan)]
    del suite, plan
    with connected(scheduler) as cluster:
        for name in names:
            suite, plan = loaded.pop() if name is names[-1] else loaded[0]
            planned, models = plan, 0
            if name.name in WITHOUT_MODELS:
                planned, models = without_unasked_models(paths, plan, selection)
            if not planned:
                if models:
                    warn(left_out_note(models, WITHOUT_MODELS[name.name]))
                of_backend = f"{name}: " if len(names) > 1 else ""
                codes.append(nothing_selected(paths, selection, of_backend))
                continue
            chosen = shard_of(planned, shard, shard_log)
            if shard is not None and not chosen.cases:
                codes.append(empty_shard(shard, planned))
                continue
            limits = limits_of(name, jobs, timeout, len(chosen.cases), worker_memory << 20)
            runs = [
                Run(
                    suite=suite,
                    paths=tuple(map(str, paths)),
                    suite_paths=suite_paths(paths),
                    plan=planned,
                    chosen=chosen,
                    how=How(
                        name,
                        limits,
                        known,
                        compare_unfused,
                        circumstances,
                        not no_known_faults,
                        figure_cache(len(chosen.cases)),
                    ),
                    against=against,
                    waivers=accepted.waivers if accepted else (),
                    repeat=repeat,
                    shuffle=shuffle,
                    retries=retries,
                    most_failures=1 if fail_fast else max_failures,
                    options=options | ({MODELS_LEFT_OUT: models} if models else {}),
                )
            ]
            del suite, plan, planned, chosen
            with opened_targets(cluster, runs, by_adapter=by_adapter) as targets:
                while targets:
                    taken = list(runs) if len(targets) > 1 else runs
                    codes.append(run_and_report(taken, targets.pop(0), shown))
    return max(codes, key=severity)


def _inputs(
    paths: Sequence[Path],
    backends: Sequence[BackendName],
    against: str,
    selection: Mapping[str, Any],
    *others: Path | None,
) -> list[Path]:
    """Return the files and folders that the run reads, the configuration file included.

    What follows `:` in a backend or in `against` counts as a path, since it may be one.
    """
    sources = [against, *(f"{name.name}:{name.options}" for name in backends)]
    named = [Path(source.partition(":")[2]) for source in sources if ":" in source]
    lists: list[CaseList | None] = [selection.get("case_list"), selection.get("failed")]
    listed = [Path(each.source) for each in lists if each is not None]
    configuration = configuration_file()
    return [
        *filter(None, (*others, configuration)),
        *paths,
        *named,
        *listed,
    ]


def _sha256_of(path: Path | None) -> str | None:
    return None if path is None else sha256(path.read_bytes()).hexdigest()
