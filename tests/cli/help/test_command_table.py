"""The table of commands agrees with the modules of commands, and `dmlconf --help` lists it.

The tested code is in `dmlconf/cli/common/command_table.py`, `dmlconf/cli/entry_point.py` and
`dmlconf/cli/commands/`.
"""

from __future__ import annotations

from keyword import iskeyword
from pathlib import Path

import dmlconf.cli.commands
from dmlconf.cli.common.command_table import COMMAND_GROUPS, COMMAND_NAMES, command_module
from tests.cli.process import dmlconf_here

FOLDER = Path(dmlconf.cli.commands.__file__).parent


def test_every_module_is_a_command_of_its_group() -> None:
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert {group.folder for group in COMMAND_GROUPS} == folders
    for group in COMMAND_GROUPS:
        modules = {path.stem for path in (FOLDER / group.folder).glob("[!_]*.py")}
        assert modules == {f"{name}_" if iskeyword(name) else name for name in group.names}
        assert [command_module(name).command.name for name in group.names] == list(group.names)


def test_help_lists_headings_and_every_command_once(tmp_path: Path) -> None:
    lines = dmlconf_here(tmp_path, "--help").stdout.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert [name for name in listed if name in COMMAND_NAMES] == list(COMMAND_NAMES)
    assert [f"{group.heading}:" for group in COMMAND_GROUPS] == [
        line for line in lines if line.endswith(":") and line != "Options:"
    ]
