"""The figure by expectation: per kind, per operator, and what the source of a rule permits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.judging.judge import Against
from dmlconf.reports.markdown_text import table as markdown_table
from dmlconf.reports.strength.figure import FigureKind, Setting, Table, bullets
from dmlconf.strength.expectations import ExpectationFigure, ExpectationTally, measure_expectations
from dmlconf.strength.perturbations import KINDS
from dmlconf.strength.sampling import sampled
from dmlconf.strength.tallies import share

__all__ = [
    "EXPECTATIONS",
    "EXPECTATION_HEADINGS",
    "expectation_data",
    "expectation_lines",
    "expectation_sentence",
    "expectation_table",
    "permitted_lines",
    "weak_operators",
]

EXPECTATION_HEADINGS: Final = ("Spoiled", "Tried", "Permitted", "Noticed", "Share")

TARGET: Final = 99.0


def _sum(tallies: Iterable[ExpectationTally]) -> ExpectationTally:
    total = ExpectationTally()
    for tally in tallies:
        total.add(tally)
    return total


def _share(tally: ExpectationTally) -> float:
    return share(tally.noticed, tally.counted)


def _by_operator(figure: ExpectationFigure) -> dict[str, ExpectationTally]:
    names = sorted({operator for operator, _ in figure.tallies})
    return {
        name: _sum(tally for (operator, _), tally in figure.tallies.items() if operator == name)
        for name in names
    }


def weak_operators(figure: ExpectationFigure, least: float) -> dict[str, float]:
    """Return the share of each operator whose share is below a percentage."""
    shares = {name: _share(tally) for name, tally in _by_operator(figure).items()}
    return {name: noticed for name, noticed in shares.items() if noticed < least}


def expectation_sentence(figure: ExpectationFigure, seed: int) -> str:
    """Return the figure as one sentence."""
    total = _sum(figure.tallies.values())
    weak = len(weak_operators(figure, TARGET))
    operators = len(_by_operator(figure))
    failing = f"; {len(figure.failing):,} cases fail unspoiled" if figure.failing else ""
    return (
        f"by expectation: {total.noticed:,} of {total.counted:,} spoiled expectations of "
        f"{figure.cases:,} cases are noticed ({_share(total):.2f}%), seed {seed}; "
        f"{total.permitted.total():,} more are permitted by the source of a rule; "
        f"{weak} of {operators} operators notice fewer than {TARGET:g}%{failing}"
    )


def expectation_table(figure: ExpectationFigure) -> list[list[str]]:
    """Return a row for each kind: its name, tried, permitted, noticed, share."""
    rows = []
    for kind in KINDS:
        total = _sum(tally for (_, k), tally in figure.tallies.items() if k == kind)
        if total.tried:
            counts = (total.tried, total.permitted.total(), total.noticed)
            rows.append([kind, *(f"{count:,}" for count in counts), f"{_share(total):.2f}%"])
    return rows


def permitted_lines(figure: ExpectationFigure) -> Iterator[str]:
    """Yield a line for each source that permits spoilings, with how many of which operators."""
    counts: dict[str, Counter[str]] = {}
    for (operator, _), tally in sorted(figure.tallies.items()):
        for source, count in tally.permitted.items():
            counts.setdefault(source, Counter())[operator] += count
    for source, operators in sorted(counts.items(), key=lambda item: -item[1].total()):
        named = ", ".join(f"{name} {count:,}" for name, count in operators.most_common())
        yield f"{operators.total():,} by {source}: {named}"


def expectation_lines(figure: ExpectationFigure) -> Iterator[str]:
    """Yield a line for each operator and kind with spoilings that nothing notices or permits."""
    for (operator, kind), tally in sorted(figure.tallies.items()):
        unnoticed = tally.counted - tally.noticed
        if unnoticed:
            yield (
                f"{kind}: {operator} notices {tally.noticed:,} of {tally.counted:,}; not in "
                f"{', '.join(tally.missed)}"
            )
    for case in figure.failing:
        yield f"fails as it is, so that nothing was spoiled: {case}"


def expectation_data(figure: ExpectationFigure, seed: int) -> dict[str, Any]:
    """Return the figure for JSON."""
    return {
        "seed": seed,
        "cases": figure.cases,
        "failing": figure.failing,
        "operators": [
            {
                "operator": name,
                "tried": tally.tried,
                "permitted": tally.permitted.total(),
                "noticed": tally.noticed,
                "share": _share(tally),
            }
            for name, tally in _by_operator(figure).items()
        ],
        "kinds": [
            {
                "operator": operator,
                "kind": kind,
                "tried": tally.tried,
                "noticed": tally.noticed,
                "permitted": dict(tally.permitted),
                "missed": tally.missed,
            }
            for (operator, kind), tally in sorted(figure.tallies.items())
        ],
    }


@dataclass(frozen=True, slots=True)
class _Expectations:
    """Spoiled expectations, and what cases notice of them."""

    figure: ExpectationFigure
    seed: int

    def sentences(self) -> Iterator[str]:
        """Yield the share that is noticed."""
        yield expectation_sentence(self.figure, self.seed)

    def table(self) -> Table | None:
        """Return a row for each kind."""
        rows = expectation_table(self.figure)
        return Table(EXPECTATION_HEADINGS, rows, EXPECTATION_HEADINGS[:1])

    def remarks(self) -> Iterator[str]:
        """Yield remarks: what the source of a rule permits, and what no case notices."""
        yield from permitted_lines(self.figure)
        yield from expectation_lines(self.figure)

    def markdown(self) -> list[str]:
        """Return the table, what the source of a rule permits, and what is not noticed."""
        rows = expectation_table(self.figure)
        lines = ["## By expectation", "", *markdown_table(EXPECTATION_HEADINGS, rows, "lr")]
        for heading, each in (
            ("What the source of a rule permits:", permitted_lines(self.figure)),
            ("What is not noticed:", expectation_lines(self.figure)),
        ):
            items = bullets(each)
            lines += ["", *([heading, "", *items] if items else [])]
        return [*lines, ""]

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON."""
        return {"expectations": expectation_data(self.figure, self.seed)}

    def complaints(self, name: str, least: float) -> list[str]:
        """Return the operators whose share is lower, and the cases that fail as they are."""
        return [
            f"by expectation: {operator} notices {noticed:.2f}%, less than {least:g}%"
            for operator, noticed in weak_operators(self.figure, least).items()
        ] + [f"by expectation: {case} fails as it is" for case in self.figure.failing]


@dataclass(frozen=True, slots=True)
class _Spoiling:
    """Measures what some cases notice of their own expectations, spoiled."""

    seed: int

    def __call__(self, plan: Sequence[PlannedCase], against: Against) -> ExpectationFigure:
        return measure_expectations(map(valid_case, plan), against, seed=self.seed)


def _measured(setting: Setting) -> _Expectations:
    cases = sampled(setting.plan, setting.sample, setting.seed)
    figure, _ = setting.measured(_Spoiling(setting.seed), ExpectationFigure(), cases)
    return _Expectations(figure, setting.seed)


EXPECTATIONS: Final = FigureKind(
    "expectations",
    _measured,
    """\
- By expectation: each output that a case states or that was recorded is spoiled likewise, while the
  backend returns what the reference computes; the case must fail. What the source of a rule permits
  is counted apart, with that source.""",
    "spoiled expectations",
)
