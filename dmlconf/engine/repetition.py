"""Run each case several times, in random order if wanted, to find failures that are rare."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from dmlconf.cases.loading.planned import Picked
from dmlconf.cases.model import PlannedCase
from dmlconf.engine.events import Repeated
from dmlconf.engine.stream import Judge, Stream
from dmlconf.verdicts.verdict import Verdict

__all__ = ["repeated", "shuffled"]


def shuffled(plan: Sequence[PlannedCase], seed: int) -> Sequence[PlannedCase]:
    """Return the plan in a random order, which the seed determines."""
    import random  # Few runs need it.

    return Picked(plan, random.Random(seed).sample(range(len(plan)), len(plan)))


def repeated(
    plan: Sequence[PlannedCase],
    judge: Judge,
    times: int,
    seed: int | None = None,
) -> Stream:
    """Run the plan several times, and yield one verdict on each case.

    A case that fails does not run again. Any other case gets the verdict of its last repetition.
    With several repetitions, a `Repeated` comes before each.

    Args:
        seed: determines the order of each repetition; None keeps the order of the plan.
    """
    left = plan
    for repetition in range(1, times + 1):
        if not left:
            return
        if times > 1:
            yield Repeated(repetition, times)
        order = left if seed is None else shuffled(left, seed + repetition - 1)
        failing: set[str] = set()
        with closing(judge(order)) as stream:
            for each in stream:
                if isinstance(each, Verdict) and each.status.fails_run:
                    failing.add(each.case)
                    yield _with_repetition(each, repetition, times)
                elif not isinstance(each, Verdict) or repetition == times:
                    yield each
        if failing and repetition < times:
            again = (n for n, planned in enumerate(left) if planned.identifier not in failing)
            left = Picked(left, again)


def _with_repetition(verdict: Verdict, repetition: int, times: int) -> Verdict:
    if verdict.reason is None or times == 1:
        return verdict
    message = f"{verdict.reason.message} (in repetition {repetition} of {times})"
    return verdict.judged(reason=replace(verdict.reason, message=message))
