"""Read the configuration file, which sets options of commands.

The file is `dmlconf.toml`, or the table `tool.dmlconf` of `pyproject.toml`, in the working
directory or in the nearest folder above that has one of them. Its keys are `paths` and the long
names of options of `run`; some options, such as those that choose cases, also apply to other
commands. A table with the name of a command applies to that command only; a table
`profile.NAME` applies if `--config-profile NAME` is given.

`command.py` gives the values to click, and `trust.py` says which of them the user must allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import click

from dmlconf.cli.common.command_table import command_module
from dmlconf.documents.files import UnreadableFileError, read_bytes
from dmlconf.documents.problems import InvalidFilesError, Problem, name_hint
from dmlconf.documents.trees import TreeError, parsed_toml
from dmlconf.limits import LARGEST_CONFIGURATION

__all__ = [
    "BACKEND_GROUP",
    "CHOICE_GROUP",
    "COMMANDS",
    "CONFIG_PROFILE",
    "FILE_NAMES",
    "Configuration",
    "Section",
    "Setting",
    "configurable_parameters",
    "configuration_file",
    "configured_profiles",
    "default_value",
    "long_name",
    "read_configuration",
    "settings_of",
]

FILE_NAMES: Final = ("dmlconf.toml", "pyproject.toml")

COMMANDS: Final = (
    "run",
    "list",
    "show",
    "validate",
    "operators",
    "coverage",
    "strength",
    "fuzz",
    "devices",
    "record",
    "report",
    "diagnose",
    "compare",
    "merge",
    "waive",
    "certify",
    "verify",
    "sign",
    "keygen",
)
"""The commands whose options and arguments the file may set."""

_OF_CERTIFICATES: Final = ("certify", "verify", "sign")
"""Commands that use only their own table and `color`, since options of runs must not change a
certificate."""

CHOICE_GROUP: Final = "Choose cases"

BACKEND_GROUP: Final = "Run them"

_SHARED_GROUPS: Final = (CHOICE_GROUP, BACKEND_GROUP)
_SHARED: Final = ("color", "paths")
"""Options of `run` under these headings of its help, or with these names, also apply to other
commands."""

_NEVER: Final = ("config-profile", "failed", "help", "history", "profile", "trust-config")
"""Options that the file cannot set, even in the table of a command."""

_PROFILES: Final = "profile"

CONFIG_PROFILE: Final = "config_profile"

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One option that the file sets.

    Attributes:
        key: the keys to the value, such as `("profile", "ci", "timeout")`.
        line: the line of the key, from 1; 0 if unknown.
        source: the text of that line.
        profile: the profile that the setting belongs to, or None.
    """

    key: Key
    value: Any
    path: Path
    line: int
    source: str
    profile: str | None

    @property
    def location(self) -> str:
        """The file and the line of the setting, as `dmlconf config` shows them."""
        location = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{location}, profile {self.profile}" if self.profile else location

    def problem(self, message: str, hint: str | None = None) -> Problem:
        """Return a problem that points at the key, or at the file if the key is not found there."""
        name = self.key[-1]
        column = self.source.find(name) + 1
        if not self.line or not column:
            return Problem(self.path, f"{'.'.join(self.key)}: {message}", hint=hint)
        return Problem(self.path, message, self.line, column, self.source, len(name), hint)


@dataclass(frozen=True, slots=True)
class Section:
    """The settings of the file outside profiles, or of one profile.

    Attributes:
        options: the settings for `run` and commands that share an option with it, by option.
        commands: the settings in the tables of commands, by command and option.
    """

    options: Mapping[str, Setting] = field(default_factory=dict)
    commands: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration file.

    Attributes:
        base: settings outside profiles.
        profiles: settings that apply with `--config-profile NAME`, by name.
        digest: SHA-256 of the file's content, in hexadecimal.
    """

    path: Path
    base: Section
    profiles: Mapping[str, Section]
    digest: str


def configured_profiles() -> list[str]:
    """Return the names of the configuration's profiles; none if there is no valid file."""
    try:
        configuration = read_configuration()
    except InvalidFilesError:
        return []
    return [] if configuration is None else list(configuration.profiles)


def configuration_file() -> Path | None:
    """Return the nearest configuration file in the working directory and above, if any.

    A `pyproject.toml` counts only if its text seems to have a table of dmlconf.
    """
    try:
        folder = Path.cwd()
    except OSError:  # The folder was removed.
        return None
    for each in (folder, *folder.parents):
        own, project = (each / name for name in FILE_NAMES)
        if _is_file(own):
            return own
        if _is_file(project) and _mentions_dmlconf(project):
            return project
    return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # The user may not search the folder.
        return False


_OWN_TABLE: Final = re.compile(
    rb"^[ \t]*\[+[ \t]*tool[ \t]*\.[ \t]*dmlconf\b"  # [tool.dmlconf], [tool.dmlconf.list]
    rb"|^[ \t]*(?:tool[ \t]*\.[ \t]*)?dmlconf[ \t]*[.=]",  # dmlconf.quiet = true in [tool]
    re.MULTILINE,
)


def _mentions_dmlconf(project: Path) -> bool:
    try:
        content = read_bytes(project, LARGEST_CONFIGURATION)
    except UnreadableFileError:
        return False
    return _OWN_TABLE.search(content) is not None


def read_configuration() -> Configuration | None:
    """Return the configuration; None if there is none.

    Raises:
        InvalidFilesError: the file cannot be read, is not TOML, or has wrong keys or values.
    """
    path = configuration_file()
    if path is None:
        return None
    data, lines, digest = _parsed(path)
    prefix: Key = ()
    if path.name == FILE_NAMES[1]:
        prefix = ("tool", "dmlconf")
        tool = data.get("tool")
        own = tool.get("dmlconf") if isinstance(tool, dict) else None
        if own is None:
            return None
        if not isinstance(own, dict):
            raise InvalidFilesError([_no_table(path, lines, own)])
        data = own
    reader = _Reader(path, lines, prefix)
    profiles = data.pop(_PROFILES, {})
    base = reader.section(data, (), None)
    named = {}
    if not isinstance(profiles, dict):
        reader.refuse((_PROFILES,), profiles, "`profile` is a table of profiles", "[profile.ci]")
        profiles = {}
    for name, table in profiles.items():
        if isinstance(table, dict):
            named[name] = reader.section(table, (_PROFILES, name), name)
        else:
            hint = f"write its options below [profile.{name}]"
            reader.refuse((_PROFILES, name), table, "a profile is a table", hint)
    if reader.problems:
        raise InvalidFilesError(reader.problems)
    return Configuration(path, base, named, digest)


def _parsed(path: Path) -> tuple[dict[str, Any], list[str], str]:
    try:
        content = read_bytes(path, LARGEST_CONFIGURATION)
        text = content.decode("utf-8")
        return parsed_toml(text), text.splitlines(), sha256(content).hexdigest()
    except TreeError as error:
        lines = text.splitlines()
        source = lines[error.line - 1] if 0 < error.line <= len(lines) else ""
        problem = Problem(path, str(error), error.line, error.column, source)
        raise InvalidFilesError([problem]) from error
    except UnreadableFileError as error:
        raise InvalidFilesError([Problem(path, str(error))]) from error
    except UnicodeDecodeError as error:
        message = f"is not UTF-8: byte 0x{error.object[error.start]:02x}"
        raise InvalidFilesError([Problem(path, message, hint="save the file as UTF-8")]) from error


def _no_table(path: Path, lines: list[str], value: Any) -> Problem:
    key = ("tool", "dmlconf")
    line = dict(_lines_of_keys(lines)).get(key, 0)
    source = lines[line - 1] if line else ""
    message = f"tool.dmlconf must be a table, not {value!r:.60}"
    hint = "write options below [tool.dmlconf]"
    return Problem(path, message, line, source.find(key[1]) + 1, source, len(key[1]), hint)


class _Reader:
    """Turns the tables of a file into settings, and collects the problems."""

    def __init__(self, path: Path, lines: list[str], prefix: Key) -> None:
        self.problems: list[Problem] = []
        self._path = path
        self._lines = lines
        self._prefix = prefix
        self._line_of = dict(_lines_of_keys(lines))

    def section(self, table: Mapping[str, Any], key: Key, profile: str | None) -> Section:
        options: dict[str, Setting] = {}
        commands: dict[str, dict[str, Setting]] = {}
        for name, value in table.items():
            if isinstance(value, dict):
                commands[name] = self._command(name, value, key, profile)
            else:
                options |= self._checked(name, value, key, profile, "run")
        return Section(options, commands)

    def _command(
        self, name: str, table: Mapping[str, Any], key: Key, profile: str | None
    ) -> dict[str, Setting]:
        if name not in COMMANDS:
            hint = name_hint(name, COMMANDS, f"tables are {', '.join(COMMANDS)}, profile")
            self.refuse((*key, name), table, f"there is no command {name} to configure", hint)
            return {}
        settings: dict[str, Setting] = {}
        for option, value in table.items():
            settings |= self._checked(option, value, (*key, name), profile, name)
        return settings

    def _checked(
        self, name: str, value: Any, key: Key, profile: str | None, command: str
    ) -> dict[str, Setting]:
        setting = self.setting((*key, name), value, profile)
        known = configurable_parameters(command)
        if name not in known:
            hint = name_hint(name, known, f"dmlconf {command} --help lists them")
            self.problems.append(setting.problem(f"{command} has no option {name}", hint))
            return {}
        expected = _misfit(known[name], value)
        if expected is not None:
            self.problems.append(setting.problem(f"{value!r} is not {expected}"))
            return {}
        return {name: setting}

    def refuse(self, key: Key, value: Any, message: str, hint: str) -> None:
        self.problems.append(self.setting(key, value, None).problem(message, hint))

    def setting(self, key: Key, value: Any, profile: str | None) -> Setting:
        whole = (*self._prefix, *key)
        line = self._line_of.get(whole, 0)
        source = self._lines[line - 1] if line else ""
        return Setting(key, value, self._path, line, source, profile)


_HEADER: Final = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?")
_KEY: Final = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*[\w-]+)*)\s*=""")


def _lines_of_keys(lines: list[str]) -> Iterator[tuple[Key, int]]:
    """Yield keys of a TOML file with their line numbers, which `tomllib` does not give.

    Keys in inline tables are left out.
    """
    table: Key = ()
    for number, line in enumerate(lines, 1):
        if header := _HEADER.fullmatch(line):
            table = _split(header[1])
            yield table, number
        elif match := _KEY.match(line):
            yield (*table, *_split(match[1])), number


def _split(dotted: str) -> Key:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def configurable_parameters(command: str) -> dict[str, click.Parameter]:
    """Return the parameters of a command that the file may set, by long name."""
    parameters = {long_name(each): each for each in command_module(command).command.params}
    return {name: each for name, each in parameters.items() if name not in _NEVER}


def long_name(parameter: click.Parameter) -> str:
    """Return an option's longest name without hyphens in front, or an argument's name."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len).lstrip("-")
    return parameter.name or ""


def _misfit(parameter: click.Parameter, value: Any) -> str | None:
    """Return in words what kind of value a parameter takes; None if the value fits."""
    several = parameter.multiple or parameter.nargs == -1
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return None if isinstance(value, bool) else "true or false"
    items = value if isinstance(value, list) and several else [value]
    numeric = isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType)
    kinds: tuple[type, ...] = (int, float) if numeric else (str, int)
    if all(isinstance(item, kinds) and not isinstance(item, bool) for item in items):
        # No command line and no path can hold a NUL character.
        has_nul = any(isinstance(item, str) and "\0" in item for item in items)
        return "text without NUL characters" if has_nul else None
    if numeric:
        return "a number"
    return "a string or a list of strings" if several else "a string"


def settings_of(
    configuration: Configuration, command: click.Command, profile: str | None
) -> dict[str, Setting]:
    """Return the settings that the file has for a command, by the parameter's name in Python.

    Settings of the profile override those outside profiles. Within each of the two, the
    command's own table overrides the other settings.

    Args:
        profile: the profile to apply, if the file has it.
    """
    own = {long_name(parameter): parameter for parameter in command.params}
    name = command.name or ""
    sections = [configuration.base]
    if profile is not None and profile in configuration.profiles:
        sections.append(configuration.profiles[profile])
    settings: dict[str, Setting] = {}
    for section in sections:
        for key, setting in section.options.items():
            if name in _OF_CERTIFICATES and key != "color":
                continue
            if key in own and (name == "run" or _suits(own[key], setting.value)):
                settings[str(own[key].name)] = setting
        for key, setting in section.commands.get(name, {}).items():
            settings[str(own[key].name)] = setting
    return settings


def _suits(parameter: click.Parameter, value: Any) -> bool:
    """Return whether a setting of `run` also applies to this option of another command.

    If the option takes a single value, a list must have exactly one item.
    """
    group: str | None = getattr(parameter, "group", None)
    if group not in _SHARED_GROUPS and long_name(parameter) not in _SHARED:
        return False
    single = not parameter.multiple and parameter.nargs != -1
    return not (single and isinstance(value, list) and len(value) != 1)


def default_value(parameter: click.Parameter, value: Any) -> Any:
    """Return a value of TOML as a default for click: a string, a list of strings, or a flag."""
    if parameter.multiple or parameter.nargs == -1:
        return [str(item) for item in (value if isinstance(value, list) else [value])]
    if isinstance(value, list):
        [value] = value
    return value if isinstance(value, bool) else str(value)
