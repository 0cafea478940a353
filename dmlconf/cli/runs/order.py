"""`dmlconf diagnose --order`: cases that fail only after others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

import click

from dmlconf.backends.registry import BackendName
from dmlconf.cases.writing.export import exported_name
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.options.case_lists import CaseList
from dmlconf.cli.options.selection import load_chosen, nothing_selected, suite_paths
from dmlconf.cli.output.console import say
from dmlconf.cli.output.files import OutputError
from dmlconf.diagnosis.bench import open_bench
from dmlconf.diagnosis.order import OrderFinding, OrderResult, cases_before, search_order
from dmlconf.documents.problems import printable
from dmlconf.engine.against import AUTO, expectations
from dmlconf.run_log.log import RunLog

__all__ = ["diagnose_order"]

_MOST_NAMED = 10
"""Earlier cases that are printed; a file has all."""

_MOST_SELECTED = 1_000
"""Cases that are looked up one by one; for more, all files are read."""


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
    """Find the smallest sequences of earlier cases after which cases fail, and print them.

    Args:
        log: the run.
        paths: case files and folders.
        backend: what runs the cases.
        folder: where to write sequences; None to write none.
        most: how many failures to look at.
        seconds: how long the search for one may take.
        timeout: seconds that one case may take.
        known_faults: whether a known fault of DirectML waives a failure.
    """
    failures = [verdict for verdict in log.verdicts if verdict.status.fails_run]
    if not failures:
        say("Error: nothing failed, so there is nothing to diagnose")
        return ExitCode.NOTHING_SELECTED
    chosen = failures[:most]
    needed = dict.fromkeys(
        name for verdict in chosen for name in (*cases_before(log, verdict), verdict.case)
    )
    suite, plan = load_chosen(
        paths,
        case_list=CaseList("the log", tuple(needed)) if len(needed) < _MOST_SELECTED else None,
        challenge=log.header.options.get("challenge"),
    )
    plan = [case for case in plan if case.identifier in needed]
    planned = {case.identifier: case for case in plan}
    if not any(verdict.case in planned for verdict in chosen):
        return nothing_selected(paths, {"identifiers": tuple(v.case for v in failures[:most])})
    with open_bench(backend, timeout) as bench:
        against = expectations(AUTO, bench.open(), suite, plan, suite_paths(paths)).against
    indices = {case.identifier: index for index, case in enumerate(plan)}
    every = True
    for number, verdict in enumerate(chosen, 1):
        if verdict.case not in planned:
            click.echo(f"{printable(verdict.case)}\n  order    unknown: the suite does not have it")
            every = False
            continue
        result = search_order(
            log,
            verdict,
            planned,
            backend,
            against,
            timeout,
            seconds,
            known_faults=known_faults,
        )
        every = every and result.finding is not OrderFinding.NOT_AGAIN
        _print(result)
        if result.finding is OrderFinding.AFTER_OTHERS and folder is not None:
            _write(folder, number, result, backend, paths, indices)
    if len(failures) > most:
        more = len(failures) - most
        say(f"{more:,} more failure{'s' * (more != 1)}: --groups looks at more")
    if folder is None and every:
        say("With -o FOLDER, each sequence is also written as a list of cases")
    return ExitCode.SUCCESS if every else ExitCode.FAILED


def _print(result: OrderResult) -> None:
    click.echo(printable(result.verdict.case))
    before = (
        f"{result.before:,} case{'s' * (result.before != 1)} that came before it in its process"
    )
    if result.finding is OrderFinding.ALONE:
        click.echo("  order    none: it fails alone in a new process, too")
    elif result.finding is OrderFinding.NOT_AGAIN and result.before:
        click.echo(f"  order    it failed neither alone nor after the {before}")
    elif result.finding is OrderFinding.NOT_AGAIN:
        whose = "suite has none of the cases that came" if result.missing else "log has no case"
        click.echo(f"  order    it did not fail alone, and the {whose} before it")
    else:
        count = len(result.earlier)
        click.echo(f"  order    fails only after {count:,} of the {before}")
        for name in result.earlier[:_MOST_NAMED]:
            click.echo(f"           {printable(name)}")
        if count > _MOST_NAMED:
            click.echo(f"           and {count - _MOST_NAMED:,} more")
        if not result.minimal:
            click.echo("  note     time ran out: not all of them may be needed; --time gives more")
    if result.missing and result.finding is not OrderFinding.ALONE:
        others = f"{result.missing:,} case{'s' * (result.missing != 1)}"
        click.echo(f"  note     the suite does not have {others} of the log that came before it")
    click.echo(f"  runs     {result.runs:,} sequence{'s' * (result.runs != 1)}")


def _write(
    folder: Path,
    number: int,
    result: OrderResult,
    backend: BackendName,
    paths: Sequence[Path],
    indices: dict[str, int],
) -> None:
    """Write a sequence as a list that `run --cases` takes, with the command that repeats it.

    Raises:
        OutputError: it cannot be written.
    """
    name = exported_name(result.verdict.case.partition("/")[0])
    file = folder / f"{number:02}-{name}" / "sequence.txt"
    sequence = [*result.earlier, result.verdict.case]
    words = ["run", *map(str, paths), "-b", str(backend), "-j", "1", "--cases", str(file)]
    command = f"dmlconf {' '.join(map(quote, words))}"
    in_order = [indices[case] for case in sequence] == sorted(indices[case] for case in sequence)
    text = [
        f"# {printable(result.verdict.case)} fails after the others, in one process.",
        *sequence,
    ]
    if in_order:
        text.insert(1, f"# Repeat it: {printable(command)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(text) + "\n", "utf-8")
    except OSError as error:
        raise OutputError(printable(f"-o {folder}: {error.strerror or error}")) from error
    click.echo(f"  file     {printable(str(file))}")
    if in_order:
        click.echo(f"  repeat   {printable(command)}")
    else:
        click.echo("  note     `run` takes cases in the suite's order, and this is another one")
