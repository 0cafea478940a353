"""The reports `svg` and `text` show the terminal report, whatever the terminal.

The tested code is in `dmlconf/reports/runs/picture.py` and `dmlconf/reports/runs/terminal.py`.
"""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import pytest
from rich.console import Console

from dmlconf.reports.runs import picture, terminal
from dmlconf.run_log.log import RunLog
from tests.reports import logs


def drawn(log: RunLog) -> str:
    """Return the text that a log's picture shows."""
    return shown(picture.render_svg(log))


def shown(svg: str) -> str:
    """Return the text that a picture shows."""
    root = ElementTree.fromstring(svg)
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    return "".join(text.text or "" for text in texts).replace("\xa0", " ")


def test_svg_shows_the_terminal_report() -> None:
    log = logs.run_log(logs.FAILED, logs.BROKEN, logs.PASSED)
    text = drawn(log)
    console = Console(file=io.StringIO(), width=picture.WIDTH)
    with console.capture() as printed:
        console.print(terminal.render(log))
    for word in printed.get().split():
        assert word in text, word


def test_svg_has_a_title_and_colours() -> None:
    text = picture.render_svg(logs.everything())
    assert ">dmlconf&#160;run<" in text
    assert len(set(re.findall("fill: (#[0-9a-f]{6})", text))) > 3


def test_svg_shows_long_commands_completely() -> None:
    log = logs.run_log(logs.FAILED, paths=("cases/" + "long/" * 40,))
    assert "--case j5krb" in drawn(log)


def test_svg_loads_nothing_from_a_network() -> None:
    text = picture.render_svg(logs.everything())
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert "url(" not in text.replace("url(#dmlconf", "")
    assert "@font-face" not in text


def test_svg_is_readable_at_the_width_of_a_page() -> None:
    log = logs.run_log(logs.FAILED, logs.BROKEN, paths=("cases/" + "long/" * 40,))
    root = ElementTree.fromstring(picture.render_svg(log))
    width = float(root.attrib["viewBox"].split()[2])
    letters = 20 * 700 / width  # Rich draws letters of 20 units; a page is 700 pixels wide.
    assert letters >= 13
    right = [
        float(text.attrib["x"]) + float(text.attrib["textLength"])
        for text in root.iter("{http://www.w3.org/2000/svg}text")
        if "textLength" in text.attrib
    ]
    assert max(right) <= width


def test_svg_is_well_formed_even_with_markup_in_the_log() -> None:
    assert "<e>" not in picture.render_svg(logs.hostile())
    assert "<e>&\\x1b[31m" in drawn(logs.hostile())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COLUMNS", "40"),
        ("LINES", "5"),
        ("TERM", "dumb"),
        ("NO_COLOR", "1"),
        ("FORCE_COLOR", "1"),
        ("COLORTERM", ""),
    ],
)
def test_pictures_and_text_do_not_depend_on_variables_of_the_terminal(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(name, raising=False)
    log = logs.everything()
    before = picture.render_svg(log), picture.render_text(log)
    monkeypatch.setenv(name, value)
    assert (picture.render_svg(log), picture.render_text(log)) == before


def test_text_has_no_colour_and_no_blanks_at_the_ends() -> None:
    text = picture.render_text(logs.everything())
    assert "\x1b" not in text
    assert not any(line != line.rstrip() for line in text.split("\n"))
    assert text.endswith("1 not run\n")


def test_text_keeps_to_100_columns_except_for_commands_and_the_closing_sentence() -> None:
    for line in picture.render_text(logs.everything()).split("\n"):
        assert len(line) <= 100 or line.startswith("  dmlconf run ") or "FAILED" in line
