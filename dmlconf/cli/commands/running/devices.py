"""`dmlconf devices`: the adapters of this machine, and what DirectML can do on them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import TEXT
from dmlconf.cli.options.backend import color_option
from dmlconf.documents.problems import printable
from dmlconf.reports.terminal_text import plain_table
from dmlconf.tensors.datatypes import DataType

if TYPE_CHECKING:
    from rich.table import Table

    from dmlconf.backends.survey import Survey, Surveyed

__all__ = ["command"]

_WIDE: Final = 120
"""The fewest columns of a terminal in which one table shows all adapters."""


@click.command("devices", cls=Command, short_help="Show adapters and the DirectML in use.")
@option(
    "--directml",
    "path",
    type=TEXT,
    metavar="FILE",
    help="Use this DirectML instead of looking for one.",
)
@option(
    "--check",
    is_flag=True,
    help="Check what devices must do besides running operators: "
    "minimum levels, queries, creation and release, removal.",
)
@option("--json", "as_json", is_flag=True, help="Print JSON.")
@color_option
def command(path: str | None, check: bool, as_json: bool, color: str) -> int:
    """List the adapters of this machine by the INDEX of `--backend directml:adapter=INDEX`.

    Adapters that DirectML cannot use are listed with the reason.

    Exit codes: 1 a check fails or breaks; 4 DirectML cannot be used on this machine.
    """
    if check:
        from dmlconf.cli.pages.device_checks import checked_devices  # Slow to import.

        return checked_devices(path, as_json=as_json, color=color)
    from dmlconf.backends.registry import survey_adapters  # Slow to import.

    devices = survey_adapters(path)
    if as_json:
        click.echo(json.dumps(_plain(devices), indent=2))
    else:
        _print_survey(devices, color)
    return ExitCode.SUCCESS


def _plain(survey: Survey) -> dict[str, Any]:
    file = {**asdict(survey.file), "path": str(survey.file.path)}
    return {"directml": file, "adapters": [_plain_adapter(one) for one in survey.adapters]}


def _plain_adapter(one: Surveyed) -> dict[str, Any]:
    can = one.capabilities
    return {
        **asdict(one.adapter),
        "feature_level": str(can.feature_level) if can else None,
        "data_types": _data_types(one) if can else None,
        "refusal": one.refusal,
    }


def _data_types(one: Surveyed) -> list[str]:
    return [str(t) for t in DataType if one.capabilities and t in one.capabilities.data_types]


def _print_survey(survey: Survey, color: str) -> None:
    from rich.text import Text

    from dmlconf.cli.output.console import make_console

    console = make_console(color)
    file = survey.file
    console.print(Text(f"DirectML {file.version}", style="bold"))
    console.print(Text(f"{printable(str(file.path))}, by {file.origin}"), soft_wrap=True)
    console.print(f"SHA-256 {file.sha256}\n", soft_wrap=True)
    if console.width >= _WIDE:
        console.print(_table(survey.adapters))
        return
    for one in survey.adapters:
        console.print(Text(_heading(one), style="bold cyan"))
        console.print(_record(one))


def _heading(one: Surveyed) -> str:
    return f"{one.adapter.index}  {printable(one.adapter.description)}"


def _table(adapters: Iterable[Surveyed]) -> Table:
    from rich.text import Text

    headings = ("", "Adapter", "Driver, LUID", "Memory", "Level", "Data types")
    table = plain_table(*headings, right=("Memory",))
    for one in adapters:
        adapter = one.adapter
        rows = dict(_rows(one))
        identity = f"{rows['kind']}, vendor {rows['vendor, device'].replace(',', ', device')}"
        refused = one.capabilities is None
        use = f"cannot be used: {rows['cannot be used']}" if refused else rows["data types"]
        table.add_row(
            str(adapter.index),
            Text.assemble((printable(adapter.description), "bold cyan"), f"\n{identity}"),
            Text(f"{rows['driver']}\n{adapter.luid}"),
            _memory(one),
            rows.get("feature level", "-"),
            Text(use, style="red" if refused else ""),
        )
    return table


def _record(one: Surveyed) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in _rows(one):
        table.add_row(Text(f"   {name}", style="dim"), Text(value))
    return table


def _memory(one: Surveyed) -> str:
    return f"{one.adapter.dedicated_memory / (1 << 30):,.1f} GiB"


def _rows(one: Surveyed) -> list[tuple[str, str]]:
    adapter = one.adapter
    rows = [
        ("kind", "software" if adapter.software else "hardware"),
        ("vendor, device", f"0x{adapter.vendor_id:04x}, 0x{adapter.device_id:04x}"),
        ("driver", printable(adapter.driver_version or "unknown")),
        ("LUID", adapter.luid),
        ("memory", f"{_memory(one)} dedicated"),
    ]
    if one.capabilities is None:
        return [*rows, ("cannot be used", printable(one.refusal or ""))]
    return [
        *rows,
        ("feature level", str(one.capabilities.feature_level)),
        ("data types", " ".join(_data_types(one))),
    ]
