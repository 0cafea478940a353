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

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_the_lowest_version_of_each_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    page = (ROOT / "docs" / "requirements.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (\w+) \| ([^|]*[^| ]) \|", page, re.MULTILINE))
    declared = {"Python": project["requires-python"].removeprefix(">=")}
    for each in map(Requirement, project["dependencies"]):
        lowest = str(each.specifier).removeprefix(">=")
        if each.marker is None:
            declared[each.name] = lowest
        else:
            python = str(each.marker).partition('"')[2].rstrip('"')
            declared[each.name] += f" ({lowest} with Python {python})"
    assert {name: rows.get(name) for name in declared} == declared


def test_page_has_the_oldest_and_newest_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    versions = re.findall(r"Python :: 3\.(\d+)", " ".join(project["classifiers"]))
    page = (ROOT / "docs" / "requirements.md").read_text("utf-8")
    assert f"| Python | 3.{min(map(int, versions))} | 3.{max(map(int, versions))} |" in page


CLICK = ".".join(version("click").split(".")[:2])


def versions_script(folder: Path, page: str, *arguments: str) -> tuple[int, str, str]:
    """Run a copy of `.ci/versions.py`; return its exit code, its output and the new page."""
    for part in (".ci", "docs"):
        (folder / part).mkdir(exist_ok=True)
    script, compared = folder / ".ci" / "versions.py", folder / "docs" / "requirements.md"
    script.write_bytes((ROOT / ".ci" / "versions.py").read_bytes())
    compared.write_text(page, "utf-8")
    done = subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, compared.read_text("utf-8")


def test_script_of_ci_reports_and_corrects_newest_versions(
    tmp_path: Path,
) -> None:
    page = f"# Page\n| click | 8.1 | 7.9 |\n| numpy | 1.0 | {version('numpy')} |\n"
    code, printed, unchanged = versions_script(tmp_path, page, "newest")
    assert (code, unchanged) == (0, page)
    assert printed.splitlines() == [
        f"click {version('click')}; docs/requirements.md:2 says 7.9",
        f"numpy {version('numpy')}",
    ]
    _, _, corrected = versions_script(tmp_path, page, "newest", "--write")
    assert corrected == page.replace("7.9", CLICK)


@pytest.mark.parametrize(("lowest", "expected"), [(CLICK, 0), ("7.8", 1)])
def test_script_of_ci_fails_for_another_lowest_version(
    tmp_path: Path, lowest: str, expected: int
) -> None:
    code, printed, _ = versions_script(tmp_path, f"| click | {lowest} | 99.0 |\n", "lowest")
    assert code == expected
    assert ("says 7.8" in printed) is bool(expected)
    assert "99.0" not in printed


def test_script_of_ci_finds_every_dependency_in_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "requirements.md").read_text("utf-8")
    _, printed, _ = versions_script(tmp_path, page, "newest")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {Requirement(text).name for text in project["dependencies"]}
    assert names <= {line.split()[0] for line in printed.splitlines()}
