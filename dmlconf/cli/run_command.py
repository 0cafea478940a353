"""`dmlconf run`: run cases on a backend, and report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import sha256
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
from dmlconf.cli.logged_run import default_log
from dmlconf.cli.models import WITHOUT_MODELS, leave_out_models
from dmlconf.cli.options import (
    backend_options,
    color_option,
    directml_option,
    jobs_option,
    with_directml,
)
from dmlconf.cli.outcome import EXIT_GROUP, Demands, demand_options, run_exit_code, severity
from dmlconf.cli.outputs import prepare_files
from dmlconf.cli.progress import progress
from dmlconf.cli.reporting import (
    REPORT_GROUP,
    detail_options,
    parse_reports,
    report_option,
    show,
)
from dmlconf.cli.resumption import (
    earlier_run,
    log_to_resume,
    require_same_run,
    resume_option,
)
from dmlconf.cli.run_log import LoggedRun
from dmlconf.cli.selection import (
    load_runnable,
    nothing_selected,
    paths_argument,
    recorded_options,
    selection_options,
    suite_paths,
)
from dmlconf.cli.shards import empty_shard, shard_of, shard_options
from dmlconf.cli.timing_options import FACTOR, FAIL_SLOWER_HELP, slower_complaints, timed_again
from dmlconf.fleet.shards import Shard
from dmlconf.runner.against import AUTO, Expectations, expectations
from dmlconf.runner.execution import limits_of
from dmlconf.runner.judging import verdicts
from dmlconf.runner.log import RunLog, read_log
from dmlconf.runner.repetition import repeated
from dmlconf.runner.session import (
    OpenBackend,
    make_header,
    open_backend,
)
from dmlconf.runner.substrate import NO_SUBSTRATE, read_substrate
from dmlconf.runner.verdict import Status
from dmlconf.runner.waiver_file import read_waivers
from dmlconf.runner.waivers import effective_waivers

__all__ = ["command"]

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
@shard_options
@jobs_option("for numpy and recordings as many as pay off, else 1")
@backend_options
@option("--repeat", default=1, show_default=True, type=click.IntRange(min=1), metavar="N",
        group=BACKEND_GROUP, help="Run each case N times; the first failure counts.")  # fmt: skip
@option("--shuffle", type=click.IntRange(min=0), metavar="SEED", group=BACKEND_GROUP,
        help="Run the cases in an order by chance, which the seed determines.")  # fmt: skip
@option("--retries", default=0, show_default=True, type=click.IntRange(min=0), metavar="N",
        group=BACKEND_GROUP, help="Run each failing case N times more; one that passes then is "
        "still failed, as not reproducible.")  # fmt: skip
@resume_option
@option("--compare-unfused", is_flag=True, group=BACKEND_GROUP,
        help="Run each graph's nodes one by one as well: tell whether a graph that fails is right "
        "then, and how many bits are the same.")  # fmt: skip
@option("--circumstances", multiple=True, metavar="NAMES|all|none", callback=parse_circumstances,
        group=BACKEND_GROUP, help="Run each case also repeated, rebound and so on, as applications "
        "do (docs/circumstances.md); those that cost little where not given, if the backend has "
        "any.")  # fmt: skip
@option("-x", "--fail-fast", is_flag=True, group=BACKEND_GROUP, help="Stop at the first failure.")
@option("--waivers", "waiver_file", metavar="FILE", group=EXIT_GROUP,
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="Accept the known failures that this file lists.")  # fmt: skip
@option("--max-failures", type=click.IntRange(min=1), metavar="N", group=BACKEND_GROUP,
        help="Stop after so many failures.")  # fmt: skip
@demand_options
@option("--slower-than", "slower_than", metavar="LOG", group=EXIT_GROUP,
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="Tell which operators take longer on the device than in this earlier run log, by more "
        "than noise allows.")  # fmt: skip
@option("--fail-slower", type=FACTOR, metavar="FACTOR", group=EXIT_GROUP, help=FAIL_SLOWER_HELP)
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
    shard: Shard | None,
    shard_log: Path | None,
    jobs: int | None,
    timeout: float,
    substrate: Path | None,
    repeat: int,
    shuffle: int | None,
    retries: int,
    resumed_log: Path | None,
    compare_unfused: bool,
    circumstances: tuple[str, ...],
    fail_fast: bool,
    max_failures: int | None,
    fail_on: tuple[Status, ...],
    min_passed: float | None,
    waiver_file: Path | None,
    slower_than: Path | None,
    fail_slower: float | None,
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
    log_file = log_to_resume(resumed_log, log_file)
    reports = parse_reports(report_options, log=log_file)
    parsed = [registry.parse(name) for name in backends or ("numpy",)]
    names = with_directml(parsed, directml)
    if len(names) > 1 and (log_file is not None or any(file for _, file in reports)):
        option_name = "--report to a file" if log_file is None else "--log"
        raise click.UsageError(f"{option_name} takes one backend: give each its own run")
    if against != AUTO:
        registry.parse(against)
    if fail_slower is not None and slower_than is None:
        raise click.UsageError("--fail-slower compares with an earlier run: add --slower-than LOG")
    base_run = read_log(slower_than) if slower_than else None
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
    given = {
        "repeat": repeat if repeat > 1 else None,
        "shuffle": shuffle,
        "retries": retries or None,
        "compare_unfused": compare_unfused or None,
        "substrate": _digested(substrate),
        "waivers": None if waiver_file is None else str(waiver_file),
        "waivers_sha256": _digested(waiver_file),
    }
    given = {name: value for name, value in given.items() if value is not None}
    options = recorded_options(selection) | given | {"against": against}
    demands = Demands(fail_on, min_passed)
    earlier = earlier_run(resumed_log)
    codes = []
    for name in names:
        planned = leave_out_models(paths, plan, selection, WITHOUT_MODELS.get(name.name))
        if not planned:
            return nothing_selected(paths, selection)
        chosen = shard_of(planned, shard, shard_log)
        cases = chosen.cases
        if shard is not None and not cases:
            return empty_shard(shard, planned)
        limits = limits_of(name, jobs, timeout, len(cases))
        backend = open_backend(name, limits, judged=True)
        try:
            under = chosen_circumstances(circumstances, backend.capabilities, str(name))
            if "all" in circumstances and not under:
                warn(f"{name} has no circumstances: --circumstances all runs cases plainly")
            expected = expectations(against, backend, suite, planned, suite_paths(paths))
            warn(expected.note)
            given_paths = map(str, paths)
            header = make_header(
                suite, given_paths, len(cases), backend, expected.name,
                    options | ({"circumstances": list(under)} if under else {}),
                digest=chosen.digest, shard=chosen.record,
            )  # fmt: skip
            log = log_file or default_log()
            if earlier is not None:
                require_same_run(log, earlier, header, quiet=quiet)
            most = 1 if fail_fast else max_failures
            logged = LoggedRun(log, header, cases, chosen.places, earlier, retries, most)
            waivers = effective_waivers(accepted.waivers if accepted else (), backend.environment)
            judge = partial(
                verdicts, backend=backend, expected=expected, limits=limits, substrate=known,
                waivers=waivers, compare_unfused=compare_unfused, circumstances=under,
            )  # fmt: skip
            tell = partial(_announce_repetition, of=repeat, quiet=quiet)
            repeat_judge = partial(
                repeated, judge=judge, times=repeat, seed=shuffle, on_repetition=tell
            )
            with progress(len(logged.left), quiet=quiet, color=color) as advance:
                footer = logged.run(repeat_judge, advance)
            written = read_log(log, own=True)
            if dump_folder is not None:
                _dump(dump_folder, written, cases, backend, expected)
            if base_run is not None:
                timed = timed_again(base_run, written, cases, judge)
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
        slower: list[str] = []
        if base_run is not None:
            lines, slower = slower_complaints(base_run, timed, fail_slower)
            say("\n".join(lines))
        code, complaints = run_exit_code(footer, demands, slower)
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

    failing = [verdict for verdict in log.verdicts if verdict.status.fails_run]
    planned = {each.identifier: each for each in plan}
    paths = []
    try:
        for label, variant in (backend.variants or {"": backend}).items():
            names = [
                verdict.case
                for verdict in failing[:_MOST_DUMPED]
                if not label or verdict.variants[label].status.fails_run
            ]
            cases = [valid_case(planned[name]) for name in names]
            paths += dump_cases(folder / label, cases, variant, expected.against)
    except OSError as error:
        say(f"Error: --dump {folder} could not be written: {error.strerror or error}")
        return
    left = len(failing) - _MOST_DUMPED
    more = f"; {left:,} more failed" if left > 0 else ""
    say(f"{len(paths):,} failing case{'s' if len(paths) != 1 else ''} in {folder}{more}")


def _give_hints(log: RunLog, plan: Sequence[PlannedCase]) -> None:
    from dmlconf.cli.hints import hints  # Few runs need it.

    for hint in hints(log, plan):
        say(f"Hint: {hint}")


def _announce_repetition(number: int, *, of: int, quiet: bool) -> None:
    if of > 1 and not quiet:
        say(f"Repetition {number:,} of {of:,}")


def _digested(path: Path | None) -> str | None:
    """Return the SHA-256 of a file in hexadecimal, which tells whether another run had the same."""
    return None if path is None else sha256(path.read_bytes()).hexdigest()
