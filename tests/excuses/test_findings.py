"""Findings, the known mistakes of other runtimes, explain failures and excuse none.

The tested code is in `findings.py`, `deviating_elements.py` and `sigmoid_errors.py` in
`dmlconf/excuses/`, in `onnxruntime.py` and `formulas.py` in `dmlconf/faults/runtimes/`, in
`dmlconf/judging/conclusion.py` and in `schemas/findings/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Environment, Outcome, Outputs, Rejection
from dmlconf.cases.model import Case
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import operator_names
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.documents.reader import read_document
from dmlconf.documents.schema import Checker, bundled_schema
from dmlconf.excuses.deviating_elements import ELEMENTS
from dmlconf.excuses.findings import NO_FINDINGS, Finding, all_findings, findings_of, read_findings
from dmlconf.faults.prediction import predictions
from dmlconf.faults.runtimes.formulas import RUNTIME_FORMULAS
from dmlconf.judging.conclusion import Conclusion, JudgeOptions, verdict_of
from dmlconf.reference.evaluation import evaluate
from dmlconf.resources import schemas_directory
from dmlconf.verdicts.verdict import Status
from tests.excuses.test_deviations import ONNX, case, reference_output
from tests.permitted.graphs.accepted import graph

CPU = Environment(
    "onnxruntime", "1.32.0", details={"target": "onnx", "provider": "CPUExecutionProvider"}
)
FILES = sorted((schemas_directory() / "findings").glob("*.yaml"))


def reason_of_failure(environment: Environment, name: str, outcome: Outputs | Rejection) -> str:
    return reason_of_case(environment, case(name), outcome)


def reason_of_case(environment: Environment, failing: Case, outcome: Outputs | Rejection) -> str:
    """Return the reason of a failure of any case in an environment."""
    conclusion = Conclusion(run_case, deviations=ONNX, findings=findings_of(environment))
    verdict = conclusion.excused(failing, outcome, conclusion.judge(failing, outcome))
    assert verdict.status is Status.FAILED  # It is explained, but not excused.
    assert verdict.reason is not None
    return verdict.reason.message


def reason(name: str, outcome: Outputs | Rejection) -> str:
    return reason_of_failure(CPU, name, outcome)


def test_finding_explains_only_its_own_failures() -> None:
    name = "element_wise_if/boundary/float32-special-numbers"
    output = reference_output(case(name))
    zeros = np.signbit(output) & (output == 0)
    assert zeros.any()
    output[zeros] = 0.0
    found = reason(name, Outputs({"OutputTensor": output}))
    assert found.startswith("known finding where-loses-the-sign-of-zero ")
    output[np.isfinite(output) & (output != 0)] += 1
    assert "known finding" not in reason(name, Outputs({"OutputTensor": output}))


@pytest.mark.parametrize(
    ("message", "named"),
    [("pads[dim] < kernel_shape[dim] was false", True), ("no memory", False)],
)
def test_finding_explains_a_refusal_by_its_message(message: str, named: bool) -> None:
    refusal = Rejection("InferenceSession", "Fail", message=message)
    found = reason("max_pooling/boundary/nothing-but-padding", refusal)
    assert found.startswith("known finding padding-as-wide-as-a-window ") is named


# Sigmoids of ONNX Runtime are off by up to 2.4e-7.

X_TIMES_SIGMOID = """
  sigmoid: {operator: ACTIVATION_SIGMOID, desc: {InputTensor: x, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_MULTIPLY, desc: {ATensor: x, BTensor: sigmoid, OutputTensor: {}}}
"""


@pytest.mark.parametrize(("error", "named"), [(2.3e-7, True), (1e-5, False)])
def test_error_from_a_sigmoid_in_a_graph_is_explained(
    tmp_path: Path, error: float, named: bool
) -> None:
    failing = graph(
        tmp_path,
        "\n  x: {Sizes: [2], DataType: FLOAT32, values: [-15, 1]}",
        X_TIMES_SIGMOID,
        "node",
    )
    outputs = evaluate(failing)
    # x is -15, so the product is off by 15 times the error of the sigmoid.
    wrong = {"y": outputs["y"] + np.asarray([15 * error, 0], np.float32)}
    found = reason_of_case(CPU, failing, Outputs(wrong))
    assert found.startswith("known finding sigmoid-far-below-zero ") is named


NEGATED_LAYER = """
  layer:
    operator: RNN
    desc:
      InputTensor: x
      WeightTensor: w
      RecurrenceTensor: w
      OutputSequenceTensor: {Sizes: [1, 1, 1, 1]}
      ActivationDescs: [{operator: ACTIVATION}]
      Direction: FORWARD
  node: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: layer, OutputTensor: {}}}
"""


@pytest.mark.parametrize(
    ("activation", "error", "named"),
    [
        ("ACTIVATION_SIGMOID", 2.3e-7, True),
        ("ACTIVATION_SIGMOID", 1e-5, False),
        ("ACTIVATION_RELU", 2.3e-7, False),
    ],
)
def test_error_from_a_sigmoid_in_a_layer_is_explained(
    tmp_path: Path, activation: str, error: float, named: bool
) -> None:
    inputs = """
  x: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [-15]}
  w: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}"""
    nodes = NEGATED_LAYER.replace("{operator: ACTIVATION}", f"{{operator: {activation}}}")
    failing = graph(tmp_path, inputs, nodes, "node")
    wrong = {"y": evaluate(failing)["y"] - np.float32(error)}
    found = reason_of_case(CPU, failing, Outputs(wrong))
    assert found.startswith("known finding sigmoid-far-below-zero ") is named


def test_error_without_a_sigmoid_is_not_explained(tmp_path: Path) -> None:
    nodes = "\n  node: {operator: ELEMENT_WISE_IDENTITY, desc: {InputTensor: x, OutputTensor: {}}}"
    failing = graph(tmp_path, "\n  x: {Sizes: [1], DataType: FLOAT32, values: [1]}", nodes, "node")
    right = evaluate(failing)["y"]
    wrong = np.nextafter(right, np.float32(2))
    assert not ELEMENTS["error of a sigmoid"](
        failing, failing.inputs(), right, wrong, absolute=2.4e-7
    ).any()


# A case, a finding, the result of ONNX Runtime 1.32.0, and another wrong result.
COMPUTED = [
    ("reduce/boundary/sum-wraps-around-int32", "sums-of-integers", [2147483647], [2147483646]),
    (
        "element_wise_pow/boundary/int32-wrap-around",
        "integer-powers-in-float64",
        [-2147483648, -2147483648, -2147483648, -2147483648, -2147483648, -2147483648],
        [-2147483648, -2147483648, -2147483648, -2147483648, -2147483648, -2147483647],
    ),
    (
        "quantized_linear_average_pooling/boundary/zero-point-is-added-after-rounding",
        "zero-point-before-rounding",
        [2, 4, 4, 6],
        [4, 4, 4, 6],
    ),
    (
        "element_wise_dequantize_linear/boundary/int32-limits",
        "zero-points-of-int32-that-wrap-around",
        [1, -1, 0],
        [1, 1, 0],
    ),
    ("gemm/boundary/beta-of-0-multiplies", "beta-of-zero", [3, 8], [3.5, 8]),
]


@pytest.mark.parametrize(("name", "finding", "given", "other"), COMPUTED)
def test_finding_explains_only_the_result_of_onnx_runtime(
    name: str, finding: str, given: list[float], other: list[float]
) -> None:
    output = reference_output(case(name))
    for values, named in ((given, True), (other, False)):
        array = np.array(values, np.float64).astype(output.dtype).reshape(output.shape)
        found = reason(name, Outputs({"OutputTensor": array}))
        assert found.startswith(f"known finding {finding} ") is named, found


WITH_FORMULA = [
    finding
    for findings in all_findings()
    for finding in findings.findings
    if finding.wrong.formula is not None
]


@pytest.mark.parametrize("finding", WITH_FORMULA, ids=lambda finding: finding.name)
def test_result_that_a_finding_describes_is_not_permitted(finding: Finding) -> None:
    example = case(finding.example)
    assert finding.wrong.formula is not None
    conclusion = Conclusion(run_case, deviations=ONNX)
    statuses = {
        conclusion.judge(example, Outputs(prediction.outputs)).status
        for prediction in predictions(example, finding.wrong.formula)
    }
    assert statuses == {Status.FAILED}


RECIPROCALS = "element_wise_recip/combinations/pairs-7[Values=1x1x31xFLOAT16x1:5x62x62x2x0.5x0]"


def test_infinity_of_the_other_sign_is_explained() -> None:
    output = reference_output(case(RECIPROCALS))
    assert output[0, 0, 0] == np.inf  # 1 / (-0 * 0.5 + 0); it is -infinity if 0 is not added.
    output[0, 0, 0] = -np.inf
    found = reason(RECIPROCALS, Outputs({"OutputTensor": output}))
    assert found.startswith("known finding optimised-sums-with-0 ")
    output[0, 0, 1] = 0
    assert not reason(RECIPROCALS, Outputs({"OutputTensor": output})).startswith("known finding")


def test_findings_depend_on_the_provider() -> None:
    assert findings_of(CPU).title == "ONNX Runtime 1.32.0, CPU provider"
    other = {"provider": "OpenVINOExecutionProvider"}
    assert "OpenVINO" in findings_of(Environment("onnxruntime", "1.24", details=other)).title
    assert findings_of(Environment("onnxruntime", "1", details={"provider": "X"})) is NO_FINDINGS
    assert findings_of(Environment("directml", "1.15.4")) is NO_FINDINGS


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_file_of_findings_is_valid(
    file: Path,
) -> None:
    data = read_document(file).data
    assert not list(Checker(bundled_schema("finding")).iter_errors(data))
    names = [each["name"] for each in data["findings"]]
    assert len(set(names)) == len(names)
    for each in data["findings"]:
        assert set(each.get("operators", ())) <= {*operator_names(), GRAPHS}, each["name"]
        assert "computed_by" not in each or each["computed_by"] in RUNTIME_FORMULAS, each["name"]
        assert "elements" not in each or each["elements"] in ELEMENTS, each["name"]
        assert each["example"].split("/")[0].upper() in each.get("operators", [GRAPHS]) or (
            each["example"].startswith(tuple(each.get("cases", ())))
        )


OWN_FILE = """
runtime: mine
version: "1.0"
title: My runtime
findings:
  - name: crash-of-tile
    title: crashes
    operators: [TILE]
    fails: crash
    message: died
    example: tile/small/two
    code: tile()
"""
"""A finding of one operator."""


def test_finding_names_an_operator_in_another_spelling(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(OWN_FILE.replace("[TILE]", "[tile, DML_OPERATOR_GEMM]"), encoding="utf-8")
    [finding] = read_findings(path).findings
    assert finding.wrong.scope.operators == frozenset({"TILE", "GEMM"})


@pytest.mark.parametrize(
    ("name", "meant"), [("TYLE", "TILE"), ("relu", "ACTIVATION_RELU"), ("Conv", "CONVOLUTION")]
)
def test_a_finding_of_an_unknown_operator_is_refused_with_a_suggestion(
    tmp_path: Path, name: str, meant: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(OWN_FILE.replace("[TILE]", f"[{name}]"), encoding="utf-8")
    message = f"mine.yaml:8:17: the catalogue has no operator {name}; did you mean {meant}[?]"
    with pytest.raises(InvalidFilesError, match=message):
        read_findings(path)


def test_expectation_of_a_failing_graph_is_asked_for_once(tmp_path: Path) -> None:
    inputs = "\n  x: {Sizes: [2], DataType: FLOAT32, values: [-15, 1]}"
    failing = graph(tmp_path, inputs, X_TIMES_SIGMOID, "node")
    asked: list[str] = []

    def against(asking: Case) -> Outcome:
        asked.append(asking.identifier)
        return run_case(asking)

    def execute(items: Iterator[Case]) -> Iterator[tuple[Case, Outcome]]:
        for item in items:
            outcome = run_case(item)
            assert isinstance(outcome, Outputs)
            # Errors of the product up to 15 * 2.4e-7 are explained.
            off = {name: array + np.float32(2e-6) for name, array in outcome.arrays.items()}
            yield item, Outputs(off)

    options = JudgeOptions(compare_unfused=True)
    conclusion = Conclusion(against, options=options, deviations=ONNX, findings=findings_of(CPU))
    verdict = verdict_of(failing, execute, conclusion)
    assert verdict.reason is not None
    assert verdict.reason.message.startswith("known finding sigmoid-far-below-zero ")
    assert asked == [failing.identifier]
