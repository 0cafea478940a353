"""README.md shows what `dmlconf` prints.

The tested code is in the page `README.md`, and in `dmlconf/reports/runs/terminal.py`.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.process import dmlconf_here

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"```text\n\$ dmlconf (.*?[^\\])\n(.*?)```", re.DOTALL)
"""A command, perhaps of several lines, and its output."""

WIDTH = 46
"""Columns of the shown output."""


@pytest.mark.whole
def test_readme_shows_lines_that_the_command_prints(tmp_path: Path) -> None:
    match = BLOCK.search(README.read_text("utf-8"))
    assert match is not None
    words = shlex.split(match[1].replace("\\\n", " "))
    done = dmlconf_here(tmp_path, *words, COLUMNS=str(WIDTH), PYTHONIOENCODING="utf-8")
    assert done.returncode == 1
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    shown = match[2].splitlines()
    assert shown
    for line in shown:
        assert line in printed
        assert len(line) <= WIDTH
    total = re.search(r"^FAILED: ([0-9,]+ of [0-9,]+ cases) fail", done.stdout, re.M)
    assert total is not None
    assert f"fails {total[1]}. " in README.read_text("utf-8")
