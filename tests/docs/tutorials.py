"""Type the tutorials again."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from dmlconf.resources import cases_directory
from tests.cli.process import dmlconf_here

__all__ = ["TUTORIALS", "lasting", "retyped"]

_DOCS: Final = Path(__file__).resolve().parents[2] / "docs"

TUTORIALS: Final = tuple(
    _DOCS / name for name in ("diagnosing-a-driver.md", "first-case.md", "fleet.md", "gating-ci.md")
)
"""Pages whose commands are run in an empty folder."""

_BLOCK: Final = re.compile(r"^```(?:(?:yaml|toml) (\S+)|console)\n(.*?)^```$", re.M | re.S)

_CHANGING: Final = re.compile(r"(tested|run) ")
"""Lines of a report that name the machine and the time."""

_STAND_INS: Final = (
    (r" +[0-9.]+ (m|µ)?s\b", " TIME"),
    (r"run-[0-9T.]+-[0-9]+\.jsonl", "LOG"),
    (r" +", " "),  # A longer time makes a wider column.
    (r"─+", "─"),
)


def retyped(page: str) -> str:
    """Return the page with what its commands show now, run in this order in an empty folder."""
    with TemporaryDirectory() as name:
        return _BLOCK.sub(lambda block: _typed(Path(name).resolve(), block), page)


def _typed(folder: Path, block: re.Match[str]) -> str:
    file, content = block.groups()
    if file is not None:
        (folder / file).write_text(content, encoding="utf-8")
        return block[0]
    command = content.partition("\n")[0]
    program, *arguments = shlex.split(command.removeprefix("$ "))
    if program == "cat":
        shown = (folder / arguments[0]).read_text("utf-8")
    else:
        assert program == "dmlconf"
        done = dmlconf_here(folder, *arguments, COLUMNS="80", HOME=str(folder))
        shown = (done.stdout + done.stderr).replace(str(folder), "~")
        shown = shown.replace(str(cases_directory().parent), "~/dmlconf")
    lines = [line.rstrip() for line in shown.splitlines()]
    return "\n".join(["```console", command, *lines, "```"])


def lasting(page: str) -> list[str]:
    """Return the lines but for times, versions and the machine, which differ from run to run."""
    lines = [line for line in page.splitlines() if not _CHANGING.match(line)]
    for pattern, stands_for in _STAND_INS:
        lines = [re.sub(pattern, stands_for, line) for line in lines]
    return lines
