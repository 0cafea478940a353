"""The options `--shard` and `--shard-by`, which select a part of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dmlconf.cases.model import PlannedCase
from dmlconf.cli.common.command import option, options
from dmlconf.cli.common.configuration import CHOICE_GROUP
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import ParamType
from dmlconf.cli.common.path_types import EXISTING_FILE
from dmlconf.cli.output.console import say
from dmlconf.documents.problems import printable
from dmlconf.documents.wording import counted
from dmlconf.engine.shards import Selected, Shard, parse_shard, selected

if TYPE_CHECKING:
    from dmlconf.verdicts.verdict import Verdict

__all__ = ["empty_shard", "shard_of", "shard_options"]


class _ShardType(ParamType[Shard]):
    name = "N/COUNT"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Shard:
        try:
            return value if isinstance(value, Shard) else parse_shard(str(value))
        except ValueError as error:
            self.fail(printable(str(error)), param, ctx)


shard_options: Final = options(
    option(
        "--shard",
        type=_ShardType(),
        metavar="N/COUNT",
        group=CHOICE_GROUP,
        help="Of the cases left by other options, only part N of COUNT, such as 3/8. Without "
        "--shard-by, a case's identifier alone decides its part. `dmlconf merge` joins the logs.",
    ),
    option(
        "--shard-by",
        "shard_log",
        type=EXISTING_FILE,
        metavar="LOG",
        group=CHOICE_GROUP,
        help="Balance the shards by the seconds in this log; give all shards the same log.",
    ),
)


def shard_of(plan: Sequence[PlannedCase], shard: Shard | None, shard_log: Path | None) -> Selected:
    """Return the cases of the plan that `--shard` and `--shard-by` select; all without these.

    Raises:
        click.UsageError: `--shard-by` is given without `--shard`.
        InvalidLogError: the file of `--shard-by` cannot be read, or is no valid run log.
    """
    if shard is None and shard_log is not None:
        raise click.UsageError("--shard-by balances shards: select one with --shard")
    return selected(plan, shard, _seconds(shard_log) if shard_log else None)


def empty_shard(shard: Shard, plan: Sequence[PlannedCase]) -> ExitCode:
    """Say that no case is in a shard, and return the exit code."""
    count = counted(len(plan), "case")
    say(f"Error: no case was selected: none of the {count} is in shard {shard}")
    return ExitCode.NOTHING_SELECTED


def _seconds(log: Path) -> Mapping[str, float]:
    from dmlconf.run_log.log import read_log
    from dmlconf.verdicts.verdict import Status

    def slim(verdict: Verdict) -> Verdict:
        return verdict.judged(figures={}).of_case(facts={})

    verdicts = read_log(log, keep=slim).verdicts
    return {each.case: each.seconds for each in verdicts if each.status is not Status.NOT_RUN}
