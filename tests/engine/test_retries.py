"""With `--retries` a case that fails runs again; its status is `failed` even if it then passes.

The tested code is in `dmlconf/engine/retries.py` and `dmlconf/engine/stream.py`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.engine.retries import Retries
from dmlconf.engine.stream import Attempt
from dmlconf.resources import cases_directory
from dmlconf.verdicts.verdict import Identity, Judgement, Reason, ReasonKind, Status, Verdict

PLAN = list(load_suite([cases_directory() / "gather" / "documented.yaml"]).plan())[:3]

FIRST, *OTHERS = [planned.identifier for planned in PLAN]

STATUSES = {"b": Status.BROKEN, "f": Status.FAILED, "p": Status.PASSED, "w": Status.WAIVED}


class Judge:
    """Judges each run of one case by a letter of STATUSES, and passes all other cases."""

    def __init__(self, case: str, statuses: str) -> None:
        self.orders: list[list[str]] = []
        self.begun: list[str] = []
        self._case, self._statuses = case, list(statuses)

    def __call__(self, plan: Sequence[PlannedCase]) -> Generator[Verdict, None, None]:
        self.orders.append([planned.identifier for planned in plan])
        for planned in plan:
            self.begun.append(planned.identifier)
            letter = self._statuses.pop(0) if planned.identifier == self._case else "p"
            reason = Reason(ReasonKind.WRONG_VALUES, "1 of 4 elements differs")
            status = STATUSES[letter]
            identity = Identity(planned.identifier, "GATHER", ())
            yield Verdict(identity, Judgement(status, reason=reason if letter in "bf" else None))


def verdicts(retries: Retries, judge: Judge, max_failures: int | None = None) -> dict[str, Verdict]:
    stream = retries.run(PLAN, judge, max_failures)
    reached = [each for each in stream if isinstance(each, Verdict)]
    assert len({verdict.case for verdict in reached}) == len(reached)
    return {verdict.case: verdict for verdict in reached}


def test_case_that_fails_and_then_passes_is_failed() -> None:
    judge = Judge(FIRST, "fpfp")
    reached = verdicts(Retries(3), judge)
    assert set(reached) == {FIRST, *OTHERS}
    verdict = reached[FIRST]
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.NOT_REPRODUCIBLE
    assert verdict.reason.message == (
        "passed in 2 of 4 runs; the first failure: wrong values: 1 of 4 elements differs"
    )
    assert verdict.judgement.attempts == tuple(
        Status.FAILED if letter == "f" else Status.PASSED for letter in "fpfp"
    )
    assert judge.orders == [[FIRST, *OTHERS], [FIRST], [FIRST], [FIRST]]


def test_case_that_breaks_and_then_passes_is_failed() -> None:
    verdict = verdicts(Retries(1), Judge(FIRST, "bp"))[FIRST]
    assert verdict.status is Status.FAILED
    assert verdict.judgement.attempts == (Status.BROKEN, Status.PASSED)


def test_waived_attempt_does_not_count_as_passed() -> None:
    verdict = verdicts(Retries(2), Judge(FIRST, "fwp"))[FIRST]
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.message.startswith("did not fail in 2 of 3 runs; the first failure: ")


def test_case_that_fails_each_time_keeps_its_reason() -> None:
    verdict = verdicts(Retries(2), Judge(FIRST, "fff"))[FIRST]
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.WRONG_VALUES
    assert verdict.judgement.attempts == (Status.FAILED,) * 3


def test_without_retries_a_failure_has_no_attempts() -> None:
    assert verdicts(Retries(0), Judge(FIRST, "f"))[FIRST].judgement.attempts == ()


def test_failure_is_announced_before_its_case_runs_again() -> None:
    judge = Judge(FIRST, "fp")
    retries = Retries(1)
    announced = [
        (each.verdict.status, len(judge.orders))
        for each in retries.run(PLAN, judge)
        if isinstance(each, Attempt)
    ]
    assert announced == [("failed", 1), ("passed", 2)]
    assert retries.attempts == {}, "attempts of a case with a verdict are not kept"


def test_attempts_before_a_resumption_count() -> None:
    failure = next(Judge(FIRST, "f")(PLAN))
    judge = Judge(FIRST, "p")
    verdict = verdicts(Retries(1, earlier={FIRST: [failure]}), judge)[FIRST]
    assert verdict.judgement.attempts == (Status.FAILED, Status.PASSED)
    assert verdict.status is Status.FAILED
    assert judge.orders == [OTHERS, [FIRST]]


def test_case_without_attempts_left_is_not_resumed() -> None:
    failure = next(Judge(FIRST, "f")(PLAN))
    judge = Judge(FIRST, "")
    verdict = verdicts(Retries(1, earlier={FIRST: [failure, failure]}), judge)[FIRST]
    assert verdict.judgement.attempts == (Status.FAILED,) * 2
    assert judge.begun == OTHERS


def test_failures_before_a_resumption_count_toward_max_failures() -> None:
    failure = next(Judge(FIRST, "f")(PLAN))
    judge = Judge(FIRST, "f")
    retries = Retries(1, earlier={FIRST: [failure]})
    assert list(verdicts(retries, judge, max_failures=1)) == [FIRST]
    assert judge.begun == [FIRST]


def test_no_other_case_begins_after_max_failures() -> None:
    judge = Judge(FIRST, "ff")
    assert list(verdicts(Retries(1), judge, max_failures=1)) == [FIRST]
    assert judge.begun == [FIRST, FIRST]
