"""The option `--fail-slower`, and lines on operators that `comparison.timing` finds slower."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import click

from dmlconf.cli.common.parameter_types import ParamType
from dmlconf.documents.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dmlconf.cases.model import PlannedCase
    from dmlconf.comparison.timing import Timing
    from dmlconf.engine.target import JudgePlan
    from dmlconf.run_log.log import RunLog
    from dmlconf.verdicts.verdict import Verdict

__all__ = ["FACTOR", "FAIL_SLOWER_HELP", "slower_complaints", "timed_again", "too_slow"]


class _Factor(ParamType[float]):
    """A finite factor above 1, such as `3x` or `1.5`."""

    name = "factor"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        text = str(value)
        try:
            number = float(text.removesuffix("x"))
        except ValueError:
            number = math.nan
        if not 1 < number < math.inf:
            self.fail(f"{text!r} is not a factor above 1, such as 3x", param, ctx)
        return number


FACTOR: Final = _Factor()

FAIL_SLOWER_HELP: Final = "Fail if an operator takes at least this many times as long, such as 3x."


def timed_again(base: RunLog, new: RunLog, plan: Sequence[PlannedCase], judge: JudgePlan) -> RunLog:
    """Return the new run with times added for the operators that seem slower than in the base.

    Args:
        plan: the cases of the run.
        judge: runs cases, and yields their verdicts.
    """
    from dmlconf.comparison.timing import retimed

    by_name = {planned.identifier: planned for planned in plan}

    def again(cases: Collection[str]) -> Iterable[Verdict]:
        return judge([by_name[case] for case in cases if case in by_name])

    return retimed(base, new, again)


def slower_complaints(
    base: RunLog, new: RunLog, factor: float | None
) -> tuple[list[str], list[str]]:
    """Return lines on slower operators, and complaints about those that fail the run.

    Args:
        factor: how many times as long an operator must take to fail the run; None for never.
    """
    from dmlconf.comparison.timing import timing, timing_lines  # Few runs need it.

    compared = timing(base, new)
    if not compared.cases:
        return ["no case has a device time in both runs, so no times were compared"], []
    cases = counted(compared.cases, "case")
    lines = timing_lines(compared)
    begin = f"Slower than in the earlier run ({cases} timed in both)"
    said = [f"{begin}:", *(f"  {line}" for line in lines)] if lines else [f"{begin}: no operator"]
    devices = [log.header.environment.get("adapter") for log in (base, new)]
    if devices[0] != devices[1]:
        said.append(f"  The devices differ: {devices[0]}, now {devices[1]}")
    return said, too_slow(compared, factor)


def too_slow(compared: Timing, factor: float | None) -> list[str]:
    """Return the complaints about operators that take at least `factor` times as long, if any."""
    failing = compared.slower_than(factor) if factor is not None else []
    return [f"--fail-slower {factor:g}x: {each.sentence}" for each in failing]
