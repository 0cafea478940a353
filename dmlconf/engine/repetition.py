"""Run each case several times, if wanted in random order: for faults that do not always show."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from dmlconf.cases.model import PlannedCase
from dmlconf.engine.events import Repeated
from dmlconf.engine.stream import Judge, Stream
from dmlconf.verdicts.verdict import Verdict

__all__ = ["repeated", "shuffled"]


def shuffled(plan: Sequence[PlannedCase], seed: int) -> list[PlannedCase]:
    """Return the plan in an order that the seed alone determines."""
    import random  # Few runs need it.

    return random.Random(seed).sample(plan, len(plan))


def repeated(
    plan: Sequence[PlannedCase],
    judge: Judge,
    times: int,
    seed: int | None = None,
) -> Stream:
    """Run the plan several times over, and yield one verdict on each case.

    If the case fails in a repetition, its verdict is yielded at once, with the number of the
    repetition, and the case is not run again. A case that never fails gets the verdict of the last
    repetition.

    Args:
        plan: the cases to run.
        judge: runs a plan, and yields a verdict on each case.
        times: how often to run the plan, at least 1.
        seed: determines the order of each repetition; None keeps the order of the plan.
    """
    left = list(plan)
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
                    yield _numbered(each, repetition, times)
                elif not isinstance(each, Verdict) or repetition == times:
                    yield each
        left = [planned for planned in left if planned.identifier not in failing]


def _numbered(verdict: Verdict, repetition: int, times: int) -> Verdict:
    if verdict.reason is None or times == 1:
        return verdict
    message = f"{verdict.reason.message} (in repetition {repetition} of {times})"
    return verdict.judged(reason=replace(verdict.reason, message=message))
