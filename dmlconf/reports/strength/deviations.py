"""Report the strength figure "by deviation": how many failing perturbations a target excuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from dmlconf.reports.strength.figure import Figure, FigureKind, Setting, Table, too_low
from dmlconf.strength.deviation_figure import DeviationFigure, measure_deviations
from dmlconf.strength.sampling import sampled
from dmlconf.strength.tallies import share
from dmlconf.translation.tables import TARGETS, table

__all__ = ["DEVIATIONS"]

_HEADINGS: Final = ("Target", "Deviation", "Excuses")


@dataclass(frozen=True, slots=True)
class _Deviations(Figure):
    heading: ClassVar[str] = "By deviation"
    figure: DeviationFigure

    def _counts(self, target: str) -> tuple[int, int]:
        """Return how many perturbations fail by the target, too, and how many by DirectML.

        Cases that the target cannot express are left out.
        """
        failing = sum(n for (of, _), n in self.figure.failing.items() if of == target)
        excused = sum(n for (of, _), n in self.figure.excused.items() if of == target)
        return failing - excused, failing

    def sentences(self) -> Iterator[str]:
        for target in TARGETS:
            left, failing = self._counts(target)
            yield (
                f"by deviation of {table(target).title}: {left:,} of {failing:,} perturbations "
                f"that DirectML's documentation does not permit fail by it, too "
                f"({share(left, failing):.2f}%)"
            )

    def _rows(self) -> Iterator[tuple[str, ...]]:
        counts = sorted(self.figure.by_deviation.items(), key=lambda item: (-item[1], item[0]))
        for (target, name), count in counts:
            yield table(target).title, name, f"{count:,}"

    def table(self) -> Table | None:
        return Table(_HEADINGS, self._rows(), _HEADINGS[:2])

    def remarks(self) -> Iterator[str]:
        for (target, operator), failing in sorted(self.figure.failing.items()):
            excused = self.figure.excused[target, operator]
            if 2 * excused > failing:
                yield f"{table(target).title} excuses {excused:,} of {failing:,} of {operator}"

    def data(self) -> Mapping[str, Any]:
        return {"deviations": {target: self._data(target) for target in TARGETS}}

    def _data(self, target: str) -> Mapping[str, Any]:
        left, failing = self._counts(target)
        by_deviation = self.figure.by_deviation.items()
        return {
            "failing": failing,
            "excused": failing - left,
            "share": share(left, failing),
            "by_deviation": {name: n for (of, name), n in sorted(by_deviation) if of == target},
        }

    def complaints(self, name: str, least: float) -> list[str]:
        shares = {target: share(*self._counts(target)) for target in TARGETS}
        return [
            line
            for target, left in shares.items()
            for line in too_low(f"by deviation of {table(target).title}", left, least)
        ]


def _measured(setting: Setting) -> _Deviations:
    cases = sampled(setting.plan, setting.sample, setting.seed)
    measure = partial(measure_deviations, seed=setting.seed)
    figure, _ = setting.measured(measure, DeviationFigure(), cases)
    return _Deviations(figure)


DEVIATIONS: Final = FigureKind(
    "deviations",
    _measured,
    """\
- By deviation: what it costs that ONNX and WebNN promise less than DirectML documents
  ([targets](targets.md)). Of the perturbations that fail, those are counted that a target excuses,
  in cases that it can express.""",
    "deviations of targets",
)
