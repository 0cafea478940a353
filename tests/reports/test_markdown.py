"""The report `markdown` has a heading, a table, and failures that a reader can unfold.

The tested code is in `dmlconf/reports/runs/markdown.py`, `dmlconf/reports/runs/failure_details.py`,
`dmlconf/reports/runs/summary.py` and `dmlconf/reports/markdown_text.py`.
"""

from __future__ import annotations

import html
import re

import pytest
from markdown_it import MarkdownIt

from dmlconf.reports.runs import markdown
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import Reason, ReasonKind
from tests.reports import logs

NASTY_AS_SHOWN = "[red]a|b[/] `c` ```d``` <e>&\\x1b[31m\\x07\\u202e\\ufffe\\ud800 # f"
"""The text `logs.NASTY` as a reader must see it, on one line."""


def as_html(log: RunLog) -> str:
    page: str = MarkdownIt("commonmark").enable("table").render(markdown.render(log))
    return page


def test_the_heading_is_the_closing_sentence() -> None:
    assert as_html(logs.plain()).startswith("<h2>PASSED: 2 passed of 2 cases</h2>")
    dead = as_html(logs.dead(logs.plain(), 5))
    assert dead.startswith("<h2>INCOMPLETE: the log ends early, after 2 of 5 cases")


def test_table_has_rows_of_operators_and_a_total() -> None:
    rows = re.findall("<tr>(.*?)</tr>", as_html(logs.everything()), re.DOTALL)
    cells = [re.findall("<t[hd].*?>(.*?)</t[hd]>", row) for row in rows[:7]]
    assert cells[0] == [
        "Operator",
        "Cases",
        "Passed",
        "Failed",
        "Broken",
        "Unsupported",
        "Unchecked",
        "Waived",
        "Stale",
        "Not run",
        "Worst ULP",
        "Limit used",
    ]
    names = [row[0] for row in cells[1:]]
    assert names == ["ARGMIN", "GATHER", "JOIN", "SCATTER_ELEMENTS", "TILE", "total"]
    assert cells[2] == ["GATHER", "5", "2", "1", "0", "1", "0", "1", "0", "0", "∞", "-"]


def test_table_of_one_operator_has_no_total() -> None:
    assert "total" not in markdown.render(logs.run_log(logs.PASSED))


def test_unchecked_is_explained_if_a_case_is_unchecked() -> None:
    note = "unchecked: ran, but there is no independent"
    assert note in markdown.render(logs.run_log(logs.UNCHECKED))
    assert note not in markdown.render(logs.plain())


def test_each_failure_and_the_environment_can_be_unfolded() -> None:
    page = as_html(logs.everything())
    summaries = re.findall("<details><summary>(.*?)</summary>", page)
    assert summaries[0] == (
        "failed: gather/matrix[DataType=FLOAT32,DimensionCount=8,Axis=3,IndicesType=UINT64]"
        ": wrong values"
    )
    assert [text.partition(":")[0] for text in summaries[1:]] == ["broken", "stale", "Environment"]
    assert page.count("<details>") == page.count("</details>") == 4


def test_a_failure_shows_elements_location_and_command() -> None:
    page = as_html(logs.run_log(logs.FAILED))
    assert "<td>[1, 10]</td>" in page
    assert ">16777216</td>" in page
    assert "<p>at cases/gather/matrix.yaml:12</p>" in page
    command = re.search('<pre><code class="language-sh">(.*?)</code></pre>', page, re.DOTALL)
    assert command is not None
    assert html.unescape(command[1]).startswith(
        "dmlconf run cases/gather 'my cases/odd'\"'\"'name.yaml' -b directml:adapter=1 --case "
    )


def test_only_the_last_20_lines_of_diagnostics_are_shown() -> None:
    text = markdown.render(logs.run_log(logs.BROKEN))
    assert "debug layer: line 11\n" in text
    assert "debug layer: line 10\n" not in text
    assert "debug layer: line 30\n```" in text


def test_hostile_text_of_the_log_is_shown_as_text() -> None:
    page = as_html(logs.hostile())
    assert "<e>" not in page
    plain = html.unescape(re.sub("<[^>]*>", "", page))
    assert f"failed: gather/{NASTY_AS_SHOWN}: wrong values" in plain
    assert f"\n{NASTY_AS_SHOWN}\n" in plain
    assert f"backend: plugin:{NASTY_AS_SHOWN}, version 1.15.4" in plain
    assert f"at cases/{NASTY_AS_SHOWN}.yaml:3" in plain
    for forbidden in ("\x1b", "\x07", "\u202e", "\r", "\ud800"):
        assert forbidden not in page, ascii(forbidden)
    assert page.count("<table>") == 2  # Of operators and of differing elements.
    assert "<h1>" not in page
    assert page.count("<h2>") == 1


@pytest.mark.parametrize(
    "message",
    [
        "- item",
        "1. item",
        "1.",
        "1) item",
        "+ item",
        "> quote",
        "# title",
        "--- x",
        "=== x",
        "*a* _b_ ~~c~~ $d$ ![e](f) <https://g>",
        "    code",
        "| a | b |",
    ],
)
def test_markup_in_a_message_is_shown_as_plain_text(message: str) -> None:
    reason = Reason(ReasonKind.CRASH, message)
    page = as_html(logs.run_log(logs.BROKEN.judged(reason=reason)))
    assert f"<p>{html.escape(message.strip())}</p>" in page


def test_diagnostics_cannot_leave_their_code_block() -> None:
    reason = Reason(ReasonKind.CRASH, "it crashed", diagnostics="````\n# title\n```\n")
    page = as_html(logs.run_log(logs.BROKEN.judged(reason=reason)))
    assert '<pre><code class="language-text">````\n# title\n```\n</code></pre>' in page


def test_50_failures_are_shown_and_the_rest_counted() -> None:
    verdicts = (logs.FAILED.of_case(case=f"join/{n}") for n in range(1_060))
    text = markdown.render(logs.run_log(*verdicts))
    assert text.count("<summary>failed: ") == 50
    assert "\nand 1,010 more\n" in text
