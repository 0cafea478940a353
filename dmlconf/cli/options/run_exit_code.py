"""The exit code of a run, and the options `--fail-on` and `--min-passed`, which decide on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from dmlconf.cli.common.command import option, options
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import Number
from dmlconf.documents.problems import printable
from dmlconf.documents.wording import counted
from dmlconf.reports.runs.summary import status_counts
from dmlconf.run_log.log import Footer, RunLog
from dmlconf.verdicts.verdict import Status

__all__ = [
    "EXIT_GROUP",
    "FAIL_ON",
    "NO_KNOWN_FAULTS_HELP",
    "WAIVERS_HELP",
    "Demands",
    "demand_options",
    "log_exit_code",
    "parse_statuses",
    "run_exit_code",
    "severity",
]

EXIT_GROUP: Final = "Decide the exit code"

NO_KNOWN_FAULTS_HELP: Final = "Judge as if no fault of DirectML were known (docs/faults.md)."

WAIVERS_HELP: Final = "Accept the known failures that this file lists."

FAIL_ON: Final = tuple(sorted(each for each in Status if each.traits.fails_on_demand))
"""Statuses that fail a run only if `--fail-on` names them."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What a run must meet besides having no failures.

    Attributes:
        fail_on: further statuses that no case may have.
        min_passed: the share of the selected cases that must pass, in percent; None for no minimum.
    """

    fail_on: tuple[Status, ...] = ()
    min_passed: float | None = None


def parse_statuses(
    ctx: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> tuple[Status, ...]:
    """Return the statuses that values such as `unchecked,unsupported` name.

    Raises:
        click.BadParameter: a value is not one of `FAIL_ON`.
    """
    names = [name.strip() for value in values for name in value.split(",")]
    for name in names:
        if name not in FAIL_ON:
            message = f"{name!r} is not one of {', '.join(FAIL_ON)}"
            raise click.BadParameter(printable(message))
    return tuple(dict.fromkeys(map(Status, names)))


demand_options: Final = options(
    option(
        "--fail-on",
        multiple=True,
        metavar="STATUS,...",
        callback=parse_statuses,
        group=EXIT_GROUP,
        help="Also fail the run if a case has this status: "
        f"{', '.join(FAIL_ON[:-1])} or {FAIL_ON[-1]}.",
    ),
    option(
        "--min-passed",
        type=Number(0, 100),
        metavar="PERCENT",
        group=EXIT_GROUP,
        help="Fail the run if a lower share of the selected cases passed.",
    ),
)


def log_exit_code(log: RunLog, demands: Demands) -> tuple[ExitCode, list[str]]:
    """Return what `run_exit_code` returns for a log, which may end early."""
    footer = log.footer
    if footer is None:
        summary = {str(status): count for status, count in status_counts(log).items()}
        footer = Footer(log.header.started, 0.0, False, summary)
    return run_exit_code(footer, demands)


def run_exit_code(
    footer: Footer, demands: Demands, shortcomings: Sequence[str] = ()
) -> tuple[ExitCode, list[str]]:
    """Return the exit code of a run, and complaints to print.

    Args:
        shortcomings: complaints about other demands.
    """
    counts = {status: footer.summary.get(status, 0) for status in Status}
    complaints = [
        f"--fail-on {status}: {_cases(counts[status])} {status}"
        for status in demands.fail_on
        if counts[status]
    ]
    total = sum(counts.values())
    share = 100 * counts[Status.PASSED] / total if total else 0.0
    if demands.min_passed is not None and share < demands.min_passed:
        pass_rate = f"{share:.2f}% of {_cases(total)} passed"
        complaints.append(f"--min-passed {demands.min_passed:g}: only {pass_rate}")
    complaints += shortcomings
    if complaints or any(counts[status] for status in Status if status.fails_run):
        return ExitCode.FAILED, complaints
    if not footer.complete:
        return ExitCode.INCOMPLETE, []
    if not any(counts[status] for status in Status if status.traits.checked):
        return ExitCode.NOTHING_CHECKED, ["no case passed, so this run proves nothing"]
    return ExitCode.SUCCESS, []


def _cases(count: int) -> str:
    return counted(count, "case")


def severity(code: ExitCode) -> int:
    """Return how severe a run's exit code is, from 0 for `SUCCESS` to 5 for `FAILED`.

    Raises:
        ValueError: no run ends with this code.
    """
    return [
        ExitCode.SUCCESS,
        ExitCode.OUTPUT,
        ExitCode.NOTHING_CHECKED,
        ExitCode.NOTHING_SELECTED,
        ExitCode.INCOMPLETE,
        ExitCode.FAILED,
    ].index(code)
