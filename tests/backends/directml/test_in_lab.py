"""A batch of cases is one submission to Microsoft's DirectML, and each case gets its own outcome.

The batches run in the Wine lab; build it first: python3 lab/lab.py build.

The tested code is in `dmlconf/backends/directml/backend.py`,
`dmlconf/backends/directml/dispatch/executor.py`, `dmlconf/backends/directml/dispatch/batch.py` and
`dmlconf/backends/directml/dispatch/outcomes.py`.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.backends.directml.lab_script import printed_in_lab

pytestmark = pytest.mark.lab


CASES: Final = """
operator: TILE
cases:
  - matrix: {Number: "=range(8)"}
    desc:
      InputTensor: {Sizes: [2], DataType: INT32, values: "=(Number, Number + 1)"}
      OutputTensor: {Sizes: [4], DataType: INT32}
      Repeats: [2]
  - name: refused
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32}
      OutputTensor: {Sizes: [5], DataType: FLOAT32}
      Repeats: [2]
    expect: {rejected: E_INVALIDARG, constraint: output-sizes}
  - name: after-the-refused
    desc:
      InputTensor: {Sizes: [3], DataType: FLOAT32, values: [1, 2, 3]}
      OutputTensor: {Sizes: [9], DataType: FLOAT32}
      Repeats: [3]
"""

SUBMITTED: Final = 9
"""The number of cases that DirectML accepts."""

SCRIPT: Final = """
import json
from pathlib import Path
from dmlconf.backends.directml.api import vtable
from dmlconf.backends.directml.backend import create
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.protocol import Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite

calls, fail = [], []
call = vtable.ComObject.call

def counted(self, name, *arguments):
    calls.append(name)
    result = call(self, name, *arguments)
    if fail and name == "Close":
        raise HResultError(*fail.pop())
    return result

vtable.ComObject.call = counted

def described(outcome):
    # Of outputs: the tensors, the messages of faults, and how many dispatches were timed.
    if isinstance(outcome, Outputs):
        arrays = {name: array.tolist() for name, array in outcome.arrays.items()}
        return [arrays, [fault.message for fault in outcome.faults], len(outcome.dispatch_seconds)]
    return str(getattr(outcome, "hresult", getattr(outcome, "kind", None)))

def run(cases, *failing):
    calls.clear()
    fail[:] = failing
    outcomes = list(map(described, backend.run(cases)))
    return outcomes, {name: calls.count(name) for name in ("CompileOperator", "Close")}

backend = create("")
cases = [build(planned) for planned in load_suite([Path("many.yaml")], every_case=True).plan()]
together = run(cases)
print(json.dumps({
    "together": together,
    "singly": [run([case])[0][0] for case in cases],
    "failing": run(cases, ("Close", 0x80070057)),
    "removed": run(cases, ("Close", 0x887A0005)),
}))
backend.close()
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Outcomes of the cases on DirectML, and counts of calls.

    Each submission calls `Close` once. Its first call fails with E_INVALIDARG in `failing`, and
    with DXGI_ERROR_DEVICE_REMOVED in `removed`.
    """
    return printed_in_lab(tmp_path_factory.mktemp("lab"), SCRIPT, CASES, "many.yaml")


def test_a_batch_gives_every_case_its_own_outcome_in_order(measured: Any) -> None:
    outcomes, _ = measured["together"]
    # Each case is dispatched twice.
    expected: list[Any] = [[{"OutputTensor": [n, n + 1, n, n + 1]}, [], 2] for n in range(8)]
    expected += ["E_INVALIDARG", [{"OutputTensor": [1, 2, 3] * 3}, [], 2]]
    assert outcomes == expected


def test_a_batch_is_one_submission_and_compiles_each_desc_once(measured: Any) -> None:
    _, calls = measured["together"]
    # The eight cases of the matrix share one desc; `after-the-refused` has another.
    assert calls == {"CompileOperator": 2, "Close": 1}


def test_outcomes_of_cases_are_the_same_in_a_batch(measured: Any) -> None:
    assert measured["singly"] == measured["together"][0]


def test_a_failed_batch_runs_again_case_by_case(measured: Any) -> None:
    outcomes, calls = measured["failing"]
    assert outcomes == measured["together"][0]
    assert calls["Close"] == 1 + SUBMITTED


def test_a_removed_device_breaks_every_case_that_was_submitted(measured: Any) -> None:
    outcomes, calls = measured["removed"]
    submitted = [outcome for outcome in outcomes if outcome != "E_INVALIDARG"]
    assert submitted == ["device removed"] * SUBMITTED
    assert calls["Close"] == 1
