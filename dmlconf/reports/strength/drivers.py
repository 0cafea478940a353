"""Report the strength figure "by driver defect": which realistic mistakes of drivers are caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dmlconf.reports.strength.figure import Figure, FigureKind, Setting, too_low
from dmlconf.strength.drivers.catalogue import driver_defects
from dmlconf.strength.drivers.figure import (
    DefectResult,
    DriverFigure,
    Fate,
    caught_in_all,
    caught_in_any,
)
from dmlconf.strength.drivers.parallel import measure_drivers
from dmlconf.strength.tallies import share

__all__ = ["DRIVERS", "DriverDefects", "driver_data", "survivor_lines"]


@dataclass(frozen=True, slots=True)
class DriverDefects(Figure):
    """Driver defects, and which of them are caught."""

    heading: ClassVar[str] = "By driver defect"
    figure: DriverFigure

    @property
    def share(self) -> float:
        """The percentage of the defects that are caught in all of their operators with cases."""
        return _share(self.figure)

    def sentences(self) -> Iterator[str]:
        """Yield sentences on defects, on pairs of defect and operator, and on public reports."""
        figure = self.figure
        defects = figure.by_defect.values()
        every, some = sum(map(caught_in_all, defects)), sum(map(caught_in_any, defects))
        caught = sum(one.fate is Fate.CAUGHT for one in figure.pairs)
        explained = sum(bool(one.explanation) for one in figure.survivors)
        yield (
            f"by driver defect: {every:,} of {len(defects):,} caught in every operator "
            f"({self.share:.2f}%), {some:,} in at least one; "
            f"{caught:,} of {len(figure.pairs):,} pairs of defect and operator; "
            f"{explained:,} of {len(figure.survivors):,} surviving pairs explained"
        )
        if figure.few:
            yield f"{len(figure.few):,} pairs are noticed by one or two cases only"
        if figure.by_report:
            yield self.reported()

    def reported(self) -> str:
        """Return one sentence on the defects that were publicly reported of DirectML."""
        by_report = self.figure.by_report.items()
        reports = [pairs for report, pairs in by_report if report.product == "DirectML"]
        every, some = sum(map(caught_in_all, reports)), sum(map(caught_in_any, reports))
        return (
            f"of {len(reports)} public reports of wrong DirectML results, {every} are caught in "
            f"every form and {some} in at least one"
        )

    def lacks(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield the pairs of defect and operator that no case or few cases notice."""
        yield "What survives, and the case that is missing", survivor_lines(self.figure)
        yield "What fewer than three cases notice", self._few()

    def _few(self) -> Iterator[str]:
        for one in sorted(self.figure.few, key=lambda s: (s.operator, s.defect.name)):
            count = "one case notices" if one.tally.caught == 1 else "two cases notice"
            yield f"{one.operator}: {one.defect.name}: {count} it, of {one.tally.ran:,} that run it"

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON."""
        return {"drivers": driver_data(self.figure)}

    def complaints(self, name: str, least: float) -> list[str]:
        """Return one sentence if the share is below `least`."""
        return too_low("by driver defect", self.share, least)


def _share(figure: DriverFigure) -> float:
    defects = figure.by_defect.values()
    return share(sum(map(caught_in_all, defects)), len(defects))


def survivor_lines(figure: DriverFigure) -> Iterator[str]:
    """Yield a line for each surviving pair of defect and operator, with `DefectResult.missing`.

    Lines are sorted by fate, operator and defect.
    """
    order = list(Fate)
    for one in sorted(
        figure.survivors, key=lambda s: (order.index(s.fate), s.operator, s.defect.name)
    ):
        explanation = f"; explained: {one.explanation}" if one.explanation else ""
        yield f"{one.operator}: {one.defect.name}: {one.missing}{explanation}"


def driver_data(figure: DriverFigure) -> dict[str, Any]:
    """Return the figure for JSON."""
    fates = Counter(one.fate for one in figure.pairs)
    return {
        "defects": len(figure.by_defect),
        "caught_in_every_operator": sum(map(caught_in_all, figure.by_defect.values())),
        "caught_in_an_operator": sum(map(caught_in_any, figure.by_defect.values())),
        "share": _share(figure),
        "cases_tried": figure.cases_tried,
        "pairs_ran": sum(one.tally.ran for one in figure.pairs),
        "pairs_caught": sum(one.tally.caught for one in figure.pairs),
        "fates": {str(fate): fates[fate] for fate in Fate},
        "pairs_of_few_cases": len(figure.few) if figure.tells_few else None,
        "reports": [
            {
                "name": report.name,
                "product": report.product,
                "url": report.url,
                "title": report.title,
                "in_every_variant": caught_in_all(pairs),
                "in_a_variant": caught_in_any(pairs),
            }
            for report, pairs in figure.by_report.items()
        ],
        "subjects": [_pair_data(one) for one in figure.pairs],
    }


def _pair_data(one: DefectResult) -> dict[str, Any]:
    report = one.defect.report
    return {
        "defect": one.defect.name,
        "operator": one.operator,
        "seen": report.url if report else f"plausible: {one.defect.plausible}",
        "fate": str(one.fate),
        "cases_met": len(one.met.cases),
        "cases_tried": one.tally.tried,
        "cases_ran": one.tally.ran,
        "cases_hidden": one.tally.hidden,
        "cases_caught": one.tally.caught,
        "missing": one.missing or None,
        "explanation": one.explanation or None,
    }


def _measured(setting: Setting) -> DriverDefects:
    with setting.progress(len(setting.plan)) as advance:
        applicability, noticed = measure_drivers(
            setting.plan, setting.suite_paths, setting.jobs, setting.sample, setting.seed, advance
        )
    return DriverDefects(DriverFigure.of(driver_defects(), applicability, noticed, setting.sample))


DRIVERS: Final = FigureKind(
    "drivers",
    _measured,
    """\
- By driver defect: a catalogue of what drivers do wrong, `dmlconf/strength/drivers/defects/`, with
  the public report that each is rebuilt from, or why it is plausible. Each is tried on the cases
  that meet its conditions, and caught if it is in each of its operators that has cases.""",
    "driver defects",
    usual=True,
)
