"""Settings of a configuration file that need the user's permission.

A file in somebody else's repository must not load code, reach the network, write outside its folder
or decide what a certificate must meet. A setting that does so is an error unless the user allows
the file with `dmlconf config allow`, or gives `--trust-config`. An option or a variable that
overrides the setting prevents the error.

A permission is an empty file in the user's own folder, named by a digest of the configuration
file's path and content. A changed or moved file must be allowed again.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from dmlconf.documents.files import is_folder
from dmlconf.documents.problems import InvalidFilesError

__all__ = ["allow", "deny", "is_allowed", "require_allowed", "sensitive", "sensitive_settings"]

_WRITING: Final = frozenset({"dump", "log", "output", "report", "resume", "save"})
"""Options that name what a command writes."""

_WRITING_ARGUMENTS: Final = frozenset({("keygen", "key"), ("sign", "file"), ("record", "paths")})
"""Commands, each with its argument that names what the command writes.

`record` writes recordings beside its paths or, with `--into-case`, changes the case files there.
"""

_BACKENDS: Final = frozenset({"against", "also", "backend"})

_OF_VERIFICATION: Final = frozenset(
    {"allow-backend", "challenge", "key", "max-waived", "paths", "substrate"}
)
"""Parameters of `verify` that decide what a certificate must meet. Its sender may also send a
configuration file."""

_NETWORK_SHARE: Final = re.compile(r"(?:[a-z]+:)?[\\/]{2}[^\\/\s]")
"""The beginning of a path such as `//host/share`, for which Windows logs in to another machine."""

_OF_VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn"})
"""Writing in these folders needs permission, since files there name programs to run."""


def sensitive(command: str, parameter: click.Parameter, setting: Setting) -> str | None:
    """Return why a setting needs permission, such as `loads a library`; None if it needs none."""
    name = long_name(parameter)
    values = setting.value if isinstance(setting.value, list) else [setting.value]
    if name == "directml":
        return "loads a library"
    if name == "scheduler":
        return "reaches the network, and lets what answers there run code"
    if command == "verify" and name in _OF_VERIFICATION:
        return "decides what a certificate must meet"
    may_be_share = sys.platform == "win32" and name != "link"  # `--link` takes a URL.
    if may_be_share and any(_NETWORK_SHARE.match(str(value)) for value in values):
        return "reaches another machine"
    if name in _BACKENDS:
        return next(filter(None, map(_loaded_by, map(str, values))), None)
    option = isinstance(parameter, click.Option)
    if (option and name in _WRITING) or (command, name) in _WRITING_ARGUMENTS:
        files = [_file_of(name, str(value)) for value in values]
        if (command, name) == ("record", "paths"):
            files += [_beside(Path(str(value))) for value in values]
        return _written_outside(setting.path.parent, filter(None, files))
    return None


def sensitive_settings(configuration: Configuration) -> Iterator[tuple[Setting, str]]:
    """Yield the settings that need permission, each with the reason."""
    for section in (configuration.base, *configuration.profiles.values()):
        # `paths` outside the tables of commands also says where `record` writes.
        tables: list[tuple[Sequence[str], Mapping[str, Setting]]]
        tables = [(("run", "record"), section.options)]
        tables += (([command], settings) for command, settings in section.commands.items())
        for commands, settings in tables:
            known = configurable_parameters(commands[0])
            for name, setting in settings.items():
                reasons = (sensitive(command, known[name], setting) for command in commands)
                if (reason := next(filter(None, reasons), None)) is not None:
                    yield setting, reason


def _loaded_by(backend: str) -> str | None:
    """Return which foreign code a backend loads, such as `loads a library`; None if none."""
    from dmlconf.backends.registry import is_built_in

    name, _, options = backend.partition(":")
    if not is_built_in(name):
        return f"loads the plugin {name}"
    if any(word.partition("=")[0].strip() == "path" for word in options.split(",")):
        return "loads a library"
    return None


def _beside(path: Path) -> str | None:
    """Return the folder to which `record` writes for a path without `--output`; None if unknown.

    For `FOLDER/gather` and `FOLDER/gather/case.yaml`, that is `FOLDER`.
    """
    from dmlconf.catalogue.loader import UnknownOperatorError, operator_name

    folder = (path if is_folder(path) else path.parent).absolute()
    try:
        operator_name(folder.name)
    except UnknownOperatorError:
        return None
    return str(folder.parent)


def _file_of(option: str, value: str) -> str | None:
    if option != "report":
        return value
    return value.partition(":")[2] or None


def _written_outside(folder: Path, files: Iterable[str]) -> str | None:
    """Return a remark on the first file that needs permission, if any.

    Files in `folder` and in the folder of run logs need none, except in folders such as `.git`.
    Links are followed.
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
    """Check that the configuration file has permission for the settings in effect.

    Args:
        settings: the settings in effect, each with its parameter.

    Raises:
        InvalidFilesError: a setting needs permission that the file lacks.
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
    """Return whether this file, with this content, is allowed."""
    try:
        return _record(configuration).is_file()
    except OSError:  # An account without a home folder has allowed nothing.
        return False


def allow(configuration: Configuration) -> None:
    """Allow a file, with its present content.

    Raises:
        OSError: the permission cannot be written, or this account has no home folder.
    """
    record = _record(configuration)
    record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    record.touch(mode=0o600)


def deny(configuration: Configuration) -> bool:
    """Withdraw the permission of a file; return whether the file had one.

    Raises:
        OSError: the permission cannot be removed, or this account has no home folder.
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
