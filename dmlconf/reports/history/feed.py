"""An Atom feed of regressions."""

from __future__ import annotations

from typing import Final
from uuid import UUID, uuid5

from dmlconf.cases.handles import longest_handle
from dmlconf.history.overview import Overview
from dmlconf.history.timeline import Transition
from dmlconf.reports.history.answers import cause_text, environment_text
from dmlconf.reports.pages import render_linked_page

__all__ = ["MOST_ENTRIES", "regression_feed"]

MOST_ENTRIES: Final = 100
"""The most regressions in the feed; the latest come first."""

_NAMES: Final = UUID("6f0f7f5e-3f5b-4d0b-9d0e-0d6d6c636f6e")
"""The namespace from which the identifiers of feeds and entries are derived."""


def regression_feed(overview: Overview, address: str) -> str:
    """Return the feed as XML.

    The identifier of a regression follows from its case and its first run, and is the same in every
    history.

    Args:
        address: where the pages are, with a slash at the end; empty for addresses relative to the
            feed.
    """
    entries = [_entry(each) for each, _ in overview.regressions[:MOST_ENTRIES]]
    started = overview.runs[-1].started if overview.runs else "1970-01-01T00:00:00+00:00"
    values = {
        "id": uuid5(_NAMES, f"feed {address}").urn,
        "updated": started,
        "address": address,
        "entries": entries,
    }
    return render_linked_page("history/feed.xml", "", values, "")


def _entry(regression: Transition) -> dict[str, str]:
    run = regression.first
    where = environment_text(run.environment)
    return {
        "title": f"{regression.case}: {regression.after.text}",
        "id": uuid5(_NAMES, f"{run.digest} {regression.case}").urn,
        "updated": run.started,
        "path": f"cases/{longest_handle(regression.case)}.html",
        "summary": f"On {where}, since {run.started[:10]}. Changed with it: "
        f"{cause_text(regression)}. {regression.after.message}".strip(),
    }
