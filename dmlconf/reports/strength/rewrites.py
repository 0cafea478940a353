"""Report the strength figure "by rewrite": which rewrites and conditions are tested."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dmlconf.cases.loading.rewrites import rewrites
from dmlconf.reports.strength.figure import Figure, FigureKind, Setting, Table, too_low
from dmlconf.strength.rewrite_figure import RIGHT, RewriteFigure, measure_rewrites
from dmlconf.strength.tallies import share

__all__ = ["REWRITES", "Rewrites"]

_HEADINGS: Final = ("Rewrite", "Kind", "Cases", "Right", "Conditions", "Proven")


def _needed() -> Iterator[tuple[str, str]]:
    """Yield the pairs to prove: each rewrite with `RIGHT`, and with each of its conditions.

    `RIGHT` stands for graphs in which the rewrite is right.
    """
    for name, rewrite in rewrites().items():
        yield name, RIGHT
        for condition in rewrite.conditions:
            yield name, condition


@dataclass(frozen=True, slots=True)
class Rewrites(Figure):
    """Rewrites of graph compilers, and which of them the suite's graphs test."""

    heading: ClassVar[str] = "By rewrite"
    figure: RewriteFigure

    @property
    def share(self) -> float:
        """The percentage of the pairs of `_needed` that the cases prove."""
        needed = list(_needed())
        return share(self._proven(needed), len(needed))

    def _proven(self, keys: Iterable[tuple[str, str]]) -> int:
        return sum(self.figure.proves(*key) for key in keys)

    def sentences(self) -> Iterator[str]:
        """Yield the shares of rewrites and of conditions that are proven."""
        right = [key for key in _needed() if not key[1]]
        conditions = [key for key in _needed() if key[1]]
        yield (
            f"by rewrite: {self._proven(right):,} of {len(right):,} rewrites have a graph in which "
            f"they are right, and {self._proven(conditions):,} of {len(conditions):,} conditions a "
            f"graph that fails without them ({self.share:.2f}%), in "
            f"{sum(self.figure.cases.values()):,} graphs"
        )

    def table(self) -> Table | None:
        """Return a table with a row for each rewrite."""
        return Table(_HEADINGS, self._rows(), ("Rewrite", "Kind", "Right"))

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for name, rewrite in rewrites().items():
            keys = [(name, condition) for condition in (RIGHT, *rewrite.conditions)]
            right, *conditions = (self.figure.proves(*key) for key in keys)
            yield (
                name,
                rewrite.kind,
                f"{sum(self.figure.cases.get(key, 0) for key in keys):,}",
                "yes" if right else "no",
                f"{len(conditions):,}",
                f"{sum(conditions):,}",
            )

    def lacks(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield one list: the cases that prove nothing, and what no case tests."""
        yield "What is missing", self._missing()

    def _missing(self) -> Iterator[str]:
        for key in _needed():
            name, condition = key
            what = f"{name}, without {condition}" if condition else f"{name}, where it is right"
            if key not in self.figure.cases:
                yield f"no case: {what}"
            unproven = self.figure.unproven.get(key, ())
            yield from (f"proves nothing: {what}: {line}" for line in unproven)

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON."""
        return {
            "rewrites": {
                "cases": sum(self.figure.cases.values()),
                "share": self.share,
                "rewrites": [
                    {
                        "name": name,
                        "kind": rewrite.kind,
                        "right": self._data(name, RIGHT),
                        "conditions": {each: self._data(name, each) for each in rewrite.conditions},
                    }
                    for name, rewrite in rewrites().items()
                ],
            }
        }

    def _data(self, name: str, condition: str) -> dict[str, Any]:
        key = name, condition
        return {
            "cases": self.figure.cases.get(key, 0),
            "proven": self.figure.proves(*key),
            "unproven": self.figure.unproven.get(key, []),
        }

    def complaints(self, name: str, least: float) -> list[str]:
        """Return the share and what is missing, if the share is below `least`."""
        complaints = too_low("by rewrite", self.share, least)
        return [*complaints, *self._missing()] if complaints else []


def _measured(setting: Setting) -> Rewrites:
    cases = [case for case in setting.plan if "rewrite" in case.template.data]
    figure, _ = setting.measured(measure_rewrites, RewriteFigure(), cases)
    return Rewrites(figure)


REWRITES: Final = FigureKind(
    "rewrites",
    _measured,
    """\
- By rewrite: the rewrites of graph compilers in `schemas/rewrites.yaml`, with the conditions under
  which each is right. Each rewrite needs graphs whose rewritten forms all pass, and each condition
  graphs that break it and whose rewritten forms all fail.""",
    "rewrites of graph compilers",
    graphs_only=True,
    takes_all=True,
)
