"""What all reports say alike: totals by operator, the closing sentence, the command to repeat."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dmlconf.runner.log import Header, RunLog
from dmlconf.runner.verdict import Status, Verdict

__all__ = [
    "OperatorTotals",
    "closing_sentence",
    "environment_facts",
    "failures",
    "number",
    "operator_totals",
    "repeat_command",
    "status_counts",
    "unchecked_note",
    "worst_ulp",
]

_UNCHECKED: Final = "unchecked: ran, but nothing independent of the backend tells what is right"


@dataclass(frozen=True, slots=True)
class OperatorTotals:
    """What the table says of one operator.

    Attributes:
        operator: its name.
        counts: number of verdicts by status.
        worst_ulp: the greatest distance in ULP; None where none was measured.
        seconds: how long the backend took, in sum.
    """

    operator: str
    counts: Mapping[Status, int]
    worst_ulp: float | None
    seconds: float

    @property
    def cases(self) -> int:
        """Number of verdicts."""
        return sum(self.counts.values())


def worst_ulp(verdicts: list[Verdict]) -> float | None:
    """Return the greatest distance in ULP over all outputs; None where none was measured."""
    distances = [
        figures["worst_ulp"]
        for verdict in verdicts
        for figures in verdict.figures.values()
        if figures["worst_ulp"] is not None
    ]
    return max(distances, default=None)


def _totals(name: str, verdicts: list[Verdict]) -> OperatorTotals:
    counts = Counter(verdict.status for verdict in verdicts)
    seconds = sum(verdict.seconds for verdict in verdicts)
    return OperatorTotals(name, counts, worst_ulp(verdicts), seconds)


def operator_totals(log: RunLog) -> tuple[list[OperatorTotals], OperatorTotals]:
    """Return the totals of each operator, by name, and those of all."""
    by_operator: dict[str, list[Verdict]] = {}
    for verdict in log.verdicts:
        by_operator.setdefault(verdict.operator, []).append(verdict)
    rows = [_totals(name, by_operator[name]) for name in sorted(by_operator)]
    return rows, _totals("total", list(log.verdicts))


def status_counts(log: RunLog) -> dict[Status, int]:
    """Return how many cases have each status; one that a dead run never reached was not run."""
    counts = Counter(verdict.status for verdict in log.verdicts)
    counts[Status.NOT_RUN] += max(0, log.header.selected - len(log.verdicts))
    return {status: counts[status] for status in Status}


def failures(log: RunLog) -> list[Verdict]:
    """Return the verdicts that fail the run."""
    return [verdict for verdict in log.verdicts if verdict.status.fails_run]


def closing_sentence(log: RunLog) -> str:
    """Say in one sentence how the run ended."""
    counts = status_counts(log)
    failing = {status: count for status, count in counts.items() if status.fails_run and count}
    others = _listed({s: n for s, n in counts.items() if n and not s.fails_run})
    total = f"{log.header.selected:,} case{'s' if log.header.selected != 1 else ''}"
    if failing:
        count = sum(failing.values())
        verb = "fails" if count == 1 else "fail"
        sentence = f"FAILED: {count:,} of {total} {verb} the run ({_listed(failing)})"
        return f"{sentence}; {others}" if others else sentence
    if not log.complete:
        missing = counts[Status.NOT_RUN]
        verb = "was" if missing == 1 else "were"
        rest = _listed(
            {s: n for s, n in counts.items() if n and s is not Status.NOT_RUN and not s.fails_run}
        )
        sentence = f"INCOMPLETE: {missing:,} of {total} {verb} not run"
        return f"{sentence}; {rest}" if rest else sentence
    return f"PASSED: {others} of {total}"


def unchecked_note(log: RunLog) -> str | None:
    """Say what `unchecked` means, if any case is."""
    return _UNCHECKED if status_counts(log)[Status.UNCHECKED] else None


def _listed(counts: Mapping[Status, int]) -> str:
    return ", ".join(f"{count:,} {status}" for status, count in counts.items())


def repeat_command(header: Header, verdict: Verdict) -> str:
    """Return the command that runs just this case again, quoted for a shell."""
    command = ["dmlconf", "run", *header.paths]
    if header.backend != "numpy":
        command += ["-b", header.backend]
    if header.against != "numpy":
        command += ["--against", header.against]
    return shlex.join([*command, "--case", verdict.case])


def environment_facts(header: Header) -> list[tuple[str, str]]:
    """Return what was tested, on what, against what, as names and values."""
    env = header.environment
    facts = [
        ("backend", " ".join(filter(None, (header.backend, env.get("version"))))),
        ("adapter", env.get("adapter")),
        ("driver", env.get("driver")),
        ("expected", _expected(header)),
        ("platform", env.get("platform")),
        ("dmlconf", f"{header.dmlconf}, Python {env.get('python')}, NumPy {env.get('numpy')}"),
        ("suite", header.suite_digest[:12]),
        ("catalogue", header.catalogue_digest[:12]),
        ("started", header.started),
    ]
    return [(name, value) for name, value in facts if value]


def _expected(header: Header) -> str:
    if header.against == header.backend:
        return "by the cases alone: a backend is never compared with itself"
    return f"by the cases, else by {header.against}"


def number(value: float | None) -> str:
    """Write a number of ULP as people read it."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value != float("inf") else "∞"
