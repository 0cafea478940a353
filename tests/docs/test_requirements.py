"""The page about requirements says what `pyproject.toml` declares.

A script of CI compares the page with the installed versions.

The tested code is in `.ci/versions.py`; the tested page is `docs/requirements.md`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_the_lowest_version_of_each_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    page = (ROOT / "docs" / "requirements.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (\w+) \| ([^|]*[^| ]) \|", page, re.MULTILINE))
    declared = {"Python": project["requires-python"].removeprefix(">=")}
    for each in map(Requirement, project["dependencies"]):
        version = str(each.specifier).removeprefix(">=")
        if each.marker is None:
            declared[each.name] = version
        else:
            python = str(each.marker).partition('"')[2].rstrip('"')
            declared[each.name] += f" ({version} with Python {python})"
    assert {name: rows.get(name) for name in declared} == declared


def test_the_page_has_the_oldest_and_newest_python_of_the_classifiers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    versions = re.findall(r"Python :: 3\.(\d+)", " ".join(project["classifiers"]))
    page = (ROOT / "docs" / "requirements.md").read_text("utf-8")
    assert f"| Python | 3.{min(map(int, versions))} | 3.{max(map(int, versions))} |" in page


def test_the_script_of_ci_reports_and_corrects_newest_versions_and_fails_for_wrong_lowest_ones(
    tmp_path: Path,
) -> None:
    for name in (".ci/versions.py", "docs/requirements.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    page = tmp_path / "docs" / "requirements.md"
    page.write_text(
        re.sub(r"(\| click .*) [\d.]+ \|", r"\1 7.9 |", page.read_text("utf-8")), "utf-8"
    )
    command = [sys.executable, str(tmp_path / ".ci" / "versions.py")]
    done = subprocess.run([*command, "newest"], capture_output=True, text=True, check=True)
    assert re.search(r"^click .*; docs/requirements.md:\d+ says 7.9$", done.stdout, re.MULTILINE)
    subprocess.run([*command, "newest", "--write"], capture_output=True, check=True)
    newest = ".".join(version("click").split(".")[:2])
    assert f" {newest} |" in page.read_text("utf-8")
    page.write_text(page.read_text("utf-8").replace("| click | 8.1 |", "| click | 7.8 |"), "utf-8")
    assert subprocess.run([*command, "lowest"], capture_output=True, check=False).returncode == 1
