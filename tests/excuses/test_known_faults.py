"""A failure that a known fault explains is waived, in the fault's versions of DirectML.

The tested code is in `dmlconf/excuses/known_faults.py`, `dmlconf/excuses/known_fault_file.py`,
`dmlconf/excuses/scope.py` and `schemas/known-faults.yaml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Environment,
    Fault,
    FaultKind,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cases.model import Case
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.engine.session import no_expectation
from dmlconf.excuses.known_fault_file import (
    faults_of_version,
    known_faults,
    lint_known_faults,
    measured_versions,
    read_known_faults,
)
from dmlconf.excuses.known_faults import NO_KNOWN_FAULTS, KnownFault, KnownFaults, NodeCondition
from dmlconf.excuses.scope import parse_version
from dmlconf.expressions import Expression
from dmlconf.faults.computed import Computed
from dmlconf.judging.judge import judge
from dmlconf.resources import cases_directory
from dmlconf.tensors.sample import sample_of
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.bundled import bundled
from tests.engine.cases import plan
from tests.graphs.suites import TWO_NODES, graph_case

WRONG = Outputs({"OutputTensor": np.zeros(4, np.float32)})
RIGHT = Outputs({"OutputTensor": np.array([1, 2, 1, 2], np.float32)})
REFUSED = Rejection("CreateOperator", "E_UNEXPECTED")
CRASHED = Breakdown(BreakdownKind.CRASH, "its process died", "it said this")

FAULT = KnownFault(
    "wrong-there",
    "It is wrong.",
    (1, 8, 0),
    (1, 15, 4),
    frozenset({"TILE"}),
    "outputs",
    frozenset({"tile/mixed/stated"}),
)

FILE = """
format: 1
tested: [1.8.0, 1.9.0, 1.10.1, 1.12.1, 1.14.1]
faults:
  - name: wrong-there
    versions: {first: 1.8.0, last: 1.12.1}
    operators: [TILE]
    outcome: outputs
    cases: [tile/mixed/stated]
    not_computed: Its numbers are random.
    reason: It
      is wrong.
  - name: not-in-a-graph
    versions: {first: 1.9.0, last: 1.9.0}
    operators: [TILE]
    compile: graph
    outcome: E_FAIL by CompileGraph
    when: InputTensor.DimensionCount == 1
    reason: It is refused.
"""


def case(directory: Path, name: str = "stated") -> Case:
    """Return a case of the file TILE in tests/engine/cases.py."""
    return build(plan(directory, name)[0])


def verdict(fault: KnownFault, case: Case, outcome: Outcome) -> Verdict:
    """Return the verdict on an outcome of DirectML 1.9.0, of which only this fault is known."""
    return KnownFaults("1.9.0", (fault,)).waive(case, outcome, judge(case, outcome, no_expectation))


def directml(version: str, **details: Any) -> Environment:
    return Environment("directml", version, "an adapter", "1.0", {"compile": "operator", **details})


def fault_names(environment: Environment) -> set[str]:
    return {fault.name for fault in known_faults(environment).faults}


def test_failure_of_a_known_fault_is_waived(tmp_path: Path) -> None:
    stated = case(tmp_path)
    waived = verdict(FAULT, stated, WRONG)
    assert waived.status is Status.WAIVED
    assert not waived.status.fails_run
    assert waived.reason is not None
    assert waived.reason.kind is ReasonKind.KNOWN_FAULT
    assert waived.reason.message == "wrong-there, in DirectML 1.9.0: It is wrong."
    failed = judge(stated, WRONG, no_expectation)
    assert failed.reason is not None
    assert waived.reason.differences == failed.reason.differences
    assert waived.figures == failed.figures


def test_unknown_elements_may_have_any_value(tmp_path: Path) -> None:
    predicted = np.array([1, 2, 0, 0], np.float32)
    unknown = {"OutputTensor": np.array([False, False, False, True])}
    fault = replace(
        FAULT, formula=lambda case: Computed({"OutputTensor": predicted}, unknown=unknown)
    )
    for values, status in (([1, 2, 0, 9], Status.WAIVED), ([1, 2, 9, 0], Status.FAILED)):
        array = np.array(values, np.float32)
        for outcome in (
            Outputs({"OutputTensor": array}),
            Outputs({}, samples={"OutputTensor": sample_of(array, "seed", 4)}),
        ):
            assert verdict(fault, case(tmp_path), outcome).status is status


def test_waived_crash_keeps_the_messages_of_its_process(tmp_path: Path) -> None:
    waived = verdict(replace(FAULT, outcome="crash"), case(tmp_path), CRASHED)
    assert waived.status is Status.WAIVED
    assert waived.reason is not None
    assert waived.reason.diagnostics == "its process died\nit said this"


def test_fault_that_removes_the_device_waives_no_crash(tmp_path: Path) -> None:
    removed_device = Breakdown(BreakdownKind.DEVICE_REMOVED, "the device was removed")
    fault = replace(FAULT, outcome="device removed")
    assert verdict(fault, case(tmp_path), removed_device).status is Status.WAIVED
    assert verdict(fault, case(tmp_path), CRASHED).status is Status.BROKEN


def test_changed_input_is_waived_only_by_its_fault(
    tmp_path: Path,
) -> None:
    changed = Fault(FaultKind.INPUT, "InputTensor changed")
    observed = replace(RIGHT, faults=(changed,))
    fault = replace(FAULT, outcome="input changed")
    assert verdict(fault, case(tmp_path), observed).status is Status.WAIVED
    assert verdict(FAULT, case(tmp_path), observed).status is Status.FAILED
    assert verdict(fault, case(tmp_path), WRONG).status is Status.FAILED
    unwritten = replace(FAULT, outcome="output not written")
    missing = Fault(FaultKind.NOT_WRITTEN, "OutputTensor", "OutputTensor", np.array([0]))
    both = replace(RIGHT, faults=(changed, missing))
    assert verdict(unwritten, case(tmp_path), both).status is Status.FAILED


def test_case_that_passes_despite_the_fault_has_passed(tmp_path: Path) -> None:
    assert verdict(FAULT, case(tmp_path), RIGHT).status is Status.PASSED


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (REFUSED, Status.FAILED),
        (CRASHED, Status.BROKEN),
        (Breakdown(BreakdownKind.HANG, "no result"), Status.BROKEN),
    ],
)
def test_outcomes_of_another_kind_are_not_waived(
    tmp_path: Path, outcome: Outcome, status: Status
) -> None:
    assert verdict(FAULT, case(tmp_path), outcome).status is status


def test_refusal_is_waived_by_stage_and_hresult(tmp_path: Path) -> None:
    fault = replace(FAULT, outcome="E_UNEXPECTED by CreateOperator")
    assert verdict(fault, case(tmp_path), REFUSED).status is Status.WAIVED
    for call, error in (("CompileOperator", "E_UNEXPECTED"), ("CreateOperator", "E_FAIL")):
        assert verdict(fault, case(tmp_path), Rejection(call, error)).status is Status.FAILED


def test_fault_of_compile_operator_waives_refusal_by_compile_graph(
    tmp_path: Path,
) -> None:
    fault = replace(FAULT, outcome="E_UNEXPECTED by CompileOperator")
    as_graph = Rejection("CompileGraph", "E_UNEXPECTED")
    assert verdict(fault, case(tmp_path), as_graph).status is Status.WAIVED
    created = replace(FAULT, outcome="E_UNEXPECTED by CreateOperator")
    assert verdict(created, case(tmp_path), as_graph).status is Status.FAILED


@pytest.mark.parametrize(
    "other",
    [
        replace(FAULT, operators=frozenset({"GATHER"})),
        replace(FAULT, cases=frozenset({"tile/mixed/unstated"})),
        replace(FAULT, when=Expression("InputTensor.DimensionCount == 2")),
        replace(FAULT, when=Expression("NoSuchTensor.DimensionCount == 1")),
    ],
)
def test_case_that_no_fault_concerns_is_not_waived(tmp_path: Path, other: KnownFault) -> None:
    assert verdict(other, case(tmp_path), WRONG).status is Status.FAILED


def test_fault_waives_a_case_that_meets_its_condition(tmp_path: Path) -> None:
    fault = replace(FAULT, cases=None, when=Expression("Repeats == (2,)"))
    assert verdict(fault, case(tmp_path), WRONG).status is Status.WAIVED


def test_fault_of_a_node_concerns_graphs_with_the_node(tmp_path: Path) -> None:
    def meets(operator: str, when: str) -> bool:
        node = NodeCondition(frozenset({operator}), Expression(when))
        fault = replace(FAULT, operators=frozenset({"GRAPHS"}), cases=None, node=node)
        return fault.concerns(graph_case(tmp_path, TWO_NODES))

    assert meets("ELEMENT_WISE_ADD", "ATensor.DimensionCount == 4")
    assert not meets("ELEMENT_WISE_ADD", "ATensor.DimensionCount == 3")
    assert not meets("ELEMENT_WISE_ADD", "ScaleTensor.DimensionCount == 4")
    assert not meets("ROI_ALIGN", "True")
    anywhere = NodeCondition(frozenset({"TILE"}), Expression("True"))
    assert not replace(FAULT, node=anywhere).concerns(case(tmp_path))


def test_fault_of_a_circumstance_waives_only_failures_in_it(
    tmp_path: Path,
) -> None:
    fault = replace(FAULT, circumstance="aliased")
    stated = case(tmp_path)
    assert verdict(fault, stated, WRONG).status is Status.FAILED
    failed = judge(stated, WRONG, no_expectation)
    faults = KnownFaults("1.9.0", (fault,))
    for circumstance, status in (("aliased", Status.WAIVED), ("owned", Status.FAILED)):
        under = failed.judged(circumstance=circumstance)
        assert faults.waive(stated, WRONG, under).status is status


def test_refusal_in_a_circumstance_is_not_waived_by_a_fault_of_plain_runs(
    tmp_path: Path,
) -> None:
    """Only a case that passed its plain run, which no fault refused, runs in a circumstance."""
    fault = replace(FAULT, outcome="E_UNEXPECTED by CreateOperator")
    stated = case(tmp_path)
    failed = judge(stated, REFUSED, no_expectation)
    for circumstance, status in ((None, Status.WAIVED), ("owned", Status.FAILED)):
        under = failed.judged(circumstance=circumstance)
        waived = KnownFaults("1.9.0", (fault,)).waive(stated, REFUSED, under)
        assert waived.status is status


def test_only_cases_of_a_harmful_fault_run_alone(tmp_path: Path) -> None:
    stated, other = case(tmp_path), case(tmp_path, "unstated")
    harmless = KnownFaults("1.9.0", (FAULT,))
    harmful = KnownFaults("1.9.0", (replace(FAULT, alone=True),))
    assert not harmless.harms_others(stated)
    assert harmful.harms_others(stated)
    assert not harmful.harms_others(other)


def test_faults_apply_to_their_range_of_versions(
    tmp_path: Path,
) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(FILE, encoding="utf-8")

    def names_in(version: str) -> set[str]:
        number = parse_version(version)
        assert number is not None
        return {fault.name for fault in faults_of_version(number, path)}

    assert read_known_faults(path)[0].reason == "It is wrong."
    assert names_in("1.8.0") == {"wrong-there"}
    assert names_in("1.9.0") == {"wrong-there", "not-in-a-graph"}
    assert names_in("1.10.1") == names_in("1.12.1") == {"wrong-there"}
    assert names_in("1.14.1") == set()
    # An untested version may have the faults of the tested ones before and after it.
    assert names_in("1.7.9") == {"wrong-there"}
    assert names_in("1.8.1") == names_in("1.9.1") == {"wrong-there", "not-in-a-graph"}
    assert names_in("1.13.1") == {"wrong-there"}
    # A version newer than all tested ones is assumed to have no faults.
    assert names_in("1.14.2") == set()


def test_known_faults_state_version_and_compilation() -> None:
    assert not known_faults(directml("1.9.0")).as_graph
    assert known_faults(directml("1.9.0", compile="graph")).as_graph
    assert known_faults(directml("1.9.0")).version == "1.9.0"


def test_known_faults_apply_to_directml_and_its_recordings() -> None:
    tested: Mapping[str, Any] = {"backend": "directml", "version": "1.15.4", "details": {}}
    recording = Environment("recording", "directml 1.15.4", details={"recorded": tested})
    assert fault_names(recording) == fault_names(directml("1.15.4"))
    assert "int64-low-words-compared-as-signed" in fault_names(directml("1.15.4"))
    assert known_faults(Environment("numpy", "1.15.4")) is NO_KNOWN_FAULTS
    assert known_faults(directml("unknown")) is NO_KNOWN_FAULTS
    assert fault_names(directml("10.0.19041.3636")) == set()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    not_computed: Its numbers are random.\n", "", "lacks `computed_by`"),
        (
            "    cases: [tile/mixed/stated]\n",
            "    computed_by: squares_left_ou\n",
            "dmlconf.faults has no function squares_left_ou; did you mean squares_left_out?",
        ),
        ("outcome: outputs", "outcome: E_FAIL", 'is "E_FAIL": how it shows'),
        ("first: 1.8.0", "first: 1.14.1", "1.14.1 is newer than 1.12.1"),
        ("first: 1.8.0", "first: 1.8.1", "1.8.1 is none of the versions under `tested`"),
        ("name: not-in-a-graph", "name: wrong-there", "wrong-there is listed twice"),
        ("operators: [TILE]", "operators: [TYLE]", "no operator TYLE; did you mean TILE?"),
        ("operators: [TILE]", "operators: [Relu]", "Relu; did you mean ACTIVATION_RELU?"),
        ("operators: [TILE]", "operators: [Conv]", "Conv; did you mean CONVOLUTION?"),
        (
            "operators: [TILE]",
            "operators: [softmax]",
            "softmax; did you mean ACTIVATION_SOFTMAX or ACTIVATION_SOFTMAX1?",
        ),
        ("InputTensor.DimensionCount == 1", "InputTensor.Rank == 1", "a tensor has no Rank"),
        ("reason:", "reasn:", "did you mean `reason`?"),
    ],
)
def test_invalid_list_of_known_faults_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "faults.yaml"
    assert old in FILE
    path.write_text(FILE.replace(old, new, 1), encoding="utf-8")
    problems = lint_known_faults(path)
    assert message in "\n".join(f"{problem.message} {problem.hint}" for problem in problems)
    with pytest.raises(InvalidFilesError):
        read_known_faults(path)


@pytest.mark.parametrize("name", ["tile", "DML_OPERATOR_TILE"])
def test_fault_names_an_operator_in_another_spelling(tmp_path: Path, name: str) -> None:
    path = tmp_path / "faults.yaml"
    node = f'    node: {{operators: [{name}], when: "Repeats[0] == 2"}}\n'
    text = FILE.replace("[TILE]", f"[{name}]").replace("    cases:", f"{node}    cases:")
    path.write_text(text, encoding="utf-8")
    first, _ = read_known_faults(path)
    assert verdict(replace(first, node=None), case(tmp_path), WRONG).status is Status.WAIVED
    assert first.node is not None
    assert first.node.operators == frozenset({"TILE"})


def test_bundled_list_of_known_faults_is_valid() -> None:
    assert lint_known_faults() == []


def part_with(identifiers: Iterable[str]) -> Suite:
    """Return the files of the suite that the names of these cases begin with.

    Where an operator shares a file with others, the part has all cases of the operator.
    """
    parts = {tuple(name.partition("[")[0].split("/")[:2]) for name in identifiers}
    names = {f"{folder}/{stem}.yaml" for folder, stem in parts}
    own = {name for name in names if (cases_directory() / name).is_file()}
    return bundled(*sorted(own | {name.partition("/")[0] for name in names - own}))


@pytest.mark.slow
def test_cases_that_faults_name_are_in_the_suite() -> None:
    faults = read_known_faults()
    # Cases that fuzzing makes are in no file.
    named = {
        fault.name: {each for each in fault.cases or () if "/fuzz-" not in each} for fault in faults
    }
    examples = {fault.example for fault in faults if fault.example}
    assert examples.union(*named.values())
    plan = list(part_with(examples.union(*named.values())).plan())
    known = {planned.identifier: planned for planned in plan}
    known |= {planned.template.identifier: planned for planned in plan}
    for fault in faults:
        assert not fault.example or fault.example in known, fault.name
        for identifier in named[fault.name]:
            assert identifier in known, fault.name
            assert known[identifier].template.operator_name in fault.operators


@pytest.mark.whole
def test_condition_of_each_fault_holds_for_some_cases() -> None:
    conditional = [fault for fault in read_known_faults() if fault.when is not None]
    assert conditional
    for fault in conditional:
        planned = load_suite([cases_directory()], operators=fault.operators).plan()
        condition = replace(fault, cases=None)
        concerned = {condition.concerns(build(case)) for case in planned}
        assert concerned == {False, True}, fault.name


def test_measured_versions_are_those_of_the_lab() -> None:
    lab = Path(__file__).resolve().parents[2] / "lab" / "versions.toml"
    releases = tomllib.loads(lab.read_text("utf-8"))["release"]
    tried = [parse_version(release["version"]) for release in releases]
    assert list(measured_versions()) == tried
