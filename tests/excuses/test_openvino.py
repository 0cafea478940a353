"""Findings in OpenVINO name what its provider of ONNX Runtime 1.24.1 gives, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Environment, Outputs, Rejection
from dmlconf.reference.evaluation import evaluate
from tests.backends.finding_checks import defect
from tests.excuses.test_deviations import case
from tests.excuses.test_findings import explained

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
    return explained(OPENVINO, name, outcome)


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


INFINITE, NAN = math.inf, math.nan
GIVEN: Final = [
    ("element_wise_pow/boundary/int32-wrap-around", "powers-in-float32", [-(2**31)] * 6),
    (
        "element_wise_divide/boundary/uint32-quotients-are-truncated",
        "quotients-in-float32",
        [3, 4294967295, 1, 2, 0, 3221225472, 4294967295],
    ),
    ("cast/boundary/64-bit-integers-to-themselves", "integers-in-int32", [-1, 0, 1]),
    ("element_wise_min/boundary/int64-limits", "integers-in-int32", [-1, -1, -1, 0, -2, 0, 0]),
    ("element_wise_threshold/boundary/uint32-limits", "integers-in-int32", [2, 3, 2, 2, 2, 2, 5]),
    (
        "element_wise_logical_greater_than/boundary/int32-limits",
        "integers-in-float32",
        [0, 1, 0, 0, 0, 0, 0, 0],
    ),
    (
        "activation_relu_grad/boundary/limits-of-int32",
        "integers-in-float32",
        [-2147483648, 0, 16777216, 0],
    ),
    ("element_wise_clip1/boundary/int64-limits", "integers-in-float32", [0, 0, 0, -1, -4, -3, 0]),
    (
        "element_wise_modulus_floor/boundary/uint32-limits",
        "remainders-in-float32",
        [1, 1, 0, 0, 0, 0, 0],
    ),
    (
        "element_wise_modulus_truncate/boundary/uint32-limits",
        "remainders-in-float32",
        [1, 4294967295, 0, 0, 0, 0, 0],
    ),
    (
        "element_wise_bit_shift_right/boundary/uint32-limits",
        "shifts-by-arithmetic",
        [1, 0, 0, 1, 357913952, 0, 100],
    ),
    (
        "element_wise_bit_shift_left/combinations/pairs-11",
        "shifts-by-arithmetic",
        [1, 18, 255, 128, 8, 48, 14],
    ),
    (
        "element_wise_logical_and/boundary/uint32-any-bit-makes-true",
        "negative-integers-as-false",
        [1, 1, 0, 0, 0, 0, 1, 1],
    ),
    ("element_wise_logical_greater_than/boundary/float16-nan", "nan-is-greater", [1] * 6),
    (
        "element_wise_exp/boundary/float32-overflow",
        "exponentials-beyond-2-to-127-5",
        [INFINITE] * 4,
    ),
    (
        "activation_shrink/boundary/float32-special-numbers",
        "thresholds-of-infinities",
        [0, 0, NAN, NAN, NAN],
    ),
    (
        "activation_elu/boundary/attribute-that-is-no-number[DataType=FLOAT32,Alpha=inf]",
        "elu-with-an-infinite-alpha",
        [*[-INFINITE] * 3, NAN, NAN, 0.5, 3, 100, INFINITE, NAN],
    ),
]


@pytest.mark.parametrize(("name", "finding", "given"), GIVEN)
def test_outputs_are_named_that_openvino_gives_and_no_others(
    name: str, finding: str, given: list[float]
) -> None:
    [(output, tensor)] = case(name).outputs().items()
    array = np.array(given, tensor.DataType.dtype)
    named = f"known finding openvino-{finding} "
    assert reason(name, Outputs({output: array})).startswith(named)
    for index in range(array.size):
        other = defect(array, index)
        found = reason(name, Outputs({output: other}))
        assert "known finding" not in found, (index, found)


LSTM: Final = "lstm/matrix/without-bias[DataType=FLOAT16,Direction=FORWARD]"


def test_an_lstm_without_its_peepholes_is_named_and_one_without_a_state_is_not() -> None:
    of = case(LSTM)
    for left_out, named in (("PeepholeTensor", True), ("CellMemInitTensor", False)):
        other = replace(
            of,
            desc={**of.desc, left_out: None},
            data={name: each for name, each in of.data.items() if name != left_out},
        )
        found = reason(LSTM, Outputs(evaluate(other)))
        assert found.startswith("known finding openvino-lstm-without-peepholes ") is named


TOP: Final = "top_k1/sizes/long-axis[DataType=INT16,K=1025]"


def test_equal_numbers_of_top_k_may_change_places_and_no_others() -> None:
    outcome = run_case(case(TOP))
    assert isinstance(outcome, Outputs)
    values, indices = outcome.arrays["OutputValueTensor"], outcome.arrays["OutputIndexTensor"]
    [equal, *_] = np.flatnonzero(values[0, 1:] == values[0, :-1])
    [unequal, *_] = np.flatnonzero(values[0, 1:] != values[0, :-1])
    for order, named in (
        ({equal: equal + 1, equal + 1: equal}, True),
        ({equal: equal + 1}, False),  # The index of one is there twice.
        ({unequal: unequal + 1, unequal + 1: unequal}, False),
    ):
        changed = indices.copy()
        for place, source in order.items():
            changed[0, place] = indices[0, source]
        found = reason(TOP, Outputs({**outcome.arrays, "OutputIndexTensor": changed}))
        assert found.startswith("known finding openvino-order-of-equal-numbers ") is named


def test_a_refusal_is_named_by_its_cause() -> None:
    cause = "Arguments do not have the same element type (arg0 element type: f32, arg1 element type"
    for message, named in ((f"FAIL ... {cause}: f16).", True), ("FAIL ... no memory", False)):
        found = reason(QUICK_GELU, Rejection("InferenceSession", "Fail", message=message))
        assert found.startswith("known finding openvino-quick-gelu-of-float16 ") is named
