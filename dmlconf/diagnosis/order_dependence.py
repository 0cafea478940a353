"""Find the earlier cases after which a case fails, by leaving out the others.

A driver keeps caches, heaps and descriptors between cases. So a case may fail only after certain
others in the same process. The search leaves out parts of the log's sequence, as long as the rest
still fails in a new process.

If a case crashes its process only after other cases, it passes when it runs again alone. Its
verdict then shows no crash, but the log records the breakdown and the cases without an outcome.

Source: Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, 2002.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from dmlconf.backends.registry import BackendName
from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.diagnosis.bench import Bench, open_bench
from dmlconf.judging.judge import Against
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.breakdowns import UnexplainedBreakdown, unexplained_breakdowns
from dmlconf.verdicts.verdict import ReasonKind, Verdict

__all__ = [
    "OrderFinding",
    "OrderResult",
    "Symptom",
    "minimal",
    "search_order",
    "symptoms",
]

_BREAKDOWNS = ReasonKind.CRASH, ReasonKind.HANG, ReasonKind.DEVICE_REMOVED


class OrderFinding(Enum):
    """Whether a case fails because of earlier ones."""

    ALONE = "fails alone too"
    AFTER_OTHERS = "fails after others only"
    NOT_AGAIN = "did not fail again"


@dataclass(frozen=True, slots=True)
class Symptom:
    """A failure in a log: of a case, or of a process without a case to blame.

    Attributes:
        cases: the case that failed; without a case to blame, all cases that may be to blame.
        before: the cases that ran earlier in the process, in order.
        verdict: the verdict of the case; None without a case to blame.
        breakdown: a crash, a hang or a removed device; None if the case failed otherwise.
    """

    cases: tuple[str, ...]
    before: tuple[str, ...]
    verdict: Verdict | None = None
    breakdown: ReasonKind | None = None


@dataclass(frozen=True, slots=True)
class OrderResult:
    """The result of running a case again after earlier cases.

    Attributes:
        case: the case that failed again or, if none did, the first of `symptom.cases` in the plan.
        earlier: the fewest earlier cases that were found to be needed; all earlier cases of the
            suite if the case did not fail again.
        before: how many cases of the suite ran earlier in the case's process.
        missing: how many cases from outside the suite ran earlier.
        runs: how many sequences were run.
        minimal: False if time ran out before each case of `earlier` was known to be needed.
    """

    symptom: Symptom
    case: str
    finding: OrderFinding
    earlier: tuple[str, ...]
    before: int
    missing: int
    runs: int
    minimal: bool = True


def symptoms(log: RunLog) -> list[Symptom]:
    """Return the failing verdicts of a run, and then breakdowns without a case to blame."""
    # A large log makes each verdict anew whenever it is accessed.
    log = replace(log, verdicts=tuple(log.verdicts))
    failures = [
        Symptom((verdict.case,), _before(log, verdict), verdict, _breakdown(verdict))
        for verdict in log.verdicts
        if verdict.status.fails_run
    ]
    found = unexplained_breakdowns(log.verdicts)
    return [*failures, *(Symptom(e.cases, _before_all(log, e), None, e.kind) for e in found)]


def _breakdown(verdict: Verdict) -> ReasonKind | None:
    kind = verdict.reason and verdict.reason.kind
    return kind if kind in _BREAKDOWNS else None


def _before(log: RunLog, verdict: Verdict) -> tuple[str, ...]:
    ran = verdict.execution
    own = [
        (each.execution.sequence or 0, each.case)
        for each in log.verdicts[: _end(log, verdict)]
        if (each.execution.worker, each.execution.process) == (ran.worker, ran.process)
        and each.case != verdict.case
    ]
    if ran.sequence is not None:
        own = sorted((at, case) for at, case in own if at < (ran.sequence or 0))
    return tuple(dict.fromkeys(case for _, case in own))


def _before_all(log: RunLog, breakdown: UnexplainedBreakdown) -> tuple[str, ...]:
    """Return the cases whose outcomes a process gave before it broke down, in their order."""
    own = sorted(
        (each.execution.sequence or 0, each.case)
        for each in log.verdicts
        if (each.execution.worker, each.execution.process) == (breakdown.worker, breakdown.process)
    )
    return tuple(dict.fromkeys(case for at, case in own if at < breakdown.sequence))


def _end(log: RunLog, verdict: Verdict) -> int | None:
    return log.verdicts.index(verdict) if verdict.execution.sequence is None else None


def minimal(
    items: Sequence[str], fails: Callable[[Sequence[str]], bool], until: float
) -> tuple[tuple[str, ...], bool]:
    """Return a small part of a failing sequence that still fails.

    Args:
        items: a sequence of one item or more that fails.
        until: when to stop, by `time.monotonic`.

    Returns:
        the part, and whether time sufficed to find that each of its items is needed.
    """
    left, parts = list(items), 2
    while len(left) > 1:
        size = -(-len(left) // parts)
        begins = range(0, len(left), size)
        # The latest cases are tried first, since they are the likeliest cause.
        kept = [left[at : at + size] for at in reversed(begins)]
        rests = [left[:at] + left[at + size :] for at in begins] if len(begins) > 2 else []
        for candidate in [*kept, *rests]:
            if time.monotonic() > until:
                return tuple(left), False
            if fails(candidate):
                parts = 2 if len(candidate) <= size else max(parts - 1, 2)
                left = candidate
                break
        else:
            if parts >= len(left):
                break
            parts = min(2 * parts, len(left))
    return tuple(left), True


class _Sequences:
    """Runs sequences of cases, each in a new process if the backend runs in worker processes."""

    def __init__(
        self,
        symptom: Symptom,
        plan: Mapping[str, PlannedCase],
        backend: BackendName,
        against: Against,
        timeout: float,
        *,
        known_faults: bool,
    ) -> None:
        self._symptom, self._plan, self._backend = symptom, plan, backend
        self._against, self._timeout, self._known_faults = against, timeout, known_faults
        self.runs = 0

    def fail(self, names: Sequence[str]) -> bool:
        """Return whether the last case of a sequence, or its process, fails like the symptom."""
        self.runs += 1
        cases = [valid_case(self._plan[name]) for name in names]
        with open_bench(
            self._backend, self._timeout, self._against, known_faults=self._known_faults
        ) as bench:
            breakdown = self._symptom.breakdown
            if breakdown is not None:
                return bench.breaks_down(cases, breakdown)
            return self._last_fails(bench, cases)

    def _last_fails(self, bench: Bench, cases: Sequence[Case]) -> bool:
        verdict = self._symptom.verdict
        assert verdict is not None
        own = [each for each in bench.verdicts(cases) if each.case == verdict.case]
        return any(_alike(each, verdict) for each in own)


def search_order(
    symptom: Symptom,
    plan: Mapping[str, PlannedCase],
    backend: BackendName,
    against: Against,
    timeout: float,
    seconds: float,
    *,
    known_faults: bool = True,
) -> OrderResult:
    """Find the earlier cases after which a case fails.

    Args:
        symptom: the failure; `plan` has a case of it.
        plan: the cases of the log that the suite has, by identifier.
        backend: is opened anew for each sequence.
        against: gives the expected outcome of cases that do not state all of their outputs.
        timeout: seconds that one case may take.
        seconds: after this time, no further sequence is tried.
        known_faults: whether a known fault of DirectML waives a failure.

    Raises:
        BackendError: the backend cannot be used.
        InvalidFilesError: a case cannot be built or is not valid.
    """
    sequences = _Sequences(symptom, plan, backend, against, timeout, known_faults=known_faults)
    before = tuple(case for case in symptom.before if case in plan)
    missing = len(symptom.before) - len(before)
    last = tuple(case for case in symptom.cases if case in plan)
    until = time.monotonic() + seconds

    def result(
        case: str, finding: OrderFinding, earlier: Sequence[str], count: int, *, whole: bool = True
    ) -> OrderResult:
        return OrderResult(
            symptom, case, finding, tuple(earlier), count, missing, sequences.runs, whole
        )

    if len(last) == 1 and sequences.fail(last):
        return result(last[0], OrderFinding.ALONE, (), len(before))
    everything = (*before, *last)
    if len(everything) == 1 or not sequences.fail(everything):
        return result(last[0], OrderFinding.NOT_AGAIN, before, len(before))
    if symptom.breakdown is None:
        earlier, whole = minimal(before, lambda part: sequences.fail((*part, *last)), until)
        return result(last[0], OrderFinding.AFTER_OTHERS, earlier, len(before), whole=whole)
    # The case that breaks the process is unknown: it is the last of the smallest sequence.
    needed, whole = minimal(everything, sequences.fail, until)
    case, earlier = needed[-1], needed[:-1]
    finding = OrderFinding.AFTER_OTHERS if earlier else OrderFinding.ALONE
    return result(case, finding, earlier, everything.index(case), whole=whole)


def _alike(one: Verdict, other: Verdict) -> bool:
    kinds = [each.reason and each.reason.kind for each in (one, other)]
    return one.status is other.status and kinds[0] == kinds[1]
