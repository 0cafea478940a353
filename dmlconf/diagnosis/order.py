"""Find by halving the shortest sequence of earlier cases after which a case fails.

A driver keeps caches, heaps and descriptors from one case to the next, so that a case may fail only
after certain others in the same process. The log says in which process a case ran and after which
others. Parts of that sequence are left out, and the rest runs in a new process, as long as the case
fails in the same way (Zeller and Hildebrandt, Simplifying and isolating failure-inducing input,
2002).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from dmlconf.backends.registry import BackendName
from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.diagnosis.bench import open_bench
from dmlconf.judging.judge import Against
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import Verdict

__all__ = ["OrderFinding", "OrderResult", "cases_before", "minimal", "search_order"]


class OrderFinding(Enum):
    """Whether a case fails because of earlier ones."""

    ALONE = "fails alone too"
    AFTER_OTHERS = "fails after others only"
    NOT_AGAIN = "did not fail again"


@dataclass(frozen=True, slots=True)
class OrderResult:
    """What running a case after others showed.

    Attributes:
        verdict: of the case, in the log.
        finding: whether it fails because of earlier cases.
        earlier: the smallest sequence of earlier cases after which it fails; where it did not fail
            again, all that came before it.
        before: how many cases of the suite came before it in its process.
        missing: how many others did, which the suite does not have.
        runs: how many sequences were run.
        minimal: whether the case passes without any one of `earlier`; else time ran out.
    """

    verdict: Verdict
    finding: OrderFinding
    earlier: tuple[str, ...]
    before: int
    missing: int
    runs: int
    minimal: bool = True


def cases_before(log: RunLog, verdict: Verdict) -> tuple[str, ...]:
    """Return the cases that ran before one in its process, the first one first."""
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


def _end(log: RunLog, verdict: Verdict) -> int | None:
    """Return the log's index of a verdict whose process did not number its cases; else None."""
    return log.verdicts.index(verdict) if verdict.execution.sequence is None else None


def minimal(
    items: Sequence[str], fails: Callable[[Sequence[str]], bool], until: float
) -> tuple[tuple[str, ...], bool]:
    """Return a smallest part of a failing sequence that still fails, in the same order.

    Args:
        items: a sequence with which it fails; with an empty one it does not.
        fails: whether it fails with a part of it.
        until: when to stop, by `time.monotonic`.

    Returns:
        The part, and whether all of its items are needed; False if time ran out before that was
        known.
    """
    left, parts = list(items), 2
    while len(left) > 1:
        size = -(-len(left) // parts)
        begins = range(0, len(left), size)
        # What came last is the likeliest cause, so it is tried first.
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


def search_order(
    log: RunLog,
    verdict: Verdict,
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
        log: the run in which it failed.
        verdict: the failure.
        plan: the cases of the log, by identifier.
        backend: what runs them; each sequence in a new process.
        against: gives the expected outcome of cases that state none.
        timeout: seconds that one case may take.
        seconds: how long the search may take.
        known_faults: whether a known fault of DirectML waives a failure.

    Raises:
        BackendError: the backend cannot be used.
    """
    runs = 0
    logged = cases_before(log, verdict)
    before = tuple(case for case in logged if case in plan)

    def fails(earlier: Sequence[str]) -> bool:
        nonlocal runs
        runs += 1
        cases = [valid_case(plan[name]) for name in (*earlier, verdict.case)]
        with open_bench(backend, timeout, against, known_faults=known_faults) as bench:
            own = [each for each in bench.verdicts(cases) if each.case == verdict.case]
        return any(_alike(each, verdict) for each in own)

    finding, earlier, whole = OrderFinding.NOT_AGAIN, before, True
    if fails(()):
        finding, earlier = OrderFinding.ALONE, ()
    elif before and fails(before):
        finding = OrderFinding.AFTER_OTHERS
        earlier, whole = minimal(before, fails, time.monotonic() + seconds)
    missing = len(logged) - len(before)
    return OrderResult(verdict, finding, earlier, len(before), missing, runs, whole)


def _alike(one: Verdict, other: Verdict) -> bool:
    """Return whether two failures are of one kind."""
    kinds = [each.reason and each.reason.kind for each in (one, other)]
    return one.status is other.status and kinds[0] == kinds[1]
