"""Results that DirectML gives for extreme attributes are right, and others beside them wrong.

The right outputs were measured on DirectML 1.9.1 or 1.15.4.

The tested code is in `dmlconf/permitted/`, and in `dmlconf/reference/element_wise/power.py` and
`dmlconf/reference/normalization/local_response.py`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.permitted.graphs.accepted import accepts, single

INFINITY, NAN = math.inf, math.nan


def unary(values: str, attributes: str, data_type: str = "FLOAT32") -> str:
    return (
        f"InputTensor: {{Sizes: [2], DataType: {data_type}, values: {values}}}, "
        f"OutputTensor: {{Sizes: [2], DataType: {data_type}}}, {attributes}"
    )


def channels(values: str, attributes: str, **more: str) -> str:
    inputs = "".join(
        f"{name}: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: {value}}}, "
        for name, value in more.items()
    )
    return (
        f"InputTensor: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: {values}}}, {inputs}"
        f"OutputTensor: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32}}, {attributes}"
    )


GEMM = (
    "ATensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: A}, "
    "BTensor: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: B}, "
    "OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}, TransA: NONE, TransB: NONE, "
    "Alpha: ALPHA, Beta: 0"
)

SOFTPLUS = "{operator: ACTIVATION_PARAMETRIC_SOFTPLUS, Alpha: 100, Beta: -1.0e+38}"

SUM_AND_SOFTPLUS = (
    "ATensor: {Sizes: [2], DataType: FLOAT32, values: [-2.0e-23, 2.0e-23]}, "
    "BTensor: {Sizes: [2], DataType: FLOAT32, values: [0, 0]}, "
    f"OutputTensor: {{Sizes: [2], DataType: FLOAT32}}, FusedActivation: {SOFTPLUS}"
)

POW = (
    "InputTensor: {Sizes: [2], DataType: INT16, values: [-32767, 3]}, "
    "ExponentTensor: {Sizes: [2], DataType: FLOAT32, values: [-1.0e-45, 0]}, "
    "OutputTensor: {Sizes: [2], DataType: INT16}, ScaleBias: {Scale: -1.0e+38, Bias: 0}"
)

SUM = (
    "Function: SUM, InputTensor: {Sizes: [1, 1, 2, 3], DataType: FLOAT32, "
    "values: [.inf, -3.0e+38, -3.0e+38, 1, 2, 3]}, "
    "OutputTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32}, Axes: [3]"
)

CASES: list[Any] = [
    # 4 * 1e38 overflows before -1e38 is added.
    (
        "ACTIVATION_LINEAR",
        unary("[4, 1]", "Alpha: 1.0e+38, Beta: -1.0e+38"),
        [[INFINITY, 0], [3e38, 0]],
        [[INFINITY, INFINITY], [3e38, 1e38]],
    ),
    (
        "VALUE_SCALE_2D",
        channels("[-4, 1]", "Scale: -1.0e+38, Bias: [-1.0e+38]"),
        [[INFINITY, -2e38], [3e38, -2e38]],
        [[-INFINITY, -2e38], [INFINITY, -INFINITY]],
    ),
    # 1e-20 * 1e-20 is subnormal.
    (
        "ACTIVATION_PARAMETRIC_SOFTPLUS",
        unary("[3.4028235e+38, 0]", "Alpha: 1.0e-20, Beta: 1.0e-20"),
        [[0.03402804955840111, 6.9314718e-21]],
        [[0.1, 6.9314718e-21], [0.034028, 7e-21]],
    ),
    # 100 * -1e38 overflows. DirectML 1.8.0 to 1.15.4 give infinity for the first element.
    (
        "ACTIVATION_PARAMETRIC_SOFTPLUS",
        unary("[-2.0e-23, 2.0e-23]", "Alpha: 100, Beta: -1.0e+38"),
        [[INFINITY, 0], [2e17, 0]],
        [[2e17, INFINITY], [2e17, 2e17], [5, 0], [5e17, 0], [NAN, 0], [-INFINITY, 0]],
    ),
    # The results are 1e37 and 69.3. DirectML 1.15.4 gives infinity for the first element.
    (
        "ACTIVATION_PARAMETRIC_SOFTPLUS",
        unary("[-0.001, 0]", "Alpha: 100, Beta: -1.0e+38", "FLOAT16"),
        [[INFINITY, 69.3], [65504, 69.3]],
        [[65472, 69.3], [5, 69.3], [NAN, 69.3], [-INFINITY, 69.3], [INFINITY, INFINITY]],
    ),
    (
        "ACTIVATION_PARAMETRIC_SOFTPLUS",
        unary("[-0.001, 1]", "Alpha: -2.0e+4, Beta: -1.0e+35", "FLOAT16"),
        [[-INFINITY, 0], [-65504, 0]],
        [[-65472, 0], [INFINITY, 0], [NAN, 0]],
    ),
    (
        "ELEMENT_WISE_ADD1",
        SUM_AND_SOFTPLUS,
        [[INFINITY, 0], [2e17, 0]],
        [[5, 0], [NAN, 0], [-INFINITY, 0], [2e17, INFINITY]],
    ),
    (
        "GEMM",
        GEMM.replace("A}", "[-2.0e-23, 0]}")
        .replace("B}", "[1, -1, 0, 0]}")
        .replace("ALPHA", f"1, FusedActivation: {SOFTPLUS}"),
        [[INFINITY, 0], [2e17, 0]],
        [[5, 0], [5e17, 0], [NAN, 0], [-INFINITY, 0], [2e17, INFINITY]],
    ),
    # 100 * 1e38 * 1 overflows, too.
    (
        "ACTIVATION_PARAMETRIC_SOFTPLUS",
        unary("[-1, 1]", "Alpha: 100, Beta: -1.0e+38"),
        [[INFINITY, 0]],
        [[5, 0], [0, 0], [-INFINITY, 0], [NAN, 0]],
    ),
    # Beta is subnormal, and 0 times infinity is NaN.
    (
        "ACTIVATION_PARAMETRIC_SOFTPLUS",
        unary("[.inf, 1]", "Alpha: 0.1, Beta: 1.0e-45", "FLOAT16"),
        [[INFINITY, 0.0693], [NAN, 0.0693]],
        [[NAN, NAN]],
    ),
    # 1.4e-45 * (exp(-1) - 1) is 0 or the least subnormal number.
    (
        "ACTIVATION_SCALED_ELU",
        unary("[-1, 1]", "Alpha: 1.0e-45, Gamma: -1.0e+38"),
        [[1.4012984e-7, -1e38], [0, -1e38]],
        [[1e-6, -1e38], [0, 0]],
    ),
    (
        "ACTIVATION_SCALED_ELU",
        unary("[-0.5, 1]", "Alpha: 1.0e-45, Gamma: .inf", "FLOAT16"),
        [[NAN, INFINITY], [-INFINITY, INFINITY]],
        [[NAN, NAN]],
    ),
    # -inf * -3 and 0.25 - -3.4e38 * -3 are opposite infinities.
    (
        "BATCH_NORMALIZATION",
        channels(
            "[-.inf, 1]",
            "Spatial: true, Epsilon: 0",
            MeanTensor="[-3.4028235e+38]",
            VarianceTensor="[1]",
            ScaleTensor="[-3]",
            BiasTensor="[0.25]",
        ),
        [[NAN, -INFINITY], [INFINITY, -INFINITY]],
        [[1, -INFINITY]],
    ),
    # 1.2e-38 * 1.2e-38 counts as 0, and infinity times 0 is NaN.
    (
        "GEMM",
        GEMM.replace("A}", "[1.2e-38, 0]}")
        .replace("B}", "[1.2e-38, 1.0e+20, 0, 0]}")
        .replace("ALPHA", "-.inf"),
        [[NAN, -INFINITY], [-INFINITY, -INFINITY]],
        [[NAN, NAN]],
    ),
    # -3.4e38 * 2 overflows beside an infinity of the other sign.
    (
        "GEMM",
        GEMM.replace("A}", "[.inf, -3.4028235e+38]}")
        .replace("B}", "[1, 1, 2, 1]}")
        .replace("ALPHA", ".inf"),
        [[NAN, INFINITY], [INFINITY, INFINITY]],
        [[INFINITY, NAN]],
    ),
    ("REDUCE", SUM, [[NAN, 6], [INFINITY, 6]], [[NAN, NAN], [INFINITY, INFINITY]]),
    # The power is subnormal, so its reciprocal is infinite.
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        channels(
            "[1.0e-45, 0]",
            "CrossChannel: true, LocalSize: 1, Alpha: 0, Beta: 3, Bias: 2.0e-17",
        ),
        [[INFINITY, 0], [175163, NAN]],
        [[INFINITY, 1]],
    ),
    # 3 to the power of 90 overflows. DirectML 1.8.0 to 1.15.4 give 0 and -0.
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        channels("[2, -2]", "CrossChannel: true, LocalSize: 1, Alpha: 0, Beta: 90, Bias: 3"),
        [[0, 0]],
        [[5, 0], [NAN, 0], [INFINITY, 0], [0, -1]],
    ),
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        channels("[1.0e+19, 0]", "CrossChannel: true, LocalSize: 1, Alpha: 0, Beta: 81, Bias: 3"),
        [[0, 0], [2.25516e-20, 0]],
        [[1e-20, 0], [1, 0], [-2.25516e-20, 0], [NAN, 0], [INFINITY, 0]],
    ),
    # The power 1e-40 is subnormal.
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        channels("[1, -1]", "CrossChannel: true, LocalSize: 1, Alpha: 0, Beta: 2, Bias: 1.0e-22"),
        [[INFINITY, -INFINITY]],
        [[-INFINITY, -INFINITY], [1e38, -INFINITY], [NAN, -INFINITY]],
    ),
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        channels(
            "[1.0e-5, 1]", "CrossChannel: true, LocalSize: 1, Alpha: 0, Beta: 2, Bias: 1.0e-20"
        ),
        [[INFINITY, INFINITY], [1e35, INFINITY]],
        [[-INFINITY, INFINITY], [1e34, INFINITY], [1.1e35, INFINITY], [NAN, INFINITY]],
    ),
    # log2(1 + 2^-23) may be off by as much as it is.
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        channels(
            "[2, -2]", "CrossChannel: true, LocalSize: 1, Alpha: 0, Beta: 1.0e+7, Bias: 1.0000001"
        ),
        [[0.60717046, -0.60717046], [2, -2]],
        [[-0.60717046, -0.60717046], [0, -0.60717046], [NAN, -2], [INFINITY, -2], [1e30, -2]],
    ),
    # log(1) * NaN is NaN; C's pow(1, NaN) is 1.
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        channels("[2, 3]", "CrossChannel: true, LocalSize: 1, Alpha: 0, Beta: .nan, Bias: 1"),
        [[NAN, NAN]],
        [[2, 3], [NAN, 3]],
    ),
    # 3 * 1e38 - 3e38 may be 0 or 1.1e31.
    (
        "ELEMENT_WISE_ASIN",
        unary("[3, 0]", "ScaleBias: {Scale: 1.0e+38, Bias: -3.0e+38}"),
        [[6.8e-5, NAN], [NAN, NAN]],
        [[NAN, 0]],
    ),
    (
        "ELEMENT_WISE_CONSTANT_POW",
        unary("[3, 1]", "ScaleBias: {Scale: 1.0e+38, Bias: -3.0e+38}, Exponent: -0.5"),
        [[0, NAN], [NAN, NAN]],
        [[NAN, 0], [0, 0]],
    ),
    # The base -32767 * -1e38 is infinite, and so is its power with the exponent 1.4e-7.
    ("ELEMENT_WISE_POW", POW, [[32767, 1]], [[32767, 32767]]),
    # An exponent of 5 * infinity may count as odd.
    (
        "ELEMENT_WISE_POW",
        "InputTensor: {Sizes: [2], DataType: FLOAT32, values: [-8, 10]}, "
        "ExponentTensor: {Sizes: [2], DataType: INT8, values: [5, -5]}, "
        "OutputTensor: {Sizes: [2], DataType: FLOAT32}, ScaleBias: {Scale: .inf, Bias: -0.5}",
        [[-INFINITY, 0], [INFINITY, 0]],
        [[-INFINITY, NAN], [INFINITY, 1]],
    ),
    # An element less the mean is 0 or some 1e-8, and times infinity NaN or infinity.
    (
        "MEAN_VARIANCE_NORMALIZATION2",
        channels(
            "[-1, -0.99999994]",
            "Axes: [3], UseMean: true, UseVariance: false, Epsilon: 0",
            ScaleTensor="[.inf]",
        ),
        [[-INFINITY, INFINITY], [NAN, NAN]],
        [[0, INFINITY], [1, INFINITY]],
    ),
]


@pytest.mark.parametrize(("operator", "desc", "right", "wrong"), CASES)
def test_only_right_results_of_extreme_attributes_are_accepted(
    tmp_path: Path, operator: str, desc: str, right: list[list[float]], wrong: list[list[float]]
) -> None:
    case = single(tmp_path, operator, desc)
    for values in (*right, *wrong):
        assert accepts(case, "OutputTensor", values) == (values in right), values
