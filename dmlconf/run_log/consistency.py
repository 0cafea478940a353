"""Find contradictions in a run log, which may have been edited or joined from two logs.

This finds mistakes, not forgeries. A missing footer is no contradiction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dmlconf.cases.identifiers import cases_digest
from dmlconf.documents.problems import printable
from dmlconf.run_log.lines import InvalidLogError
from dmlconf.verdicts.verdict import Status, Verdict

__all__ = [
    "Contradiction",
    "LoggedVerdict",
    "Repeated",
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
class Repeated:
    """The cases and places that are looked for in more than one verdict.

    Attributes:
        cases: the hashes of identifiers of cases; different identifiers may have the same hash.
    """

    cases: Container[int]
    places: Container[int]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A contradiction in a log.

    Attributes:
        line: the number of the line, from 1; of two contradicting lines, the second.
    """

    line: int
    message: str


def contradiction_error(path: Path, problem: Contradiction) -> InvalidLogError:
    """Return the error about a log that contradicts itself."""
    message = f"the log contradicts itself: {problem.message}"
    return InvalidLogError(printable(f"{path}:{problem.line}: {message}"))


def contradiction(
    selected: int,
    verdicts: Iterable[LoggedVerdict],
    footer: tuple[int, Mapping[str, int], bool] | None,
    planned: int | None = None,
    repeated: Repeated | None = None,
) -> Contradiction | None:
    """Return the first contradiction of a log; None if it has none.

    `other_cases` checks whether the verdicts are on the selected cases.

    Args:
        selected: how many cases were selected, by the header.
        verdicts: all verdicts in the order of the log, then the attempts that count as verdicts.
            Several equal verdicts on a case are no contradiction.
        footer: the footer's line, `summary` and `complete`; None to check no footer.
        planned: how many cases the whole plan has; None for as many as were selected.
        repeated: the cases and places to look for in a second verdict; None for all.
    """
    return next(_contradictions(selected, verdicts, footer, planned, repeated), None)


def other_cases(cases: Iterable[str], line: int, expected: str) -> Contradiction | None:
    """Return a contradiction unless the cases have the digest in the footer.

    Args:
        cases: the different cases of the verdicts.
        line: the footer's line, from 1.
        expected: the footer's `cases_digest`.
    """
    if cases_digest(cases) == expected:
        return None
    return Contradiction(line, "its verdicts are on other cases than the run had selected")


def _contradictions(
    selected: int,
    verdicts: Iterable[LoggedVerdict],
    footer: tuple[int, Mapping[str, int], bool] | None,
    planned: int | None,
    repeated: Repeated | None,
) -> Iterator[Contradiction]:
    by_case: dict[str, LoggedVerdict] = {}
    by_place: dict[int, LoggedVerdict] = {}
    statuses: Counter[Status] = Counter()
    count = 0
    for logged in verdicts:
        yield from _of_reason(logged)
        yield from _of_place(logged, selected, planned)
        if logged.place is not None and (repeated is None or logged.place in repeated.places):
            yield from _of_same_place(logged, by_place.setdefault(logged.place, logged))
        first, case = logged, logged.verdict.case
        if repeated is None or hash(case) in repeated.cases:
            first = by_case.setdefault(case, logged)
            yield from _of_same_case(logged, first)
        if first is logged:
            statuses[logged.verdict.status] += 1
            count += 1
        if count > selected:
            message = f"{count} cases have verdicts, but the header says that {selected} are"
            yield Contradiction(logged.line, f"{message} selected")
    if footer is not None:
        line, summary, complete = footer
        yield from (Contradiction(line, text) for text in _of_summary(summary, statuses))
        yield from (Contradiction(line, text) for text in _of_end(complete, statuses, selected))


def _of_reason(logged: LoggedVerdict) -> Iterator[Contradiction]:
    case, status, reason = logged.verdict.case, logged.verdict.status, logged.verdict.reason
    if reason is None and status is not Status.PASSED:
        yield Contradiction(logged.line, f"{case} is `{status}`, but without a reason")
    if reason is not None and status is Status.PASSED:
        yield Contradiction(logged.line, f"{case} is `passed`, but for the reason `{reason.kind}`")


def _of_place(logged: LoggedVerdict, selected: int, planned: int | None) -> Iterator[Contradiction]:
    of_plan = selected if planned is None else planned
    if logged.place is not None and logged.place >= of_plan:
        of_shard = of_plan != selected
        cases = f"all shards have {of_plan} cases" if of_shard else f"{of_plan} are selected"
        message = f"{logged.verdict.case} has the place {logged.place}, but the header says that"
        yield Contradiction(logged.line, f"{message} {cases}")


def _of_same_place(logged: LoggedVerdict, other: LoggedVerdict) -> Iterator[Contradiction]:
    case = logged.verdict.case
    if other.verdict.case != case:
        message = f"{case} has the place {logged.place}, as {other.verdict.case} has"
        yield Contradiction(logged.line, f"{message} in line {other.line}")


def _of_same_case(logged: LoggedVerdict, other: LoggedVerdict) -> Iterator[Contradiction]:
    verdict = logged.verdict
    if other.verdict != verdict:
        message = f"{verdict.case} has another verdict in line {other.line}"
        if other.verdict.status is not verdict.status:
            message += f": `{other.verdict.status}` there, `{verdict.status}` here"
        yield Contradiction(logged.line, message)


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
