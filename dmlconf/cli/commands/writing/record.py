"""`dmlconf record`: run cases on a backend, and record their outcomes."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from dmlconf.backends.recording.file import SUFFIX, recording_bytes
from dmlconf.backends.recording.model import Recording
from dmlconf.catalogue.loader import UnknownOperatorError, operator_name
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.configuration import BACKEND_GROUP
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.path_types import ANY_PATH
from dmlconf.cli.options.backend import backend_option, color_option
from dmlconf.cli.options.device import DeviceOptions, single_device_options
from dmlconf.cli.options.models import leave_out_models
from dmlconf.cli.options.nothing_selected import nothing_selected
from dmlconf.cli.options.selection import (
    load_runnable,
    long_selection_options,
    paths_argument,
)
from dmlconf.cli.output.console import warn
from dmlconf.cli.output.files import replaced
from dmlconf.cli.output.progress import progress
from dmlconf.cli.runs.into_case import record_into_cases
from dmlconf.documents.files import is_folder
from dmlconf.documents.problems import printable
from dmlconf.documents.recognition import RECORDING
from dmlconf.documents.wording import counted, first_lines
from dmlconf.engine.core import Engine
from dmlconf.engine.making_runs import outcomes_of
from dmlconf.engine.run import How
from dmlconf.expectations.recorder import LeftOut, record, recording_head
from dmlconf.expectations.renewal import Part, parts_kept, renewed

__all__ = ["command"]

_MOST_NAMED: Final = 10
"""The most broken cases that are named."""


def _checked(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """Return the path; refuse a name without `.dmlrec`, which may be an operator, such as GEMM."""
    if value is not None and value.suffix != SUFFIX and not is_folder(value):
        message = (
            f"{value} is neither a folder nor a name that ends in {SUFFIX}; "
            "to select an operator, use --operator"
        )
        raise click.BadParameter(printable(message))
    return value


@click.command("record", cls=Command, short_help="Record the outcomes of cases on a backend.")
@paths_argument
@backend_option(
    "The backend to record.",
    default="directml",
    show_default=True,
    group=BACKEND_GROUP,
)
@option(
    "-o",
    "--output",
    metavar="FILE|FOLDER",
    type=ANY_PATH,
    callback=_checked,
    help="Write the recording to this file, NAME.dmlrec, or to one file per operator, "
    "FOLDER/<operator>/NAME.dmlrec; by default to the FOLDER that holds PATHS as "
    "FOLDER/<operator>.",
)
@option(
    "--into-case",
    is_flag=True,
    help="Write the outputs into the case files instead, as what each case expects. PATHS may also "
    "name cases: `record tile/mine/wide mine.yaml --into-case`.",
)
@option(
    "--name",
    metavar="NAME",
    help="The name of the files in FOLDER, without .dmlrec; by default BACKEND-VERSION, such as "
    "directml-1.15.4.",
)
@single_device_options
@long_selection_options
@option("-q", "--quiet", is_flag=True, help="Show no progress bar.")
@color_option
def command(
    paths: tuple[Path, ...],
    backend: str,
    output: Path | None,
    into_case: bool,
    name: str | None,
    device_options: DeviceOptions,
    quiet: bool,
    color: str,
    **selection: Any,
) -> int:
    """Run the cases under PATHS (by default the bundled suite) and record their outcomes.

    Cases with the tag `model` are left out unless you ask for them or give --into-case.

    Cases that break or that the backend declines are reported on standard error and not recorded.
    With -o FOLDER, entries of cases that are not selected are kept, and files
    whose outcomes are the same are not rewritten. No file changes until all cases have run.

    With --into-case, each selected case gets its outputs as `expect`, marked as `recorded`;
    comments and layout of its file stay. Matrices, cases that state what they expect,
    and outputs that contradict the reference are refused.

    Exit codes: 0 nothing broke; 1 something did, or nothing could be recorded (with --into-case,
    not every case); otherwise the same as for run.
    """
    tested = device_options.tested(backend)
    if tested.name == "recording":
        raise click.UsageError("a recording cannot be recorded again: copy the file")
    if into_case:
        if output is not None or name is not None:
            raise click.UsageError("--into-case writes into case files: leave out -o and --name")
        return record_into_cases(
            paths, tested, device_options, quiet=quiet, color=color, selection=selection
        )
    output = output or _folder_of_operators(paths)
    by_operator = is_folder(output)
    if name is not None and not by_operator:
        raise click.UsageError("--name names files in a folder: add -o FOLDER")
    if name is not None and Path(name).name != name:
        raise click.BadParameter(printable(f"{name!r} is not a file name"), param_hint="--name")
    if tested.name == "numpy":
        warn("numpy is the reference: a recording of it says nothing about DirectML")
    replaced(output / SUFFIX if by_operator else output, None, own=RECORDING)
    suite, plan = load_runnable(paths, **selection)
    plan = leave_out_models(paths, plan, selection, "of recordings, which they would bloat")
    if not plan:
        return nothing_selected(paths, selection)
    known = device_options.known_limits()
    with Engine(outcomes_of(suite, plan, How(tested, device_options.limits()))) as engine:
        head = recording_head(engine.backend)
        target = output / f"{name or _default_name(head)}{SUFFIX}" if by_operator else output
        kept = parts_kept(target, plan, head) if by_operator else {}
        with progress(len(plan), quiet=quiet, color=color) as advance:
            recording, left_out = record(engine, known, advance)
    _report_left_out(left_out)
    if not recording.entries:
        message = f"Error: nothing could be recorded, so {target} was not written"
        click.echo(printable(message), err=True)
        return ExitCode.FAILED
    cases = counted(len(plan), "case")
    done = f"recorded {len(recording.entries):,} of {cases}"
    if by_operator:
        done += _save_parts(list(renewed(target, recording, kept)))
    else:
        replaced(output, recording_bytes(recording), own=RECORDING)
    click.echo(printable(f"{target}: {done}"))
    return ExitCode.FAILED if any(left.broken for left in left_out) else ExitCode.SUCCESS


def _folder_of_operators(paths: Sequence[Path]) -> Path:
    """Return the FOLDER of paths such as `FOLDER/gather`; fail if they have none in common."""
    folders: dict[Path, Path] = {}
    for path in paths:
        own = path if is_folder(path) else path.parent
        absolute = own.absolute()
        try:
            operator_name(absolute.name)
        except UnknownOperatorError:
            break
        folders.setdefault(absolute.parent, own.parent if own.name else Path(os.pardir))
    else:
        if len(folders) == 1:
            return next(iter(folders.values()))
    raise click.UsageError(
        "say where to write: -o NAME.dmlrec, -o FOLDER, or --into-case. Without it, PATHS must be "
        "folders of operators, such as cases/gather"
    )


def _default_name(head: Recording) -> str:
    name = f"{head.environment['backend']}-{head.environment['version']}"
    return re.sub(r"[^\w.+-]+", "-", name)


def _save_parts(parts: Sequence[Part]) -> str:
    """Write the files whose outcomes changed; return the text ` in 9 files, 2 of them changed`."""
    changed = 0
    for part in parts:
        if part.content is not None:
            replaced(part.path, part.content, own=RECORDING)
            changed += 1
    files = counted(len(parts), "file")
    return f" in {files}, {changed:,} of them changed"


def _report_left_out(left_out: Sequence[LeftOut]) -> None:
    counts = Counter((left.broken, str(left.reason)) for left in left_out)
    for (broken, reason), count in sorted(counts.items()):
        word = "broken" if broken else "unsupported"
        cases = counted(count, "case")
        click.echo(f"not recorded: {cases} {word}: {reason}", err=True)
    broken_cases = [left for left in left_out if left.broken]
    lines = [f"BROKEN {left.case}: {left.reason}: {left.message}" for left in broken_cases]
    for line in first_lines(lines, _MOST_NAMED):
        click.echo(printable(line), err=True)
