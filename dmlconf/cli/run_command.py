"""`dmlconf run`: run cases on a backend, and report."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from dmlconf.backends import registry
from dmlconf.cases.model import PlannedCase
from dmlconf.cli.console import say, warn
from dmlconf.cli.exit_codes import ExitCode
from dmlconf.cli.logs import new_log, opened_log
from dmlconf.cli.options import (
    backend_options,
    color_option,
    complete_backend,
    directml_option,
    jobs_option,
    leave_out_models,
    load_runnable,
    nothing_selected,
    paths_argument,
    selection_options,
    suite_paths,
    with_directml,
)
from dmlconf.cli.progress import progress
from dmlconf.cli.reporting import parse_reports, show
from dmlconf.runner.against import AUTO, Expectations, expectations
from dmlconf.runner.log import Footer, Header, LogWriter, read_log
from dmlconf.runner.session import (
    Limits,
    OpenBackend,
    judged,
    make_header,
    open_backend,
    processes_that_pay,
    run,
)
from dmlconf.runner.substrate import NO_SUBSTRATE, Substrate, read_substrate
from dmlconf.runner.verdict import Status, Verdict

__all__ = ["command"]

_WITHOUT_MODELS: Final = {
    "numpy": "on numpy, which nothing would judge there",
    "recording": "of a replay, because they are not recorded",
}
"""Backends that take cases of models only when asked for, and why."""


@click.command("run")
@paths_argument
@click.option(
    "-b", "--backend", "backends", multiple=True, metavar="BACKEND",
    shell_complete=complete_backend,
    help="What to test: numpy (the default), directml, recording:PATH, or a plugin's.",
)  # fmt: skip
@click.option(
    "--against", default=AUTO, show_default=True, metavar="BACKEND",
    help="What gives the expected values that a case does not state itself: auto (the suite's own "
    "recordings, then numpy), numpy or recording:PATH.",
)  # fmt: skip
@directml_option
@selection_options
@jobs_option("for numpy and recordings as many as pay off, else 1")
@backend_options
@click.option("-x", "--fail-fast", is_flag=True, help="Stop at the first failure.")
@click.option("--log", "log_file", type=click.Path(path_type=Path, dir_okay=False),
              metavar="FILE", help="Write the run log here.")  # fmt: skip
@click.option("--report", "report_options", multiple=True, metavar="FORMAT[:FILE]",
              help="Also report as json, junit, markdown, svg or text.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show more of what did not simply pass.")
@click.option("-q", "--quiet", is_flag=True, help="Show failures and the last line only.")
@color_option
def command(
    paths: tuple[Path, ...],
    backends: tuple[str, ...],
    against: str,
    directml: str | None,
    jobs: int | None,
    timeout: float,
    fail_fast: bool,
    substrate: Path | None,
    log_file: Path | None,
    report_options: tuple[str, ...],
    verbose: bool,
    quiet: bool,
    color: str,
    **selection: Any,
) -> int:
    """Run the cases under PATHS (the bundled suite where there are none) and report.

    Exit codes: 0 no verdict fails the run; 1 at least one does; 2 wrong usage; 3 an invalid
    file; 4 a backend that cannot be used; 5 no case selected; 6 an incomplete run; 8 a report
    that could not be written; 70 a fault of dmlconf itself.
    """
    reports = parse_reports(report_options, log=log_file)
    parsed = [registry.parse(name) for name in backends or ("numpy",)]
    names = with_directml(parsed, directml)
    if len(names) > 1 and (log_file is not None or any(file for _, file in reports)):
        option = "--report to a file" if log_file is None else "--log"
        raise click.UsageError(f"{option} takes one backend: give each its own run")
    if against != AUTO:
        registry.parse(against)
    suite, plan = load_runnable(paths, **selection)
    if not plan:
        return nothing_selected(paths, selection["tags"], selection["identifiers"])
    known = read_substrate(substrate) if substrate else NO_SUBSTRATE
    options = {key: value for key, value in selection.items() if value} | {"against": against}
    codes = []
    for name in names:
        cases = plan
        if name.name in _WITHOUT_MODELS:
            cases = leave_out_models(paths, plan, selection, _WITHOUT_MODELS[name.name])
            if not cases:
                return nothing_selected(paths, selection["tags"], selection["identifiers"])
        limits = Limits(jobs or (1 if name.isolated else processes_that_pay(len(cases))), timeout)
        # Of a backend that is trusted, each process builds and judges its cases as well.
        apart = limits.jobs > 1 and not name.isolated
        backend = open_backend(name, replace(limits, jobs=1) if apart else limits)
        try:
            expected = expectations(against, backend, suite, cases, suite_paths(paths))
            warn(expected.note)
            header = make_header(
                suite, map(str, paths), len(cases), backend, expected.name, options
            )
            log = log_file or _default_log()
            verdicts = _verdicts(cases, backend, expected, limits, known)
            with progress(len(cases), quiet=quiet, color=color) as advance:
                footer = _logged(log, cases, verdicts, header, advance, fail_fast=fail_fast)
        finally:
            backend.close()
        for recording in expected.recordings:
            warn(recording.stale_note(paths))
        shown = show(read_log(log, own=True), reports, verbose=verbose, quiet=quiet, color=color)
        codes.append(_exit_code(footer) or (ExitCode.SUCCESS if shown else ExitCode.OUTPUT))
        if not footer.complete and not quiet:
            say(f"The run log is {log}")
    return max(codes, key=_severity)


def _verdicts(
    plan: Sequence[PlannedCase],
    backend: OpenBackend,
    expected: Expectations,
    limits: Limits,
    substrate: Substrate,
) -> Generator[Verdict, None, None]:
    if limits.jobs == 1 or backend.name.isolated:
        return judged(plan, backend, expected.against, substrate)
    # Processes and pipes take time to import, and a few cases need none of them.
    from dmlconf.runner.parallel import judged_in_processes

    return judged_in_processes(plan, backend.name, expected, limits, substrate)


def _logged(
    path: Path,
    plan: Sequence[PlannedCase],
    verdicts: Generator[Verdict, None, None],
    header: Header,
    advance: Callable[[bool], None],
    **how: bool,
) -> Footer:
    """Run the plan, and write the log to the path."""

    def on_verdict(verdict: Verdict) -> None:
        advance(verdict.status.fails_run)

    with opened_log(path) as stream:
        return run(plan, verdicts, LogWriter(stream), header, on_verdict, **how)


def _default_log() -> Path:
    try:
        return new_log()
    except OSError as error:
        import tempfile  # Seldom needed, and it takes a while to import.

        handle, name = tempfile.mkstemp(prefix="dmlconf-run-", suffix=".jsonl")
        os.close(handle)
        warn(f"{error.strerror}: the run log is {name}")
        return Path(name)


def _exit_code(footer: Footer) -> ExitCode:
    if any(count and Status(status).fails_run for status, count in footer.summary.items()):
        return ExitCode.FAILED
    return ExitCode.SUCCESS if footer.complete else ExitCode.INCOMPLETE


def _severity(code: ExitCode) -> int:
    return [ExitCode.SUCCESS, ExitCode.OUTPUT, ExitCode.INCOMPLETE, ExitCode.FAILED].index(code)
