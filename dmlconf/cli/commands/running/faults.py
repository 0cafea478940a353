"""`dmlconf faults`: list what DirectML itself does wrong, from `schemas/known-faults.yaml`."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.text import Text

from dmlconf.cli.common.command import Command, arguments, option
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import TEXT
from dmlconf.cli.options.backend import color_option
from dmlconf.cli.options.named_operators import operator_option
from dmlconf.cli.options.reporting import parse_reports, report_option, write
from dmlconf.documents.problems import name_hint, printable
from dmlconf.excuses.known_fault_file import faults_of_version, read_known_faults
from dmlconf.excuses.known_faults import KnownFault
from dmlconf.excuses.scope import parse_version
from dmlconf.reports.faults import fault_lines
from dmlconf.reports.formats import FAULT_FORMATS

__all__ = ["command"]


@click.command("faults", cls=Command, short_help="List what DirectML itself does wrong.")
@arguments("names", metavar="[NAME]...", type=TEXT)
@operator_option("Only faults of this operator.")
@option(
    "--directml",
    "version",
    metavar="VERSION",
    help="Only faults of this version of DirectML, such as 1.15.4.",
)
@report_option(FAULT_FORMATS)
@color_option
def command(
    names: tuple[str, ...],
    operators: tuple[str, ...],
    version: str | None,
    report_options: tuple[str, ...],
    color: str,
) -> int:
    """List the known faults of DirectML: crashes, refusals and wrong results.

    With NAME, explain a fault: what DirectML does, which releases have it, where it was seen, a
    small case that shows it, and what to use instead. A case that fails because of one is `waived`
    in every run without --no-known-faults.

    Exit codes: 0 success; 2 wrong usage, such as an unknown name; 8 a report that could not be
    written.
    """
    reports = parse_reports(report_options, FAULT_FORMATS)
    chosen = list(_chosen(names, operators, version))
    text = Text("\n".join(_lines(chosen, whole=bool(names))), no_wrap=True, overflow="ignore")
    written = write(reports, chosen, text, color)
    return ExitCode.SUCCESS if written else ExitCode.OUTPUT


def _chosen(
    names: tuple[str, ...], operators: tuple[str, ...], version: str | None
) -> Iterator[KnownFault]:
    faults = read_known_faults()
    if version is not None:
        number = parse_version(version)
        if number is None:
            message = f"{version!r} is not a version, such as 1.15.4"
            raise click.BadParameter(printable(message), param_hint="--directml")
        faults = faults_of_version(number)
    known = {fault.name for fault in read_known_faults()}
    unknown = [name for name in names if name not in known]
    if unknown:
        hint = name_hint(unknown[0], sorted(known), "`dmlconf faults` lists them")
        message = f"there is no known fault {unknown[0]}; {hint}"
        raise click.UsageError(printable(message))
    asked = {name.upper() for name in operators}
    for fault in faults:
        of_nodes = frozenset() if fault.node is None else fault.node.operators
        concerned = not asked or asked & (fault.operators | of_nodes)
        if concerned and (not names or fault.name in names):
            yield fault


def _lines(faults: list[KnownFault], *, whole: bool) -> Iterator[str]:
    if not faults:
        yield "no known fault"
    for fault in faults:
        if whole:
            yield from fault_lines(fault)
            yield ""
        else:
            yield f"{fault.name}: {fault.span} {fault.title} ({', '.join(sorted(fault.operators))})"
