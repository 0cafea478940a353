"""The checker axe finds no problem in pages, and pages are no wider than their window.

The tested code is in `dmlconf/reports/templates/` and in what fills these templates:
`dmlconf/reports/pages.py`, `dmlconf/reports/runs/html.py`, `dmlconf/reports/comparisons/html.py`,
`dmlconf/reports/comparisons/scoreboard.py` and `dmlconf/reports/history/site.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dmlconf.cases.handles import longest_handle
from dmlconf.catalogue.loader import operator_names
from dmlconf.comparison.compare import compare
from dmlconf.reports.comparisons import html as comparison_html
from dmlconf.reports.comparisons.scoreboard import render_html, scoreboard
from dmlconf.reports.history.site import Site
from dmlconf.reports.runs import html
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.status import Status
from tests.browser.runs import (
    VERDICTS,
    comparison_page,
    open_and_wait,
    run_log,
    scoreboard_page,
    verdict,
)
from tests.reports.test_history_pages import HOSTILE, nights, overview

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

WIDTHS = (390, 768, 1366)
"""The widths of windows on a phone, a tablet and a laptop, in pixels."""

PAGES = {
    "report": lambda: html.render(run_log(VERDICTS)),
    "comparison": comparison_page,
    "scoreboard": scoreboard_page,
}


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Page]:
    """A page without a content security policy, which would forbid the script axe."""
    page = browser.new_page(bypass_csp=True)
    yield page
    page.close()


def problems_of(page: Page) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    violations: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [
        f"{violation['id']}: {node['html']}: {node['failureSummary']}"
        for violation in violations
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_problem_on_a_page(
    open_page: Page, tmp_path: Path, name: str, scheme: str, width: int
) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGES[name](), encoding="utf-8")
    open_page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    open_page.set_viewport_size({"width": width, "height": 800})
    if name == "report":
        open_and_wait(open_page, file.as_uri())
        for status in open_page.locator("[name=status]").all():
            status.check()
        open_page.wait_for_function(
            f"document.querySelectorAll('#cases > li').length === {len(VERDICTS)}"
        )
        for summary in open_page.locator("#cases summary").all():
            summary.click()
    else:
        open_page.goto(file.as_uri())
    assert problems_of(open_page) == []


def longest_names(*statuses: Status) -> list[RunLog]:
    """Return a run for each status of a case of the longest-named operator."""
    name = max(operator_names(), key=len)
    return [
        run_log([*VERDICTS, verdict(f"{name.lower()}/boundary/halves", name, status)])
        for status in statuses
    ]


def longest_names_page(kind: str) -> str:
    if kind == "report":
        return html.render(*longest_names(Status.FAILED))
    if kind == "comparison":
        base, new = longest_names(Status.PASSED, Status.FAILED)
        return comparison_html.render_html([(compare(base, new), ("base", "new"))])
    runs_of_long_names = longest_names(Status.FAILED, Status.FAILED)
    return render_html(scoreboard(runs_of_long_names, ["base.jsonl", "new.jsonl"]))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", PAGES)
def test_pages_with_the_longest_names_fit_their_window(
    open_page: Page, tmp_path: Path, kind: str, width: int
) -> None:
    file = tmp_path / "page.html"
    file.write_text(longest_names_page(kind), encoding="utf-8")
    open_page.set_viewport_size({"width": width, "height": 800})
    open_and_wait(open_page, file.as_uri())
    assert open_page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_history_pages_are_accessible_and_fit_their_window(
    open_page: Page, tmp_path: Path, width: int, scheme: str
) -> None:
    site = Site(overview(tmp_path, nights()))
    for path in site.paths():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(site.content(path) or "", encoding="utf-8")
    open_page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    open_page.set_viewport_size({"width": width, "height": 800})
    case = f"cases/{longest_handle(HOSTILE)}.html"
    pages = ("index.html", "flaky.html", "regressions.html", "operators/TILE.html", case)
    for path in (*pages, next(each for each in site.paths() if each.startswith("environments/"))):
        open_page.goto((tmp_path / path).as_uri())
        assert problems_of(open_page) == [], path
        assert open_page.evaluate("document.documentElement.scrollWidth") <= width, path
        background = open_page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light"), path


def test_axe_finds_unreadable_text(open_page: Page, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(scoreboard_page(), encoding="utf-8")
    open_page.goto(file.as_uri())
    open_page.add_style_tag(content="h1 { color: #eeeeee; }")
    assert any(problem.startswith("color-contrast") for problem in problems_of(open_page))
