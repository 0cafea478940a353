"""`--repeat` gives one verdict for each case; `--shuffle` orders cases at random, by a seed.

The tested code is in `dmlconf/engine/repetition.py`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import pytest

from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.engine.events import Repeated
from dmlconf.engine.repetition import repeated, shuffled
from dmlconf.resources import cases_directory
from dmlconf.verdicts.verdict import Identity, Judgement, Reason, ReasonKind, Status, Verdict

PLAN = list(load_suite([cases_directory() / "gather" / "documented.yaml"]).plan())


class Flaky:
    """Passes all cases in all repetitions, but for one case in one repetition."""

    def __init__(self, case: str, in_round: int) -> None:
        self.orders: list[list[str]] = []
        self._fails = case, in_round

    def __call__(self, plan: Sequence[PlannedCase]) -> Generator[Verdict, None, None]:
        self.orders.append([planned.identifier for planned in plan])
        for planned in plan:
            fails = (planned.identifier, len(self.orders)) == self._fails
            reason = Reason(ReasonKind.WRONG_VALUES, "1 of 4 elements differs") if fails else None
            status = Status.FAILED if fails else Status.PASSED
            identity = Identity(planned.identifier, "GATHER", ())
            yield Verdict(identity, Judgement(status, reason=reason))


@pytest.mark.parametrize("in_round", [1, 2, 3])
def test_repeated_case_has_one_verdict_and_stops_at_failure(in_round: int) -> None:
    first, *others = [planned.identifier for planned in PLAN]
    judge = Flaky(first, in_round)
    stream = list(repeated(PLAN, judge, 3))
    assert [each.repetition for each in stream if isinstance(each, Repeated)] == [1, 2, 3]
    verdicts = [each for each in stream if isinstance(each, Verdict)]
    assert [verdict.case for verdict in verdicts] == [first, *others]
    assert verdicts[0].status is Status.FAILED
    assert verdicts[0].reason is not None
    message = f"1 of 4 elements differs (in repetition {in_round} of 3)"
    assert verdicts[0].reason.message == message
    assert judge.orders == [[first, *others]] * in_round + [others] * (3 - in_round)


def test_one_repetition_is_like_a_plain_run() -> None:
    first = PLAN[0].identifier
    stream = list(repeated(PLAN, Flaky(first, 1), 1))
    assert stream == list(Flaky(first, 1)(PLAN))


def test_no_repetition_begins_after_all_cases_have_failed() -> None:
    judge = Flaky(PLAN[0].identifier, 1)
    stream = list(repeated(PLAN[:1], judge, 3))
    assert [each.repetition for each in stream if isinstance(each, Repeated)] == [1]
    assert len(judge.orders) == 1


def test_seed_determines_the_shuffled_order() -> None:
    assert sorted(map(id, shuffled(PLAN, 7))) == sorted(map(id, PLAN))
    orders = [[planned.identifier for planned in shuffled(PLAN, seed)] for seed in range(9)]
    assert orders[7] == [planned.identifier for planned in shuffled(PLAN, 7)]
    assert len({tuple(order) for order in orders}) > 1
    judge = Flaky("", 0)  # No case fails.
    list(repeated(PLAN, judge, 2, seed=7))
    # The second repetition has seed 8.
    assert judge.orders == orders[7:9]
