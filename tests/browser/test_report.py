"""The HTML report as a person sees it, in a real browser."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from dmlconf.reports import html
from dmlconf.runner.verdict import Status
from tests.browser.runs import VERDICTS, opened, run_log, verdict

pytestmark = pytest.mark.browser


@pytest.fixture
def report(tmp_path: Path) -> str:
    file = tmp_path / "report.html"
    file.write_text(html.render(run_log(VERDICTS)), encoding="utf-8")
    return file.as_uri()


def shown(page: Page) -> list[str]:
    return page.locator("#cases summary code").all_inner_texts()


def test_failures_are_shown_first_and_filters_choose_others(page: Page, report: str) -> None:
    opened(page, report)
    assert len(shown(page)) == 2
    page.get_by_label("passed (2)").check()
    expect(page.locator("#cases > li")).to_have_count(4)
    page.locator("select[name=operator]").select_option("GATHER")
    expect(page.locator("#cases > li")).to_have_count(2)
    page.get_by_label("Text").fill("Axis=1")
    expect(page.locator("#cases > li")).to_have_count(1)
    assert "1 of 4 cases" in page.locator("#count").inner_text()
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("#cases > li")).to_have_count(4)


def test_a_feature_level_chooses_the_cases_that_need_it(page: Page, report: str) -> None:
    opened(page, report)
    for status in page.locator("[name=status]").all():
        status.check()
    expect(page.locator("#cases > li")).to_have_count(4)
    levels = page.get_by_label("Feature level")
    assert levels.locator("option").all_inner_texts() == ["all", "1_0", "6_4"]
    levels.select_option("6_4")
    expect(page.locator("#cases > li")).to_have_count(1)
    assert shown(page) == ["tile/documented/a"]
    page.locator("#cases summary").click()
    facts = page.locator("#cases details[open] dl").first.inner_text()
    assert "feature level\n6_4" in facts
    levels.select_option("1_0")
    expect(page.locator("#cases > li")).to_have_count(3)
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("#cases > li")).to_have_count(4)


def test_a_log_without_feature_levels_offers_no_choice_of_them(page: Page, tmp_path: Path) -> None:
    old = [replace(verdict, feature_level=None) for verdict in VERDICTS]
    file = tmp_path / "report.html"
    file.write_text(html.render(run_log(old)), encoding="utf-8")
    opened(page, file.as_uri())
    expect(page.get_by_label("Feature level")).to_be_hidden()
    expect(page.get_by_label("Data type")).to_be_visible()


def test_a_link_opens_its_case_with_all_that_explains_it(page: Page, report: str) -> None:
    opened(page, f"{report}#{quote('gather/matrix[Axis=1]')}")
    case = page.locator("#cases details[open]")
    text = case.inner_text()
    for part in ("FLOAT16 2x2", "First elements that differ", "Run this case again", "--case"):
        assert part in text
    shown = case.get_by_role("region").locator("tr").all_inner_texts()
    assert [row.split("\t") for row in shown] == [
        ["tensor", "at", "expected", "allowed", "actual", "off by"],
        ["OutputTensor", "[0]", "1", "0.75 to 1.25 or 3", "2", "8 ULP"],
    ]
    assert case.locator("svg").count() == 2
    assert case.locator("svg .e9").count() == 1
    assert case.locator("svg .limit").count() == 1
    link = case.get_by_role("link", name="gather/matrix[Axis=0]")
    link.click()
    expect(page.locator("#cases details[open] summary code")).to_have_text(
        ["gather/matrix[Axis=0]"]
    )


def test_operators_sort_and_lead_to_their_cases(page: Page, report: str) -> None:
    opened(page, report)
    names = page.locator("#operators tbody th")
    assert names.all_inner_texts() == ["GATHER", "TILE"]
    page.get_by_role("button", name="Operator").click()
    assert names.all_inner_texts() == ["TILE", "GATHER"]
    assert page.locator("#operators th[aria-sort=descending]").inner_text().startswith("Operator")
    page.get_by_role("link", name="GATHER").click()
    expect(page.locator("#cases > li")).to_have_count(2)


def test_names_and_messages_stay_text(page: Page, report: str) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    opened(page, report)
    page.locator("#cases summary").last.click()
    text = page.locator("#cases details[open]").inner_text()
    assert "<script>alert(2)</script>" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert page.locator("img").count() == 0
    assert dialogs == []


def test_everything_is_reached_by_keyboard(page: Page, report: str) -> None:
    opened(page, report)
    page.locator("#cases summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#cases details[open]").count() == 1
    page.locator("#operators th button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#operators th[aria-sort=descending]").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_fits_its_window(page: Page, report: str, scheme: str, width: int) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # One of its literals.
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, report)
    page.locator("#cases summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    back, text = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert back != text
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")


def test_a_large_run_is_small_and_soon_usable(page: Page, tmp_path: Path) -> None:
    verdicts = [
        verdict(
            f"operator_{i % 177}/matrix[DataType=FLOAT32,Sizes={i},Strides={i * 7}]",
            f"OPERATOR_{i % 177}",
            Status.FAILED if i % 4 == 0 else Status.PASSED,
        )
        for i in range(44_000)
    ]
    file = tmp_path / "large.html"
    file.write_text(html.render(run_log(verdicts)), encoding="utf-8")
    assert file.stat().st_size < 6_000_000
    began = time.perf_counter()
    opened(page, file.as_uri())
    seconds = time.perf_counter() - began
    assert page.locator("#cases > li").count() == 100
    assert seconds < 20  # Far above the two seconds of a quiet machine: a bound against quadratics.


def test_without_a_script_the_page_shows_operators_and_failures(page: Page, tmp_path: Path) -> None:
    text = html.render(run_log(VERDICTS))
    assert "<noscript>" in text
    assert "gather/matrix[Axis=1]" in text.split("<noscript>")[1]


def test_print_leaves_out_what_paper_cannot_use(page: Page, report: str) -> None:
    opened(page, report)
    page.emulate_media(media="print")
    expect(page.locator("#filters")).to_be_hidden()
    expect(page.locator("nav.skip")).to_be_hidden()
    for shown in ("#result", "#operators", "#operators th >> nth=0", "#cases > li >> nth=0"):
        expect(page.locator(shown)).to_be_visible()
    heading = page.locator("#operators th button").first
    expect(heading).to_be_visible()
    expect(heading).to_have_text("Operator")
