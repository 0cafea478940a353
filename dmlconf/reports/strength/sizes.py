"""Report the strength figure "by defect of size": defects that show in large layers only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dmlconf.reports.strength.drivers import driver_data, survivor_lines
from dmlconf.reports.strength.figure import Figure, FigureKind, Setting, Table, too_low
from dmlconf.strength.drivers.catalogue import size_defects
from dmlconf.strength.drivers.figure import DefectResult, DriverFigure, Fate
from dmlconf.strength.drivers.parallel import measure_drivers
from dmlconf.strength.tallies import share

__all__ = ["SIZES", "SizeDefects"]

_HEADINGS: Final = ("Defect", "Operators", "Cases that run it", "Hidden", "Not noticed", "Share")

_LEFT_OUT: Final = (Fate.UNMET, Fate.NO_EFFECT)
"""The fates of pairs of defect and operator that are left out."""


@dataclass(frozen=True, slots=True)
class SizeDefects(Figure):
    """Defects of size, and which of them are caught."""

    heading: ClassVar[str] = "By defect of size"
    figure: DriverFigure

    @property
    def share(self) -> float:
        """Of all pairs of a defect and a case that runs its code, the percentage that is caught."""
        return share(*_counts(self.figure.pairs))

    def sentences(self) -> Iterator[str]:
        """Yield the caught shares of the pairs of defect and operator, and of defect and case."""
        tried = _remaining(self.figure.pairs)
        pairs = sum(pair.fate is Fate.CAUGHT for pair in tried)
        caught, ran = _counts(tried)
        yield (
            f"by defect of size: {pairs:,} of {len(tried):,} pairs of defect and operator "
            f"({share(pairs, len(tried)):.2f}%), and {caught:,} of {ran:,} "
            f"pairs of defect and case ({share(caught, ran):.2f}%), in layers of networks"
        )

    def table(self) -> Table | None:
        """Return a table with a row for each defect, without the pairs that are left out."""
        return Table(_HEADINGS, self._rows(), _HEADINGS[:1], on_pages_only=True)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for name, pairs in self.figure.by_defect.items():
            tried = _remaining(pairs)
            caught, ran = _counts(tried)
            hidden = sum(pair.tally.hidden for pair in tried)
            yield (
                name,
                f"{len(tried):,}",
                f"{ran:,}",
                f"{hidden:,}",
                f"{ran - hidden - caught:,}",
                f"{share(caught, ran):.2f}%" if ran else "-",
            )

    def lacks(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield the pairs of defect and operator that survive, and how many pairs are left out."""
        yield "What survives in all cases of an operator that were tried", self._survivors()

    def _survivors(self) -> Iterator[str]:
        yield from survivor_lines(
            DriverFigure(_remaining(self.figure.pairs), self.figure.cases_tried)
        )
        fates = Counter(pair.fate for pair in self.figure.pairs)
        yield (
            f"{fates[Fate.UNMET]:,} pairs have no case of that size, "
            f"{fates[Fate.NO_EFFECT]:,} change no output"
        )

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON."""
        return {"sizes": {**driver_data(self.figure), "share": self.share}}

    def complaints(self, name: str, least: float) -> list[str]:
        """Return one sentence if the share is below `least`."""
        return too_low("by defect of size", self.share, least)


def _remaining(pairs: Sequence[DefectResult]) -> list[DefectResult]:
    return [pair for pair in pairs if pair.fate not in _LEFT_OUT]


def _counts(pairs: Sequence[DefectResult]) -> tuple[int, int]:
    """Return how many cases catch a defect and how many run its code, summed over the pairs."""
    return sum(pair.tally.caught for pair in pairs), sum(pair.tally.ran for pair in pairs)


def _measured(setting: Setting) -> SizeDefects:
    defects = size_defects()
    with setting.progress(len(setting.models)) as advance:
        applicability, noticed = measure_drivers(
            setting.models,
            setting.suite_paths,
            setting.jobs,
            setting.sample,
            setting.seed,
            advance,
            defects,
        )
    return SizeDefects(DriverFigure.of(defects, applicability, noticed, setting.sample))


SIZES: Final = FigureKind(
    "sizes",
    _measured,
    """\
- By defect of size: a catalogue of what kernels do wrong at the sizes of real layers only,
  `dmlconf/strength/drivers/sizes/`: tiles at the edge, remainders, sums in FLOAT16, workgroups,
  strides, indices, owned weights. Each is tried on cases with the tag `model`, and each case in
  which it changes an output must notice it.""",
    "defects of size",
)
