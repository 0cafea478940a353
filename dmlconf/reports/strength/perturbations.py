"""The figure by perturbation: per kind, and per operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.reports.markdown_text import table as markdown_table
from dmlconf.reports.strength.figure import FigureKind, Table, bullets
from dmlconf.strength.perturbations import KINDS, PerturbationTally, exceptional
from dmlconf.strength.tallies import share

__all__ = [
    "PERTURBATIONS",
    "KindShare",
    "kind_shares",
    "perturbation_data",
    "perturbation_lines",
    "perturbation_sentence",
    "perturbation_table",
    "weak_kinds",
]

TARGET: Final = 99.0

_HEADINGS: Final = ("Perturbation", "Operators", "Tried", "Caught", "Share", "Target")

_ALL: Final = "all operators"

_Perturbed = Mapping[tuple[str, str], PerturbationTally]


@dataclass(frozen=True, slots=True)
class KindShare:
    """One kind of perturbation.

    Attributes:
        kind: its name.
        operators: those included: all, or those that have a lower target.
        tried: how many outputs were perturbed.
        caught: how many of them fail their case.
        target: what share should fail, in percent.
    """

    kind: str
    operators: str
    tried: int
    caught: int
    target: float

    @property
    def share(self) -> float:
        """What share fails, in percent."""
        return share(self.caught, self.tried)


def kind_shares(perturbed: _Perturbed) -> list[KindShare]:
    """Return the share of each kind; for one with a lower target, also without its operators."""
    shares = []
    for kind in KINDS:
        lower = exceptional().get(kind)
        named = lower.operators if lower else frozenset()
        everything = _sum(perturbed, kind, frozenset())
        shares.append(KindShare(kind, _ALL, *everything, lower.target if lower else TARGET))
        if named:
            others = _sum(perturbed, kind, named)
            shares.append(
                KindShare(kind, f"{_ALL} but {len(named)} with an excuse", *others, TARGET)
            )
    return [one for one in shares if one.tried]


def _sum(perturbed: _Perturbed, kind: str, without: frozenset[str]) -> tuple[int, int]:
    tallies = [t for (k, operator), t in perturbed.items() if k == kind and operator not in without]
    return sum(t.tried for t in tallies), sum(t.caught for t in tallies)


def weak_kinds(perturbed: _Perturbed, least: float) -> list[KindShare]:
    """Return the kinds whose share is below the target, or below their lower target."""
    return [one for one in kind_shares(perturbed) if one.share < min(least, one.target)]


def perturbation_sentence(perturbed: _Perturbed, seed: int) -> str:
    """Return the figure as one sentence."""
    shares = kind_shares(perturbed)
    tried, caught = sum(one.tried for one in shares), sum(one.caught for one in shares)
    below = sum(one.share < one.target for one in shares)
    return (
        f"by perturbation: {caught:,} of {tried:,} perturbed outputs fail "
        f"({share(caught, tried):.2f}%), seed {seed}; {below} of {len(shares)} kinds below target"
    )


def perturbation_table(perturbed: _Perturbed) -> list[list[str]]:
    """Return a row for each kind: its name, of which operators, tried, caught, share, target."""
    return [
        [
            one.kind,
            one.operators,
            f"{one.tried:,}",
            f"{one.caught:,}",
            f"{one.share:.2f}%",
            f"{one.target:g}%",
        ]
        for one in kind_shares(perturbed)
    ]


def perturbation_lines(perturbed: _Perturbed) -> Iterator[str]:
    """Yield a line for each operator with a kind below its target."""
    for (kind, operator), tally in sorted(perturbed.items()):
        lower = exceptional().get(kind)
        excuse = f" ({lower.reason})" if lower and operator in lower.operators else ""
        if share(tally.caught, tally.tried) < TARGET:
            figure = f"{tally.caught:,} of {tally.tried:,}{excuse}"
            yield f"{kind}: {operator} notices {figure}; not in {', '.join(tally.missed)}"


def perturbation_data(perturbed: _Perturbed, seed: int) -> dict[str, Any]:
    """Return the figure for JSON."""
    return {
        "seed": seed,
        "kinds": [
            {
                "kind": one.kind,
                "operators": one.operators,
                "tried": one.tried,
                "caught": one.caught,
                "share": one.share,
                "target": one.target,
            }
            for one in kind_shares(perturbed)
        ],
        "operators": [
            {
                "kind": kind,
                "operator": operator,
                "tried": tally.tried,
                "caught": tally.caught,
                "missed": tally.missed,
            }
            for (kind, operator), tally in sorted(perturbed.items())
        ],
    }


@dataclass(frozen=True, slots=True)
class _PerturbationFigure:
    """Perturbed elements, and what cases notice of them."""

    perturbed: _Perturbed
    seed: int

    def sentences(self) -> Iterator[str]:
        """Yield the share that is noticed."""
        yield perturbation_sentence(self.perturbed, self.seed)

    def table(self) -> Table | None:
        """Return a row for each kind."""
        return Table(_HEADINGS, perturbation_table(self.perturbed), _HEADINGS[:2])

    def remarks(self) -> Iterator[str]:
        """Yield a line for each operator below its target."""
        yield from perturbation_lines(self.perturbed)

    def markdown(self) -> list[str]:
        """Return the table, and the operators below their target."""
        return [
            "## By perturbation",
            "",
            *markdown_table(_HEADINGS, perturbation_table(self.perturbed), "llr"),
            "",
            "Operators below target:",
            "",
            *bullets(self.remarks()),
            "",
        ]

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON."""
        return {"perturbations": perturbation_data(self.perturbed, self.seed)}

    def complaints(self, name: str, least: float) -> list[str]:
        """Return the kinds whose share is lower, or below a lower target of their own."""
        return [
            f"{one.kind} ({one.operators}): {one.share:.2f}% noticed, less than "
            f"{min(least, one.target):g}%"
            for one in weak_kinds(self.perturbed, least)
        ]


PERTURBATIONS: Final = FigureKind(
    "perturbations",
    lambda setting: _PerturbationFigure(setting.injected.perturbed, setting.seed),
    """\
- By perturbation: a random element of each output of each case is changed a
  little; that very case must notice it. Elements that the documentation leaves undefined are left
  alone; elements of which a rule permits any value count as not noticed.""",
    "perturbations",
    usual=True,
)
