"""`dmlconf run`: run cases on a backend, and report."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dmlconf.backends import registry
from dmlconf.cli.exit_codes import ExitCode
from dmlconf.cli.logs import new_log
from dmlconf.cli.options import (
    chosen,
    color_option,
    load,
    nothing_selected,
    paths_argument,
    selection_options,
)
from dmlconf.cli.reporting import parse_reports, show
from dmlconf.runner.log import Footer, LogWriter, read_log
from dmlconf.runner.session import Limits, make_header, open_backend, reference, run
from dmlconf.runner.verdict import Status, Verdict

__all__ = ["command"]


def _jobs(ctx: click.Context, parameter: click.Parameter, value: str) -> int:
    if value == "auto":
        return os.cpu_count() or 1
    if value.isdecimal() and int(value) > 0:
        return int(value)
    raise click.BadParameter(f"{value!r} is neither a number from 1 on nor auto")


def _complete_backend(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in registry.backend_names() if name.startswith(incomplete)]


@click.command("run")
@paths_argument
@click.option(
    "-b", "--backend", "backends", multiple=True, metavar="BACKEND",
    shell_complete=_complete_backend,
    help="What to test: numpy (the default), miniature:FAULT, or a plugin's.",
)  # fmt: skip
@click.option(
    "--against", default="numpy", show_default=True, metavar="BACKEND",
    help="What gives the expected values that a case does not state itself.",
)  # fmt: skip
@selection_options
@click.option("-j", "--jobs", default="1", callback=_jobs, metavar="N|auto",
              help="Worker processes to run side by side.")  # fmt: skip
@click.option("--timeout", default=60.0, show_default=True, metavar="SECONDS",
              type=click.FloatRange(min=0, min_open=True),
              help="How long one case may take in a worker process.")  # fmt: skip
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
    jobs: int,
    timeout: float,
    fail_fast: bool,
    log_file: Path | None,
    report_options: tuple[str, ...],
    verbose: bool,
    quiet: bool,
    color: str,
    **selection: Any,
) -> int:
    """Run the cases under PATHS (the bundled suite where there are none) and report.

    Exit codes: 0 no verdict fails the run; 1 at least one does; 2 wrong usage; 3 an invalid
    file; 4 a backend that cannot be used; 5 no case selected; 6 an incomplete run; 70 a fault
    of dmlconf itself.
    """
    reports = parse_reports(report_options)
    names = [registry.parse(name) for name in backends or ("numpy",)]
    if len(names) > 1 and log_file is not None:
        raise click.UsageError("--log takes one backend: give each its own run")
    registry.parse(against)
    suite = load(paths)
    plan = chosen(suite, **selection)
    if not plan:
        return nothing_selected(suite, selection["tags"], selection["identifiers"])
    limits = Limits(jobs, timeout, fail_fast)
    options = {key: value for key, value in selection.items() if value}
    codes = []
    for name in names:
        expected = reference(against, name)
        backend = open_backend(name, limits)
        try:
            header = make_header(suite, map(str, paths), len(plan), backend, against, options)
            log = log_file or _default_log()
            with _opened(log) as stream, _progress(len(plan), quiet, color) as advance:
                writer = LogWriter(stream)
                footer = run(plan, backend, expected, limits, writer, header, advance)
        finally:
            backend.close()
        show(read_log(log), reports, verbose=verbose, quiet=quiet, color=color)
        codes.append(_exit_code(footer))
        if not footer.complete and not quiet:
            click.echo(f"The run log is {log}", err=True)
    return max(codes, key=_severity)


def _default_log() -> Path:
    try:
        return new_log()
    except OSError as error:
        handle, name = tempfile.mkstemp(prefix="dmlconf-run-", suffix=".jsonl")
        os.close(handle)
        click.echo(f"Warning: {error.strerror}: the run log is {name}", err=True)
        return Path(name)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        stream = path.open("w", encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"--log {path}: {error.strerror}") from error
    with stream:
        yield stream


@contextmanager
def _progress(total: int, quiet: bool, color: str) -> Iterator[Callable[[Verdict], None]]:
    """Show a progress bar on standard error, if that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda verdict: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from dmlconf.cli.console import make_console

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    console = make_console(color, stderr=True)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        failures = 0

        def advance(verdict: Verdict) -> None:
            nonlocal failures
            failures += verdict.status.fails_run
            told = f"{failures} failing" if failures else ""
            progress.update(task, advance=1, description=told)

        yield advance


def _exit_code(footer: Footer) -> ExitCode:
    if any(count and Status(status).fails_run for status, count in footer.summary.items()):
        return ExitCode.FAILED
    return ExitCode.SUCCESS if footer.complete else ExitCode.INCOMPLETE


def _severity(code: ExitCode) -> int:
    return [ExitCode.SUCCESS, ExitCode.INCOMPLETE, ExitCode.FAILED].index(code)
