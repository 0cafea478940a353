"""Change right outputs by defects, perturbations and legitimate differences; count what fails.

Outputs of graphs are only perturbed; `graph_figure` injects their defects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.judging.judge import Against
from dmlconf.precision.compare import compare
from dmlconf.reference.evaluation import evaluate
from dmlconf.strength.computed_defects import COMPUTED_DEFECTS
from dmlconf.strength.injection import Defect, Site
from dmlconf.strength.judging import CaseJudge
from dmlconf.strength.legitimate import LEGITIMATE_DIFFERENCES
from dmlconf.strength.perturbations import PerturbationTally, perturb
from dmlconf.strength.tallies import CaseTally
from dmlconf.strength.value_defects import VALUE_DEFECTS
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import Status

__all__ = ["DEFECTS", "Method", "Mutant", "Refusal", "Strength", "Tally", "measure"]

DEFECTS: Final = (*VALUE_DEFECTS, *COMPUTED_DEFECTS)
"""The defects that are injected into single operators."""


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """An operator with one defect in one output of one data type.

    Attributes:
        defect: the defect's name, and a note if the defect can be injected in several ways.
        output: the desc's field; all outputs of an array, such as OutputTensors, are one mutant.
    """

    operator: str
    defect: str
    output: str
    data_type: str


@dataclass(slots=True)
class Tally:
    """The results of all cases for one mutant.

    Attributes:
        injected: how many outputs the defect changes so that they break their rule.
        caught: how many of `injected` make their case fail.
        within: how many outputs the defect changes within their rule.
        hidden: how many outputs stay right only because of the data (`Defect.shows`).
        missed: the first case of `injected` or `hidden` that does not catch the defect.
    """

    injected: int = 0
    caught: int = 0
    within: int = 0
    hidden: int = 0
    missed: str | None = None

    def add(self, later: Tally) -> None:
        """Add the results of later cases."""
        self.injected += later.injected
        self.caught += later.caught
        self.within += later.within
        self.hidden += later.hidden
        self.missed = self.missed or later.missed

    @property
    def outside(self) -> bool:
        """Whether the suite should catch the mutant: it breaks a rule, or only data hide it."""
        return self.injected > 0 or (self.hidden > 0 and not self.within)

    @property
    def detected(self) -> bool:
        """Whether at least one case catches the mutant."""
        return self.caught > 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A legitimate difference that fails."""

    operator: str
    difference: str
    case: str


@dataclass(frozen=True, slots=True)
class Method:
    """What to try on each case.

    Attributes:
        defects: whether to inject defects and legitimate differences into single operators.
        seed: decides which elements are perturbed.
    """

    defects: bool = True
    perturbations: bool = True
    seed: int = 0


_EVERYTHING: Final = Method()


@dataclass(slots=True)
class Strength:
    """The defects that the cases of a suite notice.

    Attributes:
        legitimate: how many legitimate differences were tried, by operator and name.
        refused: the legitimate differences that failed.
        unused: the cases that do not pass with the right outputs.
        noticed: the tallies of cases that are no graphs, by identifier.
        perturbed: the tallies of perturbations, by kind and operator.
    """

    mutants: dict[Mutant, Tally] = field(default_factory=dict)
    legitimate: dict[tuple[str, str], int] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)
    cases: int = 0
    unused: list[str] = field(default_factory=list)
    noticed: dict[str, CaseTally] = field(default_factory=dict)
    perturbed: dict[tuple[str, str], PerturbationTally] = field(default_factory=dict)

    def add(self, later: Strength) -> None:
        """Add the results of later cases of the suite."""
        for mutant, tally in later.mutants.items():
            self.mutants.setdefault(mutant, Tally()).add(tally)
        for key, count in later.legitimate.items():
            self.legitimate[key] = self.legitimate.get(key, 0) + count
        self.refused += later.refused
        self.cases += later.cases
        self.unused += later.unused
        self.noticed.update(later.noticed)
        for kind, perturbation in later.perturbed.items():
            self.perturbed.setdefault(kind, PerturbationTally()).add(perturbation)


def measure(
    cases: Iterable[Case],
    against: Against,
    advance: Callable[[], None] = lambda: None,
    method: Method = _EVERYTHING,
) -> Strength:
    """Return what cases notice; those that break a constraint are left out.

    A case whose right outputs do not fit into memory is unused.
    """
    strength = Strength()
    for case in cases:
        if not case.violations():
            try:
                right = evaluate(case)
            except MemoryError:
                strength.unused.append(case.identifier)
            else:
                _measure_case(strength, case, right, against, method)
        advance()
    return strength


def _measure_case(
    strength: Strength, case: Case, outputs: Mapping[str, Array], against: Against, method: Method
) -> None:
    case = replace(case, data=case.inputs())
    judged = CaseJudge(case, against)
    if judged(outputs) is not Status.PASSED:
        strength.unused.append(case.identifier)
        return
    strength.cases += 1
    for name in outputs:
        site = Site(case, outputs, name)
        if method.perturbations:
            perturb(strength.perturbed, site, judged, method.seed)
        if method.defects and not case.nodes:  # Graphs have their own figure.
            _inject(strength, site, judged)


def _inject(strength: Strength, site: Site, judged: CaseJudge) -> None:
    case = site.case
    noticed = strength.noticed.setdefault(case.identifier, CaseTally(case.operator_name))
    for mutant, defect, wrong in _injections(site, DEFECTS):
        if wrong is not None:
            tally = strength.mutants.setdefault(mutant, Tally())
            _tally(tally, noticed, site, wrong, judged)
        elif defect.shows(site):
            hidden = strength.mutants.setdefault(mutant, Tally())
            hidden.hidden += 1
            hidden.missed = hidden.missed or case.identifier
            noticed.ran += 1
    for mutant, _, other in _injections(site, LEGITIMATE_DIFFERENCES):
        key = mutant.operator, mutant.defect
        strength.legitimate[key] = strength.legitimate.get(key, 0) + 1
        if other is not None and judged.fails(site, other):
            strength.refused.append(Refusal(*key, case.identifier))


def _injections(
    site: Site, defects: Sequence[Defect]
) -> Iterator[tuple[Mutant, Defect, Array | None]]:
    """Yield each mutant and its defect with the wrong output, or with None if no bit changes."""
    right = np.ascontiguousarray(site.correct).tobytes()
    output = TensorRef.of(site.name).field
    data_type = str(site.case.outputs()[site.name].DataType)
    for defect in defects:
        for note, wrong in defect.inject(site):
            name = f"{defect.name}, {note}" if note else defect.name
            mutant = Mutant(site.case.operator_name, name, output, data_type)
            changed = np.ascontiguousarray(wrong)
            yield mutant, defect, None if changed.tobytes() == right else changed


def _tally(tally: Tally, noticed: CaseTally, site: Site, wrong: Array, judged: CaseJudge) -> None:
    allowance = judged.allowances.of(site.name)
    if compare(wrong, site.correct, site.rule, allowance).passed:
        tally.within += 1
        return
    tally.injected += 1
    noticed.ran += 1
    if judged.fails(site, wrong):
        tally.caught += 1
        noticed.caught += 1
    elif tally.missed is None:
        tally.missed = site.case.identifier
