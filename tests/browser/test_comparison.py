"""Comparisons and scoreboards work in a real browser: links, filters, colours, narrow windows.

The tested code is in `dmlconf/reports/comparisons/html.py`,
`dmlconf/reports/comparisons/scoreboard.py`, and the templates `comparison.html`, `scoreboard.html`,
`lists.js` and `page.css` in `dmlconf/reports/templates/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from dmlconf.cases.handles import handles
from tests.browser.expectations import expect
from tests.browser.runs import VERDICTS, comparison_page, open_and_wait, scoreboard_page

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

PAGES = {"comparison": comparison_page, "scoreboard": scoreboard_page}


@pytest.fixture(params=PAGES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    file = tmp_path / f"{request.param}.html"
    file.write_text(PAGES[request.param](), encoding="utf-8")
    return file.as_uri()


def test_each_link_leads_to_the_list_that_it_names(page: Page, address: str) -> None:
    page.goto(address)
    links = page.locator("main a")
    assert links.count() >= 2
    for link in links.all():
        target = unquote((link.get_attribute("href") or "").removeprefix("#"))
        heading = page.locator(f'[id="{target}"]')
        expect(heading).to_have_count(1)
        link.click()
        expect(heading).to_be_in_viewport()
        assert heading.locator("xpath=following-sibling::ul[1]/li").count() > 0


def test_a_script_in_a_name_is_shown_as_text(page: Page, address: str) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.goto(address)
    text = page.locator("main").inner_text()
    assert "<script>alert(2)</script>" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert page.locator("img, main script").count() == 0
    assert dialogs == []


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_fits_its_window(page: Page, address: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_colours_of_the_system(page: Page, address: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(address)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")


def test_comparison_shows_new_failures_drivers_and_fixed_cases(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "comparison.html"
    file.write_text(comparison_page(), encoding="utf-8")
    page.goto(file.as_uri())
    assert "1 new failure" in page.locator("h1").inner_text()
    difference = page.get_by_role("row", name="driver")
    assert difference.locator("td").all_inner_texts() == ["1", "2"]
    expect(page.locator("#new-failure-0 + ul > li")).to_have_count(1)
    expect(page.locator("#fixed-0 + ul > li")).to_have_count(1)


def test_a_narrow_scoreboard_shows_at_least_the_first_run(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "scoreboard.html"
    file.write_text(scoreboard_page("BATCH_NORMALIZATION_TRAINING_GRAD"), encoding="utf-8")
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(file.as_uri())
    box = page.locator("table.scores tbody td").first.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 400


def test_operators_with_failures_come_first_in_a_scoreboard(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "scoreboard.html"
    file.write_text(scoreboard_page("ABS"), encoding="utf-8")
    page.goto(file.as_uri())
    names = page.locator("table.scores tbody:not(.totals) th").all_inner_texts()
    assert names == ["GATHER", "TILE", "ABS"]


def test_scoreboard_cell_shows_share_passed_and_failures(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "scoreboard.html"
    file.write_text(scoreboard_page(), encoding="utf-8")
    page.goto(file.as_uri())
    row = page.get_by_role("row", name="GATHER")
    assert row.locator("td").all_inner_texts() == ["50.0%, 1 fail", "100% of 2"]
    row.get_by_role("link").click()
    expect(page.locator("#gather-0 + ul code")).to_have_text(["gather/matrix[Axis=1]"])


def test_operator_column_of_a_scoreboard_is_narrow(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "scoreboard.html"
    file.write_text(scoreboard_page("BATCH_NORMALIZATION_TRAINING_GRAD"), encoding="utf-8")
    page.set_viewport_size({"width": 1366, "height": 800})
    page.goto(file.as_uri())
    box = page.locator("table.scores tbody th").first.bounding_box()
    assert box is not None
    assert box["width"] <= 320


def test_filter_hides_cases_and_is_kept_in_the_address(page: Page, address: str) -> None:
    open_and_wait(page, address)
    items = page.locator("ul.cases > li:visible")
    total = items.count()
    page.get_by_label("Filter", exact=True).fill("documented/a")
    expect(items).to_have_count(1)
    assert total > 1
    assert page.url.endswith("#text=documented%2Fa")
    again = page.url
    page.goto("about:blank")
    open_and_wait(page, again)
    expect(items).to_have_count(1)
    assert f"1 of {total}" in page.locator("#count").inner_text()


def test_lists_show_the_short_handles_of_cases(page: Page, address: str) -> None:
    page.goto(address)
    handle = handles(verdict.case for verdict in VERDICTS)["gather/matrix[Axis=1]"]
    item = page.locator("ul.cases > li", has_text="gather/matrix[Axis=1]").first
    expect(item.locator(".handle")).to_have_text(handle)


def test_comparison_shows_dates_and_colours_new_failures(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "comparison.html"
    file.write_text(comparison_page(), encoding="utf-8")
    page.goto(file.as_uri())
    assert "dmlconf" in page.locator("header").inner_text()
    expect(page.get_by_role("row", name="date")).to_be_visible()
    tile = page.locator(".tiles").get_by_role("link", name="1 new failure")
    red = tile.locator("strong").evaluate("e => getComputedStyle(e).color")
    fixed = page.locator(".tiles").get_by_role("link", name="1 fixed").locator("strong")
    assert red != fixed.evaluate("e => getComputedStyle(e).color")
