"""Find operators that take longer on the device than in an earlier run, and time them again.

A case's time is that of its fastest dispatch by the device's own clock. A case's ratio is its new
time divided by its time in the base run. An operator has two measures: the median of its cases'
ratios, and the ratio of the sums of their times. Measures are computed as logarithms.

Operators with few and short cases are not judged (`LEAST_CASES`). An operator is slower if a
measure exceeds max(1, M) by more than noise, where M is the median of that measure over all judged
operators. A slowdown of all operators is reported separately.

Noise is `DEVIATIONS` standard errors of the measure. The standard error has two parts, both
estimated by medians of absolute deviations:

- The ratios of one operator's cases differ. This part of the error falls with the number of cases.
- The measures of operators differ. This part does not, since all cases of an operator may run while
  the machine is busy.

An operator must also be slower by more than the quickest operators are quicker (`_QUICK_SHARE`),
since a machine that was busy during the base run makes operators seem quicker.

1.4826 makes the median absolute deviation an estimate of a normal distribution's standard
deviation; the standard error of a median is 1.2533 times that of a mean. `_QUICK_SHARE`,
`_QUICK_FACTOR` and `LEAST_CASES` were chosen on logs of several releases of DirectML from a busy
machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import median
from typing import Final

from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import Verdict

__all__ = ["ALL_OPERATORS", "Slowdown", "Timing", "retimed", "timing", "timing_lines"]

DEVIATIONS: Final = 4.0
"""Noise may move the logarithm of a measure this many standard errors from the median."""

LEAST_NOISE: Final = 0.05
"""The least standard deviation that is assumed for logarithms of ratios. So a slowdown has a ratio
above e^(4 * 0.05) = 1.22."""

TIMED_AGAIN: Final = 2
"""Operators that seem slower are timed again at most this often."""

MOST_LINES: Final = 20
"""The most slowdowns that `timing_lines` lists."""

ALL_OPERATORS: Final = "all operators"
"""The field `operator` in a slowdown of the whole run."""

LEAST_OPERATORS: Final = 5
"""The fewest judged operators for which a slowdown of the whole run is reported."""

LEAST_CASES: Final = 20
LEAST_SECONDS: Final = 0.05
"""An operator is judged if the cases that both runs timed are at least `LEAST_CASES`, or take at
least `LEAST_SECONDS` in each run. A short dispatch may wait a hundred times as long as it runs."""

_QUICK_SHARE: Final = 0.05
_QUICK_FACTOR: Final = 1.5
"""Of the operators quicker than the median, the quickest 5%, rounded down, are ignored. Noise is at
least `_QUICK_FACTOR` times the amount by which the next operator is quicker."""

_NORMAL: Final = 1.4826
_OF_MEDIAN: Final = 1.2533


@dataclass(frozen=True, slots=True)
class Slowdown:
    """An operator that takes longer than in the base run.

    Attributes:
        operator: its name, or `ALL_OPERATORS`.
        cases: how many of its cases both runs timed.
        ratio: how many times as long it takes, by the measure that exceeds noise by more. For
            `ALL_OPERATORS`, the median of the operators' median ratios.
        least: `ratio` divided by the greatest ratio that noise and the slowdown of all operators
            explain. For `ALL_OPERATORS`, only noise counts.
        base_seconds: the seconds of these cases in the base run.
        seconds: the seconds of these cases in the new run.
        slowest: the case with the greatest ratio.
        slowest_ratio: the ratio of that case.
    """

    operator: str
    cases: int
    ratio: float
    least: float
    base_seconds: float
    seconds: float
    slowest: str
    slowest_ratio: float

    @property
    def sentence(self) -> str:
        """A sentence such as `GEMM takes 1.5 times as long`."""
        verb = "take" if self.operator == ALL_OPERATORS else "takes"
        return f"{self.operator} {verb} {self.ratio:.1f} times as long"


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of two runs side by side.

    Attributes:
        cases: how many cases both runs timed.
        ratio: the median of the operators' median ratios; 1 if none can be judged.
        slower: first `ALL_OPERATORS`, if at least `LEAST_OPERATORS` are judged and noise does not
            explain their slowdown; then each slower operator, by falling ratio.
    """

    cases: int
    ratio: float
    slower: tuple[Slowdown, ...]

    def slower_than(self, factor: float) -> list[Slowdown]:
        """Return the entries of `slower` that take at least `factor` times as long."""
        return [slowdown for slowdown in self.slower if slowdown.ratio >= factor]


@dataclass(frozen=True, slots=True)
class _Timed:
    """The cases of an operator that both runs timed, with their seconds, all above 0."""

    operator: str
    cases: tuple[str, ...]
    base: tuple[float, ...]
    new: tuple[float, ...]

    @property
    def logs(self) -> list[float]:
        """The logarithm of each case's ratio."""
        return [math.log(new / base) for base, new in zip(self.base, self.new, strict=True)]

    @property
    def of_sums(self) -> float:
        """The logarithm of the ratio of the sums of seconds."""
        return math.log(math.fsum(self.new) / math.fsum(self.base))

    @property
    def can_be_judged(self) -> bool:
        seconds = min(math.fsum(self.base), math.fsum(self.new))
        return len(self.cases) >= LEAST_CASES or seconds >= LEAST_SECONDS


@dataclass(frozen=True, slots=True)
class _Measure:
    """How one measure, such as the ratio of sums, varies among operators, in logarithms.

    Attributes:
        middle: the median over all judged operators.
        spread: the part of the standard error that all cases of an operator share.
        quick: how much quicker than the median the quickest operators are, as `_QUICK_SHARE` says;
            0 if none is.
    """

    middle: float
    spread: float
    quick: float

    @classmethod
    def of(cls, values: Iterable[float]) -> _Measure:
        every = list(values)
        middle = median(every)
        deviations = [value - middle for value in every]
        quick = sorted(value for value in deviations if value < 0)
        end = -quick[int(_QUICK_SHARE * len(quick))] if quick else 0.0
        return cls(middle, max(LEAST_NOISE, _spread(deviations)), end)

    @property
    def noise(self) -> float:
        """How far noise alone may move an operator of very many cases from the median."""
        return max(DEVIATIONS * self.spread, _QUICK_FACTOR * self.quick)

    def reach(self, error: float) -> float:
        """Return what an operator's measure must exceed to count as slower.

        Args:
            error: the part of the standard error that falls with the number of cases.
        """
        beyond = max(DEVIATIONS * math.hypot(self.spread, error), _QUICK_FACTOR * self.quick)
        return max(self.middle, 0.0) + beyond


def timing(base: RunLog, new: RunLog) -> Timing:
    """Compare the times of two runs on the device."""
    timed = _timed(base, new)
    operators = [each for each in timed if each.can_be_judged]
    if not operators:
        return Timing(sum(len(each.cases) for each in timed), 1.0, ())
    medians = {each.operator: median(each.logs) for each in operators}
    of_medians = _Measure.of(medians.values())
    of_sums = _Measure.of(each.of_sums for each in operators)
    among_cases = _spread(
        value - medians[each.operator]
        for each in operators
        if len(each.cases) > 2
        for value in each.logs
    )
    slower = []
    for each in operators:
        middle = medians[each.operator]
        noise = max(among_cases, LEAST_NOISE, _spread(value - middle for value in each.logs))
        share = math.sqrt(math.fsum(t * t for t in each.base)) / math.fsum(each.base)
        measures = (
            (middle, of_medians, _OF_MEDIAN * noise / math.sqrt(len(each.cases))),
            (each.of_sums, of_sums, noise * share),
        )
        least, value = max((value - every.reach(error), value) for value, every, error in measures)
        if least > 0:
            slower.append(_slowdown(each, value, least))
    slower.sort(key=lambda slowdown: -slowdown.ratio)
    whole = _whole(operators, of_medians)
    cases = sum(len(each.cases) for each in timed)
    return Timing(cases, math.exp(of_medians.middle), (*whole, *slower))


def _whole(operators: Sequence[_Timed], medians: _Measure) -> tuple[Slowdown, ...]:
    """Return the slowdown of all operators, if enough are judged and it exceeds the noise.

    All operators together are judged like one operator with very many cases.
    """
    least = medians.middle - medians.noise
    if len(operators) < LEAST_OPERATORS or least <= 0:
        return ()
    parts = (
        tuple(chain.from_iterable(part))
        for part in zip(*((each.cases, each.base, each.new) for each in operators), strict=True)
    )
    return (_slowdown(_Timed(ALL_OPERATORS, *parts), medians.middle, least),)


def retimed(
    base: RunLog, new: RunLog, time_again: Callable[[Collection[str]], Iterable[Verdict]]
) -> RunLog:
    """Time again the operators that seem slower, and return the new run with the times added.

    Timing ends when no operator seems slower, or after `TIMED_AGAIN` times.

    Args:
        time_again: runs the cases with these identifiers, and returns verdicts with times.
    """
    for _ in range(TIMED_AGAIN):
        slower = {slowdown.operator for slowdown in timing(base, new).slower} - {ALL_OPERATORS}
        if not slower:
            break
        cases = [verdict.case for verdict in new.verdicts if verdict.operator in slower]
        again = {verdict.case: verdict.execution.dispatch_seconds for verdict in time_again(cases)}
        verdicts = (
            verdict.ran(
                dispatch_seconds=(*verdict.execution.dispatch_seconds, *again[verdict.case])
            )
            if verdict.execution.dispatch_seconds and verdict.case in again
            else verdict
            for verdict in new.verdicts
        )
        new = replace(new, verdicts=tuple(verdicts))
    return new


def _slowdown(timed: _Timed, value: float, least: float) -> Slowdown:
    ratio, slowest = max(zip(timed.logs, timed.cases, strict=True))
    return Slowdown(
        operator=timed.operator,
        cases=len(timed.cases),
        ratio=math.exp(value),
        least=math.exp(least),
        base_seconds=math.fsum(timed.base),
        seconds=math.fsum(timed.new),
        slowest=slowest,
        slowest_ratio=math.exp(ratio),
    )


def _timed(base: RunLog, new: RunLog) -> list[_Timed]:
    before = _seconds(base)
    by_operator: dict[str, list[tuple[str, float, float]]] = {}
    operators = {verdict.case: verdict.operator for verdict in new.verdicts}
    for case, seconds in _seconds(new).items():
        if case in before:
            entry = case, before[case], seconds
            by_operator.setdefault(operators[case], []).append(entry)
    return [
        _Timed(name, *map(tuple, zip(*entries, strict=True)))
        for name, entries in by_operator.items()
    ]


def _seconds(log: RunLog) -> Mapping[str, float]:
    return {
        verdict.case: min(verdict.execution.dispatch_seconds)
        for verdict in log.verdicts
        if verdict.execution.dispatch_seconds and min(verdict.execution.dispatch_seconds) > 0
    }


def _spread(deviations: Iterable[float]) -> float:
    """Return a robust estimate of the standard deviation of values around 0."""
    sizes = [abs(value) for value in deviations]
    return _NORMAL * median(sizes) if sizes else 0.0


def timing_lines(compared: Timing) -> list[str]:
    """Return lines on the first `MOST_LINES` slowdowns, and a line on the number of others."""
    lines = [
        f"{each.operator}: {each.ratio:.1f} times as long, at least {each.least:.1f} times beyond "
        f"noise ({_time(each.seconds)}, was {_time(each.base_seconds)}, in {each.cases:,} "
        f"case{'s' if each.cases != 1 else ''}; most in {each.slowest}, "
        f"{each.slowest_ratio:.1f} times)"
        for each in compared.slower[:MOST_LINES]
    ]
    left = len(compared.slower) - len(lines)
    return [*lines, f"and {left:,} more"] if left else lines


def _time(seconds: float) -> str:
    return f"{seconds:,.2f} s" if seconds >= 1 else f"{1000 * seconds:,.3g} ms"
