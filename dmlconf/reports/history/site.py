"""The pages of a history: what is new, operators by driver, cases and subjects.

A `Target` is a subject: backend, version, adapter and driver. A line of runs is all runs of one
backend on one adapter. An operator, a subject or a case has the same path in every history.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from shlex import quote
from typing import Any, Final

from dmlconf.cases.handles import longest_handle
from dmlconf.documents.wording import counted
from dmlconf.history.overview import LineNews, Overview, Target, target_of
from dmlconf.history.questions import Story
from dmlconf.history.timeline import RunRow, Transition, VerdictAt
from dmlconf.reports.history.answers import cause_text
from dmlconf.reports.history.feed import regression_feed
from dmlconf.reports.history.news import is_first, moment, news_text, run_text
from dmlconf.reports.history.time_line import TimeLine, time_line
from dmlconf.reports.pages import render_linked_page, stylesheet
from dmlconf.verdicts.status import Status

__all__ = ["MOST_CASE_PAGES", "Site"]

MOST_CASE_PAGES: Final = 5_000
"""The most cases with a page by default: first all that fail now, then the last changed."""

_MOST_COLUMNS: Final = 12
"""The most columns, which are subjects, of the first page's table."""
_MOST_LINES: Final = 20
"""The most lines of runs whose news are on the first page."""
_MOST_NEWS: Final = 50
"""The most cases in each list of the first page."""
_MOST_LISTED: Final = 500
"""The most cases, and the most runs, on the page of a subject, of an operator or of flaky cases."""
_MOST_REGRESSIONS: Final = 1_000
_MOST_CHANGES: Final = 200
"""The most changes that a case's page lists for each line of runs."""

_PLAIN: Final = re.compile(r"[A-Z0-9_]{1,80}")
"""Names of operators that may be in the path of a page; a handle replaces other names."""

_FAILED: Final = Status.FAILED.css_class
_PASSED: Final = Status.PASSED.css_class


@dataclass(frozen=True)
class Site:
    """The pages of a history.

    Attributes:
        address: the address of the pages for the feed, with a slash at the end; empty if unknown.
        most_cases: the most cases with a page; None for all cases that ever failed.
    """

    overview: Overview
    address: str = ""
    most_cases: int | None = MOST_CASE_PAGES

    def paths(self) -> Iterator[str]:
        """Yield the path of each page and file."""
        yield from self._fixed
        yield from self._targets
        yield from self._operators
        yield from self._cases

    def content(self, path: str) -> str | None:
        """Return a page or file; None for an unknown path."""
        if path in self._fixed:
            return self._fixed[path]()
        if path in self._targets:
            return self._target_page(self._targets[path])
        if path in self._operators:
            return self._operator_page(self._operators[path])
        if path in self._cases:
            return self._case_page(self._cases[path])
        return None

    def missing(self, root: str, heading: str, text: str) -> str:
        """Return the page for an address that has none; for `root` see `render_linked_page`."""
        return render_linked_page(
            "history/missing.html", heading, {"heading": heading, "text": text}, root
        )

    @cached_property
    def _fixed(self) -> Mapping[str, Callable[[], str]]:
        return {
            "index.html": self._index,
            "regressions.html": self._regressions,
            "flaky.html": self._flaky,
            "feed.xml": lambda: regression_feed(self.overview, self.address),
            "style.css": stylesheet,
        }

    @cached_property
    def _targets(self) -> Mapping[str, Target]:
        return {_target_path(target): target for target in self.overview.targets}

    @cached_property
    def _operators(self) -> Mapping[str, str]:
        names = {own[0].transitions[0].operator for own in self.overview.stories.values()}
        return {_operator_path(name): name for name in sorted(names)}

    @cached_property
    def _cases(self) -> Mapping[str, str]:
        indices = {each.id: index for index, each in enumerate(self.overview.runs)}
        names = sorted(
            self.overview.stories,
            key=lambda name: (
                not _fails_now(self.overview.stories[name]),
                -max(indices[s.transitions[-1].first.id] for s in self._of(name)),
                name,
            ),
        )
        return {_case_path(name): name for name in names[: self.most_cases]}

    def _of(self, case: str) -> tuple[Story, ...]:
        return self.overview.stories[case]

    def _link(self, case: str) -> dict[str, str]:
        path = _case_path(case)
        linked = path in self._cases
        return {
            "name": case,
            "handle": self.overview.handles[case],
            "path": path if linked else "",
        }

    def _target(self, target: Target) -> dict[str, str]:
        return {"name": _target_text(target), "path": _target_path(target)}

    def _environment(self, run: RunRow) -> dict[str, str]:
        return self._target(target_of(run.environment))

    def _index(self) -> str:
        news = self.overview.news
        closing, style = "The history has no runs yet", ""
        if news:
            closing = f"{run_text(news[0])}: {news_text(news[0])}"
            style = _FAILED if _adds_failures(news[0]) else _PASSED
        columns = list(self.overview.targets)[:_MOST_COLUMNS]
        failing = set(self._operators.values())
        rows = [
            {
                "name": name,
                "path": _operator_path(name),
                "cells": [self._cell(name, target) for target in columns],
            }
            for name in sorted(failing)
        ]
        hidden = len(self.overview.targets) - len(columns)
        flaky = self.overview.flaky
        values = {
            "closing": closing,
            "style": style,
            "tested": self._facts(),
            "news": [self._news(each) for each in news[:_MOST_LINES]],
            "columns": [
                {"name": name, "path": _target_path(target)}
                for target, name in zip(columns, _short_texts(columns), strict=True)
            ],
            "rows": rows,
            "quiet": sorted(
                {name for own in self.overview.totals.values() for name in own} - failing
            ),
            "hidden": f"Earlier drivers and versions, listed below: {hidden:,}." * bool(hidden),
            "flaky": [
                {
                    "case": self._link(each.story.transitions[0].case),
                    "text": f"failed in {each.story.failed:,} of {each.story.runs:,} runs "
                    f"({each.rate:.1%}) of {each.story.line.name}",
                }
                for each in flaky[:_MOST_NEWS]
            ],
            "more_flaky": f"{len(flaky) - _MOST_NEWS:,}" if len(flaky) > _MOST_NEWS else "",
            "environments": [
                {
                    **self._target(target),
                    "text": f"{counted(len(runs), 'run')}, the latest on {runs[-1].started[:10]}",
                }
                for target, runs in self.overview.targets.items()
            ],
        }
        return render_linked_page("history/index.html", "dmlconf: history", values, "")

    def _facts(self) -> list[tuple[str, str]]:
        runs = self.overview.runs
        if not runs:
            return []
        now = sum(map(_fails_now, self.overview.stories.values()))
        return [
            ("Runs", f"{len(runs):,}, from {runs[0].started[:10]} to {runs[-1].started[:10]}"),
            ("Cases that fail now", f"{now:,}"),
            ("Cases that have ever failed", f"{len(self.overview.stories):,}"),
            ("Flaky cases", f"{len({e.story.number for e in self.overview.flaky}):,}"),
        ]

    def _news(self, news: LineNews) -> dict[str, Any]:
        kinds = {"regressed": news.regressed, "mended": news.mended}
        sentence = f"{run_text(news)}: {news_text(news)}."
        if news.flaky:
            sentence += f" {counted(news.flaky, 'flaky case')} changed as well."
        more = {
            kind: f"{len(own) - _MOST_NEWS:,}" if len(own) > _MOST_NEWS else ""
            for kind, own in kinds.items()
        }
        return {
            "line": news.line.name,
            "sentence": sentence,
            "environment": self._environment(news.latest[-1]),
            "counts": {kind: f"{len(own):,}" for kind, own in kinds.items()},
            "more": more,
            **{kind: self._changes(own[:_MOST_NEWS]) for kind, own in kinds.items()},
        }

    def _changes(self, transitions: Iterable[Transition]) -> list[dict[str, Any]]:
        return [
            {
                "case": self._link(each.case),
                "text": each.after.text,
                "style": _style(each.after),
                "when": _when(each),
            }
            for each in transitions
        ]

    def _cell(self, name: str, target: Target) -> dict[str, Any]:
        latest = self.overview.totals.get(self.overview.latest(target).id, {}).get(name)
        line = self._strip(name, target)
        if line is None:
            return {"strip": None, "text": "", "style": ""}
        if latest is None:
            return {"strip": line, "text": "not run", "style": "soft"}
        style = "part" if latest.failing else "full"
        return {"strip": line, "text": f"{latest.failing:,}/{latest.cases:,}", "style": style}

    def _strip(self, name: str, target: Target) -> TimeLine | None:
        totals = [
            self.overview.totals.get(each.id, {}).get(name)
            for each in self.overview.targets[target]
        ]
        if all(each is None for each in totals):
            return None
        return time_line([None if each is None else each.failing / each.cases for each in totals])

    def _regressions(self) -> str:
        shown = self.overview.regressions[:_MOST_REGRESSIONS]
        days = []
        for day, own in groupby(shown, key=lambda each: each[0].first.started[:10]):
            entries = []
            for (_, still), entry in zip(
                listed := list(own), self._changes(each for each, _ in listed), strict=True
            ):
                ending = "" if still else "; it stopped failing later"
                entries.append({**entry, "when": f"{entry['when']}{ending}"})
            days.append({"day": day, "entries": entries})
        more = len(self.overview.regressions) - len(shown)
        values = {
            "note": "Cases that began to fail, the latest first. Of flaky cases only the changes "
            "with which something else changed."
            if days
            else "No case that passed has begun to fail.",
            "days": days,
            "more": f"{more:,}" if more else "",
        }
        return render_linked_page("history/changes.html", "dmlconf: regressions", values, "")

    def _flaky(self) -> str:
        shown = self.overview.flaky[:_MOST_LISTED]
        more = len(self.overview.flaky) - len(shown)
        values = {
            "entries": [
                {
                    "case": self._link(each.story.transitions[0].case),
                    "line": each.story.line.name,
                    "rate": f"{each.rate:.1%}",
                    "text": f"failed in {each.story.failed:,} of {each.story.runs:,} runs, "
                    f"{each.changes:,} changes",
                    "strip": _story_strip(each.story),
                }
                for each in shown
            ],
            "more": f"{more:,}" if more else "",
        }
        return render_linked_page("history/flaky.html", "dmlconf: flaky cases", values, "")

    def _case_page(self, case: str) -> str:
        own, handle = self._of(case), self.overview.handles[case]
        operator = own[0].transitions[0].operator
        fails = _fails_now(own)
        failing = [story.line.name for story in own if story.transitions[-1].after.fails]
        values = {
            "case": {"name": case, "handle": handle},
            "style": _FAILED if fails else _PASSED,
            "sentence": f"Fails now on {', '.join(failing)}." if fails else "Does not fail now.",
            "operator": {"name": operator, "path": _operator_path(operator)},
            "commands": [
                f"dmlconf run -b {quote(own[0].line.backend)} --case {handle}",
                f"dmlconf history case {handle}",
            ],
            "lines": [
                {
                    "line": story.line.name,
                    "sentence": f"Failed in {story.failed:,} of {story.runs:,} runs.",
                    "strip": _story_strip(story),
                    "more": f"{len(story.transitions) - _MOST_CHANGES:,}"
                    if len(story.transitions) > _MOST_CHANGES
                    else "",
                    "changes": [
                        self._change(each) for each in story.transitions[: -_MOST_CHANGES - 1 : -1]
                    ],
                }
                for story in own
            ],
        }
        return render_linked_page("history/case.html", f"dmlconf: {case}", values, "../")

    def _change(self, each: Transition) -> dict[str, Any]:
        what = each.after.text
        when = f"since {moment(each.first)}, #{each.first.id}"
        if each.before is not None and each.last is not None:
            when += f"; until #{each.last.id} {each.before.text}"
            if each.before.text == what:
                what = f"{what}, with other output bits"
        return {
            "what": what,
            "when": when,
            "style": _style(each.after),
            "environment": self._environment(each.first),
            "cause": cause_text(each) if each.before is not None else "",
            "message": each.after.message if each.after.fails else "",
        }

    def _target_page(self, target: Target) -> str:
        runs = self.overview.targets[target]
        latest = self.overview.latest(target)
        failing = self.overview.failing[target]
        machines = {each.environment.machine for each in runs}
        rows = [
            row for row in self._operator_rows(self._operators.values(), [target]) if row["fails"]
        ]
        values = {
            "name": _target_text(target),
            "style": _FAILED if latest.failing else _PASSED,
            "tested": [
                ("Backend", f"{target.backend} {target.version}".strip()),
                ("Adapter", target.adapter or "none"),
                ("Driver", target.driver or "none"),
                ("Machines", f"{len(machines):,}"),
                (
                    "Latest run",
                    f"#{latest.id}, {moment(latest)}: {latest.failing:,} of "
                    f"{latest.cases:,} cases fail",
                ),
            ],
            "rows": rows,
            "failing": [
                {**entry, "when": f"since {moment(each.first)}, #{each.first.id}"}
                for each, entry in zip(
                    failing[:_MOST_LISTED], self._changes(failing[:_MOST_LISTED]), strict=True
                )
            ],
            "count": f"{len(failing):,}",
            "more": f"{len(failing) - _MOST_LISTED:,}" if len(failing) > _MOST_LISTED else "",
            "runs": [
                {
                    "id": each.id,
                    "started": moment(each),
                    "cases": f"{each.cases:,}",
                    "failing": f"{each.failing:,}",
                    "dmlconf": each.dmlconf,
                    "remarks": ", ".join(
                        [f"shard {each.shard}"] * bool(each.shard)
                        + ["incomplete"] * (not each.complete)
                    ),
                }
                for each in runs[: -_MOST_LISTED - 1 : -1]
            ],
            "more_runs": f"{len(runs) - _MOST_LISTED:,}" if len(runs) > _MOST_LISTED else "",
        }
        title = f"dmlconf: {_target_text(target)}"
        return render_linked_page("history/environment.html", title, values, "../")

    def _operator_rows(
        self, names: Iterable[str], targets: Iterable[Target]
    ) -> Iterator[dict[str, Any]]:
        """Yield a row for each subject and each operator that ran on the subject."""
        for target in targets:
            latest = self.overview.totals.get(self.overview.latest(target).id, {})
            for name in names:
                line = self._strip(name, target)
                if line is None:
                    continue
                total = latest.get(name)
                yield {
                    "name": name,
                    "path": _operator_path(name),
                    "environment": self._target(target),
                    "strip": line,
                    "failing": "-" if total is None else f"{total.failing:,}",
                    "cases": "-" if total is None else f"{total.cases:,}",
                    "fails": any(style == _FAILED for style, _ in line.paths),
                }

    def _operator_page(self, name: str) -> str:
        cases = [
            case
            for case, own in self.overview.stories.items()
            if own[0].transitions[0].operator == name
        ]
        cases.sort(key=lambda case: (not _fails_now(self._of(case)), case))
        values = {
            "name": name,
            "rows": list(self._operator_rows([name], self.overview.targets)),
            "count": f"{len(cases):,}",
            "cases": [
                {
                    "case": self._link(case),
                    "text": "fails now" if _fails_now(self._of(case)) else "does not fail now",
                    "style": _FAILED if _fails_now(self._of(case)) else "soft",
                }
                for case in cases[:_MOST_LISTED]
            ],
            "more": f"{len(cases) - _MOST_LISTED:,}" if len(cases) > _MOST_LISTED else "",
        }
        return render_linked_page("history/operator.html", f"dmlconf: {name}", values, "../")


def _case_path(case: str) -> str:
    return f"cases/{longest_handle(case)}.html"


def _operator_path(name: str) -> str:
    return f"operators/{name if _PLAIN.fullmatch(name) else longest_handle(name)}.html"


def _target_path(target: Target) -> str:
    return f"environments/{target.key}.html"


def _target_text(target: Target) -> str:
    parts = [f"{target.backend} {target.version}".strip(), target.adapter]
    parts += [f"driver {target.driver}"] if target.driver else []
    return ", ".join(filter(None, parts))


def _short_texts(targets: Sequence[Target]) -> list[str]:
    """Return the parts of each subject's name in which the subjects differ.

    If no part differs, or a subject lacks the parts that differ, return its whole name.
    """
    same = [
        len({part(target) for target in targets}) == 1
        for part in (
            lambda target: (target.backend, target.version),
            lambda target: target.adapter,
            lambda target: target.driver,
        )
    ]
    if all(same):
        return [_target_text(target) for target in targets]
    return [
        _target_text(
            Target(
                "" if same[0] else target.backend,
                "" if same[0] else target.version,
                "" if same[1] else target.adapter,
                "" if same[2] else target.driver,
            )
        )
        or _target_text(target)
        for target in targets
    ]


def _adds_failures(news: LineNews) -> bool:
    failing = is_first(news) and any(each.failing for each in news.latest)
    return failing or bool(news.regressed)


def _when(each: Transition) -> str:
    return f"since {moment(each.first)}, #{each.first.id}; changed with it: {cause_text(each)}"


def _style(verdict: VerdictAt) -> str:
    return verdict.status.css_class


def _fails_now(own: Iterable[Story]) -> bool:
    return any(story.transitions[-1].after.fails for story in own)


def _story_strip(story: Story) -> TimeLine:
    """Return a case's time line: for each run of its `Line`, whether the case failed.

    A run without the case repeats the run before it; runs before the case's first have no result.
    """
    shares: list[float | None] = [None] * len(story.line.runs)
    indices = [story.line.indices[each.first.id] for each in story.transitions]
    ends = [*indices[1:], len(shares)]
    for begin, end, each in zip(indices, ends, story.transitions, strict=True):
        shares[begin:end] = [float(each.after.fails)] * (end - begin)
    return time_line(shares)
