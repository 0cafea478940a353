"""Messages of debug layers become part of outcomes, verdicts and reports.

The tested code is in `dmlconf/backends/directml/devices/messages.py`, `dmlconf/judging/judge.py`
and `dmlconf/reports/runs/remarks.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dmlconf.backends.directml.api.sdklayers import D3D12_MESSAGE_SEVERITY
from dmlconf.backends.directml.devices.messages import Message, with_messages
from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Fault,
    FaultKind,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.cases.building.build import build
from dmlconf.judging.judge import judge
from dmlconf.reports.runs.remarks import debug_layer_note, warning_lines
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.engine.cases import plan
from tests.reports.logs import HEADER, verdict

CORRUPTION = Message(D3D12_MESSAGE_SEVERITY.CORRUPTION, 3, "a heap is corrupt")
ERROR = Message(D3D12_MESSAGE_SEVERITY.ERROR, 7, "a state is wrong")
WARNING = Message(D3D12_MESSAGE_SEVERITY.WARNING, 9, "a barrier is superfluous")
GUARD_FAULT = Fault(FaultKind.GUARD_BAND, "3 bytes")


def test_errors_become_first_faults_and_warnings_are_counted() -> None:
    outcome = with_messages(
        Outputs({}, faults=(GUARD_FAULT,)), [WARNING, ERROR, WARNING, CORRUPTION]
    )
    assert outcome == Outputs(
        {},
        faults=(
            Fault(FaultKind.MESSAGE, "CORRUPTION #3: a heap is corrupt"),
            Fault(FaultKind.MESSAGE, "ERROR #7: a state is wrong"),
            GUARD_FAULT,
        ),
        warnings=("WARNING #9: a barrier is superfluous (2 times)",),
    )


def test_an_error_message_explains_a_rejection() -> None:
    outcome = with_messages(Rejection("CreateOperator", "E_INVALIDARG"), [ERROR, WARNING])
    assert isinstance(outcome, Rejection)
    assert outcome.message == "ERROR #7: a state is wrong"
    assert outcome.warnings == ("WARNING #9: a barrier is superfluous",)


def test_a_rejection_with_a_corruption_message_is_a_breakdown() -> None:
    outcome = with_messages(Rejection("CreateOperator", "E_INVALIDARG"), [CORRUPTION])
    assert outcome == Breakdown(BreakdownKind.ERROR, "CORRUPTION #3: a heap is corrupt")


def test_messages_are_added_to_the_diagnostics_of_a_breakdown() -> None:
    broken = Breakdown(BreakdownKind.DEVICE_REMOVED, "removed", "before")
    outcome = with_messages(broken, [ERROR])
    assert isinstance(outcome, Breakdown)
    assert outcome.diagnostics == "before\nERROR #7: a state is wrong"


def test_an_outcome_without_messages_is_unchanged() -> None:
    for outcome in (
        Outputs({}, faults=(GUARD_FAULT,)),
        Rejection("a", "b"),
        Breakdown(BreakdownKind.HANG, ""),
    ):
        assert with_messages(outcome, []) == outcome


@pytest.mark.parametrize(("count", "more"), [(20, []), (25, ["and 5 other messages"])])
def test_20_warnings_are_listed_and_others_counted(count: int, more: list[str]) -> None:
    messages = [Message(D3D12_MESSAGE_SEVERITY.WARNING, n, "w") for n in range(count)]
    outcome = with_messages(Outputs({}), messages)
    assert isinstance(outcome, Outputs)
    assert list(outcome.warnings) == [*(f"WARNING #{n}: w" for n in range(20)), *more]


@pytest.mark.parametrize(
    ("outcome", "kind", "message"),
    [
        (
            Outputs({}, faults=(Fault(FaultKind.MESSAGE, "ERROR #7: x"),)),
            ReasonKind.ERROR_MESSAGE,
            "ERROR #7: x",
        ),
        (
            Rejection("CreateOperator", "E_INVALIDARG", message="ERROR #7: x"),
            ReasonKind.REJECTED_SUPPORTED,
            "E_INVALIDARG by CreateOperator (ERROR #7: x), but",
        ),
    ],
)
def test_error_message_fails_its_case_and_is_quoted(
    tmp_path: Path, outcome: Outcome, kind: ReasonKind, message: str
) -> None:
    reached = judge(build(plan(tmp_path, "stated")[0]), outcome, lambda case: None)
    assert reached.status is Status.FAILED
    assert reached.reason is not None
    assert reached.reason.kind is kind
    assert reached.reason.message.startswith(message)


def test_reports_count_the_cases_with_each_warning() -> None:
    verdicts = tuple(verdict(f"tile/a/{n}", warnings=("WARNING #9: x",)) for n in range(3))
    log = RunLog(HEADER, (*verdicts, verdict("tile/a/other", warnings=("w",))), None)
    assert warning_lines(log) == [
        "3 cases, such as tile/a/0: WARNING #9: x",
        "1 case, such as tile/a/other: w",
    ]


@pytest.mark.parametrize(
    ("details", "note"),
    [
        ({}, None),
        ({"debug": True, "missing_debug_layers": []}, None),
        ({"debug": False, "missing_debug_layers": ["D3D12"]}, None),
        (
            {"debug": True, "missing_debug_layers": ["DirectML", "D3D12"], "messages": []},
            "debug layers that are not there, so no message was read: DirectML; D3D12",
        ),
        (
            {"debug": True, "missing_debug_layers": ["DirectML"], "messages": ["D3D12"]},
            "debug layers that are not there: DirectML",
        ),
    ],
)
def test_reports_name_requested_but_missing_debug_layers(
    details: dict[str, Any], note: str | None
) -> None:
    environment = {**HEADER.environment, "details": details}
    log = RunLog(replace(HEADER, environment=environment), (), None)
    assert debug_layer_note(log) == note
