"""`dmlconf diagnose --order`: find the earlier cases in a process that make a case fail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Final

import click

from dmlconf.backends.registry import BackendName
from dmlconf.cases.writing.export import exported_name
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.options.case_lists import CaseList
from dmlconf.cli.options.nothing_selected import nothing_selected
from dmlconf.cli.options.selection import load_chosen, suite_paths
from dmlconf.cli.output.console import say
from dmlconf.cli.output.files import OutputError
from dmlconf.diagnosis.bench import open_bench
from dmlconf.diagnosis.order_dependence import (
    OrderFinding,
    OrderResult,
    Symptom,
    search_order,
    symptoms,
)
from dmlconf.documents.problems import printable
from dmlconf.documents.whole_files import write_whole
from dmlconf.documents.wording import counted, first_lines
from dmlconf.engine.against import AUTO, expectations
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import ReasonKind

__all__ = ["diagnose_order"]

_MOST_NAMED: Final = 10
"""The most earlier cases that are printed; the file in the folder of `-o` has all."""

_MOST_SELECTED: Final = 1_000
"""If the failing cases and those before them are this many or more, all case files are read, not
only files that may have these cases."""

_VERBS: Final = {
    None: ("fails", "fail", "failed"),
    ReasonKind.CRASH: ("crashes", "crash", "crashed"),
    ReasonKind.HANG: ("hangs", "hang", "hung"),
    ReasonKind.DEVICE_REMOVED: ("loses its device", "lose its device", "lost its device"),
}
"""Three forms of the verb for a failure, by the kind of breakdown; None for no breakdown."""


def diagnose_order(
    log: RunLog,
    paths: Sequence[Path],
    backend: BackendName,
    folder: Path | None,
    *,
    most: int,
    seconds: float,
    timeout: float,
    known_faults: bool,
) -> int:
    """Find, print and write short sequences of earlier cases after which cases fail.

    Args:
        folder: where to write sequences; None to write none.
        most: how many failures to look at.
        seconds: how long the search for one sequence may take.
        timeout: seconds that one case may take.
        known_faults: whether a known fault of DirectML waives a failure.

    Returns:
        `NOTHING_SELECTED` if nothing failed, or the suite has none of the cases; `SUCCESS` if all
        failures that were looked at occurred again; otherwise `FAILED`.

    Raises:
        BackendError: the backend cannot be used.
        InvalidFilesError: a case file is invalid, or a case cannot be built.
        OutputError: a sequence cannot be written.
    """
    failures = symptoms(log)
    if not failures:
        say("Error: nothing failed, so there is nothing to diagnose")
        return ExitCode.NOTHING_SELECTED
    chosen = failures[:most]
    needed = dict.fromkeys(name for each in chosen for name in (*each.before, *each.cases))
    challenge = log.header.options.get("challenge")
    suite, plan = load_chosen(
        paths,
        case_list=CaseList("the log", tuple(needed)) if len(needed) < _MOST_SELECTED else None,
        challenge=challenge,
    )
    plan = [case for case in plan if case.identifier in needed]
    planned = {case.identifier: case for case in plan}
    if not any(name in planned for each in chosen for name in each.cases):
        names = tuple(name for each in chosen for name in each.cases)
        return nothing_selected(paths, {"identifiers": names})
    with open_bench(backend, timeout) as bench:
        against = expectations(AUTO, bench.open(), suite, plan, suite_paths(paths)).against
    words = ["run", *map(str, paths), "-b", str(backend), "-j", "1"]
    if challenge is not None:
        words += ["--challenge", str(challenge)]
    indices = {case.identifier: index for index, case in enumerate(plan)}
    every = True
    for number, symptom in enumerate(chosen, 1):
        if not any(name in planned for name in symptom.cases):
            name = printable(symptom.cases[0])
            click.echo(f"{name}\n  order    unknown: the suite does not have it")
            every = False
            continue
        result = search_order(
            symptom, planned, backend, against, timeout, seconds, known_faults=known_faults
        )
        every = every and result.finding is not OrderFinding.NOT_AGAIN
        _print(result)
        if result.finding is OrderFinding.AFTER_OTHERS and folder is not None:
            _write(folder, number, result, words, indices)
    if len(failures) > most:
        more = len(failures) - most
        say(f"{counted(more, 'more failure')}: --groups looks at more")
    if folder is None and every:
        say("With -o FOLDER, each sequence is also written as a list of cases")
    return ExitCode.SUCCESS if every else ExitCode.FAILED


def _print(result: OrderResult) -> None:
    symptom = result.symptom
    does, do, did = _VERBS[symptom.breakdown]
    click.echo(printable(result.case))
    if symptom.verdict is None:
        click.echo(f"  log      {_unexplained(symptom)}")
    before = f"{counted(result.before, 'case')} that came before it in its process"
    if result.finding is OrderFinding.ALONE:
        click.echo(f"  order    none: it {does} alone in a new process, too")
    elif result.finding is OrderFinding.AFTER_OTHERS:
        _print_earlier(result, f"{does} only after {len(result.earlier):,} of the {before}")
    elif len(symptom.cases) > 1:
        after = f" after the {before}" if result.before else ""
        click.echo(f"  order    none of them {did} again{after}")
    elif result.before:
        click.echo(f"  order    it {did} neither alone nor after the {before}")
    else:
        whose = "suite has none of the cases that came" if result.missing else "log has no case"
        click.echo(f"  order    it did not {do} alone, and the {whose} before it")
    if result.missing and result.finding is not OrderFinding.ALONE:
        others = counted(result.missing, "case")
        click.echo(f"  note     the suite does not have {others} of the log that came before it")
    click.echo(f"  runs     {counted(result.runs, 'sequence')}")


def _print_earlier(result: OrderResult, sentence: str) -> None:
    click.echo(f"  order    {sentence}")
    for line in first_lines(result.earlier, _MOST_NAMED):
        click.echo(f"         {printable(line)}")
    if not result.minimal:
        click.echo("  note     time ran out: not all of them may be needed; --time gives more")


def _unexplained(symptom: Symptom) -> str:
    if len(symptom.cases) == 1:
        return f"{symptom.breakdown} of its process; alone it ran through"
    return (
        f"{symptom.breakdown} of a process in which {len(symptom.cases):,} cases had no outcome; "
        "each ran through when it ran again"
    )


def _write(
    folder: Path,
    number: int,
    result: OrderResult,
    run: Sequence[str],
    indices: dict[str, int],
) -> None:
    """Write a sequence for `dmlconf run --cases`, and the command if that keeps its order.

    Args:
        run: the words of the command before `--cases`.
        indices: the index of each case in the suite's order.
    """
    name = exported_name(result.case.partition("/")[0])
    file = folder / f"{number:02}-{name}" / "sequence.txt"
    sequence = [*result.earlier, result.case]
    command = f"dmlconf {' '.join(map(quote, (*run, '--cases', str(file))))}"
    in_order = [indices[case] for case in sequence] == sorted(indices[case] for case in sequence)
    does = "breaks down" if result.symptom.breakdown else "fails"
    text = [
        f"# {printable(result.case)} {does} after the others, in one process.",
        *sequence,
    ]
    if in_order:
        text.insert(1, f"# Repeat it: {printable(command)}")
    try:
        write_whole(file, "\n".join(text) + "\n")
    except OSError as error:
        raise OutputError(printable(f"-o {folder}: {error.strerror or error}")) from error
    click.echo(f"  file     {printable(str(file))}")
    if in_order:
        click.echo(f"  repeat   {printable(command)}")
    else:
        click.echo("  note     `run` takes cases in the suite's order, and this is another one")
