"""Answer questions about a history: since when a case fails, with what change, what is flaky."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from dmlconf.cases.identifiers import identifier_matcher, resolved
from dmlconf.cases.selecting.keywords import keyword_matcher
from dmlconf.history.causes import causes
from dmlconf.history.tables import operator, run_operator
from dmlconf.history.timeline import (
    Environment,
    Line,
    RunRow,
    Timeline,
    Transition,
    VerdictAt,
    verdicts_along,
)

__all__ = [
    "Choice",
    "Flaky",
    "OperatorState",
    "Story",
    "chosen_cases",
    "driver_states",
    "flaky",
    "flaky_among",
    "named_cases",
    "regressions",
    "regressions_among",
    "stories",
]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cases a question is about: those that meet all conditions.

    Attributes:
        operators: the case's operator is one of these; empty for any.
        tags: the case has at least one of these; empty for any.
        keywords: an expression over parts of identifiers; None for any.
        where: the case's identifier is one of these; None for any, empty for none.
    """

    operators: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    keywords: str | None = None
    where: frozenset[str] | None = None

    def matcher(self) -> Callable[[str, str, str], bool]:
        """Return a predicate over a case's identifier, its operator and its tags (as JSON).

        Raises:
            KeywordError: the keywords cannot be read.
        """
        spoken = keyword_matcher(self.keywords) if self.keywords else None

        def matches(identifier: str, name: str, tags: str) -> bool:
            return (
                (not self.operators or name in self.operators)
                and (not self.tags or not self.tags.isdisjoint(json.loads(tags)))
                and (spoken is None or spoken(identifier.casefold()))
                and (self.where is None or identifier in self.where)
            )

        return matches


@dataclass(frozen=True, slots=True)
class Story:
    """How the verdict on a case changed over the runs of one line.

    Attributes:
        number: the id of the case.
        transitions: the first verdict, as a change from none, then each change of the status, the
            reason or the output bits.
        runs: how many runs of the line had the case; 0 if they were not counted.
        failed: in how many of these runs the case failed.
    """

    number: int
    line: Line
    transitions: tuple[Transition, ...]
    runs: int
    failed: int

    @property
    def unexplained(self) -> tuple[Transition, ...]:
        """The changes from failing to not failing, or back, for which no cause is recorded."""
        return tuple(each for each in self.transitions if each.flips and not each.causes)


@dataclass(frozen=True, slots=True)
class Flaky:
    """A case that began or ceased to fail at least twice in a line without a recorded cause.

    Attributes:
        changes: the number of these changes.
    """

    story: Story
    changes: int

    @property
    def rate(self) -> float:
        """The share of the runs in which the case failed, from 0 to 1."""
        return self.story.failed / self.story.runs


@dataclass(frozen=True, slots=True)
class OperatorState:
    """How many cases of an operator fail in an environment's latest whole run.

    Without a whole run, the latest run counts. `seconds` is the time that the backend took.
    """

    environment: Environment
    run: RunRow
    operator: str
    cases: int
    failing: int
    seconds: float


def chosen_cases(
    timeline: Timeline, choice: Choice, among: Collection[int] | None = None
) -> dict[int, tuple[str, str]]:
    """Return the identifier and the operator of each chosen case, by id.

    Args:
        among: the ids of the cases that may be chosen; None for all.

    Raises:
        KeywordError: the keywords cannot be read.
    """
    matches = choice.matcher()
    return {
        number: (identifier, name)
        for number, identifier, name, tags in timeline.cases(among)
        if matches(identifier, name, tags)
    }


def named_cases(
    timeline: Timeline, names: Iterable[str]
) -> tuple[dict[int, tuple[str, str]], list[str]]:
    """Return the cases of these names as `chosen_cases` does, and the names that no case has.

    Raises:
        AmbiguousNameError: several identifiers end with a name, or several cases have a handle.
    """
    cases = chosen_cases(timeline, Choice())
    full, unknown = resolved(names, [identifier for identifier, _ in cases.values()])
    matches = identifier_matcher(full)
    return {number: case for number, case in cases.items() if matches(case[0])}, unknown


def stories(
    timeline: Timeline, cases: Mapping[int, tuple[str, str]], *, counted: bool = True
) -> Iterator[Story]:
    """Yield the story of each case in each line that has the case.

    Args:
        cases: the identifier and the operator of each case, by id.
        counted: whether to count each case's runs and failures, which takes most of the time;
            otherwise both numbers are 0.

    Raises:
        HistoryError: the history is damaged, or a newer dmlconf has added a status.
    """
    changes = timeline.changes(cases)
    for number, (identifier, name) in cases.items():
        for line in timeline.lines:
            along = list(verdicts_along(timeline, line, number, changes.get(number, {})))
            if along:
                transitions = tuple(_transitions(timeline, line, number, identifier, name, along))
                runs, failed = _counts(timeline, line, number, along) if counted else (0, 0)
                yield Story(number, line, transitions, runs, failed)


def _transitions(
    timeline: Timeline,
    line: Line,
    number: int,
    identifier: str,
    name: str,
    along: Sequence[tuple[int, VerdictAt]],
) -> Iterator[Transition]:
    before: VerdictAt | None = None
    for index, after in along:
        first = line.runs[index]
        if before is None:
            yield Transition(identifier, name, None, after, None, first, ())
        elif (before.status, before.reason, before.outputs) != (
            after.status,
            after.reason,
            after.outputs,
        ):
            at = next(p for p in range(index - 1, -1, -1) if timeline.has(line.runs[p], number))
            last = line.runs[at]
            why = causes(before, after, last, first)
            yield Transition(identifier, name, before, after, last, first, why)
        before = after


def _counts(
    timeline: Timeline, line: Line, number: int, along: Sequence[tuple[int, VerdictAt]]
) -> tuple[int, int]:
    runs = failed = 0
    own = [
        indices for each, indices in line.indices_by_set.items() if timeline.set_has(each, number)
    ]
    ends = [index for index, _ in along[1:]] + [len(line.runs)]
    for (begin, verdict), end in zip(along, ends, strict=True):
        count = sum(bisect_left(indices, end) - bisect_left(indices, begin) for indices in own)
        runs += count
        failed += count if verdict.fails else 0
    return runs, failed


def flaky(timeline: Timeline, choice: Choice) -> list[Flaky]:
    """Return the flaky cases of each line, the one with the most changes without a cause first.

    Raises:
        HistoryError: the history is damaged, or a newer dmlconf has added a status.
        KeywordError: the keywords cannot be read.
    """
    cases = chosen_cases(timeline, choice, timeline.failing_cases())
    suspects = [
        story for story in stories(timeline, cases, counted=False) if len(story.unexplained) > 1
    ]
    named = {story.number: cases[story.number] for story in suspects}
    lines = {(story.number, story.line.name) for story in suspects}
    return flaky_among(
        story for story in stories(timeline, named) if (story.number, story.line.name) in lines
    )


def flaky_among(candidates: Iterable[Story]) -> list[Flaky]:
    """Return the flaky cases among stories whose runs were counted, in the order of `flaky`."""
    flaky_cases = [
        Flaky(story, len(story.unexplained)) for story in candidates if len(story.unexplained) > 1
    ]
    return sorted(flaky_cases, key=lambda each: (-each.changes, each.story.transitions[0].case))


def regressions(
    timeline: Timeline, choice: Choice, since: str
) -> tuple[list[tuple[Transition, bool]], int]:
    """Return the changes with which cases began to fail, the latest first.

    A change of a flaky case counts only if it has a recorded cause.

    Args:
        since: the earliest start of a run that counts, in the form of `RunRow.started`.

    Returns:
        Each change, with whether the case has failed ever since, and the number of flaky cases with
        changes that do not count.

    Raises:
        HistoryError: the history is damaged, or a newer dmlconf has added a status.
        KeywordError: the keywords cannot be read.
    """
    cases = chosen_cases(timeline, choice, timeline.failing_cases())
    return regressions_among(stories(timeline, cases, counted=False), since)


def regressions_among(
    candidates: Iterable[Story], since: str
) -> tuple[list[tuple[Transition, bool]], int]:
    """Return the regressions among some stories, as `regressions` does."""
    failures = []
    flaky_cases = set()
    for story in candidates:
        recent = [
            each for each in story.transitions if each.regresses and each.first.started >= since
        ]
        if len(story.unexplained) > 1 and not all(each.causes for each in recent):
            flaky_cases.add(story.number)
            recent = [each for each in recent if each.causes]
        still = story.transitions[-1].after.fails
        failures += [(each, still and each is _last_regression(story)) for each in recent]
    ordered = sorted(failures, key=lambda each: each[0].case)
    ordered.sort(key=lambda each: each[0].first.started, reverse=True)
    return ordered, len(flaky_cases)


def _last_regression(story: Story) -> Transition | None:
    return next((each for each in reversed(story.transitions) if each.regresses), None)


def driver_states(timeline: Timeline, operators: Iterable[str] = ()) -> list[OperatorState]:
    """Return the states of the named operators, or of all if none is named, in each environment."""
    latest: dict[int, RunRow] = {}
    for each in timeline.runs:
        known = latest.get(each.environment.id)
        if known is None or each.whole or not known.whole:
            latest[each.environment.id] = each
    wanted = set(operators)
    states = []
    for each in latest.values():
        rows = timeline.connection.execute(
            select(
                operator.c.name,
                run_operator.c.cases,
                run_operator.c.failing,
                run_operator.c.seconds,
            )
            .join(operator, operator.c.id == run_operator.c.operator_id)
            .where(run_operator.c.run_id == each.id)
            .order_by(operator.c.name)
        )
        states += [
            OperatorState(each.environment, each, *row)
            for row in rows
            if not wanted or row[0] in wanted
        ]
    return states
