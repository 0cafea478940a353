"""A progress bar on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(total: int, *, quiet: bool, color: str) -> Iterator[Callable[[bool], None]]:
    """Show a progress bar, if standard error is a terminal; yield what to call after each case.

    It is to be called with whether the case fails the run.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda failing: None
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
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        failures = 0

        def advance(failing: bool) -> None:
            nonlocal failures
            failures += failing
            told = f"{failures} failing" if failures else ""
            bar.update(task, advance=1, description=told)

        yield advance
