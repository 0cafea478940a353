"""`dmlconf capture`: run a program, and write what it gives to DirectML as cases."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from dmlconf.backends.errors import LibraryError
from dmlconf.capture.block_cases import write_blocks
from dmlconf.capture.captured import Captured
from dmlconf.capture.case_files import write_cases
from dmlconf.capture.dispatch_cases import write_dispatches
from dmlconf.capture.hooking.systems.current import system
from dmlconf.capture.journal import JournalError
from dmlconf.capture.launching import Launched, launched
from dmlconf.capture.model_runs.onnx_model import OUTPUTS_DIFFER, parsed_dimension
from dmlconf.capture.model_runs.onnx_sessions import ModelError
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import WholeNumber
from dmlconf.cli.common.path_types import EXISTING_FILE
from dmlconf.cli.options.captured_folder import (
    block_nodes_option,
    folder_error,
    folder_option,
    require_empty,
    still_empty,
)
from dmlconf.cli.output.captured_cases import report_blocks, report_cases, report_dispatches
from dmlconf.cli.output.console import say
from dmlconf.cli.output.files import OutputError

__all__ = ["command"]

_MOST_NAMED: Final = 5
"""The most reasons for skipping, the most refusals and the most failures that are printed."""
_MODEL_GROUP: Final = "Run an ONNX model"


@click.command(
    "capture",
    cls=Command,
    short_help="Run a program, and write what it gives to DirectML as cases.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[-- PROGRAM [ARGS]...]")
@option(
    "--model",
    type=EXISTING_FILE,
    metavar="FILE",
    group=_MODEL_GROUP,
    help="Run this ONNX model in ONNX Runtime's DirectML provider instead of a program.",
)
@option(
    "--dimension",
    "dimensions",
    multiple=True,
    metavar="NAME=N",
    group=_MODEL_GROUP,
    help="Give a dimension that the model leaves open this size, such as batch=1.",
)
@option(
    "--inputs",
    type=EXISTING_FILE,
    metavar="FILE.npz",
    group=_MODEL_GROUP,
    help="Take the model's inputs from here, by name; others are generated.",
)
@option(
    "--unfused",
    is_flag=True,
    group=_MODEL_GROUP,
    help="Let ONNX Runtime give DirectML single operators instead of graphs.",
)
@folder_option
@block_nodes_option
@option(
    "--data",
    type=click.Choice(["none", "statistics", "weights", "all"]),
    default="none",
    show_default=True,
    help="Keep no data of the program, what its data is like (range, zeros, whole numbers), its "
    "weights, or inputs and outputs of dispatches too.",
)
@option(
    "--dispatches",
    type=WholeNumber(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="With --data all, keep the first N dispatches of each operator and graph.",
)
@option(
    "--most-data",
    type=WholeNumber(min=1),
    default=1024,
    show_default=True,
    metavar="MIB",
    help="With --data weights or all, keep no more data than this.",
)
def command(
    program: tuple[str, ...],
    model: Path | None,
    dimensions: tuple[str, ...],
    inputs: Path | None,
    unfused: bool,
    folder: Path,
    block_nodes: int | None,
    data: str,
    dispatches: int,
    most_data: int,
) -> int:
    """Run PROGRAM, a Python script or `-m MODULE`, and write case files of what it compiles.

    Each graph, node of a graph and other operator that the program lets DirectML compile becomes a
    case with the tag `captured`, once, if dmlconf's own rules permit it. The case has the sizes,
    strides, attributes and flags; its data is generated. The program runs as it would without
    dmlconf, in the same Python, so a `python` in front of it may be left out. Nothing leaves the
    machine.

    With --data all, each dispatch that is kept also becomes a case with the program's own data. The
    outputs that the program got become a recording, which `dmlconf run FOLDER/dispatches -b
    recording:FOLDER/dispatches` judges in order. With --data weights, the cases have the tensors
    that DirectML takes over from the program, and generated inputs. With --data statistics, data is
    generated to be like the program's own, which is not kept.

    With --model, the outputs are compared with those of ONNX Runtime's CPU provider. If they
    differ, the first node whose output differs is named. With --data all, the dispatches are then
    judged as well: if all are right, ONNX Runtime's DirectML provider is suspect.

    Exit codes: 0 cases were written; 1 the program failed after it gave DirectML something; 2 wrong
    usage; 4 capturing does not work on this system, or what the program got is too large for a
    recording; 5 the program gave DirectML nothing, or nothing that dmlconf's own rules permit; 6
    the program was interrupted after it gave DirectML something; 8 cases could not be written.
    """
    require_empty(folder)
    _require_data(data)
    program = _without_interpreter(program)
    if model is not None:
        program = _model_program(program, model, dimensions, inputs, unfused)
    elif not program:
        raise click.UsageError("name a PROGRAM after --, or an ONNX model with --model")
    elif dimensions or inputs or unfused:
        raise click.UsageError("--dimension, --inputs and --unfused go with --model")
    if program == ("-m",):
        raise click.UsageError("name a module after -m")
    if program[0] != "-m" and not Path(program[0]).is_file():
        raise click.UsageError(f"there is no script {program[0]}")
    reason = system.refusal()
    if reason is not None:
        raise LibraryError(f"dmlconf cannot capture programs on this system: {reason}")
    count = {"all": dispatches, "statistics": 1}.get(data, 0)
    kept = "none" if data == "none" else f"{data},{count},{most_data << 20}"
    try:
        with launched(program, kept) as ended:
            differs = model is not None and ended.exit_code == OUTPUTS_DIFFER
            ended = replace(ended, exit_code=0) if differs else ended
            folder = still_empty(folder)
            code = _write_captured(folder, ended, block_nodes, most_data << 20, model is not None)
            if differs:
                from dmlconf.cli.output.captured_difference import report_difference

                report_difference(folder, program, bool(ended.captured.dispatches))
            return code
    except JournalError as error:
        raise OutputError(f"what was captured cannot be read: {error}") from error
    except OSError as error:
        raise folder_error(folder, error) from error


def _require_data(data: str) -> None:
    """Refuse `--dispatches` and `--most-data` where `--data` keeps nothing that they limit."""
    context = click.get_current_context()
    for name, kept in (("dispatches", ["all"]), ("most_data", ["weights", "all"])):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and data not in kept:
            option_name = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option_name} goes with --data {' or '.join(kept)}")


def _model_program(
    program: tuple[str, ...],
    model: Path,
    dimensions: tuple[str, ...],
    inputs: Path | None,
    unfused: bool,
) -> tuple[str, ...]:
    if program:
        raise click.UsageError("name a PROGRAM or a --model, not both")
    for dimension in dimensions:
        try:
            parsed_dimension(dimension)
        except ModelError as error:
            raise click.BadParameter(str(error), param_hint="--dimension") from error
    return (
        "-m",
        "dmlconf.capture.model_runs.onnx_model",
        str(model),
        *(f"--dimension={dimension}" for dimension in dimensions),
        *(("--inputs", str(inputs)) if inputs else ()),
        *(("--unfused",) if unfused else ()),
    )


def _without_interpreter(program: tuple[str, ...]) -> tuple[str, ...]:
    name = Path(program[0]).name.lower().removesuffix(".exe") if program else ""
    return program[1:] if _INTERPRETER.fullmatch(name) else program


_INTERPRETER: Final = re.compile(r"python[\d.]*|py")


def _write_captured(
    folder: Path, ended: Launched, block_nodes: int | None, most_bytes: int, model: bool
) -> int:
    captured = ended.captured
    _report_left_out(captured)
    if not captured.operators and not captured.graphs:
        say(_why_nothing(ended, model))
        return ExitCode.NOTHING_SELECTED
    written = write_cases(folder, captured, ended.folder, block_nodes)
    report_cases(folder, captured, written)
    if captured.dispatches:
        report_dispatches(folder, write_dispatches(folder, captured, ended.folder))
        if block_nodes is not None:
            report_blocks(folder, write_blocks(folder, captured, block_nodes, most_bytes))
    if ended.interrupted:
        say("The program was interrupted; the cases are those until then.")
        return ExitCode.INCOMPLETE
    if ended.exit_code:
        say(f"The program ended with {ended.exit_code}; the cases are those until then.")
        return ExitCode.FAILED
    return ExitCode.SUCCESS if written.cases else ExitCode.NOTHING_SELECTED


def _report_left_out(captured: Captured) -> None:
    for reason, count in captured.skipped.most_common(_MOST_NAMED):
        say(f"Skipped {count:,} times: {reason}")
    for refusal, count in captured.refused.most_common(_MOST_NAMED):
        say(f"CreateOperator refused {count:,} times: {refusal}")
    for failure in captured.failures[:_MOST_NAMED]:
        say(f"A failure of dmlconf, which the program did not notice: {failure}")


def _why_nothing(ended: Launched, model: bool) -> str:
    captured = ended.captured
    if model:
        return "ONNX Runtime gave DirectML nothing to compile, so there is nothing to write."
    if captured.devices:
        created = sum(captured.created.values())
        return f"The program compiled nothing; it created {created:,} operators."
    code = f" (it ended with {ended.exit_code})" if ended.exit_code else ""
    return (
        f"The program created no DirectML device{code}. Does it use DirectML in its own process, "
        "such as ONNX Runtime's DmlExecutionProvider?"
    )
