"""Try to make dmlconf crash: `python -m tests.hostile` with `mutants`, `campaign` or `kills`."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import click

from tests.hostile import certificates
from tests.hostile.campaign import opened_campaign, run_campaign, table
from tests.hostile.kills import VICTIMS, kill
from tests.hostile.subjects import SUBJECTS
from tests.hostile.trial import trial

FIRST = click.option("--first", default=1, show_default=True, help="The first seed.")
COUNT = click.option("--count", default=1000, show_default=True, help="How many seeds.")
FOLDER = click.option("--folder", type=click.Path(path_type=Path), help="Where findings are kept.")


@click.group()
def cli() -> None:
    """Try to crash or hang dmlconf; exit with 1 if anything does."""


@cli.command()
@click.argument("kinds", nargs=-1, type=click.Choice(list(SUBJECTS)))
@FIRST
@COUNT
@FOLDER
def mutants(kinds: tuple[str, ...], first: int, count: int, folder: Path | None) -> None:
    """Feed changed files of KINDS (of all kinds if none is given) to dmlconf."""
    folder = folder or Path(mkdtemp(prefix="hostile-"))
    failed = False
    for kind in kinds or SUBJECTS:
        findings = (str(finding) for finding in trial(kind, folder / kind, first, count))
        failed |= _report(f"mutants of {kind}", first, count, findings)
        if kind == "certificate":
            _show_tally(folder / kind)
    click.echo(f"findings, if any, are in {folder}")
    raise SystemExit(failed)


def _show_tally(folder: Path) -> None:
    columns = (*certificates.ENDS.values(), certificates.NOTED)
    click.echo(f"| Cheat | Tried | {' | '.join(map(str.capitalize, columns))} |")
    click.echo("|---|---:|---:|---:|---:|---:|")
    for name, ends in certificates.tally(folder).items():
        counts = " | ".join(f"{ends[end]:,}" for end in columns)
        click.echo(f"| {name} | {ends.total():,} | {counts} |")


@cli.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    required=True,
    help="Where the campaign is kept; an earlier campaign there is continued.",
)
@click.option("--count", default=100_000, show_default=True, help="How many mutants in all.")
@click.option("--minutes", default=float("inf"), help="Begin nothing new after this time.")
@click.option("--seed", type=int, help="The seed of a new campaign; random by default.")
def campaign(folder: Path, count: int, minutes: float, seed: int | None) -> None:
    """Feed changed files of all kinds to dmlconf, in chunks, and print a table."""
    state = opened_campaign(folder, seed)
    click.echo(f"seed {state.seed}, {state.total:,} mutants so far")
    for finding in run_campaign(state, folder, count, minutes * 60):
        click.echo(str(finding))
    click.echo(table(state))
    raise SystemExit(bool(state.findings))


@cli.command()
@FIRST
@COUNT
@FOLDER
@click.option("-j", "--jobs", default=4, show_default=True, help="Runs side by side.")
def kills(first: int, count: int, folder: Path | None, jobs: int) -> None:
    """Kill a run, or one of its workers, at a random moment.

    With --folder, seeds that are done are not tried again, so hours of kills can be interrupted.
    """
    folder = folder or Path(mkdtemp(prefix="hostile-"))
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "kills.jsonl"
    results = (
        {}
        if not done.exists()
        else {
            record["seed"]: record
            for record in map(json.loads, done.read_text("utf-8").splitlines())
        }
    )
    seeds = [seed for seed in range(first, first + count) if seed not in results]
    with ThreadPoolExecutor(jobs) as pool, done.open("a", encoding="utf-8") as stream:
        actual = pool.map(lambda seed: kill(seed, _empty_folder(folder, seed)), seeds)
        for seed, result in zip(seeds, actual, strict=True):
            record = {"seed": seed, "end": result.end, "problems": result.problems}
            stream.write(json.dumps(record) + "\n")
            stream.flush()
            results[seed] = record
            if not result.problems:
                rmtree(folder / str(seed))
    chosen = [results[seed] for seed in range(first, first + count)]
    problems = [f"kill {r['seed']}: {problem}" for r in chosen for problem in r["problems"]]
    failed = _report(f"kills of {', '.join(VICTIMS)}", first, count, problems)
    for end, number in sorted(Counter(record["end"] for record in chosen).items()):
        click.echo(f"  {number:6,} {end}")
    raise SystemExit(failed)


def _empty_folder(folder: Path, seed: int) -> Path:
    """Remove the folder of a seed, which an interrupted trial may have left; return its path."""
    rmtree(folder / str(seed), ignore_errors=True)
    return folder / str(seed)


def _report(noun: str, first: int, count: int, findings: Iterable[str]) -> bool:
    began, number = time.monotonic(), 0
    for number, finding in enumerate(findings, 1):  # noqa: B007 - Used after the loop.
        click.echo(finding)
    seconds = time.monotonic() - began
    seeds = f"seeds {first} to {first + count - 1}"
    click.echo(f"{count:,} {noun}, {seeds}: {number} findings, {seconds:.0f} s")
    return number > 0


cli()
