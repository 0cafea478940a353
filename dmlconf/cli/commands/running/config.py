"""`dmlconf config`: show where options in effect are set; allow or deny the configuration file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Final

import click
from click.core import ParameterSource

from dmlconf.cli.common.command import SETTINGS, Command, option, require_profile
from dmlconf.cli.common.command_table import command_module
from dmlconf.cli.common.configuration import (
    COMMANDS,
    FILE_NAMES,
    Configuration,
    long_name,
    read_configuration,
)
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.trust import allow, deny, is_allowed, sensitive, sensitive_settings
from dmlconf.cli.output.console import say
from dmlconf.documents.problems import printable

__all__ = ["command"]

_DEFAULT: Final = "default"

_PERMISSIONS: Final = ("allow", "deny")


@click.command(
    "config", cls=Command, short_help="Show the options in effect and where each is set."
)
@click.argument(
    "name",
    metavar="[COMMAND|allow|deny]",
    default="run",
    type=click.Choice([*COMMANDS, *_PERMISSIONS]),
)
@option("--config-profile", metavar="NAME", help="Show the options in effect with this profile.")
@option("--profile", "old_spelling", metavar="NAME", hidden=True)
@option("--all", "everything", is_flag=True, help="Also show options that have their default.")
@option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    config_profile: str | None,
    old_spelling: str | None,
    everything: bool,
    as_json: bool,
) -> int:
    """Show the options in effect for COMMAND (by default run) and where each is set.

    Precedence: the command line, then environment variables, then the profile, then the rest of the
    configuration file, then defaults. The file is dmlconf.toml, or the table tool.dmlconf of
    pyproject.toml, in the working directory or the nearest directory above it.

    Options in the file that load code, reach the network, write outside its folder or decide what a
    certificate must meet are errors until you run `dmlconf config allow`. The permission holds
    until the file changes or moves; `dmlconf config deny` withdraws it.
    """
    configuration = read_configuration()
    if name in _PERMISSIONS:
        return _permit(configuration, name)
    profiles = list(configuration.profiles) if configuration else []
    if old_spelling is not None:
        say(f"use --config-profile {old_spelling}; --profile will be gone in 1.0")
    profile = config_profile or old_spelling
    if profile is not None:
        require_profile(configuration, profile)
    target: click.Command = command_module(name).command
    arguments = ["--config-profile", profile] if profile else []
    inner = target.make_context(name, arguments, parent=ctx.parent, resilient_parsing=True)
    rows = [row for row in _rows(target, inner) if everything or row["from"] != _DEFAULT]
    path = str(configuration.path) if configuration else None
    allowed = configuration is not None and is_allowed(configuration)
    if as_json:
        data = {
            "file": path,
            "profiles": profiles,
            "command": name,
            "options": rows,
            "allowed": allowed,
        }
        click.echo(json.dumps(data, indent=2, default=str))
        return ExitCode.SUCCESS
    click.echo(printable(path) if path else f"no file: neither {' nor '.join(FILE_NAMES)}")
    if profiles:
        click.echo(printable(f"profiles: {', '.join(profiles)}"))
    for row in rows:
        shown = json.dumps(row["value"], default=str, ensure_ascii=False)
        refused = f": {row['needs']}; not allowed" if row["needs"] and not allowed else ""
        click.echo(printable(f"  {row['option']} = {shown}  ({row['from']}{refused})"))
    if not rows:
        click.echo(f"every option of {name} has its default")
    return ExitCode.SUCCESS


def _rows(command: click.Command, ctx: click.Context) -> Iterator[dict[str, Any]]:
    """Yield each option with its value, its origin, and why the file needs a permission for it."""
    settings = ctx.meta.get(SETTINGS, {})
    for parameter in command.params:
        key = str(parameter.name)
        if long_name(parameter) in ("help", "profile", "config-profile"):
            continue
        value, source = parameter.consume_value(ctx, {})
        origin = _DEFAULT
        if source is ParameterSource.ENVIRONMENT and isinstance(parameter, click.Option):
            origin = next(name for name in parameter.envvar or () if os.environ.get(name))
        elif source is ParameterSource.DEFAULT_MAP:
            origin = settings[key].location
        elif not isinstance(value, str | int | float | bool | list | tuple):
            value = None  # Newer versions of click have a marker for no value.
        needs = None
        if source is ParameterSource.DEFAULT_MAP:
            needs = sensitive(str(command.name), parameter, settings[key])
        yield {"option": long_name(parameter), "value": value, "from": origin, "needs": needs}


def _permit(configuration: Configuration | None, word: str) -> int:
    if configuration is None:
        raise click.UsageError(f"there is no file to {word}: neither {' nor '.join(FILE_NAMES)}")
    try:
        if word == "deny":
            had = deny(configuration)
            said = "is no longer allowed" if had else "was not allowed"
            click.echo(printable(f"{configuration.path} {said}"))
            return ExitCode.SUCCESS
        allow(configuration)
    except OSError as error:
        raise click.UsageError(printable(f"config {word}: {error}")) from error
    click.echo(printable(f"{configuration.path} is allowed until it changes; it"))
    for setting, reason in sensitive_settings(configuration):
        line = f", line {setting.line}" if setting.line else ""
        click.echo(printable(f"  {reason}: {setting.key[-1]}{line}"))
    return ExitCode.SUCCESS
