"""Findings in OpenVINO name what its provider of ONNX Runtime 1.24.1 gives, and nothing else."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Environment, Outputs, Rejection
from dmlconf.excuses.findings import findings_of
from dmlconf.judging.conclusion import Conclusion
from dmlconf.verdicts.verdict import Status
from tests.excuses.test_deviations import ONNX, case

OPENVINO: Final = Environment(
    "onnxruntime", "1.24.1", details={"target": "onnx", "provider": "OpenVINOExecutionProvider"}
)
MERGED: Final = (
    "graphs/rewrites-merging/merge-equal-products--same-transposition-of-b-2"
    "[DataType=FLOAT16,Held=constant]"
)
QUICK_GELU: Final = (
    "gemm/matrix/fused-activation[DataType=FLOAT16,Activation=ACTIVATION_SWISH:1.5,"
    "DimensionCount=2]"
)


def reason(name: str, outcome: Outputs | Rejection) -> str:
    conclusion = Conclusion(run_case, deviations=ONNX, findings=findings_of(OPENVINO))
    of = case(name)
    verdict = conclusion.excused(of, outcome, conclusion.judge(of, outcome))
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    return verdict.reason.message


def test_a_product_that_is_taken_for_the_transposed_one_is_named() -> None:
    outcome = run_case(case(MERGED))
    assert isinstance(outcome, Outputs)
    y = outcome.arrays["y"]
    found = reason(MERGED, Outputs({"y": y, "z": -y}))
    assert found.startswith("known finding openvino-products-merged-with-the-transposed ")
    wrong = -y
    wrong[0, 0, 1, 1] += 1
    assert "known finding" not in reason(MERGED, Outputs({"y": y, "z": wrong}))
    wrong = y.copy()
    wrong[0, 0, 0, 0] = outcome.arrays["z"][0, 0, 0, 0]
    assert "known finding" not in reason(MERGED, Outputs({"y": wrong, "z": -y}))


INTEGERS: Final = [
    (
        "element_wise_pow/boundary/int32-wrap-around",
        "openvino-powers-in-float32",
        [-(2**31)] * 6,
        [-(2**31)] * 5 + [131072],
    ),
    (
        "element_wise_divide/boundary/uint32-quotients-are-truncated",
        "openvino-quotients-in-float32",
        [3, 4294967295, 1, 2, 0, 3221225472, 4294967295],
        [4, 4294967295, 1, 2, 0, 3221225472, 4294967295],
    ),
    (
        "cast/boundary/64-bit-integers-to-themselves",
        "openvino-low-words-of-int64",
        [-1, 0, 1],
        [-1, 0, 2],
    ),
]


@pytest.mark.parametrize(("name", "finding", "given", "other"), INTEGERS)
def test_integers_are_what_openvino_gives(
    name: str, finding: str, given: list[int], other: list[int]
) -> None:
    for values, named in ((given, True), (other, False)):
        array = np.array(values, case(name).desc["OutputTensor"].DataType.dtype)
        found = reason(name, Outputs({"OutputTensor": array}))
        assert found.startswith(f"known finding {finding} ") is named, found


def test_a_refusal_is_named_by_its_cause() -> None:
    cause = "Arguments do not have the same element type (arg0 element type: f32, arg1 element type"
    for message, named in ((f"FAIL ... {cause}: f16).", True), ("FAIL ... no memory", False)):
        found = reason(QUICK_GELU, Rejection("InferenceSession", "Fail", message=message))
        assert found.startswith("known finding openvino-quick-gelu-of-float16 ") is named
