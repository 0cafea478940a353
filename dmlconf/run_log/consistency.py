"""Find contradictions in a run log, such as one that was edited or joined from two.

This finds mistakes, not forgeries. An early end is no contradiction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dmlconf.cases.identifiers import cases_digest
from dmlconf.documents.problems import printable
from dmlconf.run_log.lines import InvalidLogError
from dmlconf.verdicts.verdict import Status, Verdict

__all__ = [
    "Contradiction",
    "LoggedVerdict",
    "contradiction",
    "contradiction_error",
    "other_cases",
]


@dataclass(frozen=True, slots=True)
class LoggedVerdict:
    """A verdict, and where the log has it.

    Attributes:
        line: the number of its line, from 1.
        place: the index of its case in the plan, from 0; None if the log does not state it.
    """

    line: int
    place: int | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A contradiction between two lines of a log, or within one.

    Attributes:
        line: the number of the line, from 1; of two lines, the later one.
    """

    line: int
    message: str


def contradiction_error(path: Path, problem: Contradiction) -> InvalidLogError:
    """Return the error of a log that contradicts itself."""
    message = f"the log contradicts itself: {problem.message}"
    return InvalidLogError(printable(f"{path}:{problem.line}: {message}"))


def contradiction(
    selected: int,
    verdicts: Sequence[LoggedVerdict],
    footer: tuple[int, Mapping[str, int], bool] | None,
    planned: int | None = None,
) -> Contradiction | None:
    """Return the first contradiction of a log, or None.

    Args:
        selected: how many cases were selected, by the header.
        verdicts: all verdicts, in the order of the log.
        footer: the number of the footer's line, its counts of verdicts by status, and whether it
            says that the run is complete; None where the log has no footer.
        planned: how many cases the whole plan has, if only those of a shard were selected.
    """
    return next(_contradictions(selected, verdicts, footer, planned), None)


def other_cases(
    verdicts: Iterable[LoggedVerdict], line: int, expected: str
) -> Contradiction | None:
    """Return a contradiction if the verdicts are on other cases than those of the footer's digest.

    Args:
        line: the footer's line, from 1.
        expected: its `cases_digest`.
    """
    if cases_digest({logged.verdict.case for logged in verdicts}) == expected:
        return None
    return Contradiction(line, "its verdicts are on other cases than the run had selected")


def _contradictions(
    selected: int,
    verdicts: Sequence[LoggedVerdict],
    footer: tuple[int, Mapping[str, int], bool] | None,
    planned: int | None,
) -> Iterator[Contradiction]:
    of_plan = selected if planned is None else planned
    by_case: dict[str, LoggedVerdict] = {}
    by_place: dict[int, LoggedVerdict] = {}
    for logged in verdicts:
        yield from _of_reason(logged)
        yield from _of_place(logged, of_plan, by_place)
        yield from _of_case(logged, selected, by_case)
    if footer is not None:
        line, summary, complete = footer
        statuses = Counter(logged.verdict.status for logged in by_case.values())
        yield from (Contradiction(line, text) for text in _of_summary(summary, statuses))
        yield from (Contradiction(line, text) for text in _of_end(complete, statuses, selected))


def _of_reason(logged: LoggedVerdict) -> Iterator[Contradiction]:
    case, status, reason = logged.verdict.case, logged.verdict.status, logged.verdict.reason
    if reason is None and status is not Status.PASSED:
        yield Contradiction(logged.line, f"{case} is `{status}`, but without a reason")
    if reason is not None and status is Status.PASSED:
        yield Contradiction(logged.line, f"{case} is `passed`, but for the reason `{reason.kind}`")


def _of_place(
    logged: LoggedVerdict, planned: int, by_place: dict[int, LoggedVerdict]
) -> Iterator[Contradiction]:
    if logged.place is None:
        return
    case, place = logged.verdict.case, logged.place
    if place >= planned:
        message = f"{case} has the place {place}, but the header says that {planned} are selected"
        yield Contradiction(logged.line, message)
    other = by_place.setdefault(place, logged)
    if other.verdict.case != case:
        message = f"{case} has the place {place}, as {other.verdict.case} has in line {other.line}"
        yield Contradiction(logged.line, message)


def _of_case(
    logged: LoggedVerdict, selected: int, by_case: dict[str, LoggedVerdict]
) -> Iterator[Contradiction]:
    verdict = logged.verdict
    other = by_case.setdefault(verdict.case, logged)
    if other.verdict != verdict:
        message = f"{verdict.case} has another verdict in line {other.line}"
        if other.verdict.status is not verdict.status:
            message += f": `{other.verdict.status}` there, `{verdict.status}` here"
        yield Contradiction(logged.line, message)
    if len(by_case) > selected:
        message = f"{len(by_case)} cases have verdicts, but the header says that {selected} are"
        yield Contradiction(logged.line, f"{message} selected")


def _of_summary(summary: Mapping[str, int], statuses: Counter[Status]) -> Iterator[str]:
    for status in Status:
        count = summary.get(status.value, 0)
        if count != statuses[status]:
            yield f"the footer counts {count} `{status}`, but the log has {statuses[status]}"


def _of_end(complete: bool, statuses: Counter[Status], selected: int) -> Iterator[str]:
    verdicts = statuses.total()
    if verdicts != selected:
        yield f"the run ended with {verdicts} verdicts, but the header says {selected} are selected"
    elif complete and statuses[Status.NOT_RUN]:
        count = statuses[Status.NOT_RUN]
        yield f"the footer says that the run is complete, but {count} of its cases are `not run`"
    elif not complete and not statuses[Status.NOT_RUN]:
        yield "the footer says that the run is incomplete, but every selected case was run"
