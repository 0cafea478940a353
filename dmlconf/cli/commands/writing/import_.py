"""`dmlconf import`: make cases of graphs that ONNX Runtime wrote to files."""

from __future__ import annotations

from pathlib import Path

import click

from dmlconf.capture.case_files import write_cases
from dmlconf.capture.partition import PartitionError, captured_partitions
from dmlconf.cli.common.command import Command
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.path_types import EXISTING_FILE
from dmlconf.cli.options.captured_folder import (
    block_nodes_option,
    folder_error,
    folder_option,
    require_empty,
)
from dmlconf.cli.output.captured_cases import report_cases
from dmlconf.cli.output.console import say
from dmlconf.documents.problems import printable

__all__ = ["command"]


@click.command("import", cls=Command, short_help="Read graphs of ONNX Runtime's files as cases.")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=EXISTING_FILE,
)
@folder_option
@block_nodes_option
def command(files: tuple[Path, ...], folder: Path, block_nodes: int | None) -> int:
    """Write case files of graphs that ONNX Runtime's DirectML provider wrote to Partition_N.bin.

    The provider writes these files with the session option ep.dml.enable_graph_serialization =
    true, also in programs that are not Python. The cases are like those of `dmlconf capture`;
    weights become inputs. This needs `pip install '.[capture]'`.

    Exit codes: 0 cases were written; 2 wrong usage; 3 a file cannot be read; 5 dmlconf's own rules
    refuse all cases; 8 cases could not be written.
    """
    require_empty(folder)
    try:
        captured = captured_partitions(list(files))
    except PartitionError as error:
        say(f"Error: {printable(str(error))}")
        return ExitCode.INVALID_FILE
    try:
        written = write_cases(folder, captured, block_nodes=block_nodes)
    except OSError as error:
        raise folder_error(folder, error) from error
    report_cases(folder, captured, written)
    return ExitCode.SUCCESS if written.cases else ExitCode.NOTHING_SELECTED
