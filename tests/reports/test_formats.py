"""`--report` takes the formats of a list, and refuses others with a message that helps.

The tested code is in `dmlconf/reports/formats.py` and `dmlconf/cli/options/reporting.py`, and the
formats are described in `docs/reports.md`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest

import dmlconf
from dmlconf.reports.formats import RUN_FORMATS, parse_report
from dmlconf.reports.runs import github, html, json_report, junit, markdown, picture
from dmlconf.run_log.log import RunLog
from tests.reports import logs

ROOT = Path(__file__).resolve().parents[2]


def test_each_format_is_made_by_its_module() -> None:
    log = logs.everything()
    assert {name: each.text(log) for name, each in RUN_FORMATS.items()} == {
        "html": html.render(log),
        "json": json_report.render(log),
        "junit": junit.render(log),
        "markdown": markdown.render(log),
        "svg": picture.render_svg(log),
        "text": picture.render_text(log),
        "github": github.render(log),
    }


@pytest.mark.parametrize("name", [*RUN_FORMATS])
@pytest.mark.parametrize("log", [logs.plain(), logs.hostile(), logs.dead(logs.run_log(), 3)])
def test_every_format_is_utf_8_and_ends_with_line_break(name: str, log: RunLog) -> None:
    text = RUN_FORMATS[name].text(log)
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
def test_file_of_a_report_follows_the_first_colon(
    option: str, name: str, file: Path | None
) -> None:
    report = parse_report(option, RUN_FORMATS)
    assert (report.format.name, report.file, report.option) == (name, file, f"--report {option}")


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("jnit:a.xml", "did you mean junit?"),
        ("JSON", "did you mean json?"),
        ("mardown", "did you mean markdown?"),
    ],
)
def test_error_for_unknown_format_suggests_and_lists_formats(option: str, hint: str) -> None:
    with pytest.raises(ValueError, match="there is no report format") as raised:
        parse_report(option, RUN_FORMATS)
    assert hint in str(raised.value)
    assert str(raised.value).endswith(
        "the formats are html, json, junit, markdown, svg, text, github"
    )


def test_unknown_format_without_similar_one_gets_no_suggestion() -> None:
    with pytest.raises(ValueError, match="there is no report format 'pdf': the formats are"):
        parse_report("pdf", RUN_FORMATS)


@pytest.mark.parametrize("option", ["json:", "junit:"])
def test_a_colon_without_a_file_is_refused(option: str) -> None:
    with pytest.raises(ValueError, match="names no file after the colon"):
        parse_report(option, RUN_FORMATS)


def test_github_takes_no_file() -> None:
    with pytest.raises(ValueError, match="github takes no file"):
        parse_report("github:out.txt", RUN_FORMATS)


RENDERING_MODULES = ("github", "html", "json_report", "junit", "markdown", "picture")


@pytest.mark.slow
def test_list_of_formats_imports_no_rendering_module() -> None:
    script = (
        "import sys, dmlconf.reports.formats, dmlconf.reports.runs.terminal;"
        "print(*sys.modules, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    modules = set(done.stdout.split())
    assert "dmlconf.reports.runs.terminal" in modules
    rendering = {f"dmlconf.reports.runs.{name}" for name in RENDERING_MODULES}
    assert all(find_spec(name) for name in rendering)
    assert not (rendering | {"rich", "xml.etree.ElementTree"}) & modules


def undocumented(names: Iterable[str]) -> list[str]:
    text = (ROOT / "docs" / "reports.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .+ \| .+ \|$", text, re.MULTILINE)
    return [name for name in names if name not in rows]


def test_the_documentation_lists_all_formats() -> None:
    assert not undocumented(RUN_FORMATS)
    assert undocumented([*RUN_FORMATS, "csv"]) == ["csv"]


CSV_MODULE = '''
"""Verdicts as comma-separated values."""

def render(log):
    """Yield a line for each verdict."""
    for verdict in log.verdicts:
        yield f"{verdict.case},{verdict.status}\\n"
'''

SCRIPT_THAT_USES_CSV = """
import sys
from click.testing import CliRunner
from dmlconf.cli.entry_point import cli
for arguments in (["report", "run.jsonl", "--report", "csv:out.csv"], ["merge", "--help"]):
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
assert "csv" in done.output.partition("Also report in this format")[2].partition(".")[0]
report = next(p for p in cli.get_command(None, "run").params if p.name == "report_options")
assert [each.value for each in report.shell_complete(None, "c")] == ["csv"]
"""


@pytest.mark.slow
def test_new_format_needs_only_a_module_and_one_line(
    tmp_path: Path,
) -> None:
    package = tmp_path / "dmlconf"
    shutil.copytree(Path(dmlconf.__file__).parent, package, ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copytree(ROOT / "schemas", tmp_path / "schemas")
    module = package / "reports" / "formats.py"
    head = '    Format("html", late("runs.html", "render_parts")),\n'
    text = module.read_text("utf-8")
    assert text.count(head) == 1
    module.write_text(text.replace(head, f'{head}    Format("csv", late("runs.csv")),\n'), "utf-8")
    (package / "reports" / "runs" / "csv.py").write_text(CSV_MODULE, "utf-8")
    log = logs.plain()
    logs.write(tmp_path / "run.jsonl", log)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT_THAT_USES_CSV],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out.csv").read_text("utf-8").splitlines()
    assert lines == [f"{verdict.case},{verdict.status}" for verdict in log.verdicts]
