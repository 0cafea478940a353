from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dmlconf.reports import github, html, json_report, junit, markdown, picture
from dmlconf.reports.registry import FORMATS, parse_report
from tests.reports import logs


def test_each_format_is_made_by_its_module() -> None:
    log = logs.everything()
    assert {name: render(log) for name, render in FORMATS.items()} == {
        "html": html.render(log),
        "json": json_report.render(log),
        "junit": junit.render(log),
        "markdown": markdown.render(log),
        "svg": picture.render_svg(log),
        "text": picture.render_text(log),
        "github": github.render(log),
    }


@pytest.mark.parametrize("name", [*FORMATS])
@pytest.mark.parametrize("log", [logs.plain(), logs.hostile(), logs.dead(logs.run_log(), 3)])
def test_every_format_can_be_written_as_utf_8(name: str, log: object) -> None:
    text = FORMATS[name](log)  # type: ignore[arg-type]  # pytest passes it on untyped.
    assert text.endswith("\n")
    text.encode("utf-8")


@pytest.mark.parametrize(
    ("option", "name", "file"),
    [
        ("json", "json", None),
        ("junit:out.xml", "junit", Path("out.xml")),
        ("junit:C:\\out.xml", "junit", Path("C:\\out.xml")),
        ("text:a:b:c", "text", Path("a:b:c")),
    ],
)
def test_file_is_all_behind_the_first_colon(option: str, name: str, file: Path | None) -> None:
    assert parse_report(option) == (name, file)


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("jnit:a.xml", "did you mean junit?"),
        ("JSON", "did you mean json?"),
        ("mardown", "markdown?"),
    ],
)
def test_an_unknown_format_is_refused_with_the_nearest_and_all(option: str, hint: str) -> None:
    with pytest.raises(ValueError, match="there is no report format") as raised:
        parse_report(option)
    assert hint in str(raised.value)
    assert "the formats are html, json, junit, markdown, svg, text" in str(raised.value)


def test_no_suggestion_is_made_where_none_is_near() -> None:
    with pytest.raises(ValueError, match="there is no report format 'pdf': the formats are"):
        parse_report("pdf")


@pytest.mark.parametrize("option", ["json:", "junit:"])
def test_a_colon_without_a_file_is_refused(option: str) -> None:
    with pytest.raises(ValueError, match="names no file after the colon"):
        parse_report(option)


def test_github_takes_no_file() -> None:
    with pytest.raises(ValueError, match="github takes no file"):
        parse_report("github:out.txt")


def test_knowing_the_formats_imports_none_of_them() -> None:
    script = (
        "import sys, dmlconf.reports.registry, dmlconf.reports.terminal;"
        "print(*sys.modules, sep='\\n')"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=root
    )
    modules = set(done.stdout.split())
    late = {"rich", "xml.etree.ElementTree", "dmlconf.reports.junit", "dmlconf.reports.picture"}
    assert not late & modules
