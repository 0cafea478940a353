"""What CI relies on in `dmlconf run`: exit codes, output files, progress, GitHub annotations.

The tested code is in `dmlconf/cli/options/run_exit_code.py`, `dmlconf/cli/output/preflight.py`,
`dmlconf/cli/output/progress.py`, `dmlconf/reports/runs/summary.py`,
`dmlconf/reports/runs/junit.py` and `dmlconf/reports/runs/github.py`.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.process import TILE, dmlconf_here, write

UNSTATED = TILE.replace("    expect: {OutputTensor: [1, 2, 1, 2]}\n", "")
"""TILE without expected values: the case is unchecked."""


def test_the_exit_code_is_7_if_nothing_passed(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path, UNSTATED))
    assert done.returncode == 7
    assert "NOTHING PASSED: 1 unchecked of 1 case" in done.stdout
    assert "no case passed, so this run proves nothing" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 0, ""),
        (["--fail-on", "unchecked,unsupported"], 1, "--fail-on unchecked: 1 case unchecked"),
        (["--fail-on", "unsupported"], 0, ""),
        (["--min-passed", "50"], 0, ""),
        (["--min-passed", "50.5"], 1, "--min-passed 50.5: only 50.00% of 2 cases passed"),
        (["--fail-on", "uncheckd"], 2, "'uncheckd' is not one of unchecked, unsupported, waived"),
        (["--min-passed", "101"], 2, "--min-passed"),
    ],
)
def test_fail_on_and_min_passed_decide_the_exit_code(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    path = write(tmp_path, TILE + UNSTATED.partition("cases:\n")[2].replace("stated", "open"))
    # One of the two cases passes, the other is unchecked.
    done = dmlconf_here(tmp_path, "run", path, *arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr


def test_missing_folders_of_reports_and_logs_are_created(tmp_path: Path) -> None:
    out = ["--log", "a/run.jsonl", "--report", "junit:b/c/x.xml"]
    assert dmlconf_here(tmp_path, "run", write(tmp_path), *out).returncode == 0
    assert (tmp_path / "a" / "run.jsonl").is_file()
    assert (tmp_path / "b" / "c" / "x.xml").is_file()


def test_the_junit_report_gives_file_and_line(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path), "--report", "junit:x.xml")
    assert done.returncode == 0
    root = ElementTree.parse(tmp_path / "x.xml").getroot()
    case = root.find("testsuite/testcase")
    assert case is not None
    assert (case.get("file"), case.get("line")) == ("tile.yaml", "4")


def test_an_unwritable_file_ends_the_run_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", "utf-8")
    out = ["--report", "junit:new/deep/x.xml", "--report", "json:file/x.json", "--log", "l/x.jsonl"]
    done = dmlconf_here(tmp_path, "run", write(tmp_path), *out)
    assert done.returncode == 2
    assert "--report json:file/x.json cannot be written: Not a directory" in done.stderr
    assert done.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "tile.yaml"]
    folder = dmlconf_here(tmp_path, "run", write(tmp_path), "--report", f"text:{tmp_path}")
    assert folder.returncode == 2
    assert "Is a directory" in folder.stderr


def test_the_report_github_gives_annotations_and_a_summary(tmp_path: Path) -> None:
    path = write(tmp_path, TILE.replace("[1, 2, 1, 2]", "[1, 2, 3, 4]"))
    workflow = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    (tmp_path / "summary.md").write_text("before\n", "utf-8")
    done = dmlconf_here(tmp_path, "run", path, "--report", "github", **workflow)
    assert done.returncode == 1
    assert "FAILED tile/tile/stated" in done.stdout
    assert "\n::error file=tile.yaml,line=4,title=failed%3A tile/tile/stated::" in done.stdout
    summary = (tmp_path / "summary.md").read_text("utf-8")
    assert summary.startswith("before\n## FAILED")


def test_outside_of_github_actions_there_are_no_annotations(tmp_path: Path) -> None:
    path = write(tmp_path, TILE.replace("[1, 2, 1, 2]", "[1, 2, 3, 4]"))
    done = dmlconf_here(tmp_path, "run", path, "--report", "github", GITHUB_ACTIONS="")
    assert done.returncode == 1
    assert "::" not in done.stdout
    assert "GITHUB_ACTIONS is not set" in done.stderr


@pytest.mark.slow
def test_a_run_without_a_terminal_shows_each_quarter(
    tmp_path: Path,
) -> None:
    matrix = TILE.replace("    desc:", "    matrix: {N: '=range(1000)'}\n    desc:")
    done = dmlconf_here(tmp_path, "run", write(tmp_path, matrix), "-j", "1")
    progress_lines = [line for line in done.stderr.splitlines() if " of 1,000 cases" in line]
    assert [line.split()[0] for line in progress_lines] == ["250", "500", "750", "1,000"]
    quiet = dmlconf_here(tmp_path, "run", "tile.yaml", "-q", "-j", "1")
    assert "cases" not in quiet.stderr


@pytest.mark.slow
def test_progress_is_shown_while_a_case_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The longest time without a line of progress, usually a minute.
    monkeypatch.setattr("dmlconf.cli.output.progress._SECONDS", 0.05)
    done = dmlconf_here(tmp_path, "run", write(tmp_path), "-b", "faulty:hang", "--timeout", "0.5")
    assert done.returncode == 1
    assert "0 of 1 cases, 0 s" in done.stderr
