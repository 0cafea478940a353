"""`dmlconf devices`: the adapters of this machine, and what DirectML can do on them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from dmlconf.cli.exit_codes import ExitCode
from dmlconf.cli.options import color_option
from dmlconf.documents.problems import printable
from dmlconf.tensors.datatypes import DataType

if TYPE_CHECKING:
    from dmlconf.backends.directml.survey import Survey, Surveyed

__all__ = ["command"]


@click.command("devices")
@click.option(
    "--directml", "path", metavar="FILE", help="Use this DirectML, and do not look for one."
)
@click.option("--json", "as_json", is_flag=True, help="List as JSON.")
@color_option
def command(path: str | None, as_json: bool, color: str) -> int:
    """List the adapters that `--backend directml:adapter=INDEX` can run on.

    Exit code 4 where DirectML cannot be used on this machine.
    """
    from dmlconf.backends.directml.survey import survey

    found = survey(path)
    if as_json:
        click.echo(json.dumps(_plain(found), indent=2))
    else:
        _print(found, color)
    return ExitCode.SUCCESS


def _plain(found: Survey) -> dict[str, Any]:
    file = {**asdict(found.file), "path": str(found.file.path)}
    return {"directml": file, "adapters": [_plain_adapter(one) for one in found.adapters]}


def _plain_adapter(one: Surveyed) -> dict[str, Any]:
    can = one.capabilities
    return {
        **asdict(one.adapter),
        "feature_level": str(can.feature_level) if can else None,
        "data_types": _in_order(one) if can else None,
        "refusal": one.refusal,
    }


def _in_order(one: Surveyed) -> list[str]:
    return [str(t) for t in DataType if one.capabilities and t in one.capabilities.data_types]


def _print(found: Survey, color: str) -> None:
    from rich.table import Table
    from rich.text import Text

    from dmlconf.cli.console import make_console

    console = make_console(color)
    file = found.file
    console.print(Text(f"DirectML {file.version}", style="bold"))
    console.print(Text(f"{printable(str(file.path))}, by {file.origin}"), soft_wrap=True)
    console.print(f"SHA-256 {file.sha256}\n", soft_wrap=True)
    for one in found.adapters:
        adapter = one.adapter
        console.print(Text(f"{adapter.index}  {printable(adapter.description)}", style="bold cyan"))
        table = Table.grid(padding=(0, 2))
        for name, value in _rows(one):
            table.add_row(Text(f"   {name}", style="dim"), Text(value))
        console.print(table)


def _rows(one: Surveyed) -> list[tuple[str, str]]:
    adapter = one.adapter
    rows = [
        ("kind", "software" if adapter.software else "hardware"),
        ("vendor, device", f"0x{adapter.vendor_id:04x}, 0x{adapter.device_id:04x}"),
        ("driver", adapter.driver_version or "unknown"),
        ("LUID", adapter.luid),
        ("memory", f"{adapter.dedicated_memory / (1 << 30):,.1f} GiB of its own"),
    ]
    if one.capabilities is None:
        return [*rows, ("cannot be used", one.refusal or "")]
    return [
        *rows,
        ("feature level", str(one.capabilities.feature_level)),
        ("data types", " ".join(_in_order(one))),
    ]
