"""`dmlconf list`: list the cases that a run would select."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.options.nothing_selected import nothing_selected
from dmlconf.cli.options.selection import (
    load_chosen,
    paths_argument,
    selection_options,
)
from dmlconf.cli.options.shards import empty_shard, shard_of, shard_options
from dmlconf.documents.problems import printable
from dmlconf.documents.wording import counted
from dmlconf.engine.shards import Shard

__all__ = ["command"]


@click.command("list", cls=Command, short_help="List the cases that a run would select.")
@paths_argument
@selection_options
@shard_options
@option("--json", "as_json", is_flag=True, help="Print JSON, with operators, tags and locations.")
def command(
    paths: tuple[Path, ...],
    as_json: bool,
    shard: Shard | None,
    shard_log: Path | None,
    **selection: Any,
) -> int:
    """List the cases under PATHS (by default the bundled suite) that the options select.

    Cases with the tag `model` are listed too, although some runs leave them out.
    """
    _, planned = load_chosen(paths, **selection)
    if not planned:
        return nothing_selected(paths, selection)
    plan = shard_of(planned, shard, shard_log).cases
    if shard is not None and not plan:
        return empty_shard(shard, planned)
    if as_json:
        cases = [
            {
                "case": case.identifier,
                "operator": case.template.operator_name,
                "tags": case.template.tags,
                "location": str(case.template.about.location),
            }
            for case in plan
        ]
        click.echo(json.dumps(cases, indent=2))
    else:
        click.echo("\n".join(printable(case.identifier) for case in plan))
    count = counted(len(plan), "case")
    click.echo(count, err=True)
    return ExitCode.SUCCESS
