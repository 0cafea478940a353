"""Text of drivers and plugins is never a workflow command for the runner of GitHub Actions.

The tested code is in `dmlconf/cli/output/workflow_commands.py` and
`dmlconf/reports/runs/github.py`.
"""

from __future__ import annotations

import os
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dmlconf.cli.output.workflow_commands import Disarmed
from tests.backends.installing import install_plugin
from tests.cli.process import dmlconf, write

PLUGIN = """
from dmlconf.backends.numpy.backend import HIGHEST_LEVEL
from dmlconf.backends.protocol import Breakdown, BreakdownKind, Capabilities, Environment
from dmlconf.tensors.datatypes import DataType

MESSAGE = "no memory\\n::error file=a.py::planted\\n  ::stop-commands::x\\nabc ##[command]planted"


class Speaking:
    def environment(self):
        return Environment("speaking", "1", MESSAGE, MESSAGE)

    def capabilities(self):
        return Capabilities(HIGHEST_LEVEL, frozenset(DataType))

    def run(self, cases):
        for case in cases:
            yield Breakdown(BreakdownKind.ERROR, MESSAGE, MESSAGE)

    def close(self):
        pass


def create(argument):
    return Speaking()
"""
"""A plugin that breaks down in every case; its messages contain workflow commands."""


def obeyed_commands(output: str) -> list[str]:
    """Return the lines that GitHub's runner takes for workflow commands."""
    lines = output.replace("\r", "\n").split("\n")
    return [line for line in lines if line.lstrip().startswith("::") or "##[" in line]


@pytest.mark.slow
def test_a_message_of_a_plugin_is_no_workflow_command(tmp_path: Path) -> None:
    write(tmp_path)
    install_plugin(tmp_path, "speaking", code=PLUGIN)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    root = str(Path(__file__).resolve().parents[3])
    arguments = ("run", "tile.yaml", "-b", "speaking", "--report", "github", "-v")
    workflow = {"GITHUB_ACTIONS": "true", "PYTHONPATH": os.pathsep.join((root, path))}
    done = dmlconf(tmp_path, *arguments, **workflow)
    assert done.returncode == 1, done.stderr
    assert "planted" in done.stdout
    own = [line for line in obeyed_commands(done.stdout) if line.startswith("::error ")]
    assert obeyed_commands(done.stdout) == own
    assert len(own) == 2  # For the run and for its case.
    assert obeyed_commands(done.stderr) == []


@given(st.lists(st.text("# :[\r\na", max_size=6)))
@example([":", ":"])
@example(["a\r ", ":", ":a"])
@example(["##", "["])
@example(["a#", "#", "["])
def test_text_written_in_several_parts_makes_no_workflow_command(parts: list[str]) -> None:
    buffer = BytesIO()
    stream = Disarmed(TextIOWrapper(buffer, encoding="utf-8", newline=""))
    for part in parts:
        assert stream.write(part) == len(part)
    stream.flush()
    written = buffer.getvalue().decode("utf-8")
    assert obeyed_commands(written) == []
    # Only zero-width spaces are added.
    assert written.replace("\u200b", "") == "".join(parts)


@pytest.mark.parametrize("text", ["a ::error::b", "# [x]", "a: b", "##", "x::y"])
def test_text_that_is_no_workflow_command_is_unchanged(text: str) -> None:
    buffer = BytesIO()
    stream = Disarmed(TextIOWrapper(buffer, encoding="utf-8"))
    stream.write(text)
    stream.flush()
    assert buffer.getvalue().decode("utf-8") == text
