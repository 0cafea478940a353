"""`dmlconf new`: create a case file from the catalogue and a case of the bundled suite."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.writing.scaffold import pattern_of, scaffold
from dmlconf.catalogue.loader import UnknownOperatorError, operator
from dmlconf.cli.common.command import Command, Group, option
from dmlconf.cli.common.completion import complete_operator
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.path_types import FILE
from dmlconf.cli.options.selection import load
from dmlconf.cli.output.console import say
from dmlconf.cli.output.files import write_new
from dmlconf.documents.fitting import pattern
from dmlconf.documents.problems import printable
from dmlconf.documents.schema import bundled_schema
from dmlconf.translation.names import AmbiguousOperatorError, one_operator

__all__ = ["command"]


def _case_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    rule = bundled_schema("case")["$defs"]["name"]
    if not pattern(rule["pattern"]).search(value):
        message = f"{value!r} is not the name of a case: {rule['description']}"
        raise click.BadParameter(printable(message))
    return value


@click.group("new", cls=Group, short_help="Create a new case.")
def command() -> None:
    """Create a new case."""


@command.command("case", cls=Command, short_help="Write a case file to start from.")
@click.argument("name", metavar="OPERATOR", shell_complete=complete_operator)
@option(
    "--name",
    "case_name",
    default="new-case",
    show_default=True,
    metavar="NAME",
    callback=_case_name,
    help="The case's name.",
)
@option(
    "--output",
    "file",
    type=FILE,
    metavar="FILE",
    help="Write here instead of to standard output; never over a file that exists.",
)
def _case(name: str, case_name: str, file: Path | None) -> int:
    """Write a case file for OPERATOR with one valid case.

    Its desc and data are those of a small case of the bundled suite. Comments give what the
    catalogue says about each field, and the constraints that a desc must meet.
    """
    try:
        entry = operator(one_operator(name))
    except (AmbiguousOperatorError, UnknownOperatorError) as error:
        raise click.UsageError(printable(str(error))) from error
    plan = [
        one
        for one in load((), operators=[entry.name]).plan()
        if one.template.operator_name == entry.name
    ]
    pattern = pattern_of(map(valid_case, plan))
    if pattern is None:
        raise click.UsageError(f"the bundled suite has no case of {entry.name} to start from")
    text = scaffold(case_name, pattern, file)
    if file is None:
        click.echo(text, nl=False)
        say("Next: write this to a file with --output FILE, then type: dmlconf run FILE")
        return ExitCode.SUCCESS
    write_new(file, text)
    click.echo(printable(f"wrote {file}: one case of {entry.name}, with comments on each field"))
    click.echo("Next: write the outputs below `expect:`, then type:")
    click.echo(printable(f"  dmlconf run {shlex.quote(str(file))}"))
    return ExitCode.SUCCESS
