"""Read what is new in a history, and all that its pages show."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import select

from dmlconf.cases.handles import handles
from dmlconf.history.questions import (
    Choice,
    Flaky,
    Story,
    chosen_cases,
    flaky_among,
    regressions_among,
    stories,
)
from dmlconf.history.tables import operator, run_operator
from dmlconf.history.timeline import Environment, Line, RunRow, Timeline, Transition

__all__ = ["LineNews", "Overview", "Target", "Total", "news_of", "overview_of", "target_of"]


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """A subject as pages name it: the software and the device that results come from.

    Texts that do not apply are empty.

    Attributes:
        backend: the backend, as named on the command line but without folders.
        version: the version of DirectML or of what the backend runs.
    """

    backend: str
    version: str
    adapter: str
    driver: str

    @property
    def key(self) -> str:
        """Twelve characters that identify the subject in addresses, the same in every history."""
        data = [self.backend, self.version, self.adapter, self.driver]
        return sha256(json.dumps(data).encode()).hexdigest()[:12]


def target_of(environment: Environment) -> Target:
    """Return the subject of an environment."""
    return Target(environment.backend, environment.version, environment.adapter, environment.driver)


@dataclass(frozen=True, slots=True)
class Total:
    """How many cases of an operator a run reached, and how many of these failed."""

    cases: int
    failing: int


@dataclass(frozen=True, slots=True)
class LineNews:
    """What the latest runs of a line (one backend on one adapter) changed.

    Attributes:
        latest: the last run; if it is a shard, also the other shards just before it.
        regressed: the changes with which cases began to fail, except those that `flaky` counts.
        mended: the changes with which cases ceased to fail, except those that `flaky` counts.
        flaky: how many times flaky cases began or ceased to fail without a recorded cause.
    """

    line: Line
    latest: tuple[RunRow, ...]
    regressed: tuple[Transition, ...]
    mended: tuple[Transition, ...]
    flaky: int


@dataclass(frozen=True)
class Overview:
    """A history as pages show it.

    Attributes:
        news: what the latest runs of each line changed, the line with the latest run first.
        targets: the runs of each subject; the subject of the latest run comes first.
        totals: the totals of each run, by the run's id and by operator.
        stories: by identifier, the stories of each case that failed in any run, one for each line.
        regressions: the changes with which cases began to fail, as `questions.regressions` returns
            them for all runs.
        failing: for each subject, the last change of each case that fails in its `latest` run, up
            to that run.
        flaky: the flaky cases, in the order of `questions.flaky`.
        handles: the handle of each case in `stories`, unique among all cases of the history.
    """

    runs: tuple[RunRow, ...]
    lines: tuple[Line, ...]
    news: tuple[LineNews, ...]
    targets: Mapping[Target, tuple[RunRow, ...]]
    totals: Mapping[int, Mapping[str, Total]]
    stories: Mapping[str, tuple[Story, ...]]
    regressions: tuple[tuple[Transition, bool], ...]
    flaky: tuple[Flaky, ...]
    failing: Mapping[Target, tuple[Transition, ...]]
    handles: Mapping[str, str]

    def latest(self, target: Target) -> RunRow:
        """Return the latest whole run of a subject, or its latest run if none is whole."""
        return _latest_whole(self.targets[target])


def _latest_whole(runs: Sequence[RunRow]) -> RunRow:
    return next((each for each in reversed(runs) if each.whole), runs[-1])


def overview_of(timeline: Timeline) -> Overview:
    """Read everything that the pages show.

    Raises:
        HistoryError: the history is damaged, or a newer dmlconf has added a status.
    """
    failing = timeline.failing_cases()
    known = chosen_cases(timeline, Choice())
    cases = {number: names for number, names in known.items() if number in failing}
    by_case: dict[str, list[Story]] = {}
    for story in stories(timeline, cases):
        by_case.setdefault(cases[story.number][0], []).append(story)
    every = [story for own in by_case.values() for story in own]
    targets = _targets(timeline.runs)
    handle = handles(identifier for identifier, _ in known.values())
    return Overview(
        timeline.runs,
        timeline.lines,
        _news_among(timeline, every),
        targets,
        _totals(timeline),
        {name: tuple(own) for name, own in by_case.items()},
        tuple(regressions_among(every, "")[0]),
        tuple(flaky_among(every)),
        {
            target: tuple(_failing(timeline, _latest_whole(runs), every))
            for target, runs in targets.items()
        },
        {name: handle[name] for name in by_case},
    )


def _failing(timeline: Timeline, run: RunRow, candidates: Sequence[Story]) -> Iterator[Transition]:
    """Yield, for each case that fails in a run, the last change of its verdict up to that run."""
    for story in candidates:
        index = story.line.indices.get(run.id)
        if index is None or not timeline.has(run, story.number):
            continue
        until = [story.line.indices[each.first.id] for each in story.transitions]
        reached = bisect_right(until, index)
        if reached and story.transitions[reached - 1].after.fails:
            yield story.transitions[reached - 1]


def _targets(runs: Sequence[RunRow]) -> dict[Target, tuple[RunRow, ...]]:
    by_target: dict[Target, list[RunRow]] = {}
    for each in runs:
        by_target.setdefault(target_of(each.environment), []).append(each)
    ordered = sorted(by_target, key=lambda target: by_target[target][-1].started, reverse=True)
    return {target: tuple(by_target[target]) for target in ordered}


def _totals(timeline: Timeline) -> dict[int, dict[str, Total]]:
    columns = run_operator.c.run_id, operator.c.name, run_operator.c.cases, run_operator.c.failing
    rows = timeline.connection.execute(
        select(*columns).join(operator, operator.c.id == run_operator.c.operator_id)
    )
    totals: dict[int, dict[str, Total]] = {}
    for run_id, name, cases, failing in rows:
        totals.setdefault(run_id, {})[name] = Total(cases, failing)
    return totals


def news_of(timeline: Timeline) -> tuple[LineNews, ...]:
    """Return what the latest runs of each line changed, the line with the latest run first.

    Raises:
        HistoryError: the history is damaged, or a newer dmlconf has added a status.
    """
    cases = chosen_cases(timeline, Choice(), timeline.failing_cases())
    return _news_among(timeline, list(stories(timeline, cases, counted=False)))


def _news_among(timeline: Timeline, candidates: Sequence[Story]) -> tuple[LineNews, ...]:
    news = [_news(line, candidates) for line in timeline.lines]
    return tuple(sorted(news, key=lambda each: each.latest[-1].started, reverse=True))


def _news(line: Line, candidates: Sequence[Story]) -> LineNews:
    latest = _latest_runs(line)
    ids = {each.id for each in latest}
    regressed: list[Transition] = []
    mended: list[Transition] = []
    flaky_changes = 0
    for story in candidates:
        if story.line is not line:
            continue
        for each in story.transitions:
            if not each.flips or each.first.id not in ids:
                continue
            if not each.causes and len(story.unexplained) > 1:
                flaky_changes += 1
            else:
                (regressed if each.regresses else mended).append(each)
    return LineNews(line, latest, tuple(regressed), tuple(mended), flaky_changes)


def _latest_runs(line: Line) -> tuple[RunRow, ...]:
    """Return the last run of a line; if it is a shard, also the other shards just before it."""
    last = line.runs[-1]
    if not last.shard:
        return (last,)
    count = last.shard.partition("/")[2]
    shards: dict[str, RunRow] = {}
    for each in reversed(line.runs):
        same = each.environment == last.environment and each.suite == last.suite
        if each.shard.partition("/")[2] != count or each.shard in shards or not same:
            break
        shards[each.shard] = each
    return tuple(reversed(shards.values()))
