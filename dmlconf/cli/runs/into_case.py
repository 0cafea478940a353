"""`dmlconf record --into-case`: write the outputs of a backend into cases as expectations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import click
import numpy as np

from dmlconf.backends.protocol import Outcome
from dmlconf.backends.registry import BackendName
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.options.device import DeviceOptions
from dmlconf.cli.options.nothing_selected import nothing_selected
from dmlconf.cli.options.selection import load_runnable
from dmlconf.cli.output.console import say
from dmlconf.cli.output.files import replaced
from dmlconf.cli.output.progress import progress
from dmlconf.documents.files import exists
from dmlconf.documents.problems import InvalidFilesError, printable
from dmlconf.engine.consumers import run_to_end
from dmlconf.engine.core import Engine
from dmlconf.engine.events import Event, Executed, Unsupported
from dmlconf.engine.making_runs import outcomes_of
from dmlconf.engine.run import How, Run
from dmlconf.engine.session import environment_record
from dmlconf.excuses.substrate import Substrate
from dmlconf.expectations.into_cases import (
    Refusal,
    changed_files,
    device_name,
    expected_of,
    unsuitable,
)
from dmlconf.tensors.datatypes import Array

__all__ = ["record_into_cases"]


def record_into_cases(
    arguments: Sequence[Path],
    tested: BackendName,
    device_options: DeviceOptions,
    *,
    quiet: bool,
    color: str,
    selection: Mapping[str, Any],
) -> int:
    """Run cases, and write the outputs of each into its entry as expected outputs.

    Cases that give no outputs to record are named on standard error, and the exit code is `FAILED`.

    Args:
        arguments: case files and folders, and identifiers of cases in them.

    Raises:
        click.UsageError: the reference is to be recorded, a challenge is given, no case file is
            named, an option is wrong, or a file must not be replaced.
        InvalidFilesError: a file is invalid, or an entry cannot hold expected outputs.
        BackendError: the backend cannot be used.
        OutputError: a file cannot be written.
    """
    if tested.name == "numpy":
        message = "expected values never come from the reference that they are to check: name "
        raise click.UsageError(message + "another backend, such as -b directml")
    if selection.get("challenge") is not None:
        raise click.UsageError("--challenge varies the data, which the case file would not have")
    paths, names = _divided(arguments)
    chosen = dict(selection)
    chosen["identifiers"] = (*chosen.get("identifiers", ()), *names)
    suite, plan = load_runnable(paths, **chosen)
    if not plan:
        return nothing_selected(paths, chosen)
    problems = list(unsuitable(plan))
    if problems:
        raise InvalidFilesError(problems)
    run = outcomes_of(suite, plan, How(tested, device_options.limits()))
    recorded, refusals, device = _recorded(run, device_options.known_limits(), quiet, color)
    for each in changed_files(recorded, device, _save):
        if isinstance(each, Refusal):
            refusals.append(each)
            continue
        path, text = each
        replaced(path, text.encode(), "--into-case", own="a case file")
        count = sum(planned.template.about.location.path == path for planned, _ in recorded)
        cases = "1 case" if count == 1 else f"{count:,} cases"
        click.echo(printable(f"{path}: {cases} recorded from {device}"))
    for refusal in refusals:
        say(printable(f"not recorded: {refusal.case}: {refusal.message}"))
    return ExitCode.FAILED if refusals else ExitCode.SUCCESS


def _divided(arguments: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the arguments that exist as paths, and the others as names of cases."""
    paths = [path for path in arguments if exists(path)]
    if not paths:
        named = f" beside {arguments[0]}" if arguments else ""
        raise click.UsageError(printable(f"--into-case needs the case file{named}: name its path"))
    return paths, [path.as_posix() for path in arguments if not exists(path)]


def _recorded(
    run: Run, known: Substrate, quiet: bool, color: str
) -> tuple[list[tuple[PlannedCase, Mapping[str, Array]]], list[Refusal], str]:
    """Return cases with their outputs, refusals of other cases, and the device's name."""
    recorded: dict[str, Mapping[str, Array]] = {}
    refusals: list[Refusal] = []
    with Engine(run) as engine:
        device = device_name(environment_record(engine.backend.environment))

        def outputs_of(case: Case, outcome: Outcome) -> Mapping[str, Array] | Refusal:
            fault = engine.backend.faults.explaining(case, outcome)
            if fault is not None:
                return Refusal(case.identifier, f"a known fault of {device}: {fault.name}")
            limit = next((each for each in known.limits if each.explains(case, outcome)), None)
            if limit is not None:
                return Refusal(case.identifier, f"a limit of the lab: {limit.name}")
            return expected_of(case, outcome)

        def keep(event: Event) -> None:
            match event:
                case Unsupported(verdict):
                    message = verdict.reason.message if verdict.reason else "unsupported"
                    refusals.append(Refusal(verdict.case, message))
                    advance(True)
                case Executed(case, outcome):
                    expected = outputs_of(case, outcome)
                    if isinstance(expected, Refusal):
                        refusals.append(expected)
                    else:
                        recorded[case.identifier] = expected
                    advance(isinstance(expected, Refusal))

        with progress(len(run.plan), quiet=quiet, color=color) as advance:
            run_to_end(engine, keep)
    in_order = [
        (planned, recorded[planned.identifier])
        for planned in run.plan
        if planned.identifier in recorded
    ]
    return in_order, refusals, device


def _save(path: Path, array: Array) -> None:
    content = BytesIO()
    np.save(content, np.ascontiguousarray(array), allow_pickle=False)
    replaced(path, content.getvalue(), "--into-case", own="a NumPy array")
