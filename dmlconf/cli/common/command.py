"""Commands, groups of subcommands, options and arguments.

Environment variables can set options, and the configuration file both options and arguments.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from dmlconf.cli.common.configuration import (
    CHOICE_GROUP,
    COMMANDS,
    CONFIG_PROFILE,
    FILE_NAMES,
    Configuration,
    Setting,
    default_value,
    long_name,
    read_configuration,
    settings_of,
)
from dmlconf.cli.output.console import say
from dmlconf.documents.problems import InvalidFilesError, name_hint, printable

__all__ = [
    "CONFIGURATION",
    "SETTINGS",
    "Command",
    "Group",
    "Option",
    "arguments",
    "environment_variable",
    "option",
    "options",
    "require_profile",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_LIST: Final = "`dmlconf list` lists the cases that a run would select"

_ELSEWHERE: Final[Mapping[str, str]] = {
    "--co": _LIST,
    "--collect-only": _LIST,
    "--dry-run": _LIST,
    "--exitfirst": "use -x or --fail-fast",
    "--ff": "use --failed",
    "--filter": "use -k for text in identifiers, or --where for conditions on descs",
    "--gtest_filter": "use --case with a pattern, such as --case 'gather/*'",
    "--html": "use --report html:FILE",
    "--json": "use --report json or --report json:FILE",
    "--junit": "use --report junit:FILE",
    "--junit-xml": "use --report junit:FILE",
    "--junitxml": "use --report junit:FILE",
    "--last-failed": "use --failed",
    "--lf": "use --failed",
    "--markers": "use --tag",
    "--maxfail": "use --max-failures",
    "--random-order-seed": "use --shuffle SEED",
    "--rerun-failed": "use --failed",
    "--seed": "use --shuffle SEED",
    "--workers": "use -j or --jobs",
    "-m": "use --tag",
    "-n": "use -j or --jobs",
}
"""For options of other test runners, what dmlconf has instead."""

_OPTION: Final = re.compile(r"--[a-z-]+(?= |$)|(?<= )-[a-z]\b")
"""Finds the options in a text of `_ELSEWHERE`; only a command that has them all shows the text."""


class _Arguments(click.Argument):
    """Any number of arguments, which the configuration file can give as well.

    Before click 8.2, an empty list of arguments counts as given and hides those of the file.
    """

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> Any:
        if opts.get(str(self.name)) == ():
            opts = {name: value for name, value in opts.items() if name != self.name}
        return super().consume_value(ctx, opts)


def arguments(name: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Return a decorator that adds arguments which the configuration file can give as well.

    The decorator can be used for several commands, unlike that of click 8.1.0.
    """

    def decorated(function: _Function) -> _Function:
        return click.argument(name, cls=_Arguments, nargs=-1, **attributes)(function)

    return decorated


class Option(click.Option):
    """An option with the heading under which the help lists it."""

    def __init__(self, *args: Any, group: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the converted value; see click's documentation.

        Raises:
            click.MissingParameter: the required option is missing; the message is its help.
            click.BadParameter: the value is not one of the option's.
        """
        try:
            return super().process_value(ctx, value)
        except click.MissingParameter as error:
            raise click.MissingParameter(error.message or self.help, ctx, self) from error


def option(*names: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Return a decorator like `click.option` that adds an `Option`."""
    return click.option(*names, cls=Option, **attributes)


def options(*decorators: Callable[[Any], Any]) -> Callable[[_Function], _Function]:
    """Return a decorator that adds several options; the help keeps their order in each group."""

    def decorated(function: _Function) -> _Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorated


def environment_variable(command: str, option: click.Option) -> str:
    """Return the variable that sets an option, such as `DMLCONF_RUN_TIMEOUT`."""
    return f"DMLCONF_{command}_{long_name(option)}".upper().replace("-", "_")


SETTINGS: Final = "dmlconf.settings"
"""The key in a context's `meta` that holds the file's settings for the command."""

CONFIGURATION: Final = "dmlconf.configuration"
"""The key in a context's `meta` that holds the configuration file itself."""

_TRUSTED: Final = "dmlconf.trusted"
"""The key in a context's `meta` that holds whether `--trust-config` is given."""


def _trust_option() -> Option:
    def noted(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        ctx.meta[_TRUSTED] = value

    return Option(
        ["--trust-config"],
        is_flag=True,
        expose_value=False,
        callback=noted,
        help="Let the configuration file load code, reach the network and write anywhere.",
    )


@contextmanager
def _placed(ctx: click.Context) -> Iterator[None]:
    """Let click's error about a value of the configuration file show the value's line.

    The error about a value of an environment variable names the variable.
    """
    try:
        yield
    except click.BadParameter as error:
        settings: dict[str, Setting] = ctx.meta.get(SETTINGS, {})
        for parameter in ctx.command.params:
            named = error.param is parameter or error.param_hint in parameter.opts
            setting = settings.get(str(parameter.name))
            source = ctx.get_parameter_source(str(parameter.name))
            if named and setting is not None and source is ParameterSource.DEFAULT_MAP:
                raise InvalidFilesError([setting.problem(error.message)]) from error
            if named and source is ParameterSource.ENVIRONMENT:
                message = f"{error.message} (from {_variable(parameter)})"
                raise click.BadParameter(
                    message, error.ctx, error.param, error.param_hint
                ) from error
        raise


def _variable(parameter: click.Parameter) -> str:
    """Return the first of a parameter's environment variables that is set and not empty."""
    given = parameter.envvar
    names = [given] if isinstance(given, str) else given or []
    return next((name for name in names if os.environ.get(name)), "the environment")


_NO_CONFIGURATION: Final = (
    f"there is no configuration file ({' or '.join(FILE_NAMES)}) here or in a folder above"
)


def require_profile(configuration: Configuration | None, profile: str) -> None:
    """Refuse a profile that the configuration file lacks.

    Raises:
        click.BadParameter: there is no file, or it has no such profile.
    """
    profiles = list(configuration.profiles) if configuration else []
    if profile not in profiles:
        known = f"its profiles are {', '.join(profiles)}" if profiles else "it has no profiles"
        source = f"{configuration.path}: {known}" if configuration else _NO_CONFIGURATION
        raise click.BadParameter(printable(f"{profile}: {source}"), param_hint="--config-profile")


class Group(click.Group):
    """A command with subcommands, such as `history`; the error for an unknown one gives a hint."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand that the arguments name, and the rest; fail if there is none."""
        names = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in names:
            hint = name_hint(args[0], names, f"use one of {', '.join(names)}")
            ctx.fail(f"{ctx.command_path} has no command {printable(args[0])!r}: {hint}")
        return super().resolve_command(ctx, args)


class Command(click.Command):
    """A command with groups of options.

    Environment variables can set all options but `--trust-config`. The configuration file can set
    most options and arguments of the commands in `COMMANDS`.
    """

    def __init__(self, name: str | None, **attributes: Any) -> None:
        super().__init__(name, **attributes)
        for parameter in self.params:
            if isinstance(parameter, click.Option):
                own = environment_variable(name or "", parameter)
                variable = parameter.envvar
                others = [variable] if isinstance(variable, str) else [*(variable or ())]
                parameter.envvar = [own, *others]
        if name in COMMANDS:
            self.params.append(_trust_option())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the configuration and the arguments.

        For an option of another test runner, the error names this command's counterpart, if any.

        Raises:
            InvalidFilesError: the configuration file is invalid, or needs a permission.
            click.UsageError: the arguments are wrong, or the file lacks the profile that they name.
        """
        old_spelling = self._configure(ctx, args)
        with _placed(ctx):
            try:
                rest = super().parse_args(ctx, args)
            except click.NoSuchOption as error:
                known = _ELSEWHERE.get(error.option_name, "")
                own = {name for parameter in self.params for name in parameter.opts}
                if not known or not own.issuperset(_OPTION.findall(known)):
                    raise
                message = f"No such option: {error.option_name}: {known}."
                raise click.UsageError(message, ctx) from error
        if old_spelling is not None:
            ctx.params["profile"] = None
            say(
                f"--profile {old_spelling} names a profile of the configuration file: use "
                f"--config-profile {old_spelling}. From 1.0 on, --profile names profiles of "
                "certificates only."
            )
        self._require_allowed(ctx)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command.

        Raises:
            InvalidFilesError: the command rejects a value of the configuration file.
        """
        with _placed(ctx):
            return super().invoke(ctx)

    def _configure(self, ctx: click.Context, args: list[str]) -> str | None:
        """Set defaults from the configuration file.

        Returns:
            the profile that `--profile`, the old spelling of `--config-profile`, names; None if it
            names none, or none that the file has.
        """
        configuration = read_configuration() if self.name in COMMANDS else None
        profile = self._given_profile(ctx, args, CONFIG_PROFILE)
        if profile is not None:
            require_profile(configuration, profile)
        if configuration is None:
            return None
        old_spelling = self._given_profile(ctx, args, "profile")
        if old_spelling not in configuration.profiles:
            old_spelling = None
        elif profile is None:
            profile = old_spelling
        settings = settings_of(configuration, self, profile)
        ctx.meta[CONFIGURATION] = configuration
        parameters = {str(parameter.name): parameter for parameter in self.params}
        ctx.meta[SETTINGS] = settings
        ctx.default_map = {
            name: default_value(parameters[name], setting.value)
            for name, setting in settings.items()
        }
        return old_spelling

    def _require_allowed(self, ctx: click.Context) -> None:
        configuration: Configuration | None = ctx.meta.get(CONFIGURATION)
        if configuration is None or ctx.resilient_parsing or ctx.meta.get(_TRUSTED):
            return
        from dmlconf.cli.common.trust import require_allowed

        settings: dict[str, Setting] = ctx.meta[SETTINGS]
        in_effect = [
            (parameter, settings[str(parameter.name)])
            for parameter in self.params
            if ctx.get_parameter_source(str(parameter.name)) is ParameterSource.DEFAULT_MAP
        ]
        require_allowed(configuration, self.name or "", in_effect)

    def _given_profile(self, ctx: click.Context, args: list[str], option: str) -> str | None:
        for parameter in self.params:
            # In commands that choose no cases, --profile is a certification profile.
            if parameter.name == option and getattr(parameter, "group", None) == CHOICE_GROUP:
                try:
                    values, _, _ = self.make_parser(ctx).parse_args(list(args))
                except click.UsageError:
                    return None  # Parsing them again reports the error.
                name = values.get(option) or parameter.value_from_envvar(ctx)
                return None if name is None else str(name)
        return None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group of options under its heading, the group `Options` last."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
        for heading in sorted(groups, key=lambda name: name == "Options"):
            with formatter.section(heading):
                formatter.write_dl(groups[heading])
