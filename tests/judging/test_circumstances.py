"""A case that fails when it runs again names the circumstance that is to blame, or names none.

Circumstances are ways to run a case again, such as with other buffers (docs/circumstances.md).

The tested code is in `dmlconf/judging/circumstances.py`, `dmlconf/judging/conclusion.py`,
`dmlconf/workers/exercising.py` and `dmlconf/backends/errors.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import jsonschema
import numpy as np
import pytest

from dmlconf.backends import registry
from dmlconf.backends.circumstances import (
    Circumstance,
    Dispatch,
    Exercise,
    Exercised,
    Exercises,
    Inapplicable,
    UnderCircumstance,
)
from dmlconf.backends.numpy.backend import NumpyBackend
from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Capabilities,
    Fault,
    FaultKind,
    Outcome,
    Outputs,
)
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.cases.variation import varied
from dmlconf.documents.schema import bundled_schema
from dmlconf.engine.session import in_process, judged, reference
from dmlconf.judging.circumstances import judge_circumstances
from dmlconf.judging.conclusion import Conclusion, JudgeOptions, verdict_of
from dmlconf.judging.needs_run import answered
from dmlconf.run_log.log import verdict_data
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from dmlconf.workers.exercising import LONG_DISPATCH_SECONDS, MOST_DISPATCH_SECONDS, run_items
from tests.cases.suites import SUM

ALL: Final = tuple(Circumstance)

TESTED: Final = registry.parse("faulty:zeros")
"""The name under which these backends run; the reference does not judge `numpy`."""


class Right(NumpyBackend):
    """The reference, which gives the same outputs under circumstances."""

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), circumstances=frozenset(map(str, Circumstance)))

    def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
        return Exercised((self.dispatch(case, 0), self.dispatch(case, 1)))

    def dispatch(self, case: Case, variation: int) -> Dispatch:
        [outcome] = self.run([varied(case, variation)])
        assert isinstance(outcome, Outputs)
        return Dispatch(variation, outcome.arrays)


class WrongWhenRebound(Right):
    """Gives the outputs of the first inputs when it is bound to others."""

    def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
        stale = replace(self.dispatch(case, 0), variation=1)
        if circumstance is Circumstance.REBOUND:
            return Exercised((self.dispatch(case, 0), stale))
        return super().exercise(case, circumstance)


class WritesBesideWhenOffset(Right):
    def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
        fault = Fault(FaultKind.GUARD_BAND, "4 bytes of a guard band changed")
        if circumstance is Circumstance.OFFSET:
            return Exercised((replace(self.dispatch(case, 1), faults=(fault,)),))
        return super().exercise(case, circumstance)


class WrongForOtherData(Right):
    """Negates the outputs for other inputs than those of the case, in plain runs too."""

    def run(self, cases: Any) -> Iterator[Any]:
        for case, outcome in zip(cases, super().run(cases), strict=True):
            if "#inputs" in case.identifier and isinstance(outcome, Outputs):
                arrays = {name: -array for name, array in outcome.arrays.items()}
                outcome = replace(outcome, arrays=arrays)
            yield outcome


class RaisesWhenOwned(Right):
    def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
        if circumstance is Circumstance.OWNED:
            raise RuntimeError("no such copy")
        return super().exercise(case, circumstance)


class TextlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class RaisesTextlessWhenOwned(Right):
    def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
        if circumstance is Circumstance.OWNED:
            raise TextlessError
        return super().exercise(case, circumstance)


class BreaksDownWhenRepeated(Right):
    def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
        if circumstance is Circumstance.REPEATED:
            return Breakdown(BreakdownKind.DEVICE_REMOVED, "the device was removed")
        return super().exercise(case, circumstance)


class NeverOffset(Right):
    def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
        if circumstance is Circumstance.OFFSET:
            return Inapplicable("it has no offsets")
        return super().exercise(case, circumstance)


@contextmanager
def opened(backend: NumpyBackend) -> Iterator[Any]:
    yield in_process(TESTED, backend)


def verdict_on(tmp_path: Path, backend: NumpyBackend) -> Verdict:
    """Return the verdict on SUM under all circumstances; check it against the schema."""
    (tmp_path / "add.yaml").write_text(SUM, encoding="utf-8")
    plan = load_suite([tmp_path]).plan()
    options = JudgeOptions(circumstances=ALL)
    with opened(backend) as ready:
        [verdict] = judged(plan, ready, reference("numpy", TESTED), options)
    data = json.loads(json.dumps({"record": "verdict", **verdict_data(verdict)}))
    jsonschema.Draft202012Validator(bundled_schema("run-log")).validate(data)
    return verdict


def test_a_case_that_is_right_under_all_circumstances_passes(tmp_path: Path) -> None:
    verdict = verdict_on(tmp_path, Right())
    assert (verdict.status, verdict.circumstance) == (Status.PASSED, None)
    assert verdict.judgement.circumstances == dict.fromkeys(ALL, "passed")


def test_a_circumstance_is_blamed_if_the_plain_run_is_right(
    tmp_path: Path,
) -> None:
    verdict = verdict_on(tmp_path, WrongWhenRebound())
    assert (verdict.status, verdict.circumstance) == (Status.FAILED, "rebound")
    assert verdict.judgement.circumstances == {"repeated": "passed", "rebound": "failed"}
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.WRONG_VALUES
    assert verdict.reason.message.startswith("only when rebound (inputs 1): 7 of 7 elements")
    assert verdict.reason.differences


def test_no_circumstance_is_blamed_if_the_plain_run_is_wrong(
    tmp_path: Path,
) -> None:
    verdict = verdict_on(tmp_path, WrongForOtherData())
    assert (verdict.status, verdict.circumstance) == (Status.FAILED, None)
    assert verdict.reason is not None
    assert verdict.reason.message.startswith("with other inputs (1), plainly too: ")


def test_a_waived_plain_run_does_not_excuse_a_circumstance(
    tmp_path: Path,
) -> None:
    """The waived fault negates outputs; under the circumstance they are stale instead."""
    (tmp_path / "add.yaml").write_text(SUM, encoding="utf-8")
    [planned] = load_suite([tmp_path]).plan()
    case = valid_case(planned)
    [right] = Right().run([case])
    assert isinstance(right, Outputs)
    conclusion = Conclusion(reference("numpy", TESTED))

    def excuse(case: Case, outcome: Outcome, verdict: Verdict) -> Verdict:
        [right] = Right().run([case])
        assert isinstance(right, Outputs)
        assert isinstance(outcome, Outputs)
        [(name, array)] = right.arrays.items()
        if np.array_equal(outcome.arrays[name], -array):
            return verdict.judged(status=Status.WAIVED)
        return verdict

    stale = Exercised((Dispatch(1, right.arrays),))
    plain = conclusion.judge(case, right)
    steps = judge_circumstances(
        case, plain, {Circumstance.REBOUND: stale}, conclusion.judge, excuse
    )
    verdict = answered(steps, lambda other: next(WrongForOtherData().run([other])))
    assert (verdict.status, verdict.circumstance) == (Status.FAILED, "rebound")


def test_a_fault_under_a_circumstance_fails_right_values(
    tmp_path: Path,
) -> None:
    verdict = verdict_on(tmp_path, WritesBesideWhenOffset())
    assert (verdict.status, verdict.circumstance) == (Status.FAILED, "offset")
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.GUARD_BAND_TOUCHED


@pytest.mark.parametrize(
    ("stated", "accepted"),
    [
        ({"OutputTensor": "BTensor"}, {"OutputTensor": "BTensor"}),
        ({"OutputTensor": "CTensor", "AnotherTensor": "ATensor"}, {}),
        (None, None),
    ],
)
def test_shared_buffers_count_only_for_tensors_of_the_case(
    stated: dict[str, str] | None, accepted: dict[str, str] | None, tmp_path: Path
) -> None:
    class Sharing(Right):
        def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
            return Exercised((replace(self.dispatch(case, 0), in_place=stated),))

    (tmp_path / "add.yaml").write_text(SUM, encoding="utf-8")
    [case] = map(valid_case, load_suite([tmp_path]).plan())
    [result] = run_items(Sharing(), [Exercise(case, (Circumstance.ALIASED,))])
    assert isinstance(result, Exercises)
    under = result.under[Circumstance.ALIASED]
    assert isinstance(under, Exercised)
    assert [each.in_place for each in under.dispatches] == [accepted]


def test_a_circumstance_without_dispatches_is_broken(
    tmp_path: Path,
) -> None:
    class Idle(Right):
        def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
            return Exercised(())

    verdict = verdict_on(tmp_path, Idle())
    assert (verdict.status, verdict.circumstance) == (Status.BROKEN, "repeated")
    assert verdict.reason is not None
    assert "the backend reported no dispatches" in verdict.reason.message


def test_an_exception_under_a_circumstance_breaks_only_it(
    tmp_path: Path,
) -> None:
    verdict = verdict_on(tmp_path, RaisesWhenOwned())
    assert (verdict.status, verdict.circumstance) == (Status.BROKEN, "owned")
    assert verdict.judgement.circumstances["offset"] == "passed"


def test_an_exception_without_a_text_breaks_only_the_circumstance(tmp_path: Path) -> None:
    verdict = verdict_on(tmp_path, RaisesTextlessWhenOwned())
    assert (verdict.status, verdict.circumstance) == (Status.BROKEN, "owned")
    assert verdict.judgement.circumstances["offset"] == "passed"
    assert verdict.reason is not None
    assert "TextlessError: an exception whose text raises another one" in verdict.reason.message


def test_the_circumstance_that_removes_the_device_is_named(tmp_path: Path) -> None:
    verdict = verdict_on(tmp_path, BreaksDownWhenRepeated())
    assert (verdict.status, verdict.circumstance) == (Status.BROKEN, "repeated")


def test_an_inapplicable_circumstance_does_not_fail_the_case(
    tmp_path: Path,
) -> None:
    verdict = verdict_on(tmp_path, NeverOffset())
    assert verdict.status is Status.PASSED
    assert verdict.judgement.circumstances["offset"] == "not applicable"


class Slow(Right):
    """Says that the dispatches of each plain run took these seconds; the shortest counts."""

    def __init__(self, *dispatch_seconds: float) -> None:
        self.dispatch_seconds = dispatch_seconds

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for outcome in super().run(cases):
            assert isinstance(outcome, Outputs)
            yield replace(outcome, dispatch_seconds=self.dispatch_seconds)


@pytest.mark.parametrize(
    ("dispatch_seconds", "repeated", "long"),
    [
        ((5.0, LONG_DISPATCH_SECONDS / 2), "passed", "passed"),
        ((5.0, LONG_DISPATCH_SECONDS * 2), "passed", "not applicable"),
        ((5.0, MOST_DISPATCH_SECONDS * 2), "not applicable", "not applicable"),
    ],
)
def test_circumstances_that_would_take_too_long_are_not_applicable(
    tmp_path: Path, dispatch_seconds: tuple[float, ...], repeated: str, long: str
) -> None:
    verdict = verdict_on(tmp_path, Slow(*dispatch_seconds))
    assert verdict.judgement.circumstances["repeated"] == repeated
    assert verdict.judgement.circumstances["long"] == long


def test_a_case_can_run_plainly_or_under_one_circumstance_alone(tmp_path: Path) -> None:
    (tmp_path / "add.yaml").write_text(SUM, encoding="utf-8")
    [planned] = load_suite([tmp_path]).plan()
    case = valid_case(planned)
    conclusion = Conclusion(reference("numpy", TESTED))
    with opened(WrongWhenRebound()) as ready:
        rebound = Exercise(case, (Circumstance.REBOUND,))
        repeated = Exercise(case, (Circumstance.REPEATED,))
        assert verdict_of(case, ready.execute, conclusion).status is Status.PASSED
        assert verdict_of(repeated, ready.execute, conclusion).status is Status.PASSED
        assert verdict_of(rebound, ready.execute, conclusion).circumstance == "rebound"
