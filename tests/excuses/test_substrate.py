"""Failures by limits of the substrate (the software below DirectML) count as unsupported.

The tested code is in `dmlconf/excuses/substrate.py`, `dmlconf/excuses/condition_problems.py`,
`schemas/substrate.schema.json` and `lab/substrate.yaml`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.protocol import Outcome, Outputs, Rejection
from dmlconf.cases.model import Case
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.excuses.substrate import Substrate, read_substrate
from dmlconf.judging.judge import judge
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.engine.cases import case
from tests.graphs.suites import graph_case

FILE = """
substrate: a test
limits:
  - name: no-kernel
    operators: any
    data_types: {InputTensor: [FLOAT32]}
    stage: CompileOperator
    hresult: E_FAIL
    reason: There is
      no kernel.
  - name: wrong-there
    operators: [TILE]
    data_types: any
    stage: Execute
    hresult: S_OK
    cases: [tile/mixed/stated]
    reason: It is wrong.
"""

NO_KERNEL = Rejection("CompileOperator", "E_FAIL")
WRONG = Outputs({"OutputTensor": np.zeros(4, np.float32)})
RIGHT = Outputs({"OutputTensor": np.array([1, 2, 1, 2], np.float32)})


@pytest.fixture
def substrate(tmp_path: Path) -> Substrate:
    path = tmp_path / "substrate.yaml"
    path.write_text(FILE, encoding="utf-8")
    return read_substrate(path)


def status(substrate: Substrate, case: Case, outcome: Outcome) -> Status:
    verdict = judge(case, outcome, lambda case: None)
    return substrate.excuse(case, outcome, verdict).status


def test_failure_that_a_limit_explains_is_unsupported(tmp_path: Path, substrate: Substrate) -> None:
    stated = case(tmp_path, "stated")
    verdict = substrate.excuse(stated, NO_KERNEL, judge(stated, NO_KERNEL, lambda case: None))
    assert verdict.status is Status.UNSUPPORTED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.SUBSTRATE
    assert verdict.reason.message == "no-kernel: There is no kernel."
    assert status(substrate, stated, WRONG) is Status.UNSUPPORTED


def test_limit_explains_refusal_of_an_operator_compiled_as_graph(
    tmp_path: Path, substrate: Substrate
) -> None:
    as_graph = Rejection("CompileGraph", "E_FAIL")
    assert status(substrate, case(tmp_path, "stated"), as_graph) is Status.UNSUPPORTED
    refused = Rejection("CompileGraph", "E_INVALIDARG")
    assert status(substrate, case(tmp_path, "stated"), refused) is Status.FAILED
    text = (
        "inputs: {x: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}}\n"
        "nodes:\n  n: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: x, OutputTensor: {}}}\n"
        "outputs: {y: n}\nexpect: {y: [-1, -2]}\n"
    )
    anything = replace(substrate.limits[0], data_types=None)
    of_any = replace(substrate, limits=(anything,))
    assert status(of_any, graph_case(tmp_path, text), as_graph) is Status.FAILED


@pytest.mark.parametrize("name", ["tile", "DML_OPERATOR_TILE"])
def test_limit_names_an_operator_in_another_spelling(tmp_path: Path, name: str) -> None:
    path = tmp_path / "other-name.yaml"
    path.write_text(FILE.replace("[TILE]", f"[{name}]"), encoding="utf-8")
    stated = case(tmp_path, "stated")
    assert status(read_substrate(path), stated, WRONG) is Status.UNSUPPORTED


def test_passing_case_stays_passed(tmp_path: Path, substrate: Substrate) -> None:
    assert status(substrate, case(tmp_path, "stated"), RIGHT) is Status.PASSED


def test_unexplained_failures_stay_failed(tmp_path: Path, substrate: Substrate) -> None:
    stated = case(tmp_path, "stated")
    for stage, error in (("CreateOperator", "E_FAIL"), ("CompileOperator", "E_INVALIDARG")):
        assert status(substrate, stated, Rejection(stage, error)) is Status.FAILED
    invalid = case(tmp_path, "invalid")
    assert status(substrate, invalid, WRONG) is Status.FAILED


def test_file_with_an_unknown_field_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "substrate.yaml"
    path.write_text(FILE.replace("reason:", "reasn:"), encoding="utf-8")
    with pytest.raises(InvalidFilesError, match="did you mean `reason`"):
        read_substrate(path)


def test_file_of_the_limits_of_the_lab_is_valid() -> None:
    lab = Path(__file__).resolve().parents[2] / "lab" / "substrate.yaml"
    names = [limit.name for limit in read_substrate(lab).limits]
    assert "kernels-in-dxil-only" in names


def test_limit_of_a_circumstance_excuses_no_plain_run(tmp_path: Path) -> None:
    path = tmp_path / "substrate.yaml"
    text = FILE.replace("    cases: [tile/mixed/stated]\n", "    circumstance: volatile\n")
    path.write_text(text, encoding="utf-8")
    substrate, stated = read_substrate(path), case(tmp_path, "stated")
    failed = judge(stated, WRONG, lambda _: None)
    assert substrate.excuse(stated, WRONG, failed) is failed
    in_circumstance = failed.judged(circumstance="volatile")
    assert substrate.excuse(stated, WRONG, in_circumstance).status is Status.UNSUPPORTED
    other = failed.judged(circumstance="rebound")
    assert substrate.excuse(stated, WRONG, other) is other


def test_limit_excuses_only_cases_that_meet_its_condition(tmp_path: Path) -> None:
    path = tmp_path / "substrate.yaml"
    stated = case(tmp_path, "stated")
    failed = judge(stated, NO_KERNEL, lambda _: None)
    for condition, status in (("Rank == 0", Status.FAILED), ("Rank > 0", Status.UNSUPPORTED)):
        text = FILE.replace(
            "    data_types: {InputTensor: [FLOAT32]}\n",
            f"    data_types: any\n    where: {condition}\n",
        )
        path.write_text(text, encoding="utf-8")
        assert read_substrate(path).excuse(stated, NO_KERNEL, failed).status is status


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("stage: CompileOperator", "where: Rank >", "Rank >: it ends too early"),
        ("stage: CompileOperator", "where: Rang > 1", "no operator has Rang"),
        ("stage: Execute", "where: GroupCount > 1", "TILE has no GroupCount"),
        ("operators: [TILE]", "operators: [TIEL]", "the catalogue has no operator TIEL"),
        ("operators: [TILE]", "operators: [relu]", "relu; did you mean ACTIVATION_RELU"),
    ],
)
def test_wrong_condition_or_unknown_operator_is_refused(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    path = tmp_path / "substrate.yaml"
    kept = "" if before.startswith("operators") else f"{before}\n    "
    path.write_text(FILE.replace(before, f"{kept}{after}"), encoding="utf-8")
    with pytest.raises(InvalidFilesError, match=rf"substrate.yaml:\d+.*{message}"):
        read_substrate(path)


def test_condition_on_a_graph_may_name_any_tensor(tmp_path: Path) -> None:
    path = tmp_path / "substrate.yaml"
    where = "cases: [graphs/mine/one]\n    where: MyTensor.Sizes[0] > 1"
    path.write_text(FILE.replace("cases: [tile/mixed/stated]", where).replace("[TILE]", "any"))
    assert read_substrate(path).limits[1].where is not None


def test_an_unknown_data_type_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "substrate.yaml"
    path.write_text(FILE.replace("[FLOAT32]", "[FLOAT99]"), encoding="utf-8")
    with pytest.raises(InvalidFilesError, match="there is no data type FLOAT99"):
        read_substrate(path)
