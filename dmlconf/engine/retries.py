"""Run failing cases again; a failure that shows only sometimes never counts as a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from dmlconf.cases.loading.planned import Picked
from dmlconf.cases.model import PlannedCase
from dmlconf.engine.stream import Attempt, Judge, Stream
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict

__all__ = ["Retries", "verdict_of_attempts"]


class Retries:
    """Runs a plan, and then each failing case `times` more times, even if it passes meanwhile.

    Attributes:
        attempts: for each case that failed and has no verdict yet, the judgements on its attempts.
    """

    def __init__(
        self,
        times: int,
        earlier: Mapping[str, Sequence[Verdict]] | None = None,
    ) -> None:
        """Begin with the attempts, by case, of an `earlier` part of the run."""
        self._times = times
        self.attempts = {case: list(attempts) for case, attempts in (earlier or {}).items()}

    def run(
        self, plan: Sequence[PlannedCase], judge: Judge, most_failures: int | None = None
    ) -> Stream:
        """Run the plan, and yield a verdict on each started case.

        With retries, each attempt at a failing case is yielded as well.

        Args:
            most_failures: with retries, the number of failing cases after which no other case
                starts; None for no limit.
        """
        if not self._times:
            yield from judge(plan)
            return
        yield from self._first_runs(plan, judge, most_failures)
        while self.attempts and (
            left := [planned for planned in plan if planned.identifier in self.attempts]
        ):
            again = [each for each in left if len(self.attempts[each.identifier]) <= self._times]
            with closing(judge(again)) as stream:
                for each in stream:
                    yield self._attempt(each) if isinstance(each, Verdict) else each
            for case in [planned.identifier for planned in left]:
                if len(self.attempts[case]) > self._times:
                    yield verdict_of_attempts(self.attempts[case])
                    del self.attempts[case]

    def _first_runs(
        self, plan: Sequence[PlannedCase], judge: Judge, most_failures: int | None
    ) -> Stream:
        if most_failures is not None and len(self.attempts) >= most_failures:
            return
        first = plan
        if self.attempts:
            new = (n for n, planned in enumerate(plan) if planned.identifier not in self.attempts)
            first = Picked(plan, new)
        with closing(judge(first)) as stream:
            for each in stream:
                if not isinstance(each, Verdict) or not each.status.fails_run:
                    yield each
                    continue
                yield self._attempt(each)
                if len(self.attempts) == most_failures:
                    return

    def _attempt(self, verdict: Verdict) -> Attempt:
        self.attempts.setdefault(verdict.case, []).append(verdict)
        return Attempt(verdict)


def verdict_of_attempts(attempts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a case whose first attempt failed.

    If all attempts failed, the verdict is the first one; otherwise it is `failed`, since the
    failure is not reproducible.
    """
    first = attempts[0]
    statuses = tuple(attempt.status for attempt in attempts) if len(attempts) > 1 else ()
    others = [status for status in statuses if not status.fails_run]
    if not others or first.reason is None:
        return first.judged(attempts=statuses)
    passed = "passed" if {*others} == {Status.PASSED} else "did not fail"
    share = f"{passed} in {len(others)} of {len(statuses)} runs"
    message = f"{share}; the first failure: {first.reason.kind}: {first.reason.message}"
    reason = replace(first.reason, kind=ReasonKind.NOT_REPRODUCIBLE, message=message)
    return first.judged(status=Status.FAILED, reason=reason, attempts=statuses)
