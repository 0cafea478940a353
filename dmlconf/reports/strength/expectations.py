"""Report the strength figure "by expectation": which changed expectations make their cases fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from dmlconf.reports.strength.figure import Figure, FigureKind, Setting, Table, of_cases
from dmlconf.strength.expectations import ExpectationFigure, ExpectationTally, measure_expectations
from dmlconf.strength.perturbations import KINDS
from dmlconf.strength.sampling import sampled
from dmlconf.strength.tallies import share

__all__ = [
    "EXPECTATIONS",
    "SpoiledExpectations",
    "permitted_lines",
    "unnoticed_lines",
    "weak_operators",
]

_HEADINGS: Final = ("Spoiled", "Tried", "Permitted", "Noticed", "Share")

TARGET: Final = 99.0
"""What percentage of the changes of an operator's expectations should be noticed."""

_FURTHER: Final = 9
"""If an operator's sample misses `TARGET`, this many times as many cases are tried in addition."""


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
    """Return the operators whose cases notice less than `least` percent, with percentages."""
    shares = {name: _share(tally) for name, tally in _by_operator(figure).items()}
    return {name: noticed for name, noticed in shares.items() if noticed < least}


@dataclass(frozen=True, slots=True)
class SpoiledExpectations(Figure):
    """How many changes of expectations the cases notice."""

    heading: ClassVar[str] = "By expectation"
    figure: ExpectationFigure
    seed: int

    def sentences(self) -> Iterator[str]:
        """Yield the share that is noticed, and how many operators notice less than `TARGET`."""
        figure = self.figure
        total = _sum(figure.tallies.values())
        weak = len(weak_operators(figure, TARGET))
        operators = len(_by_operator(figure))
        failing = f"; {len(figure.failing):,} cases fail unspoiled" if figure.failing else ""
        yield (
            f"by expectation: {total.noticed:,} of {total.counted:,} spoiled expectations of "
            f"{figure.cases:,} cases are noticed ({_share(total):.2f}%), seed {self.seed}; "
            f"{total.permitted.total():,} more are permitted by the source of a rule; "
            f"{weak} of {operators} operators notice fewer than {TARGET:g}%{failing}"
        )

    def table(self) -> Table | None:
        """Return a table with a row for each kind of change that was tried."""
        return Table(_HEADINGS, self._rows(), _HEADINGS[:1])

    def _rows(self) -> Iterator[list[str]]:
        for kind in KINDS:
            total = _sum(tally for (_, k), tally in self.figure.tallies.items() if k == kind)
            if total.tried:
                counts = (total.tried, total.permitted.total(), total.noticed)
                yield [kind, *(f"{count:,}" for count in counts), f"{_share(total):.2f}%"]

    def lacks(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield the permitted changes, the unnoticed ones, and the cases that fail unchanged."""
        yield "What the source of a rule permits", permitted_lines(self.figure)
        yield "What is not noticed", unnoticed_lines(self.figure)

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON."""
        return {
            "expectations": {
                "seed": self.seed,
                "cases": self.figure.cases,
                "failing": self.figure.failing,
                "operators": [
                    {
                        "operator": name,
                        "tried": tally.tried,
                        "permitted": tally.permitted.total(),
                        "noticed": tally.noticed,
                        "share": _share(tally),
                    }
                    for name, tally in _by_operator(self.figure).items()
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
                    for (operator, kind), tally in sorted(self.figure.tallies.items())
                ],
            }
        }

    def complaints(self, name: str, least: float) -> list[str]:
        """Return the operators whose share is below `least`, and the cases that fail unchanged."""
        return [
            f"by expectation: {operator} notices {noticed:.2f}%, less than {least:g}%"
            for operator, noticed in weak_operators(self.figure, least).items()
        ] + [f"by expectation: {case} fails as it is" for case in self.figure.failing]


def permitted_lines(figure: ExpectationFigure) -> Iterator[str]:
    """Yield a line for each source of rules: how many changes of which operators it permits."""
    counts: dict[str, Counter[str]] = {}
    for (operator, _), tally in sorted(figure.tallies.items()):
        for source, count in tally.permitted.items():
            counts.setdefault(source, Counter())[operator] += count
    for source, operators in sorted(counts.items(), key=lambda item: -item[1].total()):
        named = ", ".join(f"{name} {count:,}" for name, count in operators.most_common())
        yield f"{operators.total():,} by {source}: {named}"


def unnoticed_lines(figure: ExpectationFigure) -> Iterator[str]:
    """Yield the operators and kinds with unnoticed changes, and the cases that fail unchanged."""
    for (operator, kind), tally in sorted(figure.tallies.items()):
        unnoticed = tally.counted - tally.noticed
        if unnoticed:
            yield (
                f"{kind}: {operator} notices {tally.noticed:,} of {tally.counted:,}; not in "
                f"{', '.join(tally.missed)}"
            )
    for case in figure.failing:
        yield f"fails as it is, so that nothing was spoiled: {case}"


def _measured(setting: Setting) -> SpoiledExpectations:
    cases = sampled(setting.plan, setting.sample, setting.seed)
    measure = partial(of_cases, measure_expectations, seed=setting.seed)
    figure, _ = setting.measured(measure, ExpectationFigure(), cases)
    if setting.sample is not None:
        # In a small sample, a single unnoticed change is more than a percent.
        weak = weak_operators(figure, TARGET)
        taken = {case.identifier for case in cases}
        others = [
            case
            for case in setting.plan
            if case.template.operator_name in weak and case.identifier not in taken
        ]
        more = sampled(others, setting.sample * _FURTHER, setting.seed)
        if more:
            figure, _ = setting.measured(measure, figure, more)
    return SpoiledExpectations(figure, setting.seed)


EXPECTATIONS: Final = FigureKind(
    "expectations",
    _measured,
    """\
- By expectation: each output that a case states or that was recorded is perturbed, while the
  backend returns what the reference computes; the case must fail. What the source of a rule permits
  is counted apart, with that source.""",
    "spoiled expectations",
)
