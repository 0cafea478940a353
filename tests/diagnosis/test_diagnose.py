"""A diagnosis reproduces a failure, names the culprit, and writes a folder of files.

The tested code is in `dmlconf/diagnosis/diagnose.py`, `dmlconf/diagnosis/factors.py`,
`dmlconf/diagnosis/export/dxdispatch.py`, `dmlconf/diagnosis/export/cpp.py`,
`dmlconf/reports/diagnoses/folder.py` and `dmlconf/reports/diagnoses/report.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import NumpyBackend
from dmlconf.backends.protocol import Capabilities, Outcome, Outputs
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.diagnosis.diagnose import Diagnosis, diagnose
from dmlconf.diagnosis.reduction.cost import element_count
from dmlconf.engine.session import environment_record
from dmlconf.reports.diagnoses.folder import write_diagnosis
from dmlconf.reports.diagnoses.report import culprit_sentence
from tests.bundled import bundled
from tests.diagnosis.export.graph_cases import graph_of
from tests.diagnosis.in_process import InProcessBench


def case_of(identifier: str) -> Case:
    """Return the first case whose identifier begins with the first word and contains the second."""
    beginning, _, part = identifier.partition(" ")
    plan = bundled(identifier.partition("/")[0]).plan()
    names = (p for p in plan if p.identifier.startswith(beginning) and part in p.identifier)
    return valid_case(next(names))


def diagnosed(identifier: str, backend: str) -> Diagnosis:
    """Return the diagnosis of a case on a backend; the reduction takes at most 30 seconds."""
    return diagnose(case_of(identifier), InProcessBench(backend), 30)


@pytest.mark.parametrize(
    ("identifier", "backend", "culprit"),
    [
        ("gemm/matrix", "faulty:negated,only=metacommands", "metacommands"),
        ("gemm/matrix", "faulty:negated,only=operator", "compilation"),
        ("gemm/matrix", "faulty:negated,only=graph,compile=graph", "compilation"),
        ("gemm/matrix", "faulty:negated,half=on,only=half", "half"),
        ("gemm/matrix", "faulty:negated,half=off,half=on,only=half", "half"),
        ("gemm/matrix", "faulty:unsteady", "repetition"),
        ("element_wise_multiply/matrix/in-place", "faulty:zeros,where=InPlace", "in-place"),
        ("tile/matrix/layouts InputLayout=padded", "faulty:negated,where=not Packed", "layout"),
        ("gather/boundary/negative", "faulty:zeros,where=NEGATIVE_INDEX in Data", "data"),
        ("gemm/matrix", "faulty:negated", None),
    ],
)
def test_factor_that_makes_the_case_pass_is_the_culprit(
    identifier: str, backend: str, culprit: str | None
) -> None:
    diagnosis = diagnosed(identifier, backend)
    assert diagnosis.reproduced
    culprit_found = diagnosis.culprit.factor if diagnosis.culprit else None
    assert culprit_found == culprit, culprit_sentence(diagnosis)


def test_a_case_that_passes_is_not_reproduced() -> None:
    diagnosis = diagnosed("gemm/matrix", "faulty:negated,where=GroupCount > 1")
    assert not diagnosis.reproduced
    assert "passes: in each of 10 runs alone" in diagnosis.notes[0]


class WithoutTypes(NumpyBackend):
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), data_types=frozenset())


def test_unsupported_case_is_not_said_to_pass() -> None:
    bench = InProcessBench("faulty:negated", WithoutTypes())
    diagnosis = diagnose(case_of("tile/boundary"), bench, 30)
    assert not diagnosis.reproduced
    assert diagnosis.notes[0].startswith("The case does not fail; it is unsupported: the backend ")


class WrongInSomeRuns(NumpyBackend):
    """A backend that gives wrong outputs in some runs, counted from 0."""

    def __init__(self, is_wrong: Callable[[int], bool]) -> None:
        self._runs = 0
        self._is_wrong = is_wrong

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for outcome in super().run(cases):
            assert isinstance(outcome, Outputs)
            wrong = self._is_wrong(self._runs)
            self._runs += 1
            negated = {name: -array - 1 for name, array in outcome.arrays.items()}
            yield Outputs(negated) if wrong else outcome


def test_case_that_fails_sometimes_is_reduced() -> None:
    bench = InProcessBench("faulty:negated", WrongInSomeRuns(lambda run: run % 10 == 9))
    diagnosis = diagnose(case_of("tile/boundary"), bench, 30)
    assert (diagnosis.failures, diagnosis.runs, diagnosis.notes) == (1, 10, ())
    assert diagnosis.culprit is not None
    assert diagnosis.culprit.factor == "repetition"
    assert diagnosis.reduced is not None
    assert element_count(diagnosis.reduced.case) < element_count(diagnosis.case)


def test_failure_that_does_not_recur_is_not_reduced() -> None:
    """After ten runs of the case alone, only the eighth copy in a batch is wrong."""
    bench = InProcessBench("faulty:negated", WrongInSomeRuns(lambda run: run == 17))
    diagnosis = diagnose(case_of("tile/boundary"), bench, 30)
    assert diagnosis.in_batch
    note = "Two copies of the case at once did not fail again, so it was not reduced."
    assert (diagnosis.reduced, diagnosis.notes) == (None, (note,))


def test_half_precision_and_other_data_tell_no_culprit() -> None:
    diagnosis = diagnosed("gemm/matrix", "faulty:negated")
    telling_nothing = [trial for trial in diagnosis.trials if not trial.experiment.tells]
    assert {trial.experiment.change for trial in telling_nothing} == {
        "half=on",
        "other data of the same sizes",
    }


def test_folder_has_case_file_report_and_program(tmp_path: Path) -> None:
    backend = "faulty:negated,compile=graph,metacommands=off,where=OWNED_BY_DML in Flags"
    bench = InProcessBench(backend)
    case = case_of("gemm/sizes/weights[Flags=OWNED_BY_DML")
    environment = environment_record(bench.open().environment)
    write_diagnosis(tmp_path, diagnose(case, bench, 30), environment, backend, "GEMM: 4 failures")
    [planned] = load_suite([tmp_path / "case.yaml"]).plan()
    assert bench.verdict(valid_case(planned)).status.fails_run
    report = (tmp_path / "report.md").read_text()
    assert "GEMM: 4 failures" in report
    assert "| no owned tensors | passed |" in report
    assert f"dmlconf run case.yaml -b '{backend}'" in report
    program = (tmp_path / "case.cpp").read_text()
    assert "DML_EXECUTION_FLAG_DISABLE_META_COMMANDS" in program
    assert "compile_graph = true" in program


def test_dxdispatch_model_binds_owned_tensors_at_initialization(
    tmp_path: Path,
) -> None:
    backend = "faulty:negated,compile=graph,metacommands=off,where=OWNED_BY_DML in Flags"
    bench = InProcessBench(backend)
    diagnosis = diagnose(case_of("gemm/sizes/weights[Flags=OWNED_BY_DML"), bench, 30)
    write_diagnosis(tmp_path, diagnosis, environment_record(bench.open().environment), backend)
    model = json.loads((tmp_path / "dxdispatch" / "model.json").read_text())
    operator = model["dispatchables"]["operator"]
    assert operator["type"] == "DML_OPERATOR_GEMM"
    assert operator["dmlCompileType"] == "DmlCompileGraph"
    assert operator["executionFlags"] == ["DML_EXECUTION_FLAG_DISABLE_META_COMMANDS"]
    assert operator["bindings"] == {"BTensor": "BTensor"}
    dispatch, printed = model["commands"]
    assert dispatch["bindings"] == {"ATensor": "ATensor", "OutputTensor": "OutputTensor"}
    assert printed == {"type": "print", "resource": "OutputTensor"}
    assert diagnosis.reduced is not None
    for name, array in diagnosis.reduced.case.inputs().items():
        file = tmp_path / "dxdispatch" / model["resources"][name]["initialValues"]["sourcePath"]
        assert np.frombuffer(file.read_bytes(), array.dtype).tolist() == array.ravel().tolist()


@pytest.mark.parametrize(
    ("backend", "culprit"),
    [
        ("faulty:negated,where=NodeCount > 1", "compilation"),
        ("faulty:zeros", None),
    ],
)
def test_compilation_is_the_culprit_if_nodes_alone_are_right(
    backend: str, culprit: str | None
) -> None:
    diagnosis = diagnose(graph_of("wiring/negated-twice"), InProcessBench(backend), 30)
    assert diagnosis.reproduced
    culprit_found = diagnosis.culprit.factor if diagnosis.culprit else None
    assert culprit_found == culprit, culprit_sentence(diagnosis)


def test_folder_of_a_graph_has_nodes_failures_and_programs(tmp_path: Path) -> None:
    backend = "faulty:negated,where=NodeCount > 1"
    bench = InProcessBench(backend)
    case = graph_of("wiring/negated-twice")
    diagnosis = diagnose(case, bench, 30)
    environment = environment_record(bench.open().environment)
    failures = [case.identifier, "graphs/wiring/another"]
    write_diagnosis(tmp_path, diagnosis, environment, backend, "GRAPHS: 2 failures", failures)
    report = (tmp_path / "report.md").read_text()
    assert diagnosis.reduced is not None
    assert isinstance(diagnosis.reduced.case, GraphCase)
    for node in diagnosis.reduced.case.graph.operator_nodes:
        assert f"| {node.name} | {node.operator_name} | InputTensor" in report
    assert "| its nodes one by one | passed |" in report
    assert "cl /std:c++17 /EHsc case.cpp" in report
    assert (tmp_path / "failures.txt").read_text().split() == failures
    assert (tmp_path / "case.cpp").exists()
    assert (tmp_path / "dxdispatch" / "model.json").exists()


def test_reduced_case_shows_more_than_a_sign_of_zero() -> None:
    diagnosis = diagnosed("gather/boundary/negative", "faulty:negated")
    assert diagnosis.reduced_verdict is not None
    assert diagnosis.reduced_verdict.reason is not None
    difference = diagnosis.reduced_verdict.reason.differences[0]
    assert abs(difference["expected"]) == abs(difference["actual"]) > 0


def test_report_has_every_digit_of_a_large_integer(tmp_path: Path) -> None:
    bench = InProcessBench("faulty:zeros")
    case = replace(case_of("cast/boundary/int64-to-float64-rounds"), expectation=None)
    diagnosis = Diagnosis(case, bench.verdict(case), 1, 1)
    environment = environment_record(bench.open().environment)
    write_diagnosis(tmp_path, diagnosis, environment, "faulty:zeros")
    assert str(2**53 + 1) in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize(
    ("backend", "sentence"),
    [
        ("faulty:negated", "changes, so the computation itself is wrong."),
        ("faulty:wrong-sizes", "changes."),
    ],
)
def test_the_computation_is_called_wrong_only_for_wrong_values(backend: str, sentence: str) -> None:
    diagnosis = diagnosed("gemm/matrix", backend)
    telling = [trial for trial in diagnosis.trials if trial.verdict and trial.experiment.tells]
    begin = "No factor is to blame: the case fails with each of"
    assert culprit_sentence(diagnosis) == f"{begin} {len(telling)} {sentence}"
