"""What the latest runs of a line (one backend on one adapter) changed, as text, JSON, Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dmlconf.documents.wording import counted
from dmlconf.history.overview import LineNews
from dmlconf.history.timeline import RunRow, Transition
from dmlconf.reports.history.answers import cause_text, environment_text, run_data, transition_data
from dmlconf.reports.markdown_text import escaped, table

__all__ = [
    "is_first",
    "moment",
    "news_data",
    "news_lines",
    "news_markdown",
    "news_text",
    "run_text",
]

_MOST_LISTED: Final = 50
"""The most cases in each of the two tables of the Markdown."""


def moment(run: RunRow) -> str:
    """Return when a run started in UTC, to the minute: `2025-03-01 22:15`."""
    return run.started[:16].replace("T", " ")


def run_text(news: LineNews) -> str:
    """Return `Run #7 of 2025-03-01 22:15`, or for shards `3 shards to #7 of 2025-03-01 22:15`."""
    latest = news.latest[-1]
    if len(news.latest) > 1:
        return f"{len(news.latest)} shards to #{latest.id} of {moment(latest)}"
    return f"Run #{latest.id} of {moment(latest)}"


def is_first(news: LineNews) -> bool:
    """Return whether the latest runs are the line's only ones."""
    return len(news.line.runs) == len(news.latest)


def news_text(news: LineNews) -> str:
    """Return how many cases began to fail and how many ceased to, or `nothing new`.

    Changes that `LineNews.flaky` counts are left out. For a line's first run, return how many cases
    failed.
    """
    if is_first(news):
        return f"the first run, in which {_cases(sum(each.failing for each in news.latest))} failed"
    parts = []
    if news.regressed:
        parts.append(f"{_cases(len(news.regressed))} began to fail")
    if news.mended:
        count = len(news.mended)
        parts.append(f"{_cases(count)} no longer fail{'s' * (count == 1)}")
    return ", ".join(parts) or "nothing new"


def news_data(news: LineNews) -> dict[str, Any]:
    """Return the changes as JSON values."""
    return {
        "line": {"backend": news.line.backend, "adapter": news.line.adapter or None},
        "runs": [run_data(each) for each in news.latest],
        "first": is_first(news),
        "regressions": [transition_data(each) for each in news.regressed],
        "mended": [transition_data(each) for each in news.mended],
        "flaky_changes": news.flaky,
    }


def news_lines(news: LineNews) -> Iterator[str]:
    """Yield the changes as lines of text."""
    yield f"{run_text(news)} on {environment_text(news.latest[-1].environment)}: {news_text(news)}"
    for each in (*news.regressed, *news.mended):
        yield f"{each.case}: {each.after.text}, before {_before(each)}"
        yield f"    changed with it: {cause_text(each)}"
    if news.flaky:
        yield f"{_cases(news.flaky)} left out as flaky: dmlconf history flaky"


def news_markdown(news: LineNews, handles: Mapping[str, str]) -> str:
    """Return the changes as Markdown.

    Args:
        handles: the handle of each case, by its identifier.
    """
    where = environment_text(news.latest[-1].environment)
    lines = [f"### dmlconf: {escaped(news_text(news))}", ""]
    lines += [f"{escaped(run_text(news))} on {escaped(where)}.", ""]
    for title, own in (("Began to fail", news.regressed), ("No longer fail", news.mended)):
        if own:
            rows = [
                [
                    escaped(each.case),
                    escaped(handles[each.case]),
                    escaped(f"{_before(each)}, now {each.after.text}"),
                    escaped(cause_text(each)),
                ]
                for each in own[:_MOST_LISTED]
            ]
            headings = [f"{title} ({len(own):,})", "Handle", "Verdict", "Changed with it"]
            lines += [*table(headings, rows), ""]
            if len(own) > _MOST_LISTED:
                lines += [f"and {len(own) - _MOST_LISTED:,} more", ""]
    if news.flaky:
        lines += [f"{_cases(news.flaky)} left out as flaky.", ""]
    return "\n".join(lines)


def _before(each: Transition) -> str:
    return "none" if each.before is None else each.before.text


def _cases(count: int) -> str:
    return counted(count, "case")
