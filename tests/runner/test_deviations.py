"""Deviations of a target waive what its specification leaves open, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Environment, Outcome, Outputs, Rejection
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import operator_names
from dmlconf.documents.reader import read_document
from dmlconf.documents.schema import Checker, bundled_schema
from dmlconf.excuses.deviations import Deviations, deviations_of, read_deviations
from dmlconf.judging.conclusion import Conclusion
from dmlconf.resources import schemas_directory
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict

CASES: Final = Path(__file__).resolve().parents[2] / "cases"
ONNX: Final = read_deviations("onnx")


def case(name: str) -> Case:
    operator, file, _ = name.split("/", 2)
    plan = load_suite([CASES / operator / f"{file}.yaml"]).plan()
    return valid_case(next(each for each in plan if each.identifier == name)).with_inputs()


def verdict(of: Case, outcome: Outcome, deviations: Deviations = ONNX) -> Verdict:
    conclusion = Conclusion(run_case, deviations=deviations)
    return conclusion.excused(of, outcome, conclusion.judge(of, outcome))


def right(of: Case) -> Array:
    outcome = run_case(of)
    assert isinstance(outcome, Outputs)
    return outcome.arrays["OutputTensor"].copy()


MAXIMUM: Final = "element_wise_max/matrix/special-values[DataType=FLOAT32]"


def test_nan_may_be_the_maximum_and_nothing_else_may_be_wrong() -> None:
    of = case(MAXIMUM)
    output = right(of)
    nan = np.isnan(of.input("ATensor")) | np.isnan(of.input("BTensor"))
    output[nan] = np.nan
    waived = verdict(of, Outputs({"OutputTensor": output}))
    assert waived.status is Status.WAIVED
    assert waived.reason is not None
    assert waived.reason.kind is ReasonKind.DEVIATION
    assert waived.reason.message.startswith("onnx-nan-of-maximum: ")
    output[~nan] = np.float32(-7)
    assert not nan.all()
    assert verdict(of, Outputs({"OutputTensor": output})).status is Status.FAILED


def test_directml_itself_has_no_deviations() -> None:
    assert deviations_of(Environment("directml", "1.15.4")) == Deviations()
    details = {"target": "onnx"}
    assert deviations_of(Environment("directml", "1.15.4", details=details)) == Deviations()
    assert deviations_of(Environment("onnxruntime", "1.20", details=details)) is ONNX
    of = case(MAXIMUM)
    output = np.full_like(right(of), np.nan)
    assert verdict(of, Outputs({"OutputTensor": output}), Deviations()).status is Status.FAILED


def test_near_numbers_are_waived_and_wrong_ones_are_not() -> None:
    of = case("activation_sigmoid/matrix/element-counts[Count=65,DataType=FLOAT32]")
    for factor, status in ((1.0005, Status.WAIVED), (1.01, Status.FAILED)):
        outcome = Outputs({"OutputTensor": right(of) * np.float32(factor)})
        assert verdict(of, outcome).status is status


@pytest.mark.parametrize(("message", "status"), [("integer division by zero", Status.WAIVED)])
def test_a_refusal_may_be_permitted(message: str, status: Status) -> None:
    of = case("element_wise_divide/boundary/int8-by-zero")
    assert verdict(of, Rejection("Run", "Fail", message=message)).status is status
    other = case("element_wise_divide/boundary/int8-by-zero")
    named = replace(ONNX, deviations=tuple(replace(d, message="other") for d in ONNX.deviations))
    assert verdict(other, Rejection("Run", "Fail", message=message), named).reason is not None
    assert verdict(other, Rejection("Run", "Fail", message=message), named).status.fails_run


@pytest.mark.parametrize("file", sorted((schemas_directory() / "targets").glob("*.yaml")), ids=str)
def test_each_file_fits_its_schema_and_names_operators(file: Path) -> None:
    data = read_document(file).data
    assert not list(Checker(bundled_schema("target")).iter_errors(data))
    known = {*operator_names(), GRAPHS}
    for each in data["deviations"]:
        assert set(each["operators"]) <= known, each["name"]
