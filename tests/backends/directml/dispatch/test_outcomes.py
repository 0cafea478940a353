"""A case that DirectML should have refused, but accepted, fails even if it cannot be dispatched.

A crash in DirectML ends the process. A rejection names the refused node.

The tested code is in `dmlconf/backends/directml/dispatch/outcomes.py`,
`dmlconf/backends/directml/dispatch/placement.py` and `dmlconf/judging/judge.py`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn, cast

import pytest

from dmlconf.backends.directml.api.dml import DML_BINDING_PROPERTIES
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.vtable import (
    ACCESS_VIOLATION,
    IUNKNOWN,
    ComObject,
    NativeCrashError,
)
from dmlconf.backends.directml.dispatch.batch import Batch, Prepared
from dmlconf.backends.directml.dispatch.executor import Executor, Result
from dmlconf.backends.directml.dispatch.graph import NodeRefusalError
from dmlconf.backends.directml.dispatch.operators import CompiledOperator
from dmlconf.backends.directml.dispatch.outcomes import Runner, failure
from dmlconf.backends.directml.dispatch.placement import placement_of
from dmlconf.backends.protocol import Outputs, Rejection
from dmlconf.cases.model import Case, ExpectedRejection, Provenance
from dmlconf.cases.plans import plan
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.judging.judge import judge
from dmlconf.tensors.datatypes import DataType
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.backends.directml.cases import tile


class AcceptingExecutor:
    """An executor that compiles every case; `ran` lists the cases that were to be dispatched."""

    def __init__(self) -> None:
        self.ran: list[Case] = []

    def prepare(self, case: Case) -> Prepared:
        never_called = ComObject(IUNKNOWN, 1)
        needs = DML_BINDING_PROPERTIES(1, 0, 0)
        compiled = CompiledOperator(never_called, never_called, needs, needs)
        return Prepared(case, compiled, placement_of(plan(case)))

    def run(self, batch: Batch) -> Sequence[Result]:
        self.ran += [member.prepared.case for member in batch]
        return [Result({}, (), ()) for _ in batch]

    def trim(self) -> None:
        pass


@pytest.mark.parametrize(
    ("tensor", "total", "fits"),
    [  # The input has two elements of 4 bytes, and the output four.
        ("InputTensor", 8, True),
        ("InputTensor", 4, False),
        ("OutputTensor", 16, True),
        ("OutputTensor", 12, False),
    ],
)
def test_accepted_invalid_case_fails_with_or_without_dispatch(
    tensor: str, total: int, fits: bool
) -> None:
    sizes = {"InputTensor": (2,), "OutputTensor": (4,)}[tensor]
    desc = TensorDesc(DataType.FLOAT32, sizes, DeclaredTensorSizeInBytes=total)
    refusal = ExpectedRejection("E_INVALIDARG", None, Provenance.DOCUMENTED)
    case = replace(tile(), expectation=refusal)
    case = replace(case, desc={**case.desc, tensor: desc})
    executor = AcceptingExecutor()
    [outcome] = Runner(cast(Executor, executor)).run([case])
    assert isinstance(outcome, Outputs)
    assert executor.ran == ([case] if fits else [])
    verdict = judge(case, outcome, lambda case: None)
    assert verdict.reason is not None
    assert (verdict.status, verdict.reason.kind) == (Status.FAILED, ReasonKind.ACCEPTED_INVALID)


def test_a_crash_while_operators_are_released_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Crashing(AcceptingExecutor):
        def trim(self) -> None:
            raise NativeCrashError("Release", "exception: access violation")

    def end(code: int) -> NoReturn:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", end)
    with pytest.raises(SystemExit) as caught:
        list(Runner(cast(Executor, Crashing())).run([tile()]))
    assert caught.value.code == ACCESS_VIOLATION
    assert capsys.readouterr().err == "case: Release: exception: access violation\n"


@pytest.mark.parametrize("name", ["", "gemm"])
def test_rejection_names_the_refused_node(name: str) -> None:
    error = NodeRefusalError(name, HResultError("CreateOperator", 0x80070057))
    assert failure(error, 0.5) == Rejection("CreateOperator", "E_INVALIDARG", (), 0.5, name)
