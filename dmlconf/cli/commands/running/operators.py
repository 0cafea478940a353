"""`dmlconf operators`: show the operators of the catalogue, or everything about one."""

from __future__ import annotations

import json
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from dmlconf.catalogue.constraints import common_constraint_names
from dmlconf.catalogue.loader import UnknownOperatorError, operator, operator_data, operator_names
from dmlconf.catalogue.model import Operator
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.completion import complete_operator
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import TEXT
from dmlconf.cli.options.backend import color_option
from dmlconf.cli.pages.case_counts import case_counts
from dmlconf.documents.problems import printable
from dmlconf.reports.markdown_text import cell, table
from dmlconf.reports.operator_text import (
    field_note,
    level_lines,
    ranks_text,
    rule_text,
    special_case_text,
    typical_text,
)
from dmlconf.reports.operators import operator_page
from dmlconf.reports.terminal_text import plain_table
from dmlconf.translation.names import AmbiguousOperatorError, one_operator

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command", "markdown_table"]


@click.command("operators", cls=Command, short_help="Show the catalogue of operators.")
@click.argument("name", required=False, type=TEXT, shell_complete=complete_operator)
@option(
    "--markdown", is_flag=True, help="List them as a Markdown table; with a NAME, write its page."
)
@option(
    "--json", "as_json", is_flag=True, help="List them as JSON; with a NAME, everything about it."
)
@color_option
def command(name: str | None, markdown: bool, as_json: bool, color: str) -> int:
    """List the operators of the catalogue, or show everything about the operator NAME."""
    from dmlconf.cli.output.console import make_console

    console = make_console(color)
    if markdown and as_json:
        raise click.UsageError("give --markdown or --json, not both")
    try:
        if markdown:
            click.echo(markdown_table() if name is None else _page(one_operator(name)), nl=False)
        elif as_json:
            data = _listed() if name is None else operator_data(one_operator(name))
            click.echo(json.dumps(data, indent=2))
        elif name is None:
            _print_all(console)
        else:
            _print_one(console, operator(one_operator(name)))
    except (AmbiguousOperatorError, UnknownOperatorError) as error:
        raise click.UsageError(printable(str(error))) from error
    return ExitCode.SUCCESS


def _listed() -> list[dict[str, Any]]:
    return [
        {
            "operator": entry.name,
            "aliases": entry.aliases,
            "since": str(entry.since),
            "type": entry.type_value,
            "struct": entry.struct,
            "page": entry.page,
            "summary": entry.summary,
        }
        for entry in map(operator, operator_names())
    ]


def markdown_table() -> str:
    """Return the operators as a Markdown table: names, feature levels and summaries."""
    entries = map(operator, operator_names())
    rows = ((_named(each), str(each.since), cell(each.summary)) for each in entries)
    return "\n".join(table(["Operator", "Since", "What it does"], rows)) + "\n"


def _named(entry: Operator) -> str:
    return entry.name + (f" ({', '.join(entry.aliases)})" if entry.aliases else "")


def _print_wrapped(console: Console, text: str, indent: str = "", style: str = "") -> None:
    lines = wrap(
        text,
        console.width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    console.print("\n".join(lines), style=style, markup=False, highlight=False)


def _print_all(console: Console) -> None:
    table = plain_table("Operator", "Since", "What it does")
    for name in operator_names():
        entry = operator(name)
        table.add_row(_named(entry), str(entry.since), entry.summary)
    console.print(table)


def _print_one(console: Console, entry: Operator) -> None:
    console.print(f"{entry.name}", style="bold cyan")
    console.print(entry.summary)
    aliases = f", also {', '.join(entry.aliases)}" if entry.aliases else ""
    console.print(f"DML_OPERATOR_{entry.name} = {entry.type_value}{aliases}")
    console.print(f"since feature level {entry.since}; page {entry.page}")
    if entry.specialises is not None:
        _print_wrapped(console, f"special case of {special_case_text(entry.specialises)}", "  ")
    console.print()
    _print_struct(console, entry)
    _print_support(console, entry)
    _print_levels(console, entry)
    _print_constraints(console, entry)
    _print_precision(console, entry)
    in_place = ", ".join(f"{pair.output} in place of {pair.input}" for pair in entry.in_place)
    _print_wrapped(console, f"in place: {in_place or 'no'}", "  ")
    console.print()
    if entry.page_errors:
        console.print("Known errors of the page", style="bold yellow")
        for error in entry.page_errors:
            _print_wrapped(console, f"  {error.says} {error.right} {error.why}", "    ")
        console.print()
    _print_cases(console, entry)


def _page(name: str) -> str:
    return operator_page(operator(name), case_counts(name))


def _print_cases(console: Console, entry: Operator) -> None:
    counts = case_counts(entry.name)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
    summary = f"{kinds} (dmlconf list -o {entry.name})" if counts else "none in the bundled suite"
    _print_wrapped(console, f"cases: {summary}", "  ")


def _print_struct(console: Console, entry: Operator) -> None:
    width = max(len(field.c_type) for field in entry.fields)
    console.print(f"struct {entry.struct} {{", markup=False)
    for field in entry.fields:
        line, note = f"  {field.c_type:<{width}} {field.name};", field_note(field)
        if note and len(commented := f"{line}  // {note}") <= console.width:
            line = commented
        elif note:
            _print_wrapped(console, f"  // {note}", "  // ")
        console.print(line, markup=False)
    console.print("};\n")


def _print_support(console: Console, entry: Operator) -> None:
    for condition, alike in groupby(entry.support, lambda listed: listed.when):
        if condition is not None:
            _print_wrapped(console, f"If {condition}", "  ")
        table = plain_table("Since", "Tensor", "Ranks", "Data types")
        for index, listed in enumerate(alike):
            if index > 0:
                table.add_row("", "", "", "")
            for row, (tensor, support) in enumerate(listed.tensors.items()):
                level = str(max(listed.since, entry.since)) if row == 0 else ""
                table.add_row(level, tensor, ranks_text(support), " ".join(support.data_types))
        console.print(table)
        console.print()
    for tensor, data_types in entry.undocumented_data_types.items():
        console.print(f"{tensor} also takes {', '.join(data_types)}, which no table lists")


def _print_levels(console: Console, entry: Operator) -> None:
    lines = level_lines(entry)
    if lines:
        console.print("Feature levels of attributes and of combinations", style="bold")
        for line in lines:
            _print_wrapped(console, f"  {line}", "      ")
        console.print()


def _print_constraints(console: Console, entry: Operator) -> None:
    if entry.terms:
        console.print("Terms", style="bold")
        for name, term in entry.terms.items():
            _print_wrapped(console, f"  {name} = {term}", "      ")
        console.print()
    console.print("Constraints", style="bold")
    for constraint in entry.constraints:
        enforced = "" if constraint.enforced else ", not enforced"
        heading = f"  {constraint.name} ({constraint.source}{enforced})"
        _print_wrapped(console, heading, "      ", style="cyan")
        _print_wrapped(console, f"      {constraint.require}", "      ")
    general = ", ".join(common_constraint_names())
    _print_wrapped(console, f"and those of every operator: {general}", "  ")
    console.print()


def _print_precision(console: Console, entry: Operator) -> None:
    console.print("Precision", style="bold")
    for output, rules in entry.precision.items():
        for rule in rules:
            _print_wrapped(console, f"  {output}: {rule_text(rule)}", "      ", style="cyan")
            _print_wrapped(console, f"      {rule.source}", "      ")
            if rule.typical is not None:
                _print_wrapped(console, f"      {typical_text(rule.typical)}", "      ")
    console.print()
