"""`dmlconf record`: run cases on a backend, and keep what it makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from os import getpid
from pathlib import Path
from typing import Any, Final

import click

from dmlconf.backends import registry
from dmlconf.backends.recording.file import SUFFIX, recording_bytes
from dmlconf.cli.console import warn
from dmlconf.cli.exit_codes import ExitCode
from dmlconf.cli.options import (
    backend_options,
    color_option,
    complete_backend,
    directml_option,
    jobs_option,
    load_runnable,
    long_selection_options,
    nothing_selected,
    paths_argument,
    with_directml,
)
from dmlconf.cli.progress import progress
from dmlconf.documents.problems import printable
from dmlconf.runner.recorder import LeftOut, record
from dmlconf.runner.session import Limits, open_backend
from dmlconf.runner.substrate import NO_SUBSTRATE, read_substrate

__all__ = ["command"]

_MOST_NAMED: Final = 10


def _named(ctx: click.Context, parameter: click.Parameter, value: Path) -> Path:
    """Refuse other names: a recording replaces the file, and `-o` chooses operators elsewhere."""
    if value.suffix != SUFFIX:
        message = f"{value} does not end in {SUFFIX}; to choose an operator, write --operator"
        raise click.BadParameter(printable(message))
    return value


@click.command("record")
@paths_argument
@click.option(
    "-b", "--backend", required=True, metavar="BACKEND", shell_complete=complete_backend,
    help="What to record, such as directml.",
)  # fmt: skip
@click.option(
    "-o", "--output", required=True, metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_named, help="Write the recording here; name it NAME.dmlrec.",
)  # fmt: skip
@directml_option
@long_selection_options
@jobs_option("1")
@backend_options
@click.option("-q", "--quiet", is_flag=True, help="Show no progress bar.")
@color_option
def command(
    paths: tuple[Path, ...],
    backend: str,
    output: Path,
    directml: str | None,
    jobs: int | None,
    timeout: float,
    substrate: Path | None,
    quiet: bool,
    color: str,
    **selection: Any,
) -> int:
    """Run the cases under PATHS (the bundled suite where there are none) and keep the outcomes.

    What breaks, and what the backend may decline, is not recorded but told. Exit codes: 0 nothing
    broke; 1 something did, or nothing could be recorded; otherwise as those of run.
    """
    [name] = with_directml([registry.parse(backend)], directml)
    if name.name == "recording":
        raise click.UsageError("a recording cannot be recorded again: copy the file")
    if name.name == "numpy":
        warn("numpy is the reference: what is recorded of it says nothing of DirectML")
    _save(output, None)
    suite, plan = load_runnable(paths, **selection)
    if not plan:
        return nothing_selected(paths, selection["tags"], selection["identifiers"])
    known = read_substrate(substrate) if substrate else NO_SUBSTRATE
    opened = open_backend(name, Limits(jobs or 1, timeout))
    try:
        with progress(len(plan), quiet=quiet, color=color) as advance:
            recording, left_out = record(plan, suite, opened, known, advance)
    finally:
        opened.close()
    _tell(left_out)
    if not recording.entries:
        message = f"Error: nothing could be recorded, so {output} was not written"
        click.echo(printable(message), err=True)
        return ExitCode.FAILED
    _save(output, recording_bytes(recording))
    cases = f"{len(plan):,} case{'s' if len(plan) != 1 else ''}"
    click.echo(printable(f"{output}: recorded {len(recording.entries):,} of {cases}"))
    return ExitCode.FAILED if any(left.broken for left in left_out) else ExitCode.SUCCESS


def _save(path: Path, content: bytes | None) -> None:
    """Replace the file at once; without content, only find out whether that is possible.

    Raises:
        click.UsageError: it is not.
    """
    temporary = path.with_name(f".{path.name}.{getpid()}.tmp")
    try:
        try:
            temporary.write_bytes(content or b"")
            if content is not None:
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise click.UsageError(f"-o {path}: {error.strerror or error}") from error


def _tell(left_out: Sequence[LeftOut]) -> None:
    """Say how many cases were not recorded and why, and name those that broke."""
    counts = Counter((left.broken, str(left.reason)) for left in left_out)
    for (broken, reason), count in sorted(counts.items()):
        word = "broken" if broken else "unsupported"
        cases = f"{count:,} case{'s' if count != 1 else ''}"
        click.echo(f"not recorded: {cases} {word}: {reason}", err=True)
    broken_cases = [left for left in left_out if left.broken]
    for left in broken_cases[:_MOST_NAMED]:
        click.echo(printable(f"  BROKEN {left.case}: {left.reason}: {left.message}"), err=True)
    if len(broken_cases) > _MOST_NAMED:
        click.echo(f"  and {len(broken_cases) - _MOST_NAMED:,} more", err=True)
