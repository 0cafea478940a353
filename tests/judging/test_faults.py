"""A fault that a backend observed, such as a changed input, fails a case whatever its values.

The tested code is in `dmlconf/judging/judge.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Fault, FaultKind, Outputs
from dmlconf.cases.model import Provenance
from dmlconf.engine.session import no_expectation
from dmlconf.judging.judge import judge
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.engine.cases import case


def outputs(values: list[float], *kinds: FaultKind) -> Outputs:
    faults = tuple(Fault(kind, f"told of {kind}") for kind in kinds)
    return Outputs({"OutputTensor": np.array(values, np.float32)}, 0.0, faults)


@pytest.mark.parametrize("kind", FaultKind)
def test_right_values_with_a_fault_fail(tmp_path: Path, kind: FaultKind) -> None:
    verdict = judge(case(tmp_path, "stated"), outputs([1, 2, 1, 2], kind), no_expectation)
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind(kind.value)
    assert verdict.reason.message == f"told of {kind}"
    assert verdict.figures["OutputTensor"].differing == 0


def test_a_fault_is_reported_before_wrong_values(tmp_path: Path) -> None:
    outcome = outputs([1, 2, 3, 2], FaultKind.GUARD_BAND)
    reason = judge(case(tmp_path, "stated"), outcome, run_case).reason
    assert reason is not None
    assert reason.kind is ReasonKind.GUARD_BAND_TOUCHED
    assert reason.message.startswith("told of guard band touched; 1 of 4 elements")
    assert len(reason.differences) == 1


def test_a_fault_fails_a_case_without_an_independent_expectation(tmp_path: Path) -> None:
    verdict = judge(case(tmp_path, "unstated"), outputs([0] * 4, FaultKind.INPUT), no_expectation)
    assert (verdict.status, verdict.expectation) == (Status.FAILED, None)
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.INPUT_CHANGED


def test_accepting_an_invalid_desc_is_reported_instead_of_a_fault(tmp_path: Path) -> None:
    verdict = judge(
        case(tmp_path, "invalid"), outputs([0] * 5, FaultKind.NOT_WRITTEN), no_expectation
    )
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.ACCEPTED_INVALID
    assert verdict.expectation is Provenance.DOCUMENTED
