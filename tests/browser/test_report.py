"""Filters, links, groups and keys of the HTML report work in a real browser.

The tested code is in `dmlconf/reports/runs/html.py`, and the templates `report.html`, `report.js`,
`copy.js` and `page.css` in `dmlconf/reports/templates/`.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from dmlconf.cases.handles import handles
from dmlconf.reports.runs import html
from dmlconf.verdicts.verdict import Status
from tests.browser.expectations import expect
from tests.browser.runs import VERDICTS, open_and_wait, run_log, verdict
from tests.reports import logs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

THREE_LINES = 3 * 18
"""The least height of three lines of an identifier, in pixels."""


@pytest.fixture
def report(tmp_path: Path) -> str:
    file = tmp_path / "report.html"
    file.write_text(html.render(run_log(VERDICTS)), encoding="utf-8")
    return file.as_uri()


def shown(page: Page) -> list[str]:
    return page.locator("#cases summary code").all_inner_texts()


def test_only_failures_are_shown_until_a_filter_changes(page: Page, report: str) -> None:
    open_and_wait(page, report)
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
    open_and_wait(page, report)
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
    old = [verdict.of_case(feature_level=None) for verdict in VERDICTS]
    file = tmp_path / "report.html"
    file.write_text(html.render(run_log(old)), encoding="utf-8")
    open_and_wait(page, file.as_uri())
    expect(page.get_by_label("Feature level")).to_be_hidden()
    expect(page.get_by_label("Data type")).to_be_visible()


def test_link_opens_its_case_with_all_details(page: Page, report: str) -> None:
    open_and_wait(page, f"{report}#{quote('gather/matrix[Axis=1]')}")
    case = page.locator("#cases details[open]")
    text = case.inner_text()
    for part in ("FLOAT16 2x2", "First elements that differ", "Run this case again", "--case"):
        assert part in text
    rows = case.get_by_role("region").locator("tr").all_inner_texts()
    assert [row.split("\t") for row in rows] == [
        ["tensor", "at", "expected", "allowed", "actual", "off by"],
        ["OutputTensor", "[0]", "1", "0.75 to 1.25 or 3", "2", "8 ULP"],
    ]
    # A map of errors, whose largest has the class e9, and a histogram with the limit.
    assert case.locator("svg").count() == 2
    assert case.locator("svg .e9").count() == 1
    assert case.locator("svg .limit").count() == 1
    link = case.get_by_role("link", name="gather/matrix[Axis=0]")
    link.click()
    expect(page.locator("#cases details[open] summary code")).to_have_text(
        ["gather/matrix[Axis=0]"]
    )


def test_command_of_a_case_names_its_circumstance(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(html.render(run_log([VERDICTS[0].judged(circumstance="rebound")])), "utf-8")
    open_and_wait(page, f"{file.as_uri()}#{quote(VERDICTS[0].case)}")
    command = page.locator("#cases details[open] pre.command").last.inner_text()
    assert command.endswith(" --circumstances 'rebound'")


def test_operators_can_be_sorted_and_link_to_their_cases(page: Page, report: str) -> None:
    open_and_wait(page, report)
    names = page.locator("#operators tbody th")
    assert names.all_inner_texts() == ["GATHER", "TILE"]
    page.get_by_role("button", name="Operator").click()
    assert names.all_inner_texts() == ["GATHER", "TILE"]
    page.get_by_role("button", name="Operator").click()
    assert names.all_inner_texts() == ["TILE", "GATHER"]
    assert page.locator("#operators th[aria-sort=descending]").inner_text().startswith("Operator")
    page.get_by_role("link", name="GATHER").click()
    expect(page.locator("#cases > li")).to_have_count(2)


def test_the_filter_is_kept_in_the_address(page: Page, report: str) -> None:
    open_and_wait(page, report)
    page.locator("select[name=operator]").select_option("TILE")
    page.get_by_label("passed (2)").check()
    expect(page.locator("#cases > li")).to_have_count(2)
    page.get_by_label("Text").fill("a&b=c")
    expect(page.locator("#cases > li")).to_have_count(0)
    page.get_by_label("Text").fill("documented")
    expect(page.locator("#cases > li")).to_have_count(1)
    page.locator("#cases summary").click()
    expect(page).to_have_url(re.compile("#.*case="))
    address = page.url
    page.goto("about:blank")
    open_and_wait(page, address)
    assert shown(page) == ["tile/documented/a"]
    assert page.get_by_label("Text").input_value() == "documented"
    assert page.get_by_label("passed (2)").is_checked()
    expect(page.locator("#cases details[open] summary code")).to_have_text("tile/documented/a")
    page.get_by_role("button", name="Reset").click()
    expect(page).to_have_url(f"{report}#status=all")


def test_the_default_filter_is_not_written_to_the_address(page: Page, report: str) -> None:
    open_and_wait(page, report)
    page.get_by_label("passed (2)").check()
    expect(page).to_have_url(re.compile("#status="))
    page.get_by_label("passed (2)").uncheck()
    expect(page).to_have_url(report)


def test_the_link_of_a_group_shows_its_failures(page: Page, tmp_path: Path) -> None:
    cases = [
        *(verdict(f"gather/g{i}", "GATHER", Status.FAILED) for i in range(3)),
        *(verdict(f"tile/t{i}", "TILE", Status.BROKEN, f"at {i}") for i in range(2)),
    ]
    file = tmp_path / "report.html"
    file.write_text(html.render(run_log(cases)), encoding="utf-8")
    open_and_wait(page, file.as_uri())
    groups = page.locator(".groups > li")
    first, second = groups.all()
    second.get_by_role("link", name="show these 2").click()
    expect(page.locator("#cases > li")).to_have_count(2)
    assert all(name.startswith("tile/") for name in shown(page))
    first.get_by_role("link", name="show these 3").click()
    expect(page.locator("#cases > li")).to_have_count(3)
    assert all(name.startswith("gather/") for name in shown(page))
    assert page.url.endswith("#group=1")
    first.get_by_role("link", name="the smallest").click()
    expect(page.locator("#cases > li")).to_have_count(3)
    expect(page.locator("#cases details[open] code").first).to_have_text("gather/g0")


def test_the_number_of_passed_cases_links_to_these_cases(page: Page, report: str) -> None:
    open_and_wait(page, report)
    page.locator(".tiles").get_by_role("link", name="2 passed").click()
    expect(page.locator("#cases > li")).to_have_count(2)
    assert shown(page) == ["gather/matrix[Axis=0]", "tile/documented/a"]


def test_a_handle_in_the_address_opens_its_case(page: Page, report: str) -> None:
    handle = handles(verdict.case for verdict in VERDICTS)["gather/matrix[Axis=0]"]
    open_and_wait(page, f"{report}#{handle}")
    expect(page.locator("#cases details[open] summary code")).to_have_text("gather/matrix[Axis=0]")
    expect(page.locator("#cases details[open] .handle")).to_have_text(handle)
    assert f"dmlconf show {handle}" in page.locator("#cases details[open]").inner_text()


@pytest.mark.parametrize("secure", [True, False])
def test_the_copy_button_copies_the_command(browser: Browser, report: str, secure: bool) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    # The button says "Copied" for two seconds, which may be over before a busy machine looks.
    page.add_init_script(
        "const start = setTimeout;"
        "window.setTimeout = (act, delay) => delay < 2000 ? start(act, delay) : 0;"
    )
    if not secure:  # Pages of a server without HTTPS have no clipboard.
        page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    open_and_wait(page, report)
    command = page.locator("pre.command").first
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_text("Copied")).to_be_visible()
    other = context.new_page()
    other.goto(report)
    text = other.evaluate("navigator.clipboard.readText()")
    assert text == command.inner_text()
    assert text.startswith("dmlconf ")
    context.close()


def test_the_list_of_cases_grows_when_scrolled(page: Page, tmp_path: Path) -> None:
    cases = [verdict(f"gather/{i}", "GATHER", Status.FAILED) for i in range(350)]
    file = tmp_path / "report.html"
    file.write_text(html.render(run_log(cases)), encoding="utf-8")
    open_and_wait(page, file.as_uri())
    items = page.locator("#cases > li")
    expect(items).to_have_count(100)
    for count in (200, 300, 350):
        items.last.scroll_into_view_if_needed()
        expect(items).to_have_count(count)
    expect(page.locator("#more")).to_be_hidden()


def test_one_failure_among_10000_cases_comes_first(page: Page, tmp_path: Path) -> None:
    cases = [verdict(f"abs/{i}", "ABS", Status.PASSED) for i in range(5_000)]
    cases += [verdict(f"tile/{i}", "TILE", Status.PASSED) for i in range(5_000)]
    cases.append(verdict("tile/wrong", "TILE", Status.FAILED))
    file = tmp_path / "report.html"
    file.write_text(html.render(run_log(cases)), encoding="utf-8")
    open_and_wait(page, file.as_uri())
    assert page.locator("#operators tbody th").all_inner_texts() == ["TILE", "ABS"]
    assert shown(page) == ["tile/wrong"]
    red = page.locator("#operators svg .failed").bounding_box()
    assert red is not None
    assert red["width"] >= 3  # A true share, 1 in 5,001, would be less than a pixel.
    failed, passed = (page.locator(f"#operators td.{name}").first for name in ("failed", "passed"))
    colours = {cell.evaluate("e => getComputedStyle(e).color") for cell in (failed, passed)}
    assert len(colours) == 2


def test_many_operators_without_failures_are_hidden_until_asked_for(
    page: Page, tmp_path: Path
) -> None:
    cases = [verdict(f"op{i}/a", f"OP_{i}", Status.PASSED) for i in range(30)]
    cases.append(verdict("tile/wrong", "TILE", Status.FAILED))
    file = tmp_path / "report.html"
    file.write_text(html.render(run_log(cases)), encoding="utf-8")
    open_and_wait(page, file.as_uri())
    rows = page.locator("#operators tbody tr:visible")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Show 30 operators without failures").click()
    expect(rows).to_have_count(31)


def test_narrow_screen_shows_statuses_and_shortens_identifiers(page: Page, tmp_path: Path) -> None:
    name = f"gather/matrix[{','.join(f'LongParameter{i}={i}' for i in range(16))}]"
    cases = [verdict(name, "BATCH_NORMALIZATION_TRAINING_GRAD", Status.FAILED), *VERDICTS]
    file = tmp_path / "report.html"
    file.write_text(html.render(run_log(cases)), encoding="utf-8")
    width = 390
    page.set_viewport_size({"width": width, "height": 844})
    open_and_wait(page, file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cells = page.locator("#operators tbody tr").first.locator("td:visible").all()
    boxes = [cell.bounding_box() for cell in cells]
    assert len(boxes) == 4  # The bar of shares, and the cases that passed, failed and broke.
    assert all(box is not None and box["x"] + box["width"] <= width for box in boxes)
    expect(page.locator("#cases .status")).to_have_count(3)  # Two cases failed, and one broke.
    for status in page.locator("#cases .status").all():
        box = status.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width
    code = page.locator("#cases summary code").first
    box = code.bounding_box()
    assert box is not None
    assert box["height"] < THREE_LINES
    page.locator("#cases summary").first.click()
    whole = code.bounding_box()
    assert whole is not None
    assert whole["height"] > THREE_LINES


def test_first_screen_shows_device_and_date_but_no_digests(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    device = {"adapter": "Contoso Graphics 9000", "driver": "32.0"}
    file.write_text(html.render(run_log(VERDICTS, **device)), encoding="utf-8")
    open_and_wait(page, file.as_uri())
    assert "dmlconf" in page.locator("header").inner_text()
    facts = page.locator("dl.facts").first
    assert "Device\nContoso Graphics 9000" in facts.inner_text()
    assert "Date\n2026-11-21 05:00 UTC" in facts.inner_text()
    digest = page.get_by_text(logs.HEADER.suite_digest)
    expect(digest).to_be_hidden()
    page.get_by_text("Platform, software and digests").click()
    expect(digest).to_be_visible()


def test_html_in_names_and_messages_is_shown_as_text(page: Page, report: str) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    open_and_wait(page, report)
    page.locator("#cases summary").last.click()
    text = page.locator("#cases details[open]").inner_text()
    assert "<script>alert(2)</script>" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert page.locator("img").count() == 0
    assert dialogs == []


def test_cases_open_and_operators_sort_by_keyboard(page: Page, report: str) -> None:
    open_and_wait(page, report)
    page.locator("#cases summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#cases details[open]").count() == 1
    page.locator("#operators th button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#operators th[aria-sort=ascending]").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_fits_its_window_and_follows_the_colour_scheme(
    page: Page, report: str, scheme: str, width: int
) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 800})
    open_and_wait(page, report)
    page.locator("#cases summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background, text = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert background != text
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")


def test_report_of_44000_cases_is_small_and_opens_fast(page: Page, tmp_path: Path) -> None:
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
    open_and_wait(page, file.as_uri())
    seconds = time.perf_counter() - began
    assert page.locator("#cases > li").count() == 100
    assert seconds < 20  # Quadratic time would exceed this.


def test_without_a_script_the_page_shows_operators_and_failures(
    browser: Browser, report: str
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report)
    failures = page.locator("noscript h3")
    expect(failures).to_have_text(["gather/matrix[Axis=1]", re.compile("^tile/<img src=x")])
    expect(failures.first).to_be_visible()
    expect(page.locator("#operators tbody th")).to_have_text(["GATHER", "TILE"])
    context.close()


def test_printed_report_has_results_but_no_filters(page: Page, report: str) -> None:
    open_and_wait(page, report)
    page.emulate_media(media="print")
    expect(page.locator("#filters")).to_be_hidden()
    expect(page.locator("nav.skip")).to_be_hidden()
    for part in ("#result", "#operators", "#operators th >> nth=0", "#cases > li >> nth=0"):
        expect(page.locator(part)).to_be_visible()
    heading = page.locator("#operators th button").first
    expect(heading).to_be_visible()
    expect(heading).to_have_text("Operator")
