"""The strength figure "by expectation": whether cases notice that an expected output is wrong.

Each stated or recorded output is changed as in the figure "by perturbation". A case notices the
change if the reference's outputs do not pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.model import Case, ExpectedOutputs
from dmlconf.catalogue.precision import RuleKind
from dmlconf.documents.reader import read_document
from dmlconf.engine.session import no_expectation
from dmlconf.judging.contradictions import contradiction_of
from dmlconf.judging.judge import Against, expectation_of, judge
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.room import permitted_ends
from dmlconf.strength.injection import Site
from dmlconf.strength.perturbations import KINDS, defined_elements
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.sample import Sample
from dmlconf.verdicts.verdict import Status

__all__ = ["ExpectationFigure", "ExpectationTally", "Source", "measure_expectations", "sources"]

_MOST_MISSED: Final = 3


@dataclass(slots=True)
class ExpectationTally:
    """How many expected outputs of an operator were changed in one way, and how many were noticed.

    Attributes:
        tried: how many expected outputs were changed.
        noticed: how many of these changes keep their case from passing.
        permitted: how many other changes a rule permits, by its source.
        missed: the first three remaining changes, as case and output.
    """

    tried: int = 0
    noticed: int = 0
    permitted: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)

    @property
    def counted(self) -> int:
        """How many changes must be noticed: all that are not counted as permitted."""
        return self.tried - self.permitted.total()

    def add(self, later: ExpectationTally) -> None:
        """Add the results of later cases."""
        self.tried += later.tried
        self.noticed += later.noticed
        self.permitted += later.permitted
        self.missed = [*self.missed, *later.missed][:_MOST_MISSED]


@dataclass(slots=True)
class ExpectationFigure:
    """How many changed expectations a suite notices.

    Attributes:
        tallies: the tallies, by operator and kind of perturbation.
        cases: how many cases were used.
        failing: cases that fail with their expectations as they are, and were not used.
    """

    tallies: dict[tuple[str, str], ExpectationTally] = field(default_factory=dict)
    cases: int = 0
    failing: list[str] = field(default_factory=list)

    def add(self, later: ExpectationFigure) -> None:
        """Add the results of later cases of the suite."""
        for key, tally in later.tallies.items():
            self.tallies.setdefault(key, ExpectationTally()).add(tally)
        self.cases += later.cases
        self.failing += later.failing


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a rule that permits some changed outputs, such as a section of a specification.

    Attributes:
        any_value: whether the rule also permits any value of some elements.
    """

    text: str
    any_value: bool


@cache
def sources() -> Mapping[tuple[str, str], Sequence[Source]]:
    """Return the sources of rules that permit changed outputs, by operator and perturbation."""
    facts = read_document(Path(__file__).with_name("perturbations.yaml")).data["permitted"]
    by_key: dict[tuple[str, str], list[Source]] = {}
    for entry in facts:
        source = Source(entry["source"], entry.get("any_value", False))
        for operator in entry["operators"]:
            for kind in entry["kinds"]:
                by_key.setdefault((operator, kind), []).append(source)
    return by_key


def measure_expectations(
    cases: Iterable[Case],
    against: Against,
    advance: Callable[[], None] = lambda: None,
    seed: int = 0,
) -> ExpectationFigure:
    """Change each expected output in each possible way, and return which changes the cases notice.

    A case is not used if it has no stated or recorded outputs, breaks a constraint, disputes the
    reference, or does not pass unchanged. `seed` decides which elements are changed.
    """
    figure = ExpectationFigure()
    for case in cases:
        if not case.violations():
            _measure_case(figure, case.with_inputs(), against, seed)
        advance()
    return figure


def _measure_case(figure: ExpectationFigure, case: Case, against: Against, seed: int) -> None:
    expected = expectation_of(case, against)
    if not isinstance(expected, ExpectedOutputs) or case.disputes is not None:
        return
    known: dict[str, Array | Sample] = {**expected.outputs, **expected.samples}
    own = {name: target for name, target in known.items() if name not in expected.computed}
    if not own:
        return
    allowances = CaseAllowances(case)
    trial = _Trial(case, expected, allowances)
    status = trial.status()
    if status is not Status.PASSED:
        # A case whose rule permits any value neither passes nor fails.
        figure.failing += [case.identifier] if status.fails_run else []
        return
    figure.cases += 1
    for name, target in own.items():
        for kind, changed in _changes(case, name, target, allowances, seed):
            key = case.operator_name, kind
            tally = figure.tallies.setdefault(key, ExpectationTally())
            tally.tried += 1
            if trial.notices(name, changed):
                tally.noticed += 1
                continue
            source = _permitting(sources().get(key, ()), case, name, (target, changed), allowances)
            if source is not None:
                tally.permitted[source.text] += 1
            elif len(tally.missed) < _MOST_MISSED:
                tally.missed.append(f"{case.identifier} {name}")


@dataclass(frozen=True, slots=True)
class _Trial:
    """Judges the reference's outputs by a changed expectation of a case."""

    case: Case
    expected: ExpectedOutputs
    allowances: CaseAllowances

    def status(self, name: str = "", changed: Array | Sample | None = None) -> Status:
        outputs, samples = dict(self.expected.outputs), dict(self.expected.samples)
        if isinstance(changed, Sample):
            samples[name] = changed
            outputs.pop(name, None)
        elif changed is not None:
            outputs[name] = changed
        expectation = replace(self.expected, outputs=outputs, samples=samples)
        outcome = Outputs(self.allowances.right)
        verdict = judge(
            self.case,
            outcome,
            no_expectation,
            allowances=self.allowances,
            expected=expectation,
            brief=True,
        )
        return verdict.status

    def notices(self, name: str, changed: Array | Sample) -> bool:
        if contradiction_of(self.case, name, changed, self.allowances) is not None:
            return True  # The case then fails; to judge it would take longer.
        return self.status(name, changed) is not Status.PASSED


def _changes(
    case: Case, name: str, target: Array | Sample, allowances: CaseAllowances, seed: int
) -> Iterator[tuple[str, Array | Sample]]:
    """Yield an expected output changed in each way that is possible.

    The seed and the names decide which elements are changed.
    """
    defined = defined_elements(Site(case, allowances.right, name), allowances)
    if isinstance(target, Sample):
        values, defined = target.values, defined[target.indices]
    else:
        values = np.ascontiguousarray(target).ravel()
    if not values.size:
        return
    for kind, change in KINDS.items():
        rng = np.random.default_rng([seed, *f"{case.identifier} {name} {kind}".encode()])
        with np.errstate(all="ignore"):
            changed = change(values, defined, rng)
        if changed is None:
            continue
        if isinstance(target, Sample):
            # The old digest is that of the unchanged output, so it must go.
            yield kind, replace(target, values=changed, digest="")
        else:
            yield kind, changed.reshape(target.shape)


def _permitting(
    candidates: Sequence[Source],
    case: Case,
    name: str,
    outputs: tuple[Array | Sample, Array | Sample],
    allowances: CaseAllowances,
) -> Source | None:
    """Return the first source whose rule permits a changed output; None if there is none.

    If a rule permits any value of a changed element, only a source with `any_value` counts.
    `outputs` are the expected values before and after the change.
    """
    if not candidates:
        return None
    before, after = (
        each.values if isinstance(each, Sample) else np.ravel(each) for each in outputs
    )
    output = outputs[1]
    indices = output.indices if isinstance(output, Sample) else slice(None)
    inside, bounded = _within_ends(case, name, after, indices, allowances)
    if not inside.all():
        return None
    changed = (before != after) & ~((before != before) & (after != after))
    every = bool((bounded | ~changed).all())
    return next((each for each in candidates if every or each.any_value), None)


def _within_ends(
    case: Case, name: str, values: Array, indices: Array | slice, allowances: CaseAllowances
) -> tuple[Array, Array]:
    """Return which values a rule permits, and which of these it also bounds.

    A value is bounded if it is the reference's, or if the lowest or the highest permitted value is
    finite.
    """
    allowance, rule = allowances.of(name), case.rule(name)
    errors = allowance.errors if rule.kind is RuleKind.ACCUMULATE else None
    others = () if errors is None else errors.others
    right = np.ascontiguousarray(allowances.right[name]).ravel()
    inside = values == right[indices]
    if right.dtype.kind == "f":
        inside |= np.isnan(values) & np.isnan(right[indices])
    bounded = inside.copy()
    for each in (right, *others):
        ends = permitted_ends(np.ascontiguousarray(each).ravel(), rule, allowance)
        lowest, highest = (end[indices] for end in ends)
        with np.errstate(all="ignore"):
            within = (values >= lowest) & (values <= highest)
        inside |= within
        bounded |= within & (np.isfinite(lowest) | np.isfinite(highest))
    return inside, bounded
