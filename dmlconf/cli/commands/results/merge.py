"""`dmlconf merge`: merge the logs of shards into one, and report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dmlconf.cli.common.command import Command, arguments, option
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.logs import replace_log
from dmlconf.cli.common.path_types import ANY_PATH, FILE
from dmlconf.cli.options.backend import color_option
from dmlconf.cli.options.reporting import (
    detail_options,
    files_of,
    parse_reports,
    report_option,
    show,
)
from dmlconf.cli.options.run_exit_code import Demands, demand_options, log_exit_code
from dmlconf.cli.output.console import say
from dmlconf.cli.output.preflight import prepare_files
from dmlconf.documents.files import resolved
from dmlconf.documents.problems import printable
from dmlconf.reports.formats import RUN_FORMATS
from dmlconf.run_log.log import LogWriteError, read_log
from dmlconf.run_log.merging import Merger
from dmlconf.verdicts.verdict import Status

__all__ = ["command"]


@click.command("merge", cls=Command, short_help="Merge the logs of shards into one.")
@arguments("logs", required=True, type=ANY_PATH)
@option(
    "-o",
    "--output",
    required=True,
    metavar="LOG",
    type=FILE,
    help="Write the merged log here.",
)
@option(
    "--other-environments",
    is_flag=True,
    help="Also merge runs whose machines, adapters or drivers differ; each verdict then names "
    "its log.",
)
@demand_options
@report_option(RUN_FORMATS)
@detail_options
@color_option
def command(
    logs: tuple[Path, ...],
    output: Path,
    other_environments: bool,
    fail_on: tuple[Status, ...],
    min_passed: float | None,
    report_options: tuple[str, ...],
    color: str,
    **how: Any,
) -> int:
    """Merge run LOGS of one plan into the log that one run would have written, and report.

    LOGS are those of shards (`dmlconf run --shard`), or of parts of a run. They are rejected if
    they disagree on a case, or differ in suite, backend, options or, without --other-environments,
    environment. Exit codes are those of `dmlconf run`; 6 if verdicts are missing, which `dmlconf
    run --resume` adds.
    """
    reports = parse_reports(report_options, RUN_FORMATS, log=output)
    if resolved(output) in {resolved(log) for log in logs}:
        message = f"-o {output} is one of the logs to merge; give the merged log its own name"
        raise click.UsageError(printable(message))
    merger = Merger()
    for log in logs:
        merger.add(log)
    merger.require_one_run(other_environments=other_environments)
    files = files_of(reports)
    prepare_files([(f"-o {output}", output), *files], inputs=logs, log=output)
    try:
        replace_log("-o", output, merger.write)
    except LogWriteError as error:
        say(f"Error: {error}")
        return ExitCode.OUTPUT
    merged = read_log(output, own=True)
    shown = show(merged, reports, color=color, **how)
    code, complaints = log_exit_code(merged, Demands(fail_on, min_passed))
    for complaint in (*merger.divided_differently(), *merger.ended_early(), *complaints):
        say(f"Error: {complaint}")
    return code or (ExitCode.SUCCESS if shown else ExitCode.OUTPUT)
