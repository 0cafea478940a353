"""Report the strength figure "by perturbation": which small changes of outputs cases notice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dmlconf.reports.strength.figure import Figure, FigureKind, Table
from dmlconf.strength.perturbations import KINDS, PerturbationTally, exceptional
from dmlconf.strength.tallies import share

__all__ = ["PERTURBATIONS", "KindShare", "Perturbations", "kind_shares", "weak_kinds"]

TARGET: Final = 99.0
"""What percentage of perturbed outputs should fail, unless less suffices for a kind."""

_HEADINGS: Final = ("Perturbation", "Operators", "Tried", "Caught", "Share", "Target")

_ALL: Final = "all operators"

_Perturbed = Mapping[tuple[str, str], PerturbationTally]


@dataclass(frozen=True, slots=True)
class KindShare:
    """How many perturbations of one kind the cases notice.

    Attributes:
        operators: which operators are counted, in words.
        tried: how many outputs were perturbed.
        caught: how many of them fail.
        target: what percentage should fail.
    """

    kind: str
    operators: str
    tried: int
    caught: int
    target: float

    @property
    def share(self) -> float:
        """What percentage fails."""
        return share(self.caught, self.tried)


def kind_shares(perturbed: _Perturbed) -> list[KindShare]:
    """Return the share of each kind that was tried.

    For a kind with excused operators, the share of all other operators follows.
    """
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
    """Return the shares that are below `least`, or below their own target if that is lower."""
    return [one for one in kind_shares(perturbed) if one.share < min(least, one.target)]


@dataclass(frozen=True, slots=True)
class Perturbations(Figure):
    """Perturbed outputs, and how many of them cases notice."""

    heading: ClassVar[str] = "By perturbation"
    perturbed: _Perturbed
    seed: int

    def sentences(self) -> Iterator[str]:
        """Yield the share that is noticed, and how many kinds are below their target."""
        shares = kind_shares(self.perturbed)
        # A kind with excused operators may have two shares.
        every = [one for one in shares if one.operators == _ALL]
        tried, caught = sum(one.tried for one in every), sum(one.caught for one in every)
        below = len({one.kind for one in shares if one.share < one.target})
        yield (
            f"by perturbation: {caught:,} of {tried:,} perturbed outputs fail "
            f"({share(caught, tried):.2f}%), seed {self.seed}; {below} of {len(every)} kinds "
            "below target"
        )

    def table(self) -> Table | None:
        """Return a table with a row for each of the `kind_shares`."""
        rows = [
            (
                one.kind,
                one.operators,
                f"{one.tried:,}",
                f"{one.caught:,}",
                f"{one.share:.2f}%",
                f"{one.target:g}%",
            )
            for one in kind_shares(self.perturbed)
        ]
        return Table(_HEADINGS, rows, _HEADINGS[:2])

    def lacks(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield one list, of the operators and kinds with a share below `TARGET`."""
        yield "Operators below target", self._below_target()

    def _below_target(self) -> Iterator[str]:
        for (kind, operator), tally in sorted(self.perturbed.items()):
            lower = exceptional().get(kind)
            excuse = f" ({lower.reason})" if lower and operator in lower.operators else ""
            if share(tally.caught, tally.tried) < TARGET:
                figure = f"{tally.caught:,} of {tally.tried:,}{excuse}"
                yield f"{kind}: {operator} notices {figure}; not in {', '.join(tally.missed)}"

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON."""
        return {
            "perturbations": {
                "seed": self.seed,
                "kinds": [
                    {
                        "kind": one.kind,
                        "operators": one.operators,
                        "tried": one.tried,
                        "caught": one.caught,
                        "share": one.share,
                        "target": one.target,
                    }
                    for one in kind_shares(self.perturbed)
                ],
                "operators": [
                    {
                        "kind": kind,
                        "operator": operator,
                        "tried": tally.tried,
                        "caught": tally.caught,
                        "missed": tally.missed,
                    }
                    for (kind, operator), tally in sorted(self.perturbed.items())
                ],
            }
        }

    def complaints(self, name: str, least: float) -> list[str]:
        """Return a sentence for each of the `weak_kinds`."""
        return [
            f"{one.kind} ({one.operators}): {one.share:.2f}% noticed, less than "
            f"{min(least, one.target):g}%"
            for one in weak_kinds(self.perturbed, least)
        ]


PERTURBATIONS: Final = FigureKind(
    "perturbations",
    lambda setting: Perturbations(setting.injected.perturbed, setting.seed),
    """\
- By perturbation: in each output of each case an element is changed, such as by 1%, the largest is
  zeroed or two are swapped; that very case must notice it. Elements that the documentation leaves
  undefined are left alone; elements of which a rule permits any value count as not noticed.""",
    "perturbations",
    usual=True,
)
