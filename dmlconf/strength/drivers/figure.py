"""Which driver defects a suite catches, and which cases are missing to catch the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dmlconf.documents.wording import counted
from dmlconf.strength.drivers.applicability import Applicability, Met, OperatorDefect
from dmlconf.strength.drivers.catalogue import BugReport, DriverDefect
from dmlconf.strength.drivers.measure import DriverStrength, DriverTally

__all__ = [
    "FEW",
    "DefectResult",
    "DriverFigure",
    "Fate",
    "caught_in_all",
    "caught_in_any",
    "tells_few",
]

FEW: Final = 3
"""Reports name the defects that fewer cases notice."""


def tells_few(sample: int | None) -> bool:
    """Return whether a sample shows which defects fewer than `FEW` cases notice.

    Args:
        sample: the most cases of each pair of defect and operator; None for all.
    """
    return sample is None or sample >= FEW


class Fate(StrEnum):
    """Whether the suite caught a driver defect in one operator, and if not, why."""

    CAUGHT = "caught"
    UNMET = "no case meets its conditions"
    NO_EFFECT = "changes no output"
    HIDDEN = "hidden by the data"
    UNNOTICED = "not noticed"


@dataclass(frozen=True, slots=True)
class DefectResult:
    """What the suite's cases of one operator show about a driver defect."""

    defect: DriverDefect
    operator: str
    met: Met
    tally: DriverTally

    @property
    def fate(self) -> Fate:
        """Whether a case caught the defect, and if none did, why."""
        if self.tally.caught:
            return Fate.CAUGHT
        if not self.met.cases:
            return Fate.UNMET
        if not self.tally.ran:
            return Fate.NO_EFFECT
        return Fate.HIDDEN if self.tally.hidden == self.tally.ran else Fate.UNNOTICED

    @property
    def explanation(self) -> str:
        """Why no case catches the defect, by its entry; may be empty."""
        return self.defect.survives.get(self.operator, "")

    @property
    def missing(self) -> str:
        """What keeps the suite from catching the defect, in words; empty if a case catches it."""
        having = _having(self.defect, self.operator)
        count = counted(len(self.met.cases), "case")
        if self.fate is Fate.UNMET:
            by_condition = zip(self.defect.conditions, self.met.single, strict=True)
            unmet = [one.text for one, cases in by_condition if not cases]
            if unmet:
                return f"no case of {self.operator} has {' or '.join(unmet)}"
            texts = [one.text for one in self.defect.conditions]
            return f"no case of {self.operator} has all at once: {', '.join(texts)}"
        if self.fate is Fate.NO_EFFECT and not self.tally.tried:
            return f"{count} of {having}, and none passes with the right outputs"
        if self.fate is Fate.NO_EFFECT:
            return f"{count} of {having}, and it changes no output of those tried"
        if self.fate is Fate.HIDDEN:
            ran = self.tally.ran
            those = (
                "the one case that runs it hide"
                if ran == 1
                else f"all {ran:,} cases that run it hide"
            )
            return f"the data of {those} it ({having})"
        if self.fate is Fate.UNNOTICED:
            visible = self.tally.ran - self.tally.hidden
            return f"{visible:,} of its cases show it and none fails, such as {self.tally.missed}"
        return ""


def _having(defect: DriverDefect, operator: str) -> str:
    """Return a phrase such as `GEMM with more than 65,535 matrices`."""
    texts = [one.text for one in defect.conditions]
    return f"{operator} with {', '.join(texts)}" if texts else operator


@dataclass(frozen=True, slots=True)
class DriverFigure:
    """The results of all driver defects in all their operators.

    Attributes:
        pairs: the result of each defect in each of its operators that has cases.
        cases_tried: with how many cases at least one defect was tried.
        tells_few: whether enough cases were tried to tell which defects few cases notice.
    """

    pairs: Sequence[DefectResult]
    cases_tried: int
    tells_few: bool = True

    @classmethod
    def of(
        cls,
        defects: Sequence[DriverDefect],
        applicability: Applicability,
        strength: DriverStrength,
        sample: int | None = None,
    ) -> DriverFigure:
        """Return the results of a measurement; `sample` is as for `measure_drivers`."""
        pairs = []
        for defect in defects:
            for operator in defect.operators:
                pair = OperatorDefect(defect.name, operator)
                if pair in applicability.met:
                    tally = strength.pairs.get(pair, DriverTally())
                    met = applicability.met[pair]
                    pairs.append(DefectResult(defect, operator, met, tally))
        return cls(pairs, len(strength.cases), tells_few(sample))

    @property
    def survivors(self) -> list[DefectResult]:
        """The results of defects that no case catches."""
        return [pair for pair in self.pairs if pair.fate is not Fate.CAUGHT]

    @property
    def few(self) -> list[DefectResult]:
        """The results of defects that few cases catch; none unless `tells_few`."""
        if not self.tells_few:
            return []
        return [pair for pair in self.pairs if 0 < pair.tally.caught < FEW]

    @property
    def by_defect(self) -> dict[str, list[DefectResult]]:
        """The results by the defect's name."""
        figures: dict[str, list[DefectResult]] = {}
        for pair in self.pairs:
            figures.setdefault(pair.defect.name, []).append(pair)
        return figures

    @property
    def by_report(self) -> dict[BugReport, list[DefectResult]]:
        """The results by the public report that the defect is rebuilt from."""
        figures: dict[BugReport, list[DefectResult]] = {}
        for pair in self.pairs:
            if pair.defect.report is not None:
                figures.setdefault(pair.defect.report, []).append(pair)
        return figures


def caught_in_all(pairs: Sequence[DefectResult]) -> bool:
    """Return whether all pairs are caught; True if there are none."""
    return all(pair.fate is Fate.CAUGHT for pair in pairs)


def caught_in_any(pairs: Sequence[DefectResult]) -> bool:
    """Return whether at least one pair is caught."""
    return any(pair.fate is Fate.CAUGHT for pair in pairs)
