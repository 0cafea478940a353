"""The table of all commands, in groups by purpose, with the module of each."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from keyword import iskeyword
from types import ModuleType
from typing import Final

__all__ = ["COMMAND_GROUPS", "COMMAND_NAMES", "CommandGroup", "command_module"]


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """Commands that serve one purpose.

    Attributes:
        folder: the folder of their modules, below `dmlconf/cli/commands`.
        heading: the heading in the list of all commands.
    """

    folder: str
    heading: str
    names: tuple[str, ...]


COMMAND_GROUPS: Final = (
    CommandGroup(
        "running",
        "Run cases",
        ("run", "list", "show", "fuzz", "operators", "faults", "devices", "doctor", "config"),
    ),
    CommandGroup(
        "results",
        "Understand results",
        ("report", "diagnose", "compare", "merge", "waive", "history"),
    ),
    CommandGroup(
        "writing",
        "Write cases",
        ("new", "validate", "record", "capture", "import", "coverage", "strength"),
    ),
    CommandGroup("certificates", "Certify", ("certify", "verify", "sign", "keygen")),
)
"""All commands, in the order of `dmlconf --help`."""

_FOLDERS: Final = {name: group.folder for group in COMMAND_GROUPS for name in group.names}

COMMAND_NAMES: Final = tuple(_FOLDERS)


def command_module(name: str) -> ModuleType:
    """Return the module of a command; its attribute `command` is the command itself.

    Raises:
        KeyError: there is no such command.
    """
    module = f"{name}_" if iskeyword(name) else name  # `import`, for example.
    return import_module(f"dmlconf.cli.commands.{_FOLDERS[name]}.{module}")
