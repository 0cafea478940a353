"""Verdicts: each status and reason that an outcome can lead to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Capabilities,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.backends.registry import create, parse
from dmlconf.cases.build import build
from dmlconf.cases.model import Case, Provenance
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.runner.judge import judge, unsupported_reason
from dmlconf.runner.verdict import ReasonKind, Status, Verdict
from dmlconf.tensors.datatypes import DataType
from tests.runner.cases import plan


def case(directory: Path, name: str) -> Case:
    return build(plan(directory, name)[0])


def nobody(case: Case) -> Outcome | None:
    return None


def outputs(*values: float) -> Outputs:
    return Outputs({"OutputTensor": np.array(values, np.float32)})


def told(verdict: Verdict) -> tuple[Status, ReasonKind | None]:
    return verdict.status, verdict.reason.kind if verdict.reason else None


def test_right_outputs_pass(tmp_path: Path) -> None:
    verdict = judge(case(tmp_path, "stated"), outputs(1, 2, 1, 2), nobody)
    assert told(verdict) == (Status.PASSED, None)
    assert verdict.expectation is Provenance.DOCUMENTED
    assert verdict.figures["OutputTensor"] == {
        "elements": 4, "differing": 0, "worst_ulp": 0.0, "rule": "exact", "limit": 0.0,
        "margin": 0.0, "source": verdict.figures["OutputTensor"]["source"], "open": 0, "loose": 0,
    }  # fmt: skip


def test_wrong_values_fail_with_their_places(tmp_path: Path) -> None:
    verdict = judge(case(tmp_path, "stated"), outputs(1, 2, 3, 2), nobody)
    assert told(verdict) == (Status.FAILED, ReasonKind.WRONG_VALUES)
    assert verdict.reason is not None
    assert verdict.reason.differences == (
        {"tensor": "OutputTensor", "coordinates": [2], "expected": 1.0, "actual": 3.0},
    )
    assert verdict.reason.message.startswith("1 of 4 elements of OutputTensor differs")


@pytest.mark.parametrize(
    ("arrays", "kind", "message"),
    [
        ({}, ReasonKind.MISSING_OUTPUT, "OutputTensor was not returned"),
        (
            {"OutputTensor": np.array([1, 2, 1, 2], np.float64)},
            ReasonKind.WRONG_DATA_TYPE,
            "OutputTensor is FLOAT64, not FLOAT32",
        ),
        (
            {"OutputTensor": np.array([[1, 2, 1, 2]], np.float32)},
            ReasonKind.WRONG_SIZES,
            "OutputTensor has sizes [1, 4], not [4]",
        ),
    ],
)
def test_outputs_of_the_wrong_form_fail(
    tmp_path: Path, arrays: dict[str, np.ndarray], kind: ReasonKind, message: str
) -> None:
    verdict = judge(case(tmp_path, "stated"), Outputs(arrays), nobody)
    assert told(verdict) == (Status.FAILED, kind)
    assert verdict.reason is not None
    assert verdict.reason.message == message


def test_nothing_independent_means_unchecked(tmp_path: Path) -> None:
    verdict = judge(case(tmp_path, "unstated"), outputs(1, 2, 1, 2), nobody)
    assert told(verdict) == (Status.UNCHECKED, ReasonKind.NO_INDEPENDENT_EXPECTATION)


def test_the_reference_judges_what_the_case_leaves_open(tmp_path: Path) -> None:
    right = judge(case(tmp_path, "unstated"), outputs(1, 2, 1, 2), run_case)
    wrong = judge(case(tmp_path, "unstated"), outputs(0, 0, 0, 0), run_case)
    assert told(right) == (Status.PASSED, None)
    assert right.expectation is Provenance.REFERENCE
    assert told(wrong) == (Status.FAILED, ReasonKind.WRONG_VALUES)


def test_an_expected_rejection_passes(tmp_path: Path) -> None:
    invalid = case(tmp_path, "invalid")
    assert judge(invalid, run_case(invalid), nobody).status is Status.PASSED
    unnamed = Rejection("CreateOperator", "E_INVALIDARG")
    assert judge(invalid, unnamed, nobody).status is Status.PASSED


def test_accepting_what_is_invalid_fails(tmp_path: Path) -> None:
    verdict = judge(case(tmp_path, "invalid"), outputs(0), nobody)
    assert told(verdict) == (Status.FAILED, ReasonKind.ACCEPTED_INVALID)


@pytest.mark.parametrize(
    "rejection",
    [
        Rejection("CompileOperator", "E_FAIL"),
        Rejection("CreateOperator", "E_INVALIDARG", ("axis-in-range",)),
    ],
)
def test_another_rejection_than_expected_fails(tmp_path: Path, rejection: Rejection) -> None:
    verdict = judge(case(tmp_path, "invalid"), rejection, nobody)
    assert told(verdict) == (Status.FAILED, ReasonKind.WRONG_REJECTION)


def test_rejecting_what_is_documented_fails(tmp_path: Path) -> None:
    rejection = Rejection("CreateOperator", "E_INVALIDARG")
    verdict = judge(case(tmp_path, "stated"), rejection, nobody)
    assert told(verdict) == (Status.FAILED, ReasonKind.REJECTED_SUPPORTED)


def test_rejecting_what_no_table_lists_is_unsupported(tmp_path: Path) -> None:
    rejection = Rejection("CreateOperator", "E_INVALIDARG")
    verdict = judge(case(tmp_path, "undocumented"), rejection, nobody)
    assert told(verdict) == (Status.UNSUPPORTED, ReasonKind.NOT_DOCUMENTED)


@pytest.mark.parametrize("kind", BreakdownKind)
def test_breakdowns_are_broken(tmp_path: Path, kind: BreakdownKind) -> None:
    outcome = Breakdown(kind, "it broke", "last words")
    verdict = judge(case(tmp_path, "stated"), outcome, nobody)
    assert verdict.status is Status.BROKEN
    assert verdict.reason is not None
    assert verdict.reason.kind == kind.value
    assert verdict.reason.diagnostics == "last words"


def test_declines_what_needs_a_higher_level_or_another_type(tmp_path: Path) -> None:
    everything = Capabilities(FeatureLevel(6, 4), frozenset(DataType))
    old = Capabilities(FeatureLevel(1, 0), frozenset(DataType))
    no_floats = Capabilities(FeatureLevel(6, 4), frozenset({DataType.INT32}))
    stated = case(tmp_path, "stated")
    assert unsupported_reason(stated, everything) is None
    by_level = unsupported_reason(stated, old)
    by_type = unsupported_reason(stated, no_floats)
    assert by_level is not None
    assert by_level.message == "needs feature level 3_1; the backend has 1_0"
    assert by_type is not None
    assert by_type.message == "the backend lacks FLOAT32"


def test_accepting_an_invalid_case_makes_no_tensors(tmp_path: Path) -> None:
    (outcome,) = create(parse("miniature:zeros")).run([case(tmp_path, "invalid")])
    assert isinstance(outcome, Outputs)
    assert not outcome.arrays
