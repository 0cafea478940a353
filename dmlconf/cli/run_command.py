"""`dmlconf run`: run cases on a backend, and report."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from dmlconf.backends import registry
from dmlconf.cases.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.cli.circumstances import chosen_circumstances, parse_circumstances
from dmlconf.cli.command import Command, option
from dmlconf.cli.completion import complete_backend
from dmlconf.cli.configuration import BACKEND_GROUP
from dmlconf.cli.console import say, warn
from dmlconf.cli.exit_codes import ExitCode
from dmlconf.cli.logs import new_log, opened_log
from dmlconf.cli.models import WITHOUT_MODELS, leave_out_models
from dmlconf.cli.options import (
    Number,
    backend_options,
    color_option,
    directml_option,
    jobs_option,
    with_directml,
)
from dmlconf.cli.outcome import FAIL_ON, Demands, parse_statuses, run_exit_code, severity
from dmlconf.cli.outputs import prepare_files
from dmlconf.cli.progress import progress
from dmlconf.cli.reporting import (
    REPORT_GROUP,
    detail_options,
    parse_reports,
    report_option,
    show,
)
from dmlconf.cli.selection import (
    load_runnable,
    nothing_selected,
    paths_argument,
    recorded_options,
    selection_options,
    suite_paths,
)
from dmlconf.runner.against import AUTO, Expectations, expectations
from dmlconf.runner.execution import limits_of
from dmlconf.runner.judging import verdicts
from dmlconf.runner.log import Footer, Header, LogWriter, RunLog, read_log
from dmlconf.runner.repetition import repeated
from dmlconf.runner.session import (
    OpenBackend,
    make_header,
    open_backend,
    run,
)
from dmlconf.runner.substrate import NO_SUBSTRATE, read_substrate
from dmlconf.runner.verdict import Status, Verdict
from dmlconf.runner.waiver_file import read_waivers
from dmlconf.runner.waivers import effective_waivers

__all__ = ["command"]

_EXIT_GROUP: Final = "Decide the exit code"

_MOST_DUMPED: Final = 100
"""Each has several files, and whoever looks at more of them looks at their groups."""


@click.command("run", cls=Command, short_help="Run cases and report.")
@paths_argument
@option(
    "-b", "--backend", "backends", multiple=True, metavar="BACKEND", group=BACKEND_GROUP,
    shell_complete=complete_backend,
    help="What to test: numpy (the default), directml, recording:PATH, or a plugin's.",
)  # fmt: skip
@option(
    "--against", default=AUTO, show_default=True, metavar="BACKEND", group=BACKEND_GROUP,
    shell_complete=complete_backend,
    help="What gives the expected values that a case does not state itself: auto (the suite's own "
    "recordings, then numpy), numpy or recording:PATH.",
)  # fmt: skip
@directml_option
@selection_options
@jobs_option("for numpy and recordings as many as pay off, else 1")
@backend_options
@option("--repeat", default=1, show_default=True, type=click.IntRange(min=1), metavar="N",
        group=BACKEND_GROUP, help="Run each case N times; the first failure counts.")  # fmt: skip
@option("--shuffle", type=click.IntRange(min=0), metavar="SEED", group=BACKEND_GROUP,
        help="Run the cases in an order by chance, which the seed determines.")  # fmt: skip
@option("--compare-unfused", is_flag=True, group=BACKEND_GROUP,
        help="Run each graph's nodes one by one as well: tell whether a graph that fails is right "
        "then, and how many bits are the same.")  # fmt: skip
@option("--circumstances", multiple=True, metavar="NAMES|all|none", callback=parse_circumstances,
        group=BACKEND_GROUP, help="Run each case also repeated, rebound and so on, as applications "
        "do (docs/circumstances.md); those that cost little where not given, if the backend has "
        "any.")  # fmt: skip
@option("-x", "--fail-fast", is_flag=True, group=BACKEND_GROUP, help="Stop at the first failure.")
@option("--waivers", "waiver_file", metavar="FILE", group=_EXIT_GROUP,
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="Accept the known failures that this file lists.")  # fmt: skip
@option("--max-failures", type=click.IntRange(min=1), metavar="N", group=BACKEND_GROUP,
        help="Stop after so many failures.")  # fmt: skip
@option("--fail-on", multiple=True, metavar="STATUS,...", callback=parse_statuses,
        group=_EXIT_GROUP, help=f"Fail the run also where a case is {' or '.join(FAIL_ON)}.",
        )  # fmt: skip
@option("--min-passed", type=Number(0, 100), metavar="PERCENT", group=_EXIT_GROUP,
        help="Fail the run where a lower share of the selected cases passed.")  # fmt: skip
@option("--log", "log_file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
        group=REPORT_GROUP, help="Write the run log here.")  # fmt: skip
@report_option()
@detail_options
@option("--dump", "dump_folder", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
        group=REPORT_GROUP, help="Run failing cases once more, and write each with its inputs and "
        "its expected, allowed and actual outputs as .npy files.")  # fmt: skip
@color_option
def command(
    paths: tuple[Path, ...],
    backends: tuple[str, ...],
    against: str,
    directml: str | None,
    jobs: int | None,
    timeout: float,
    substrate: Path | None,
    repeat: int,
    shuffle: int | None,
    compare_unfused: bool,
    circumstances: tuple[str, ...],
    fail_fast: bool,
    max_failures: int | None,
    fail_on: tuple[Status, ...],
    min_passed: float | None,
    waiver_file: Path | None,
    log_file: Path | None,
    report_options: tuple[str, ...],
    durations: int,
    verbose: bool,
    quiet: bool,
    failures: int | None,
    dump_folder: Path | None,
    color: str,
    **selection: Any,
) -> int:
    """Run the cases under PATHS (the bundled suite where there are none) and report.

    Exit codes: 0 no verdict fails the run; 1 at least one does, or --fail-on or --min-passed is
    not met; 2 wrong usage; 3 an invalid file; 4 a backend that cannot be used; 5 no case selected;
    6 an incomplete run; 7 nothing passed; 8 a report that could not be written; 70 a fault of
    dmlconf itself.
    """
    reports = parse_reports(report_options, log=log_file)
    parsed = [registry.parse(name) for name in backends or ("numpy",)]
    names = with_directml(parsed, directml)
    if len(names) > 1 and (log_file is not None or any(file for _, file in reports)):
        option_name = "--report to a file" if log_file is None else "--log"
        raise click.UsageError(f"{option_name} takes one backend: give each its own run")
    if against != AUTO:
        registry.parse(against)
    accepted = read_waivers(waiver_file) if waiver_file else None
    suite, plan = load_runnable(paths, **selection)
    if accepted is not None:
        accepted.require_cases(paths)
    if not plan:
        return nothing_selected(paths, selection)
    files = [(f"--report {name}:{file}", file) for name, file in reports if file is not None]
    files += [(f"--log {log_file}", log_file)] if log_file else []
    files += [(f"--dump {dump_folder}", dump_folder / "case.yaml")] if dump_folder else []
    prepare_files(files)
    known = read_substrate(substrate) if substrate else NO_SUBSTRATE
    again = {"repeat": repeat if repeat > 1 else None, "shuffle": shuffle}
    repetition = {name: value for name, value in again.items() if value is not None}
    options = recorded_options(selection) | repetition | {"against": against}
    stop_after = 1 if fail_fast else max_failures
    demands = Demands(fail_on, min_passed)
    if waiver_file is not None:
        options["waivers"] = str(waiver_file)
    codes = []
    for name in names:
        cases = leave_out_models(paths, plan, selection, WITHOUT_MODELS.get(name.name))
        if not cases:
            return nothing_selected(paths, selection)
        limits = limits_of(name, jobs, timeout, len(cases))
        backend = open_backend(name, limits, judged=True)
        try:
            under = chosen_circumstances(circumstances, backend.capabilities, str(name))
            if "all" in circumstances and not under:
                warn(f"{name} has no circumstances: --circumstances all runs cases plainly")
            expected = expectations(against, backend, suite, cases, suite_paths(paths))
            warn(expected.note)
            given_paths = map(str, paths)
            if under:
                options["circumstances"] = list(under)
            header = make_header(suite, given_paths, len(cases), backend, expected.name, options)
            log = log_file or _default_log()
            waivers = effective_waivers(accepted.waivers if accepted else (), backend.environment)
            judge = partial(
                verdicts, backend=backend, expected=expected, limits=limits, substrate=known,
                waivers=waivers, compare_unfused=compare_unfused, circumstances=under,
            )  # fmt: skip
            tell = partial(_announce_repetition, of=repeat, quiet=quiet)
            reached = repeated(cases, judge, repeat, shuffle, tell)
            with progress(len(cases), quiet=quiet, color=color) as advance:
                footer = _logged(log, cases, reached, header, advance, stop_after)
            written = read_log(log, own=True)
            if dump_folder is not None:
                _dump(dump_folder, written, cases, backend, expected)
        finally:
            backend.close()
        if suite.challenge is None:  # Recordings are of the data that the files say.
            for recording in expected.recordings:
                warn(recording.stale_note(paths))
        shown = show(
            written, reports, verbose=verbose, quiet=quiet, color=color,
            durations=durations, failures=failures,
        )  # fmt: skip
        if footer.summary[Status.UNCHECKED] and not quiet:
            _give_hints(written, plan)
        code, complaints = run_exit_code(footer, demands)
        for complaint in complaints:
            say(f"Error: {complaint}")
        codes.append(code or (ExitCode.SUCCESS if shown else ExitCode.OUTPUT))
        if codes[-1]:
            say(f"The run log is {log}")
    return max(codes, key=severity)


def _dump(
    folder: Path,
    log: RunLog,
    plan: Sequence[PlannedCase],
    backend: OpenBackend,
    expected: Expectations,
) -> None:
    """Write what is known of the first failing cases."""
    from dmlconf.runner.dump import dump_cases  # Few runs need it.

    failing = [verdict.case for verdict in log.verdicts if verdict.status.fails_run]
    planned = {each.identifier: each for each in plan}
    cases = [valid_case(planned[name]) for name in failing[:_MOST_DUMPED]]
    try:
        paths = dump_cases(folder, cases, backend, expected.against)
    except OSError as error:
        say(f"Error: --dump {folder} could not be written: {error.strerror or error}")
        return
    more = f"; {len(failing) - len(paths):,} more failed" if len(failing) > len(paths) else ""
    say(f"{len(paths):,} failing case{'s' if len(paths) != 1 else ''} in {folder}{more}")


def _give_hints(log: RunLog, plan: Sequence[PlannedCase]) -> None:
    from dmlconf.cli.hints import hints  # Few runs need it.

    for hint in hints(log, plan):
        say(f"Hint: {hint}")


def _announce_repetition(number: int, *, of: int, quiet: bool) -> None:
    if of > 1 and not quiet:
        say(f"Repetition {number:,} of {of:,}")


def _logged(
    path: Path,
    plan: Sequence[PlannedCase],
    verdicts: Generator[Verdict, None, None],
    header: Header,
    advance: Callable[[bool], None],
    max_failures: int | None,
) -> Footer:
    """Run the plan, and write the log to the path."""

    def on_verdict(verdict: Verdict) -> None:
        advance(verdict.status.fails_run)

    with opened_log(path) as stream:
        writer = LogWriter(stream)
        return run(plan, verdicts, writer, header, on_verdict, most_failures=max_failures)


def _default_log() -> Path:
    try:
        return new_log()
    except OSError as error:
        import tempfile  # Seldom needed, and it takes a while to import.

        handle, name = tempfile.mkstemp(prefix="dmlconf-run-", suffix=".jsonl")
        os.close(handle)
        warn(f"{error.strerror}: the run log is {name}")
        return Path(name)
