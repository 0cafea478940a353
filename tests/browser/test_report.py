"""The HTML report as a person sees it, in a real browser."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from dmlconf.reports import html
from dmlconf.runner.log import RunLog
from dmlconf.runner.verdict import Reason, ReasonKind, Status, Verdict
from tests.reports import logs

pytestmark = pytest.mark.browser

HOSTILE: Final = "<img src=x onerror=alert(1)></script><script>alert(2)</script>\x1b[31m\u202e'\"&"


def verdict(case: str, operator: str, status: Status, message: str = "wrong") -> Verdict:
    reason = None
    if status is not Status.PASSED:
        difference = {"tensor": "OutputTensor", "coordinates": [0], "expected": 1.0, "actual": 2.0}
        reason = Reason(ReasonKind.WRONG_VALUES, message, (difference,), message)
    figures = {
        "OutputTensor": {
            "elements": 4, "differing": 1, "worst_ulp": 8.0, "rule": "ulp", "limit": 2.0,
            "margin": 4.0, "source": message, "histogram": {"0": 3, "8": 1},
            "error_map": {"rows": ["09", "10"], "axes": 1, "sizes": [2, 2]},
        }
    }  # fmt: skip
    facts = {"InputTensor": "FLOAT16 2x2", "Axis": 1}
    return Verdict(
        case, operator, ("matrix",), status, None, reason,
        {} if reason is None else figures, 0.001, "cases/a.yaml:3", facts=facts,
    )  # fmt: skip


def run_log(verdicts: list[Verdict]) -> RunLog:
    log = logs.plain()
    counts = {str(s): sum(v.status is s for v in verdicts) for s in Status}
    assert log.footer is not None
    return RunLog(
        replace(log.header, selected=len(verdicts)),
        tuple(verdicts),
        replace(log.footer, summary=counts),
    )


VERDICTS: Final = [
    verdict("gather/matrix[Axis=0]", "GATHER", Status.PASSED),
    verdict("gather/matrix[Axis=1]", "GATHER", Status.FAILED),
    verdict("tile/documented/a", "TILE", Status.PASSED),
    verdict(f"tile/{HOSTILE}", "TILE", Status.BROKEN, HOSTILE),
]


@pytest.fixture
def report(tmp_path: Path) -> str:
    file = tmp_path / "report.html"
    file.write_text(html.render(run_log(VERDICTS)), encoding="utf-8")
    return file.as_uri()


def opened(page: Page, address: str) -> Page:
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    return page


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


def test_a_link_opens_its_case_with_all_that_explains_it(page: Page, report: str) -> None:
    opened(page, f"{report}#{quote('gather/matrix[Axis=1]')}")
    case = page.locator("#cases details[open]")
    text = case.inner_text()
    for part in ("FLOAT16 2x2", "First elements that differ", "Run this case again", "--case"):
        assert part in text
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
