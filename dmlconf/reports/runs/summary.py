"""What several reports on a run need: totals, the closing sentence and commands."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from dmlconf.cases.handles import handles_among
from dmlconf.catalogue.families import OTHER, families
from dmlconf.documents.wording import counted
from dmlconf.reports.runs.heading import backend_text, expected_by, software_text
from dmlconf.run_log.log import Header, RunLog
from dmlconf.verdicts.choosing import cases, failing, statuses
from dmlconf.verdicts.verdict import Reason, Status, Verdict

__all__ = [
    "OperatorTotals",
    "closing_sentence",
    "diagnostic_lines",
    "environment_facts",
    "failing_handles",
    "failures",
    "family_totals",
    "margin_cell",
    "margin_text",
    "missing_shards_text",
    "nearest_lines",
    "operator_totals",
    "repeat_command",
    "run_command",
    "show_command",
    "shown_statuses",
    "slowest_lines",
    "status_counts",
    "ulp_text",
]

MOST_DIAGNOSTIC_LINES: Final = 20
"""How many of the last lines of a reason's diagnostics are shown."""

MOST_NEAREST: Final = 5
"""The most operators that `nearest_lines` lists."""

LONGEST_NAMED: Final = 60
"""Commands have the handle, if known, in place of a longer identifier."""

_MOST_SHARDS: Final = 10
"""The most missing shards that a message names."""


@dataclass(frozen=True, slots=True)
class OperatorTotals:
    """The totals of an operator, of a family of operators, or of the whole run.

    Attributes:
        operator: the name of the operator or family, or `total`.
        worst_ulp: the greatest distance in ULP of outputs with the rule `ulp`; None if unknown.
        margin: the greatest share of its limit that an output of a passing case uses; None if
            unknown. Outputs with the rule `exact` do not count.
        histogram: the sums of `Figures.histogram`.
    """

    operator: str
    counts: Mapping[Status, int]
    worst_ulp: float | None
    margin: float | None
    seconds: float
    histogram: Mapping[str, int]

    @property
    def cases(self) -> int:
        """Number of verdicts."""
        return sum(self.counts.values())


class _Accumulator:
    """Adds up verdicts one by one, so that a large run need not be in memory at once."""

    def __init__(self) -> None:
        self._counts: Counter[Status] = Counter()
        self._histogram: Counter[str] = Counter()
        self._worst_ulp: float | None = None
        self._margin: float | None = None
        self._seconds = 0.0

    def add(self, verdict: Verdict) -> None:
        passed = verdict.status is Status.PASSED
        self._counts[verdict.status] += 1
        self._seconds += verdict.seconds
        for figures in verdict.figures.values():
            self._histogram.update(figures.histogram)
            if figures.rule == "ulp":
                self._worst_ulp = _larger(self._worst_ulp, figures.worst_ulp)
            if passed and figures.rule != "exact":
                self._margin = _larger(self._margin, figures.margin)

    def totals(self, name: str) -> OperatorTotals:
        return OperatorTotals(
            name, self._counts, self._worst_ulp, self._margin, self._seconds, self._histogram
        )


def _larger(one: float | None, other: float | None) -> float | None:
    return max((each for each in (one, other) if each is not None), default=None)


def _sum(name: str, rows: Sequence[OperatorTotals]) -> OperatorTotals:
    counts: Counter[Status] = Counter()
    histogram: Counter[str] = Counter()
    for row in rows:
        counts.update(row.counts)
        histogram.update(row.histogram)
    return OperatorTotals(
        name,
        counts,
        max((row.worst_ulp for row in rows if row.worst_ulp is not None), default=None),
        max((row.margin for row in rows if row.margin is not None), default=None),
        sum(row.seconds for row in rows),
        histogram,
    )


def margin_cell(margin: float | None) -> str:
    """Return a margin as text for a table, such as `12%`; `-` for None."""
    return "-" if margin is None else f"{margin:.0%}"


def operator_totals(log: RunLog) -> tuple[list[OperatorTotals], OperatorTotals]:
    """Return the totals of each operator, sorted by name, and of all together."""
    by_operator: dict[str, _Accumulator] = {}
    for verdict in log.verdicts:
        if verdict.operator not in by_operator:
            by_operator[verdict.operator] = _Accumulator()
        by_operator[verdict.operator].add(verdict)
    rows = [added.totals(name) for name, added in sorted(by_operator.items())]
    return rows, _sum("total", rows)


def family_totals(operators: Sequence[OperatorTotals]) -> list[OperatorTotals]:
    """Return the totals of each family, the one with most cases first."""
    known = families()
    by_family: dict[str, list[OperatorTotals]] = {}
    for row in operators:
        by_family.setdefault(known.get(row.operator, OTHER), []).append(row)
    rows = [_sum(name, rows) for name, rows in by_family.items()]
    return sorted(rows, key=lambda row: (-row.cases, row.operator))


def status_counts(log: RunLog) -> dict[Status, int]:
    """Return how many cases have each status; selected cases without a verdict are `not run`."""
    counts = statuses(log.verdicts)
    counts[Status.NOT_RUN] += max(0, log.header.selected - len(log.verdicts))
    return {status: counts[status] for status in Status}


def failures(log: RunLog) -> list[Verdict]:
    """Return the verdicts that fail the run."""
    return list(failing(log.verdicts))


def shown_statuses(total: OperatorTotals) -> list[Status]:
    """Return the statuses that a table needs a column for."""
    return [status for status in Status if status.traits.always_shown or total.counts.get(status)]


def closing_sentence(log: RunLog) -> str:
    """Return one sentence on how the run ended.

    If no case passed in a complete run without failures, the sentence begins `NOTHING FAILED` if
    some are waived, otherwise `NOTHING PASSED`.
    """
    counts = {status: count for status, count in status_counts(log).items() if count}
    failed = {status: count for status, count in counts.items() if status.fails_run}
    others = {status: count for status, count in counts.items() if not status.fails_run}
    total = counted(log.header.selected, "case")
    if failed:
        count = sum(failed.values())
        verb = "fails" if count == 1 else "fail"
        sentence = f"FAILED: {count:,} of {total} {verb} the run ({_listed(failed)})"
        return "; ".join(filter(None, (sentence, _listed(others))))
    missing = others.pop(Status.NOT_RUN, 0)
    if log.footer is None:
        why = missing_shards_text(log.header) or "the log ends early"
        sentence = f"INCOMPLETE: {why}, after {sum(others.values()):,} of {total}"
        return "; ".join(filter(None, (sentence, _listed(others))))
    if missing:
        verb = "was" if missing == 1 else "were"
        sentence = f"INCOMPLETE: {missing:,} of {total} {verb} not run"
        return "; ".join(filter(None, (sentence, _listed(others))))
    if Status.PASSED in counts:
        heading = "PASSED"
    else:
        heading = f"NOTHING {'FAILED' if any(each.traits.checked for each in counts) else 'PASSED'}"
    return f"{heading}: {_listed(others) or '0'} of {total}"


def missing_shards_text(header: Header) -> str:
    """Return a phrase such as `shard 2/3 is missing` for a merged log; empty if none is missing."""
    shards = header.merged_shards
    if shards is None:
        return ""
    count, present = shards["count"], set(shards["numbers"])
    absent = (number for number in range(1, count + 1) if number not in present)
    names = [f"{number}/{count}" for number in islice(absent, _MOST_SHARDS)]
    if not names:
        return ""
    if len(names) == 1:
        return f"shard {names[0]} is missing"
    more = count - len(present) - len(names)
    last = f"{more:,} more" if more > 0 else names.pop()
    return f"shards {', '.join(names)} and {last} are missing"


def _listed(counts: Mapping[Status, int]) -> str:
    return ", ".join(f"{count:,} {status}" for status, count in counts.items())


def run_command(header: Header) -> list[str]:
    """Return the words of a command that runs the same files on the same backend.

    The source of expected values and the challenge are those of the run, too.
    """
    command = ["dmlconf", "run", *header.paths]
    if header.backend != "numpy":
        command += ["-b", header.backend]
    usual = "auto" if header.against == "numpy" else header.against
    against = str(header.options.get("against", usual))
    if against != "auto":
        command += ["--against", against]
    if "challenge" in header.options:
        command += ["--challenge", str(header.options["challenge"])]
    return command


def repeat_command(header: Header, verdict: Verdict, handle: str | None = None) -> str:
    """Return the command that runs just this case again, quoted for a shell.

    Args:
        handle: replaces an identifier longer than `LONGEST_NAMED`; None to keep it.
    """
    under = ["--circumstances", verdict.circumstance] if verdict.circumstance else []
    case = ["--case", verdict.case]
    if handle is not None and len(verdict.case) > LONGEST_NAMED:
        case = ["-o", verdict.operator, "--case", handle]
    return shlex.join([*run_command(header), *case, *under])


def show_command(header: Header, handle: str) -> str:
    """Return the command that prints a case of a run, quoted for a shell."""
    return shlex.join(["dmlconf", "show", handle, *header.paths])


def failing_handles(log: RunLog) -> Mapping[str, str]:
    """Return the handle of each failing case, by identifier, unique in the run."""
    failed = list(cases(failing(log.verdicts)))
    return handles_among(failed, cases(log.verdicts)) if failed else {}


def margin_text(margin: float) -> str:
    """Return a share of a limit as text, such as `12.5%` or `0.0123%`."""
    return f"{margin:.4%}" if 0 < margin < 0.001 else f"{margin:.1%}"


def nearest_lines(log: RunLog) -> list[str]:
    """Return the `MOST_NEAREST` operators whose passing cases use most of their limit.

    A line has the share and the case: `12.5% GEMM: gemm/documented/example-1`.
    """
    greatest: dict[str, tuple[float, str]] = {}
    for verdict in log.verdicts:
        margin = max((f.margin or 0.0 for f in verdict.figures.values()), default=0.0)
        known = greatest.get(verdict.operator, (0.0, ""))
        if verdict.status is Status.PASSED and margin > known[0]:
            greatest[verdict.operator] = (margin, verdict.case)
    ordered = sorted(greatest.items(), key=lambda item: (-item[1][0], item[0]))
    return [
        f"{margin_text(margin)} {operator}: {case}"
        for operator, (margin, case) in ordered[:MOST_NEAREST]
    ]


def diagnostic_lines(reason: Reason) -> list[str]:
    """Return at most `MOST_DIAGNOSTIC_LINES` last lines of a reason's diagnostics."""
    return reason.diagnostics.rstrip().splitlines()[-MOST_DIAGNOSTIC_LINES:]


def environment_facts(header: Header) -> list[tuple[str, str]]:
    """Return the known facts of a run, such as the driver, as names and values."""
    env = header.environment
    facts = [
        ("backend", backend_text(header)),
        ("adapter", env.get("adapter")),
        ("driver", env.get("driver")),
        ("expected", _expected(header)),
        ("platform", env.get("platform")),
        ("software", software_text(header)),
        ("suite", header.suite_digest[:12]),
        ("challenge", str(header.options.get("challenge", ""))),
        ("catalogue", header.catalogue_digest[:12]),
        ("started", header.started),
    ]
    return [(name, value) for name, value in facts if value]


def _expected(header: Header) -> str:
    if header.against == header.backend:
        return f"by {expected_by(header)}"
    return f"by the cases, else by {header.against}"


def ulp_text(value: float | None) -> str:
    """Return a number of ULP as text: `12,345`, `1.2e7`, `-` for None, or `∞`."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "∞"
    if value < 1e6:
        return f"{value:,.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def slowest_lines(log: RunLog, count: int) -> list[str]:
    """Return lines on the `count` slowest cases, the slowest first."""
    slowest = sorted(log.verdicts, key=lambda verdict: -verdict.seconds)[:count]
    return [f"{verdict.seconds:8.3f} s  {verdict.case}" for verdict in slowest]
