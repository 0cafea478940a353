"""The reports `svg` and `text` show the terminal report, whatever the terminal.

The tested code is in `dmlconf/reports/runs/picture.py` and `dmlconf/reports/runs/terminal.py`.
"""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import pytest
from rich.console import Console

from dmlconf.reports.runs import picture, summary, terminal
from dmlconf.run_log.log import RunLog
from tests.reports import logs


def text_in_picture(log: RunLog) -> str:
    root = ElementTree.fromstring(picture.render_svg(log))
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    return "".join(text.text or "" for text in texts).replace("\xa0", " ")


def test_svg_shows_the_terminal_report() -> None:
    log = logs.run_log(logs.FAILED, logs.BROKEN, logs.PASSED)
    text = text_in_picture(log)
    console = Console(file=io.StringIO(), width=picture.WIDTH)
    with console.capture() as printed:
        console.print(terminal.render(log))
    words = printed.get().split()
    assert len(words) > 50
    assert [word for word in words if word not in text] == []


def test_svg_has_a_title_and_colours() -> None:
    text = picture.render_svg(logs.everything())
    assert ">dmlconf&#160;run<" in text
    assert len(set(re.findall("fill: (#[0-9a-f]{6})", text))) > 3


def test_svg_shows_long_commands_completely() -> None:
    log = logs.run_log(logs.FAILED, paths=("cases/" + "long/" * 40,))
    command = (  # `j5krb` is the handle of the failing case.
        "  dmlconf run cases/" + "long/" * 40 + " -b directml:adapter=1 -o GATHER --case j5krb"
    )
    text = re.sub(r"\s+", "", text_in_picture(log))  # A long command has several lines.
    assert re.sub(r"\s+", "", command) in text


def test_svg_loads_nothing_from_a_network() -> None:
    text = picture.render_svg(logs.everything())
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert "url(" not in text.replace("url(#dmlconf", "")
    assert "@font-face" not in text


def test_svg_letters_are_large_and_no_line_is_cut_off() -> None:
    log = logs.run_log(logs.FAILED, logs.BROKEN, paths=("cases/" + "long/" * 40,))
    root = ElementTree.fromstring(picture.render_svg(log))
    width = float(root.attrib["viewBox"].split()[2])
    units_of_a_letter, pixels_of_a_page = 20, 700
    assert units_of_a_letter * pixels_of_a_page / width >= 13
    right = [
        float(text.attrib["x"]) + float(text.attrib["textLength"])
        for text in root.iter("{http://www.w3.org/2000/svg}text")
        if "textLength" in text.attrib
    ]
    assert max(right) <= width


def test_svg_shows_markup_of_the_log_as_text() -> None:
    assert "<e>" not in picture.render_svg(logs.hostile())
    assert "<e>&\\x1b[31m" in text_in_picture(logs.hostile())


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
def test_svg_and_text_do_not_depend_on_the_terminal(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(name, raising=False)
    log = logs.everything()
    before = picture.render_svg(log), picture.render_text(log)
    monkeypatch.setenv(name, value)
    assert (picture.render_svg(log), picture.render_text(log)) == before


def test_text_has_no_colour_or_trailing_blanks() -> None:
    text = picture.render_text(logs.everything())
    assert "\x1b" not in text
    assert not any(line != line.rstrip() for line in text.split("\n"))


def test_text_ends_with_the_closing_sentence() -> None:
    log = logs.everything()
    sentence = summary.closing_sentence(log)
    assert len(sentence) > 100  # It takes the last two lines.
    last_two_lines = picture.render_text(log).splitlines()[-2:]
    assert " ".join(last_two_lines) == sentence


def test_only_commands_in_the_text_are_longer_than_100_columns() -> None:
    lines = picture.render_text(logs.everything()).split("\n")
    long = [line for line in lines if len(line) > 100]
    assert len(long) > 0
    assert [line for line in long if not line.startswith("  dmlconf run ")] == []
