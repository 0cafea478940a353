"""The page about requirements says what `pyproject.toml` declares."""

from __future__ import annotations

import re
import tomllib
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


def test_the_page_has_the_newest_python_of_the_classifiers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    versions = re.findall(r"Python :: 3\.(\d+)", " ".join(project["classifiers"]))
    page = (ROOT / "docs" / "requirements.md").read_text("utf-8")
    assert f"| Python | 3.{min(map(int, versions))} | 3.{max(map(int, versions))} |" in page
