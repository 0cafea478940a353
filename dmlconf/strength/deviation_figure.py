"""The strength figure "by deviation": how many failing perturbations a target excuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.excuses.deviations import patched, read_deviations
from dmlconf.judging.judge import Against
from dmlconf.reference.evaluation import evaluate
from dmlconf.strength.injection import Site
from dmlconf.strength.judging import CaseJudge
from dmlconf.strength.perturbations import perturbations
from dmlconf.translation.program import NotExpressibleError
from dmlconf.translation.tables import TARGETS
from dmlconf.translation.translate import translated
from dmlconf.verdicts.verdict import Status

__all__ = ["DeviationFigure", "measure_deviations"]


@dataclass(slots=True)
class DeviationFigure:
    """How many perturbations fail, and how many of these are excused by deviations of targets.

    Attributes:
        failing: how many perturbations fail by DirectML's documentation, by target and operator.
            Cases that the target does not express are left out.
        excused: how many of the failing ones pass with the target's deviations.
        by_deviation: how many each deviation excuses, alone or with others, by target and name.
    """

    failing: Counter[tuple[str, str]] = field(default_factory=Counter)
    excused: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_deviation: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, later: DeviationFigure) -> None:
        """Add the counts of later cases."""
        self.failing.update(later.failing)
        self.excused.update(later.excused)
        self.by_deviation.update(later.by_deviation)


def measure_deviations(
    plan: Iterable[PlannedCase],
    against: Against,
    advance: Callable[[], None] = lambda: None,
    seed: int = 0,
) -> DeviationFigure:
    """Return how many perturbations of some cases are excused by the deviations of each target.

    Cases are left out if they break a constraint, if no target expresses them, or if they do not
    pass with the reference's outputs. `seed` decides which elements are perturbed.

    Raises:
        InvalidFilesError: a case cannot be built, or is not valid.
    """
    figure = DeviationFigure()
    for planned in plan:
        case = valid_case(planned)
        targets = [each for each in TARGETS if _expresses(each, case)]
        if targets and not case.violations():
            _measure(figure, case.with_inputs(), targets, against, seed)
        advance()
    return figure


def _expresses(target: str, case: Case) -> bool:
    try:
        translated(case, target)
    except NotExpressibleError:
        return False
    return True


def _measure(
    figure: DeviationFigure, case: Case, targets: list[str], against: Against, seed: int
) -> None:
    outputs = evaluate(case)
    judged = CaseJudge(case, against)
    if judged(outputs) is not Status.PASSED:
        return
    for name in outputs:
        site = Site(case, outputs, name)
        for _, changed in perturbations(site, judged.allowances, seed):
            if judged.fails(site, changed):
                wrong = Outputs({**outputs, name: changed})
                for target in targets:
                    _count(figure, case, target, wrong, judged)


def _count(
    figure: DeviationFigure, case: Case, target: str, wrong: Outputs, judged: CaseJudge
) -> None:
    key = target, case.operator_name
    figure.failing[key] += 1
    used, without = patched(case, wrong, read_deviations(target).covering(case))
    if used and judged(without.arrays) is Status.PASSED:
        figure.excused[key] += 1
        figure.by_deviation.update((target, each.name) for each in used)
