"""The figure of defects of size as lines and as data: which of them layers of networks notice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.reports.markdown_text import table as markdown_table
from dmlconf.reports.strength.drivers import driver_data, driver_lines
from dmlconf.reports.strength.figure import FigureKind, Setting, Table, bullets
from dmlconf.strength.drivers.catalogue import size_defects
from dmlconf.strength.drivers.figure import DefectResult, DriverFigure, Fate
from dmlconf.strength.drivers.parallel import measure_drivers
from dmlconf.strength.tallies import share

__all__ = [
    "SIZES",
    "SIZE_HEADINGS",
    "size_data",
    "size_lines",
    "size_sentence",
    "size_share",
    "size_table",
]

SIZE_HEADINGS: Final = ("Defect", "Operators", "Cases tried", "Hidden", "Not noticed", "Share")

_NOT_TRIED: Final = (Fate.UNMET, Fate.NO_EFFECT)
"""A defect that no case can have, or that does not apply to those tried, is left out."""


def size_share(figure: DriverFigure) -> float:
    """Return the percentage noticed of the cases in which a defect changes an output."""
    caught, ran = _counts(figure.pairs)
    return share(caught, ran)


def size_sentence(figure: DriverFigure) -> str:
    """Return the figure as one sentence."""
    tried = [pair for pair in figure.pairs if pair.fate not in _NOT_TRIED]
    pairs = sum(pair.fate is Fate.CAUGHT for pair in tried)
    caught, ran = _counts(tried)
    return (
        f"by defect of size: {pairs:,} of {len(tried):,} pairs of defect and operator "
        f"({share(pairs, len(tried)):.2f}%), by {caught:,} of {ran:,} cases "
        f"({share(caught, ran):.2f}%), in layers of networks"
    )


def size_table(figure: DriverFigure) -> Iterator[tuple[str, ...]]:
    """Yield a row for each defect, as `SIZE_HEADINGS` has its columns."""
    for name, pairs in figure.by_defect.items():
        tried = [pair for pair in pairs if pair.fate not in _NOT_TRIED]
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


def size_lines(figure: DriverFigure) -> Iterator[str]:
    """Yield a line for each pair that survives, and how many were not tried."""
    survivors = [pair for pair in figure.pairs if pair.fate not in _NOT_TRIED]
    yield from driver_lines(DriverFigure(survivors, figure.cases_tried))
    fates = Counter(pair.fate for pair in figure.pairs)
    yield (
        f"{fates[Fate.UNMET]:,} pairs have no case of that size, {fates[Fate.NO_EFFECT]:,} change "
        "no output"
    )


def size_data(figure: DriverFigure) -> dict[str, Any]:
    """Return the figure for JSON."""
    return {**driver_data(figure), "share": size_share(figure)}


def _counts(pairs: Sequence[DefectResult]) -> tuple[int, int]:
    return (
        sum(pair.tally.caught for pair in pairs),
        sum(pair.tally.ran for pair in pairs),
    )


@dataclass(frozen=True, slots=True)
class _SizeDefects:
    """Defects of size, and which of them are caught."""

    figure: DriverFigure

    def sentences(self) -> Iterator[str]:
        """Yield the share that is caught."""
        yield size_sentence(self.figure)

    def table(self) -> Table | None:
        """Return none."""
        return None

    def remarks(self) -> Iterator[str]:
        """Yield a line for each pair that survives."""
        yield from size_lines(self.figure)

    def markdown(self) -> list[str]:
        """Return the table, and the pairs that survive."""
        return [
            "## By defect of size",
            "",
            *markdown_table(SIZE_HEADINGS, size_table(self.figure), "lr"),
            "",
            "What survives in all cases of an operator that were tried:",
            "",
            *bullets(self.remarks()),
            "",
        ]

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON."""
        return {"sizes": size_data(self.figure)}

    def complaints(self, name: str, least: float) -> list[str]:
        """Return the share if it is lower."""
        caught = size_share(self.figure)
        return [f"by defect of size: {caught:.2f}%, less than {least:g}%"] if caught < least else []


def _measured(setting: Setting) -> _SizeDefects:
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
    return _SizeDefects(DriverFigure.of(defects, applicability, noticed))


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
