"""Findings explain the wrong outputs of OpenVINO in ONNX Runtime 1.24.1, and no other wrong ones.

The tested code is in `openvino.py`, `openvino_activations.py`, `openvino_graphs.py`,
`openvino_integers.py` and `recurrent_layers.py` in `dmlconf/faults/runtimes/`, in
`dmlconf/excuses/findings.py` and in `schemas/findings/`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Environment, Outputs, Rejection
from dmlconf.faults.runtimes.openvino import odd_windows_with_a_whole_bias
from dmlconf.reference.evaluation import evaluate
from tests.backends.finding_checks import defect
from tests.excuses.test_deviations import case
from tests.excuses.test_findings import reason_of_case, reason_of_failure
from tests.graphs.suites import graph_case

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
    return reason_of_failure(OPENVINO, name, outcome)


def test_product_merged_with_the_transposed_one_is_explained() -> None:
    outcome = run_case(case(MERGED))
    assert isinstance(outcome, Outputs)
    y = outcome.arrays["y"]
    # y is a0 @ b0.T + c0, and z is -(a0 @ b0 + c0). OpenVINO's z is -y.
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
    (
        "activation_scaled_elu/boundary/attribute-that-is-no-number[DataType=FLOAT16,Alpha=0]",
        "hard-sigmoid-with-attributes-of-0",
        [-0.83642578125, -0.794921875, -0.3291015625, 0, 0, 0.25, 1.5, 50, INFINITE, NAN],
    ),
    ("convolution_integer/boundary/sums-wrap-around", "sums-of-products-in-float32", [2**31 - 128]),
    ("diagonal_matrix/boundary/negative-zero", "zeros-without-sign", [0, 0]),
    (
        "element_wise_clip1/boundary/bounds-of-another-data-type"
        "[DataType=INT64,MinMaxDataType=FLOAT32,Max=inf]",
        "integers-in-float32",
        [0, 0, 0, 0, 0],
    ),
    (
        "graphs/chains/products-with-two-constants-that-overflow-in-between[Held=constant]",
        "constants-combined-first",
        [1e20, -1e20, 6, 0],
    ),
    (
        "graphs/rewrites-elimination/cancel-addition-and-subtraction--no-overflow[Held=owned]",
        "constants-combined-first",
        [3e38, -3e38, 3, -4, 5],
    ),
    (
        "graphs/rewrites-elimination/cancel-multiplication-and-division--no-overflow[Held=owned]",
        "constants-combined-first",
        [3e38, -3e38, 3, -4, 5],
    ),
    (
        "element_wise_quantize_linear/boundary/float32-infinities",
        "infinite-scales",
        [127, -128, 0, 0],
    ),
    (
        "graphs/rewrites-patterns/merge-factors--factors-do-not-overflow[Held=owned]",
        "constants-combined-first",
        [INFINITE, INFINITE, -INFINITE],
    ),
    (
        "graphs/rewrites-attributes/merge-equal-scatters--same-updates[DataType=FLOAT32]",
        "unused-inputs",
        [10, 20, 30, 60, 40, 50, 80, 90, 70],
    ),
    (
        "graphs/rewrites-elimination/cancel-multiplication-and-division--integers-do-not-wrap"
        "[Held=input]",
        "quotients-in-float32",
        [4000000000, 6, 7, 8, 9],
    ),
    (
        "graphs/rewrites-elimination/cancel-exp-of-log--x-is-not-negative[DataType=FLOAT32]",
        "exponentials-beyond-2-to-127-5",
        [1, INFINITE, 3.000000238418579, INFINITE, 5],
    ),
    (
        "graphs/rewrites-elimination/merge-casts--same-signedness",
        "casts-that-are-left-out",
        [1, -2, 3, -4, 5],
    ),
    ("graphs/precision/cast-pair", "casts-that-are-left-out", [0, 0, 0]),
    (
        "graphs/rewrites-moving/move-cast-over-addition--sum-does-not-wrap[Held=owned]",
        "products-that-saturate",
        [11, 255, 33, 255, 55],
    ),
    (
        "graphs/rewrites-sizes/fold-integers--sixty-four-bits-are-kept-2[Held=input]",
        "integers-in-int32",
        [-1633559511, 261134297, 35],
    ),
    (
        "reduce/combinations/pairs-1[Values=MAXx1x2x1x3x2x7xFLOAT32xnonex0x-infximplicit"
        "x1x2x1x3x2x1xFLOAT32ximplicitx5]",
        "extremes-of-infinities",
        [-3.4028234663852886e38] * 12,
    ),
]
"""A case, the finding without its prefix `openvino-`, and the elements that OpenVINO gives."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "finding", "given"), GIVEN)
def test_only_the_outputs_of_openvino_are_explained(
    name: str, finding: str, given: list[float]
) -> None:
    [(output, tensor)] = case(name).outputs().items()
    array = np.array(given, tensor.DataType.dtype).reshape(tensor.Sizes)
    named = f"known finding openvino-{finding} "
    assert reason(name, Outputs({output: array})).startswith(named)
    for index in range(array.size):
        other = defect(array, index)
        found = reason(name, Outputs({output: other}))
        assert "known finding" not in found, (index, found)


TWO_SUMS: Final = """
inputs:
  x: {Sizes: [1], DataType: FLOAT32, values: [1]}
  c: {Sizes: [1], DataType: FLOAT32, held: owned, values: [3.0e+38]}
  d: {Sizes: [1], DataType: FLOAT32, held: owned, values: [3.0e+38]}
nodes:
  first: {operator: ELEMENT_WISE_ADD, desc: {ATensor: x, BTensor: c, OutputTensor: {}}}
  second: {operator: ELEMENT_WISE_SUBTRACT, desc: {ATensor: first, BTensor: d, OutputTensor: {}}}
outputs: {sum: first, difference: second}
"""


def test_constants_are_not_combined_across_an_output(
    tmp_path: Path,
) -> None:
    """In FLOAT32, (x + c) - d is 0, and x + (c - d) is 1."""
    sums = graph_case(tmp_path, TWO_SUMS)
    outputs = evaluate(sums)
    wrong = Outputs({**outputs, "difference": np.ones(1, np.float32)})
    assert "known finding" not in reason_of_case(OPENVINO, sums, wrong)


def test_inputs_of_a_graph_are_not_combined() -> None:
    name = "graphs/rewrites-patterns/merge-factors--factors-do-not-overflow[Held=input]"
    wrong = np.array([INFINITE, INFINITE, -INFINITE], np.float32).reshape(1, 1, 1, 3)
    assert "known finding" not in reason(name, Outputs({"y": wrong}))


SQUARES: Final = (
    "reduce/triples/squares-beyond-2-to-the-53[Function=SUM_SQUARE,DataType=INT64,Axes=0x3]"
)


def test_sums_rounded_by_steps_are_explained() -> None:
    given = [-(2**31), -986318720, -1739051008, -(2**31), 2134611200]
    given += [-(2**31), 1897443072, -1284491776, 1781603456, 284721792]
    array = np.array(given, np.int64).reshape(1, 5, 2, 1)
    assert " openvino-sums-by-steps (" in reason(SQUARES, Outputs({"OutputTensor": array}))
    # The formula gives 1 ULP of FLOAT32 (128) more than OpenVINO; up to 4 ULP more are explained.
    for ulps, explained in ((5, True), (6, False)):
        other = array.copy()
        other[0, 4, 0, 0] += ulps * 128
        found = reason(SQUARES, Outputs({"OutputTensor": other}))
        assert ("known finding" in found) is explained


@pytest.mark.parametrize("bias", [INFINITE, -INFINITE, NAN])
def test_infinite_or_nan_bias_explains_no_difference(bias: float) -> None:
    name = (
        "local_response_normalization/matrix/parameters"
        "[DataType=FLOAT16,CrossChannel=True,LocalSize=3,Alpha=0.0001,Beta=2,Bias=0.5]"
    )
    usual = case(name)
    assert odd_windows_with_a_whole_bias(usual) is not None
    other = replace(usual, desc={**usual.desc, "Bias": bias})
    assert odd_windows_with_a_whole_bias(other) is None


JOINED: Final = (
    "graphs/rewrites-reported/replace-reduction-of-join--each-has-one-element-there"
    "[DataType=FLOAT32,Held=input]"
)
JOINED_AND_CUT: Final = """
inputs:
  p: {Sizes: [1, 1, 2, 3], DataType: FLOAT32, values: [1, -2, 3, 9, -8, 7]}
nodes:
  j: {operator: JOIN, desc: {InputTensors: [p, p], OutputTensor: {Sizes: [1, 1, 4, 3]}, Axis: 2}}
  cut: {operator: ACTIVATION_RELU, desc: {InputTensor: j, OutputTensor: {}}}
  y:
    operator: REDUCE
    desc: {Function: MAX, InputTensor: cut, OutputTensor: {Sizes: [1, 1, 1, 3]}, Axes: [2]}
outputs: {y: y}
"""
"""A graph whose reduction reads an activation of the join."""


def test_reduced_join_explains_other_output_sizes() -> None:
    more = Outputs({"y": np.zeros((1, 1, 2, 3), np.float32)})
    assert reason(JOINED, more).startswith("known finding openvino-extremes-of-joins ")
    assert "known finding" not in reason(MERGED, Outputs({"y": more.arrays["y"], "z": np.zeros(4)}))


def test_activation_before_a_reduction_prevents_its_finding(
    tmp_path: Path,
) -> None:
    more = Outputs({"y": np.zeros((1, 1, 2, 3), np.float32)})
    found = reason_of_case(OPENVINO, graph_case(tmp_path, JOINED_AND_CUT).with_inputs(), more)
    assert "known finding" not in found


LSTM: Final = "lstm/matrix/without-bias[DataType=FLOAT16,Direction=FORWARD]"


def test_lstm_without_peepholes_is_explained() -> None:
    lstm = case(LSTM)
    for left_out, named in (("PeepholeTensor", True), ("CellMemInitTensor", False)):
        other = replace(
            lstm,
            desc={**lstm.desc, left_out: None},
            data={name: each for name, each in lstm.data.items() if name != left_out},
        )
        found = reason(LSTM, Outputs(evaluate(other)))
        assert found.startswith("known finding openvino-lstm-without-peepholes ") is named


TOP: Final = "top_k1/sizes/long-axis[DataType=INT16,K=1025]"


def test_top_k_may_swap_only_indices_of_equal_numbers() -> None:
    outcome = run_case(case(TOP))
    assert isinstance(outcome, Outputs)
    values, indices = outcome.arrays["OutputValueTensor"], outcome.arrays["OutputIndexTensor"]
    [equal, *_] = np.flatnonzero(values[0, 1:] == values[0, :-1])
    [unequal, *_] = np.flatnonzero(values[0, 1:] != values[0, :-1])
    for order, named in (
        ({equal: equal + 1, equal + 1: equal}, True),
        ({equal: equal + 1}, False),  # One index occurs twice.
        ({unequal: unequal + 1, unequal + 1: unequal}, False),
    ):
        changed = indices.copy()
        for index, source in order.items():
            changed[0, index] = indices[0, source]
        found = reason(TOP, Outputs({**outcome.arrays, "OutputIndexTensor": changed}))
        assert found.startswith("known finding openvino-order-of-equal-numbers ") is named


def test_refusal_is_explained_by_its_message() -> None:
    cause = "Arguments do not have the same element type (arg0 element type: f32, arg1 element type"
    for message, named in ((f"FAIL ... {cause}: f16).", True), ("FAIL ... no memory", False)):
        found = reason(QUICK_GELU, Rejection("InferenceSession", "Fail", message=message))
        assert found.startswith("known finding openvino-quick-gelu-of-float16 ") is named


POOLED: Final = """
inputs: {x: {Sizes: [1, 1, 1, 2], DataType: UINT32, values: [1, 4294967295]}}
nodes:
  n: {operator: ELEMENT_WISE_IDENTITY, desc: {InputTensor: x, OutputTensor: {}}}
  m:
    operator: MAX_POOLING2
    desc: {InputTensor: n, OutputTensor: {Sizes: [1, 1, 1, 1]}, Strides: [1, 1], WindowSize: [1, 2],
           StartPadding: [0, 0], EndPadding: [0, 0], Dilations: [1, 1]}
outputs: {y: m}
"""


def test_max_pooling_of_uint32_in_a_graph_raises_no_error(tmp_path: Path) -> None:
    tested = graph_case(tmp_path, POOLED).with_inputs()
    outcome = Outputs({"y": np.full((1, 1, 1, 1), 7, np.uint32)})
    assert not reason_of_case(OPENVINO, tested, outcome).startswith("known finding ")
