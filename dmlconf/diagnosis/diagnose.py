"""Diagnose a failing case: how it fails, the smallest case that fails, and what is to blame."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Final

from dmlconf.backends.protocol import BackendError
from dmlconf.backends.registry import BackendName
from dmlconf.cases.model import Case
from dmlconf.diagnosis.bench import Bench
from dmlconf.diagnosis.factors import Culprit, Experiment, experiments
from dmlconf.diagnosis.graph_mutants import Mutant
from dmlconf.diagnosis.reduction.reduce import Reduced, reduce_case, with_own_data
from dmlconf.diagnosis.rewritten import same_as_rewritten
from dmlconf.verdicts.verdict import OF_VALUES, ReasonKind, Status, Verdict

__all__ = ["REPETITIONS", "Diagnosis", "Trial", "diagnose"]

REPETITIONS: Final = 10
"""The most runs of a case alone, to see whether the case always fails."""
_BROKEN_REPETITIONS: Final = 2
"""The same if the first run breaks the backend, since each run then costs a process."""


_BATCH: Final = 8
"""How many copies of a case run together if the case never fails alone."""
_MISSED: Final = 0.05
"""The accepted probability that a case that sometimes fails passes all of its runs by chance."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An experiment and its verdict.

    Attributes:
        verdict: None if the case was not run or the backend cannot be used.
        message: why there is no verdict; otherwise empty.
    """

    experiment: Experiment
    verdict: Verdict | None
    message: str = ""

    @property
    def passed(self) -> bool:
        """Whether the case passed."""
        return self.verdict is not None and self.verdict.status is Status.PASSED


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is known of a failing case.

    Attributes:
        verdict: the first failing verdict; if there is none, the first verdict.
        failures: how often the case failed alone; 1 if a known fault waives it.
        runs: how often the case ran alone.
        in_batch: whether the case failed among copies of itself; None if not tried.
        reduced: the smallest case found that fails in the same way; None if not sought.
        reduced_verdict: the latest verdict of the same kind on `reduced`, else on the case, if any.
        trials: verdicts on the reduced case with one factor changed at a time.
        culprit: the factor that is to blame, if one was found.
        rewritten: a wrong rewrite that gives the device's outputs bit by bit, if one was found.
        notes: sentences for the user.
        interrupted: whether Ctrl+C ended the reduction or the trials.
    """

    case: Case
    verdict: Verdict
    failures: int
    runs: int
    in_batch: bool | None = None
    reduced: Reduced | None = None
    reduced_verdict: Verdict | None = None
    trials: tuple[Trial, ...] = ()
    culprit: Culprit | None = None
    rewritten: Mutant | None = None
    notes: tuple[str, ...] = field(default=())
    interrupted: bool = False

    @property
    def reproduced(self) -> bool:
        """Whether a run of the case failed, and no known fault waives the failure."""
        return self.verdict.status.fails_run

    @property
    def is_known_fault(self) -> bool:
        """Whether a known fault of DirectML explains the failure."""
        reason = self.verdict.reason
        return reason is not None and reason.kind is ReasonKind.KNOWN_FAULT


def diagnose(
    case: Case,
    bench: Bench,
    seconds: float,
    others: Sequence[BackendName] = (),
    on_smaller: Callable[[Case], None] = lambda case: None,
    own: Mutant | None = None,
) -> Diagnosis:
    """Diagnose a failing case: reproduce it, reduce it, and change one factor at a time.

    Args:
        seconds: the reduction ends this many seconds after the call.
        others: backends on which to run the smallest case as well.
        on_smaller: is called with each smaller case that still fails.
        own: the mutant of the rewrite that the case tests; None if it tests none.

    Raises:
        BackendError: the backend under test cannot be used.
    """
    began = monotonic()
    diagnosis = _reproduced(case, bench)
    if not diagnosis.reproduced:
        return diagnosis
    diagnosis = replace(diagnosis, rewritten=_rewritten(diagnosis, bench, own))
    with_data, notes = with_own_data(case), diagnosis.notes
    again = _Again(bench, diagnosis)
    if again(with_data):
        reduced = reduce_case(
            with_data, again, lambda: monotonic() - began > seconds, on_smaller=on_smaller
        )
        if reduced.interrupted:
            bench.close()  # A process may still be running the interrupted case.
    elif again.attempts > 1:
        note = f"The case did not fail again in {again.attempts} runs, so it was not reduced."
        reduced, notes = None, (*notes, note)
    elif diagnosis.in_batch:
        note = "Two copies of the case at once did not fail again, so it was not reduced."
        reduced, notes = None, (*notes, note)
    else:
        note = "The case fails only against the outputs that it states or that were recorded for it"
        reduced, notes = None, (*notes, f"{note}, so smaller cases cannot be judged.")
    interrupted = reduced is not None and reduced.interrupted
    trials: list[Trial] = []
    try:
        again(reduced.case if reduced else case)
        for experiment in _experiments(reduced.case, bench.backend, others) if reduced else ():
            trials.append(_trial(experiment, again))
    except KeyboardInterrupt:
        interrupted = True
        bench.close()
    return replace(
        diagnosis,
        reduced=reduced,
        reduced_verdict=again.latest,
        trials=tuple(trials),
        culprit=diagnosis.culprit or _culprit(trials),
        notes=notes,
        interrupted=interrupted,
    )


def _rewritten(diagnosis: Diagnosis, bench: Bench, own: Mutant | None) -> Mutant | None:
    case, reason = diagnosis.case, diagnosis.verdict.reason
    if not case.forms or case.relation is not None:
        return None
    if reason is None or reason.kind not in OF_VALUES:
        return None
    outputs = bench.outputs(case)
    if outputs is None:
        return None
    return same_as_rewritten(case, outputs, own, bench.outputs_one_by_one)


def _reproduced(case: Case, bench: Bench) -> Diagnosis:
    verdicts = [bench.verdict(case)]
    known = Diagnosis(case, verdicts[0], 1, 1)
    if known.is_known_fault:
        return known
    times = _BROKEN_REPETITIONS if verdicts[0].status is Status.BROKEN else REPETITIONS
    verdicts += [bench.verdict(case) for _ in range(times - 1)]
    failing = [verdict for verdict in verdicts if verdict.status.fails_run]
    if len(failing) == times:
        return Diagnosis(case, failing[0], times, times)
    if failing:
        sentence = (
            f"The operator is not deterministic: alone and unchanged, the case fails in "
            f"{len(failing)} of {times} runs."
        )
        culprit = Culprit("repetition", sentence)
        return Diagnosis(case, failing[0], len(failing), times, culprit=culprit)
    together = [v for v in bench.verdicts([case] * _BATCH) if v.status.fails_run]
    if together:
        culprit = Culprit(
            "batch",
            "Running beside copies of itself is to blame: alone, the case passes in each of "
            f"{times} runs; of {_BATCH} at once, {len(together)} fail.",
        )
        return Diagnosis(case, together[0], 0, times, in_batch=True, culprit=culprit)
    note = f"The case passes: in each of {times} runs alone, and {_BATCH} times at once."
    first = verdicts[0]
    if first.status is not Status.PASSED:
        why = f": {first.reason.message}" if first.reason else ""
        note = f"The case does not fail; it is {first.status}{why}"
    return Diagnosis(case, first, 0, times, in_batch=False, notes=(note,))


class _Again:
    """Checks whether a case fails as the diagnosed one does.

    If the diagnosed case fails only sometimes, the case runs several times; if only in a batch, in
    a batch.

    Attributes:
        attempts: the most runs of a case until it fails.
        latest: the latest verdict with the same kind of failure, if any.
    """

    def __init__(self, bench: Bench, diagnosis: Diagnosis) -> None:
        self._bench = bench
        self._status = diagnosis.verdict.status
        self._kind = diagnosis.verdict.reason.kind if diagnosis.verdict.reason else None
        self._batch = 2 if diagnosis.in_batch else 1
        self.attempts = _attempts(diagnosis.failures, diagnosis.runs)
        self._in_signs = _differs_in_signs_of_zero(diagnosis.verdict)
        self.latest: Verdict | None = None

    def __call__(self, case: Case) -> bool:
        """Return whether a verdict on the case is the same kind of failure.

        Differences in nothing but signs of zeros count only if the diagnosed case has no others.
        """
        for _ in range(self.attempts):
            for verdict in self._bench.verdicts([case] * self._batch):
                kind = verdict.reason.kind if verdict.reason else None
                alike = verdict.status is self._status and kind is self._kind
                if alike and (self._in_signs or not _differs_in_signs_of_zero(verdict)):
                    self.latest = verdict
                    return True
        return False

    def of_experiment(self, experiment: Experiment) -> Verdict:
        """Return the first failing verdict; the last verdict if none fails."""
        for _ in range(self.attempts):
            for verdict in self._verdicts(experiment):
                if verdict.status.fails_run:
                    return verdict
        return verdict

    def _verdicts(self, experiment: Experiment) -> Sequence[Verdict]:
        if experiment.form is not None:
            return [self._bench.verdict_in_form(experiment.case, experiment.form)]
        return self._bench.verdicts([experiment.case] * self._batch, experiment.backend)


def _attempts(failures: int, runs: int) -> int:
    """Return the most runs of a case until it fails; 1 if all runs failed, or none did.

    For example, 5 if half of the runs failed, and 29 if one of ten did.
    """
    if not 0 < failures < runs:
        return 1
    return math.ceil(math.log(_MISSED) / math.log(1 - failures / runs))


def _differs_in_signs_of_zero(verdict: Verdict) -> bool:
    differences = verdict.reason.differences if verdict.reason else ()
    return bool(differences) and all(
        {str(difference["expected"]), str(difference["actual"])} == {"0.0", "-0.0"}
        for difference in differences
    )


def _experiments(
    case: Case, backend: BackendName, others: Sequence[BackendName]
) -> Iterator[Experiment]:
    yield from experiments(case, backend)
    for name in others:
        yield Experiment("backend", str(name), "the backend", case, name, tells=False)


def _trial(experiment: Experiment, again: _Again) -> Trial:
    if experiment.case.violations() and experiment.case.expectation is None:
        return Trial(experiment, None, "the change would break a constraint of the operator")
    try:
        return Trial(experiment, again.of_experiment(experiment))
    except BackendError as error:
        return Trial(experiment, None, str(error))


def _culprit(trials: Sequence[Trial]) -> Culprit | None:
    passing = [trial for trial in trials if trial.passed and trial.experiment.tells]
    if not passing:
        return None
    experiment = passing[0].experiment
    blame = experiment.blame[0].upper() + experiment.blame[1:]
    sentence = f"{blame} is to blame: the case passes with {experiment.change}."
    return Culprit(experiment.factor, sentence)
