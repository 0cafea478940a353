"""An expectation that contradicts the reference fails its case, unless the case disputes it.

The tested code is in `dmlconf/judging/contradictions.py`, `dmlconf/judging/judge.py`,
`dmlconf/judging/conclusion.py`, `dmlconf/engine/against.py` and `schemas/case.schema.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import NumpyBackend, run_case
from dmlconf.backends.protocol import Outputs
from dmlconf.backends.recording.file import recording_bytes
from dmlconf.backends.recording.model import entry_of
from dmlconf.backends.registry import parse
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, ExpectedOutputs, Provenance
from dmlconf.cases.variation import varied
from dmlconf.diagnosis.bench import open_bench
from dmlconf.engine.against import AUTO, expectations
from dmlconf.engine.session import in_process, judged, no_expectation
from dmlconf.judging.judge import Recorded, judge
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.backends.recordings import recording
from tests.cases.suites import MEAN, PRODUCT, built
from tests.cli.process import dmlconf_here
from tests.engine.test_against import opened_backend
from tests.graphs.suites import graph_case
from tests.judging.test_judge import status_and_kind

GEMM: Final = PRODUCT + "    expect: {OutputTensor: [12345, 12345, 1, -7]}\n"
DISPUTING: Final = GEMM + "    disputes: reference\n    note: The page says so.\n"
AVERAGE: Final = MEAN + "    expect: {OutputTensor: [999]}\n"

GRAPH: Final = """
inputs: {x: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [1, -2, 3]}}
nodes:
  double: {operator: ELEMENT_WISE_ADD, desc: {ATensor: x, BTensor: x, OutputTensor: {}}}
  tanh: {operator: ACTIVATION_TANH, desc: {InputTensor: double, OutputTensor: {}}}
outputs: {y: tanh}
expect: {y: [0.5, 0.5, 0.5]}
"""


def unary(
    operator: str,
    value: str,
    wrong: str,
    more: str = "",
    data_type: str = "FLOAT32",
    desc: str = "",
) -> str:
    """Return a case file of an operator on one element, which expects `wrong`.

    `more` is a further line of the case, and `desc` of its desc.
    """
    return f"""
operator: {operator}
cases:
  - name: one
    desc:
      InputTensor: {{Sizes: [1], DataType: {data_type}, values: [{value}]}}
      OutputTensor: {{Sizes: [1], DataType: {data_type}}}
      {desc}
    expect: {{OutputTensor: [{wrong}]}}
    {more}
"""


def binary(operator: str, one: str, other: str, wrong: str, data_type: str = "FLOAT32") -> str:
    """Return a case file of an operator on two inputs of one element, which expects `wrong`."""
    return f"""
operator: {operator}
cases:
  - name: one
    desc:
      ATensor: {{Sizes: [1], DataType: {data_type}, values: [{one}]}}
      BTensor: {{Sizes: [1], DataType: {data_type}, values: [{other}]}}
      OutputTensor: {{Sizes: [1], DataType: {data_type}}}
    expect: {{OutputTensor: [{wrong}]}}
"""


def tolerant(limit: str) -> str:
    return unary(
        "ELEMENT_WISE_EXP", "0", "5", f"tolerance: {{OutputTensor: {{{limit}, reason: a test}}}}"
    )


CASES: Final[Mapping[str, str]] = {
    "accumulate": GEMM,
    "accumulate, of a mean": AVERAGE,
    "exact": unary("ELEMENT_WISE_IDENTITY", "1", "2"),
    "exact, of integers": unary("ELEMENT_WISE_IDENTITY", "1", "2", data_type="INT64"),
    "interval": unary("ELEMENT_WISE_EXP", "0", "5"),
    "one of": binary("ELEMENT_WISE_DIVIDE", "1", "3", "7"),
    "one of, of whole numbers": unary(
        "ELEMENT_WISE_ROUND", "2.5", "4", desc="RoundingMode: HALVES_TO_NEAREST_EVEN"
    ),
    "ulp": tolerant("ulp: 2"),
    "absolute": tolerant("absolute: 0.01"),
    "relative": tolerant("relative: 0.01"),
    "flushed": binary("ELEMENT_WISE_ADD", "1e-40", "1e-40", "5"),
    "an infinity": unary("ELEMENT_WISE_EXP", "0", ".inf"),
    "not a number": unary("ELEMENT_WISE_EXP", "0", ".nan"),
}
"""For each rule, a case file whose expectation the rule forbids."""


def expected(case: Case) -> Outputs:
    assert isinstance(case.expectation, ExpectedOutputs)
    return Outputs(dict(case.expectation.outputs))


CONTRADICTION: Final = (Status.FAILED, ReasonKind.CONTRADICTION)


@pytest.mark.parametrize("name", CASES)
def test_a_backend_that_returns_the_contradictory_expectation_fails(
    tmp_path: Path, name: str
) -> None:
    case = built(tmp_path, CASES[name])
    assert status_and_kind(judge(case, expected(case), no_expectation)) == CONTRADICTION


@pytest.mark.parametrize("name", CASES)
def test_reference_outputs_fail_too_if_the_expectation_contradicts_them(
    tmp_path: Path, name: str
) -> None:
    case = built(tmp_path, CASES[name])
    assert status_and_kind(judge(case, run_case(case), no_expectation)) == CONTRADICTION


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_expectation_that_the_rule_forbids_is_a_contradiction(
    tmp_path: Path, name: str
) -> None:
    case = built(tmp_path, CASES[name])
    wrong, case = expected(case), replace(case, expectation=None)
    for outcome in (wrong, run_case(case)):
        assert status_and_kind(judge(case, outcome, lambda case: Recorded(wrong))) == CONTRADICTION


def test_the_message_of_a_contradiction_says_what_the_rule_permits(tmp_path: Path) -> None:
    case = built(tmp_path, GEMM)
    verdict = judge(case, run_case(case), no_expectation)
    assert verdict.reason is not None
    begin = (
        "the expected value and the reference contradict each other: 12345 is not within "
        "[19.24999, 19.25001], at [0, 0, 0, 0] of OutputTensor (and 3 more)"
    )
    assert verdict.reason.message.startswith(begin)
    first = verdict.reason.differences[0]
    assert first["coordinates"] == [0, 0, 0, 0]
    assert (first["expected"], first["actual"]) == (12345, np.float32(19.25))
    [[low, high]] = first["allowed"]
    assert 19.2499 < low < 19.25 < high < 19.2501


def test_a_contradiction_in_the_sign_of_a_zero_is_named(tmp_path: Path) -> None:
    case = built(tmp_path, unary("ELEMENT_WISE_IDENTITY", "0", "-0.0"))
    verdict = judge(case, run_case(case), no_expectation)
    assert verdict.reason is not None
    assert "-0 is not 0, at [0] of OutputTensor" in verdict.reason.message


def test_a_graphs_expectation_that_the_rules_forbid_is_a_contradiction(tmp_path: Path) -> None:
    case = graph_case(tmp_path, GRAPH)
    for outcome in (expected(case), run_case(case)):
        assert status_and_kind(judge(case, outcome, no_expectation)) == CONTRADICTION


def test_another_permitted_candidate_is_no_contradiction(
    tmp_path: Path,
) -> None:
    """The rule permits 0 for a subnormal sum."""
    case = built(tmp_path, binary("ELEMENT_WISE_ADD", "1e-40", "1e-40", "0"))
    assert judge(case, run_case(case), no_expectation).status is Status.PASSED
    assert judge(case, expected(case), no_expectation).status is Status.PASSED


def test_an_expectation_of_an_open_element_is_no_contradiction(
    tmp_path: Path,
) -> None:
    case = built(tmp_path, binary("ELEMENT_WISE_DIVIDE", "1", "0", "5", "INT32"))
    assert judge(case, run_case(case), no_expectation).status is Status.UNCHECKED


def test_a_wrong_expectation_for_other_inputs_is_a_contradiction(tmp_path: Path) -> None:
    text = unary("ELEMENT_WISE_EXP", "0", "1").replace(
        "values: [0]", "fill: {uniform: {low: 1, high: 2, seed: 1}}"
    )
    case = varied(built(tmp_path, text), 1)
    wrong = Outputs({"OutputTensor": np.array([99], np.float32)})
    assert status_and_kind(judge(case, wrong, lambda case: Recorded(wrong))) == CONTRADICTION
    assert status_and_kind(judge(case, wrong, run_case)) == (Status.FAILED, ReasonKind.WRONG_VALUES)


def test_expected_outcomes_of_a_wrong_backend_are_a_contradiction(tmp_path: Path) -> None:
    case = replace(built(tmp_path, AVERAGE), expectation=None)
    suite = load_suite([case.about.location.path])
    with opened_backend("faulty:level=6_4") as tested:
        given = expectations("faulty:zeros", tested, suite, list(suite.plan()), [tmp_path])
    verdict = judge(
        case, Outputs({"OutputTensor": np.zeros((1, 1, 1, 1), np.float32)}), given.against
    )
    assert status_and_kind(verdict) == CONTRADICTION
    assert verdict.expectation is Provenance.REFERENCE


def test_a_wrong_recording_of_an_earlier_reference_is_a_contradiction(tmp_path: Path) -> None:
    case = replace(built(tmp_path, AVERAGE), expectation=None)
    wrong = Outputs({"OutputTensor": np.full((1, 1, 1, 1), 999, np.float32)})
    stored = recording({}, backend="numpy", version="1.0", adapter=None, driver=None)
    (tmp_path / "reduce").mkdir()
    path = tmp_path / "reduce" / "x.dmlrec"
    path.write_bytes(
        recording_bytes(replace(stored, entries={case.identifier: entry_of(case, wrong)}))
    )
    suite = load_suite([case.about.location.path])
    with opened_backend("faulty:level=6_4") as tested:
        given = expectations(AUTO, tested, suite, list(suite.plan()), [tmp_path])
    verdict = judge(case, wrong, given.against)
    assert status_and_kind(verdict) == CONTRADICTION
    assert verdict.expectation is Provenance.REFERENCE


def test_a_disputing_case_is_judged_by_its_expectation(tmp_path: Path) -> None:
    case = built(tmp_path, DISPUTING)
    right = judge(case, expected(case), no_expectation)
    assert (right.status, right.identity.disputes) == (Status.PASSED, "reference")
    wrong = judge(case, run_case(case), no_expectation)
    assert status_and_kind(wrong) == (Status.FAILED, ReasonKind.WRONG_VALUES)


def test_a_disputing_case_is_waived_for_the_reference(
    tmp_path: Path,
) -> None:
    case = built(tmp_path, DISPUTING)
    suite = load_suite([case.about.location.path])
    [own] = judged(suite.plan(), in_process(parse("numpy"), NumpyBackend()), no_expectation)
    assert status_and_kind(own) == (Status.WAIVED, ReasonKind.DISPUTED_REFERENCE)
    with open_bench(parse("numpy"), 10) as bench:
        assert status_and_kind(bench.verdict(case)) == status_and_kind(own)
    shown = dmlconf_here(tmp_path, "show", case.identifier, "f.yaml", "-b", "numpy")
    assert shown.stdout.splitlines()[-1].startswith("waived: the case says that the reference")


def test_a_dispute_needs_a_note(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(GEMM + "    disputes: reference\n", encoding="utf-8")
    done = dmlconf_here(tmp_path, "validate", "f.yaml")
    assert done.returncode == 3
    assert "lacks `note`" in done.stderr


@pytest.mark.parametrize("backend", ["numpy", "faulty:level=6_4"])
def test_a_run_names_the_contradiction(tmp_path: Path, backend: str) -> None:
    (tmp_path / "f.yaml").write_text(GEMM, encoding="utf-8")
    done = dmlconf_here(tmp_path, "run", "f.yaml", "-b", backend, "--log", "run.jsonl")
    assert done.returncode == 1
    assert "expectation contradicts the reference" in done.stdout
    verdict = json.loads((tmp_path / "run.jsonl").read_text("utf-8").splitlines()[1])
    assert verdict["reason"]["kind"] == "expectation contradicts the reference"


def test_a_replayed_recording_of_the_contradictory_values_fails(tmp_path: Path) -> None:
    case = built(tmp_path, AVERAGE)
    stored = replace(recording({}), entries={case.identifier: entry_of(case, expected(case))})
    (tmp_path / "x.dmlrec").write_bytes(recording_bytes(stored))
    done = dmlconf_here(tmp_path, "run", "f.yaml", "-b", "recording:x.dmlrec")
    assert done.returncode == 1
    assert "999 is not within" in " ".join(done.stdout.split())
