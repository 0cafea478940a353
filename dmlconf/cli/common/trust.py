"""Settings that a configuration file may have only if its user has allowed that very file.

A configuration may come with a stranger's checkout. Its options choose cases, reports and gates, as
those of other test runners do. Options that load code, reach the network, write outside the file's
folder or decide what a certificate must meet count only if the file was allowed
(`dmlconf config allow`), or with `--trust-config`.

The record of a file that is allowed is an empty file in the user's own folder, named by the digest
of path and content. So a file that is changed or moved must be allowed again.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import click

from dmlconf.cli.common.configuration import (
    Configuration,
    Setting,
    configurable_parameters,
    long_name,
)
from dmlconf.cli.common.logs import log_directory, state_directory
from dmlconf.documents.problems import InvalidFilesError

__all__ = ["allow", "deny", "is_allowed", "require_allowed", "sensitive", "sensitive_settings"]

_WRITING: Final = frozenset({"dump", "log", "output", "report", "resume", "save"})
"""Options that name what a command writes."""

_WRITING_ARGUMENTS: Final = frozenset({("keygen", "key"), ("sign", "file")})

_BACKENDS: Final = frozenset({"against", "also", "backend"})

_OF_VERIFICATION: Final = frozenset(
    {"allow-backend", "challenge", "key", "max-waived", "paths", "substrate"}
)
"""What `verify` demands of a certificate: whoever sends one may send a configuration with it."""

_NETWORK_SHARE: Final = re.compile(r"(?:[a-z]+:)?[\\/]{2}[^\\/\s]")
"""On Windows, such a path makes the system log in to another machine."""

_OF_VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn"})
"""Folders whose files name programs to run, and that no checkout can bring along."""


def sensitive(command: str, parameter: click.Parameter, setting: Setting) -> str | None:
    """Return the effect for which a setting's file must be trusted, such as `loads a library`.

    None if the setting has no such effect.

    Args:
        command: the command that it is for.
        parameter: what it sets.
        setting: the setting.
    """
    name = long_name(parameter)
    values = setting.value if isinstance(setting.value, list) else [setting.value]
    if name == "directml":
        return "loads a library"
    if name == "scheduler":
        return "reaches the network, and lets what answers there run code"
    if command == "verify" and name in _OF_VERIFICATION:
        return "decides what a certificate must meet"
    shares = sys.platform == "win32" and name != "link"
    if shares and any(_NETWORK_SHARE.match(str(value)) for value in values):
        return "reaches another machine"
    if name in _BACKENDS:
        return next(filter(None, map(_loaded_by, map(str, values))), None)
    option = isinstance(parameter, click.Option)
    if (option and name in _WRITING) or (command, name) in _WRITING_ARGUMENTS:
        files = [_file_of(name, str(value)) for value in values]
        return _written_outside(setting.path.parent, filter(None, files))
    return None


def sensitive_settings(configuration: Configuration) -> Iterator[tuple[Setting, str]]:
    """Yield the settings of a file for which it must be allowed, with what they do.

    Settings outside the tables of commands are those of `run`.
    """
    for section in (configuration.base, *configuration.profiles.values()):
        for command, settings in (("run", section.options), *section.commands.items()):
            known = configurable_parameters(command)
            for name, setting in settings.items():
                if (reason := sensitive(command, known[name], setting)) is not None:
                    yield setting, reason


def _loaded_by(backend: str) -> str | None:
    """Return the foreign code that a backend's name loads, in words; None if it loads none."""
    from dmlconf.backends.registry import is_built_in  # Few runs have a configuration.

    name, _, options = backend.partition(":")
    if not is_built_in(name):
        return f"loads the plugin {name}"
    if any(word.partition("=")[0].strip() == "path" for word in options.split(",")):
        return "loads a library"
    return None


def _file_of(option: str, value: str) -> str | None:
    if option != "report":
        return value
    return value.partition(":")[2] or None


def _written_outside(folder: Path, files: Iterable[str]) -> str | None:
    """Return a remark on the first file outside a folder and the folder of logs, if any.

    Links are followed: a checkout may bring a link that leads elsewhere.
    """
    inside = [Path(os.path.realpath(folder))]
    with suppress(OSError):
        inside.append(Path(os.path.realpath(log_directory())))
    for file in files:
        target = Path(os.path.realpath(file))
        if not any(target.is_relative_to(each) for each in inside):
            return f"writes {target}, which is outside the file's folder"
        if not _OF_VERSION_CONTROL.isdisjoint(map(str.casefold, target.parts)):
            return f"writes {target}, where files may name programs to run"
    return None


def require_allowed(
    configuration: Configuration,
    command: str,
    settings: Iterable[tuple[click.Parameter, Setting]],
) -> None:
    """Check that the settings in effect need no permission, or that their file has it.

    Args:
        configuration: the file.
        command: the command that they are for.
        settings: those that nothing overrides, with what they set.

    Raises:
        InvalidFilesError: a setting needs the permission that the file does not have.
    """
    needing = [
        (setting, reason)
        for parameter, setting in settings
        if (reason := sensitive(command, parameter, setting)) is not None
    ]
    if not needing or is_allowed(configuration):
        return
    hint = "if you trust this file: dmlconf config allow, or --trust-config for one run"
    problems = [
        setting.problem(f"{setting.key[-1]} {reason}; this file was not allowed to do that", hint)
        for setting, reason in needing
    ]
    raise InvalidFilesError(problems)


def is_allowed(configuration: Configuration) -> bool:
    """Return whether this file, with this content, was allowed."""
    try:
        return _record(configuration).is_file()
    except OSError:  # Without a folder of one's own, nothing was allowed.
        return False


def allow(configuration: Configuration) -> None:
    """Allow a file, with its present content.

    Raises:
        OSError: the record cannot be written.
    """
    record = _record(configuration)
    record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    record.touch(mode=0o600)


def deny(configuration: Configuration) -> bool:
    """Withdraw the permission of a file; return whether it had one.

    Raises:
        OSError: the record cannot be removed.
    """
    record = _record(configuration)
    try:
        record.unlink()
    except FileNotFoundError:
        return False
    return True


def _record(configuration: Configuration) -> Path:
    path = os.fsencode(os.path.realpath(configuration.path))
    name = sha256(path + b"\0" + configuration.digest.encode("ascii")).hexdigest()
    return state_directory() / "allowed-configurations" / name
