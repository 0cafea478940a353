"""`dmlconf diagnose`: find the causes of failures, and the smallest cases that fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dmlconf.backends import registry
from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.cases.writing.export import exported_name
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.configuration import BACKEND_GROUP
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.logs import latest_log
from dmlconf.cli.common.parameter_types import TEXT, Number, WholeNumber
from dmlconf.cli.common.path_types import FOLDER
from dmlconf.cli.options.backend import backend_option, timeout_option
from dmlconf.cli.options.nothing_selected import nothing_selected
from dmlconf.cli.options.run_exit_code import NO_KNOWN_FAULTS_HELP
from dmlconf.cli.options.selection import load_chosen, paths_argument, suite_paths
from dmlconf.cli.output.console import say
from dmlconf.cli.output.files import require_folder
from dmlconf.documents.files import exists
from dmlconf.documents.problems import printable
from dmlconf.documents.wording import counted
from dmlconf.engine.against import AUTO, expectations
from dmlconf.run_log.log import RunLog, read_log
from dmlconf.verdicts.breakdowns import unexplained_breakdowns

if TYPE_CHECKING:
    from dmlconf.diagnosis.bench import Bench
    from dmlconf.diagnosis.diagnose import Diagnosis

__all__ = ["command"]

_MOST_GROUPS: Final = 10


@dataclass(frozen=True, slots=True)
class _Failure:
    """A case to diagnose, a sentence on what its group of failures shares, and the group's cases.

    A case that the user names has no group.
    """

    case: str
    shared: str | None = None
    alike: tuple[str, ...] = ()


@click.command("diagnose", cls=Command, short_help="Find the causes of failures.")
@click.argument("failure", required=False, type=TEXT, metavar="[LOG|CASE]")
@paths_argument
@backend_option(
    "The backend that fails; by default that of the log.",
    group=BACKEND_GROUP,
)
@backend_option(
    "Also run the smallest cases on this backend, such as another adapter or numpy.",
    "--also",
    multiple=True,
    group=BACKEND_GROUP,
)
@option(
    "-o",
    "--output",
    "folder",
    type=FOLDER,
    metavar="FOLDER",
    help="Write a folder for each group of failures here, with a report and "
    "the smallest case in every form.",
)
@option(
    "--groups",
    default=_MOST_GROUPS,
    show_default=True,
    type=WholeNumber(min=1),
    metavar="N",
    help="Diagnose at most N groups, the largest first; with --order, N failures.",
)
@option(
    "--time",
    "seconds",
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    type=Number(min=0),
    help="How long the first runs and the reduction of one case may take; with --order, the search "
    "for one sequence.",
)
@timeout_option("How long one case may take on the backend.", 10.0, group=BACKEND_GROUP)
@option(
    "--order",
    "by_order",
    is_flag=True,
    help="Find which earlier cases of the same process make a case fail, instead of a cause in "
    "the case itself.",
)
@option("--no-known-faults", is_flag=True, group=BACKEND_GROUP, help=NO_KNOWN_FAULTS_HELP)
def command(
    failure: str | None,
    paths: tuple[Path, ...],
    backend: str | None,
    also: tuple[str, ...],
    folder: Path | None,
    groups: int,
    seconds: float,
    timeout: float,
    by_order: bool,
    no_known_faults: bool,
) -> int:
    """Diagnose the failures in a run LOG (by default that of the latest run), or one CASE.

    For each group of failures that share something, the simplest case is run again alone: ten
    times, or twice if it breaks the backend. The case is reduced as long as it fails in the same
    way. The smallest case is then run with one factor changed at a time. A known fault of DirectML
    is only named. Ctrl-C ends a reduction and keeps the smallest case so far; with -o FOLDER, that
    case also survives if the process dies.

    With --order, the first failures of the log run alone, each in a new process. Those that pass
    run again after the cases that came before them in the log. Halving that sequence gives the
    smallest one after which the case fails. A process that broke down is treated alike if each of
    its cases ran without a breakdown afterwards.

    Exit codes: 0 every failure that was diagnosed was reproduced, or is a known fault; 1 one was
    not; 2 wrong usage; 3 an invalid file; 4 a backend that cannot be used; 5 nothing failed, or the
    suite has none of the cases; 6 the diagnosis was interrupted; 8 FOLDER could not be written.
    """
    log = _log(failure)
    if log is None and failure is None:
        raise click.UsageError("there is no earlier run: name a LOG or a CASE")
    if folder is not None:
        require_folder(folder)
    if by_order:
        from dmlconf.cli.runs.diagnose_order import diagnose_order

        if log is None:
            raise click.UsageError(
                "--order needs the LOG of a run, which says what came before; "
                + printable(f"there is no file {failure}")
            )
        if also:
            raise click.UsageError("--order runs no other backend: leave --also out")
        return diagnose_order(
            log,
            paths or tuple(map(Path, log.header.paths)),
            registry.parse(backend or log.header.backend),
            folder,
            most=groups,
            seconds=seconds,
            timeout=timeout,
            known_faults=not no_known_faults,
        )
    failures = list(_failures(log)) if log is not None else [_Failure(str(failure))]
    if not failures:
        say("Error: nothing failed, so there is nothing to diagnose")
        if log is not None and log.footer is None:
            say("The log ends early: run --resume runs the cases that it lacks")
        if log is not None and unexplained_breakdowns(log.verdicts):
            say("A process broke down, and each case ran through when it ran again: try --order")
        return ExitCode.NOTHING_SELECTED
    name = backend or (log.header.backend if log is not None else None)
    if name is None:
        raise click.UsageError(
            printable(f"there is no file {failure}; ")
            + "if it is a case, name the backend that fails it with -b"
        )
    if log is not None and not paths:
        paths = tuple(map(Path, log.header.paths))
    identifiers = tuple(each.case for each in failures[:groups])
    challenge = log.header.options.get("challenge") if log is not None else None
    suite, plan = load_chosen(paths, identifiers=identifiers, challenge=challenge)
    if not plan:
        return nothing_selected(paths, {"identifiers": identifiers})
    from dmlconf.diagnosis.bench import open_bench

    others = [registry.parse(other) for other in also]
    planned = {case.identifier: case for case in plan}
    if log is None:
        failures = [_Failure(identifier) for identifier in planned]
    every = True
    with open_bench(registry.parse(name), timeout, known_faults=not no_known_faults) as bench:
        expected = expectations(AUTO, bench.open(), suite, plan, suite_paths(paths))
        bench.against = expected.against
        for number, each in enumerate(failures[:groups], 1):
            if each.case in planned:
                into = _folder(folder, number, each)
                diagnosis = _diagnosed(planned[each.case], each, bench, seconds, others, into)
                every = every and (diagnosis.reproduced or diagnosis.is_known_fault)
                if diagnosis.interrupted:
                    left = len(failures[:groups]) - number
                    groups_left = "1 group was" if left == 1 else f"{left:,} groups were"
                    say(f"Interrupted: {groups_left} not diagnosed" if left else "Interrupted")
                    return ExitCode.INCOMPLETE
    more = len(failures) - groups
    if more > 0:
        say(f"{counted(more, 'more group')}: --groups diagnoses them")
    if folder is None:
        say("With -o FOLDER, each is also written as a report, a case file and a C++ program")
    return ExitCode.SUCCESS if every else ExitCode.FAILED


def _log(failure: str | None) -> RunLog | None:
    """Return the log that `failure` names, by default the latest; None if there is none."""
    path = Path(failure) if failure is not None else latest_log()
    if path is None or not (exists(path) or path.suffix in (".jsonl", ".json")):
        return None
    return read_log(path)


def _failures(log: RunLog) -> Iterator[_Failure]:
    """Yield the simplest case of each group of failures in a log, the largest group first."""
    from dmlconf.reports.runs.shared_properties import shared_lines

    for line in shared_lines(log):
        alike = tuple(dict.fromkeys(verdict.case for verdict in line.shared.failures))
        yield _Failure(line.shared.simplest.case, line.sentence, alike)


def _folder(folder: Path | None, number: int, failure: _Failure) -> Path | None:
    if folder is None:
        return None
    return folder / f"{number:02}-{exported_name(failure.case.partition('/')[0])}"


def _diagnosed(
    planned: PlannedCase,
    failure: _Failure,
    bench: Bench,
    seconds: float,
    others: Sequence[registry.BackendName],
    folder: Path | None,
) -> Diagnosis:
    from dmlconf.diagnosis.diagnose import diagnose
    from dmlconf.diagnosis.rewritten import own_mutant
    from dmlconf.engine.session import environment_record
    from dmlconf.reports.diagnoses.folder import write_case, write_diagnosis
    from dmlconf.reports.diagnoses.report import (
        culprit_sentence,
        reduction_sentence,
        rewrite_sentence,
    )

    click.echo(printable(failure.shared or failure.case))

    def keep(case: Case) -> None:
        if folder is not None:
            write_case(folder, case, planned.identifier)

    own = own_mutant(planned)
    diagnosis = diagnose(valid_case(planned), bench, seconds, others, keep, own)
    click.echo(f"  case     {printable(planned.identifier)}")
    click.echo(f"  culprit  {printable(culprit_sentence(diagnosis))}")
    rewrite = rewrite_sentence(diagnosis)
    if rewrite is not None:
        click.echo(f"  rewrite  {printable(rewrite)}")
    click.echo(f"  reduced  {printable(reduction_sentence(diagnosis))}")
    if folder is not None:
        environment = environment_record(bench.open().environment)
        write_diagnosis(
            folder, diagnosis, environment, str(bench.backend), failure.shared, failure.alike
        )
        click.echo(f"  files    {printable(str(folder))}")
    for note in diagnosis.notes:
        click.echo(f"  note     {printable(note)}")
    return diagnosis
