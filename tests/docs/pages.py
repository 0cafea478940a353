"""Make pages of the documentation from the program, such as the command line and the formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from dmlconf.cli.commands.running.operators import markdown_table
from dmlconf.cli.entry_point import cli
from dmlconf.excuses.findings import all_findings
from dmlconf.excuses.known_fault_file import read_known_faults
from dmlconf.reports.faults import render_markdown
from dmlconf.reports.findings import findings_page
from dmlconf.reports.runtimes import runtimes_page
from dmlconf.resources import schemas_directory
from tests.docs.own_tests import own_tests_sections
from tests.docs.tutorials import rerun

__all__ = ["DOCS", "PAGES", "write"]

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"

_WIDTH: Final = 96
"""Columns of help texts."""


def write(names: Iterable[str]) -> None:
    """Write pages and tutorials, named by their files."""
    for name in names:
        path = DOCS / name
        text = PAGES[name]() if name in PAGES else rerun(path.read_text("utf-8"))
        path.write_text(text, encoding="utf-8")


def command_line() -> str:
    lines = ["# Command line", "", "Every command with what `--help` prints for it.", ""]
    for name, command in _commands(cli, "dmlconf", None):
        context = click.Context(
            command,
            info_name=name,
            max_content_width=_WIDTH,
            terminal_width=_WIDTH,
            help_option_names=["-h", "--help"],
        )
        lines += [f"## {name}", "", "```text", _trimmed(command.get_help(context)), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _commands(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name, parent=parent)
        for child in command.list_commands(context):
            result = command.get_command(context, child)
            assert result is not None
            if not result.hidden:
                yield from _commands(result, f"{name} {child}", context)


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


def formats() -> str:
    """Return the page of formats, from their schemas."""
    lines = [
        "# Formats of logs, reports and recordings",
        "",
        "Fields may be added; names and meanings stay within a version. The JSON Schemas in",
        "`schemas/` have every detail.",
        "",
    ]
    for name in ("run-log", "report", "recording"):
        schema = json.loads((schemas_directory() / f"{name}.schema.json").read_text("utf-8"))
        title = schema["title"].removeprefix("the ").removeprefix("a ")
        lines += [f"## {title[0].upper()}{title[1:]}", "", schema["description"], ""]
        lines += [f"Schema: `schemas/{name}.schema.json`.", ""]
        if "properties" in schema:
            lines += [*_table(schema), ""]
        for part, definition in schema["$defs"].items():
            if "properties" in definition:
                lines += [f"### {part} ({title})", "", *_table(definition), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(schema: Mapping[str, Any]) -> Iterator[str]:
    yield "| Field | Type | Meaning |"
    yield "|---|---|---|"
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        type_ = _type(field).replace("|", "or")
        meaning = field.get("description", "") if isinstance(field, dict) else ""
        optional = "" if name in required else "optional; "
        yield f"| `{name}` | {type_} | {(optional + meaning).removesuffix('; ')} |"
        items = field.get("items", {}) if isinstance(field, dict) else {}
        if isinstance(items, dict) and "properties" in items:
            for row in list(_table(items))[2:]:
                yield row.replace("| `", f"| `{name}[].", 1)


def _type(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return " | ".join(map(_type, schema[key]))
    type_ = schema.get("type", "any")
    if type_ == "array":
        return f"array of {_type(schema.get('items'))}"
    return " | ".join(type_) if isinstance(type_, list) else str(type_)


def operators() -> str:
    begin = (
        "# Operators\n\nWhat the catalogue has, as `dmlconf operators --markdown` prints it.\n\n"
    )
    return begin + markdown_table()


def faults() -> str:
    return render_markdown(read_known_faults())


def findings() -> str:
    return findings_page(all_findings())


def runtimes() -> str:
    """Return the page of what other runtimes have in place of each operator."""
    return runtimes_page() + own_tests_sections()


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "command-line.md": command_line,
    "faults.md": faults,
    "findings.md": findings,
    "formats.md": formats,
    "operators.md": operators,
    "runtimes.md": runtimes,
}
