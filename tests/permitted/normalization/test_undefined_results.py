"""Normalizations that divide zero by zero, or multiply it by infinity, may give several results.

The tested code is in `local_response.py`, `mean_variance.py`, `batch.py`, `batch_gradients.py` and
`parameters.py` in `dmlconf/permitted/normalization/`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.reference.evaluation import evaluate
from tests.permitted.graphs.accepted import accepts, single

RESPONSE = """
  InputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: [VALUE, 0, 0, 3]},
  OutputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32},
  CrossChannel: false, LocalSize: 3, Alpha: 100, Beta: -2.75, Bias: 1"""

ONE_ELEMENT = """
  InputTensor: {Sizes: [1, 4], DataType: FLOAT32, values: [0.25, -0.5, 2, 0.125]},
  BiasTensor: {Sizes: [1, 4], DataType: FLOAT32, values: [-3.25, 2, 2, 3]},
  OutputTensor: {Sizes: [1, 4], DataType: FLOAT32},
  Axes: [0], NormalizeVariance: true, Epsilon: 0,
  FusedActivation: {operator: ACTIVATION_GELU}"""


@pytest.mark.parametrize(("value", "overflows"), [("1.0e+17", True), ("2", False)])
def test_zero_times_a_power_that_overflows_may_be_nan(
    tmp_path: Path, value: str, overflows: bool
) -> None:
    """DirectML 1.15.4 multiplies 0 by (1 + 100 / 3 * 1e34) ^ 2.75, which is infinite in FLOAT32."""
    case = single(tmp_path, "LOCAL_RESPONSE_NORMALIZATION", RESPONSE.replace("VALUE", value))
    right = evaluate(case)["OutputTensor"].ravel().tolist()
    assert accepts(case, "OutputTensor", [right[0], np.nan, *right[2:]]) == overflows
    assert not accepts(case, "OutputTensor", [right[0], 5, *right[2:]])
    assert not accepts(case, "OutputTensor", [*right[:3], np.nan])


@pytest.mark.parametrize(("beta", "may_be_nan"), [("-.inf", True), ("-1000", False)])
def test_one_to_the_power_of_infinity_may_be_nan(
    tmp_path: Path, beta: str, may_be_nan: bool
) -> None:
    """DirectML 1.8.0 gives NaN for 0 * 1 ^ infinity."""
    desc = RESPONSE.replace("VALUE", "0").replace("-2.75", beta)
    case = single(tmp_path, "LOCAL_RESPONSE_NORMALIZATION", desc)
    right = evaluate(case)["OutputTensor"].ravel().tolist()
    assert right[0] == 0
    assert accepts(case, "OutputTensor", [np.nan, *right[1:]]) is may_be_nan


def test_large_power_of_about_1_may_be_any_positive_number(tmp_path: Path) -> None:
    """The first base is 1 + 2e-15, and the exponent 1e38. DirectML 1.8.0 gives 6e-8."""
    desc = """
  InputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [6.0e-8, 5]},
  OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT16},
  CrossChannel: false, LocalSize: 1, Alpha: 0.5, Beta: -1.0e+38, Bias: 1"""
    case = single(tmp_path, "LOCAL_RESPONSE_NORMALIZATION", desc)
    assert accepts(case, "OutputTensor", [np.inf, np.inf])
    assert accepts(case, "OutputTensor", [6e-8, np.inf])
    assert accepts(case, "OutputTensor", [100, np.inf])
    assert not accepts(case, "OutputTensor", [np.inf, 5])
    for impossible in (-1e-4, -np.inf, np.nan):
        assert not accepts(case, "OutputTensor", [impossible, np.inf]), impossible


def test_zero_over_a_power_that_underflows_may_be_nan(tmp_path: Path) -> None:
    """DirectML 1.15.4 divides 0 by (2 ^ -10) ^ 100, which is 0 in FLOAT32."""
    desc = """
  InputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT16, values: [0, 0.5, 5, 0]},
  OutputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT16},
  CrossChannel: false, LocalSize: 1, Alpha: 0.1, Beta: 100, Bias: 0.0009765625"""
    case = single(tmp_path, "LOCAL_RESPONSE_NORMALIZATION", desc)
    assert accepts(case, "OutputTensor", [np.nan, np.inf, 0, np.nan])
    assert accepts(case, "OutputTensor", [0, np.inf, 0, 0])
    assert not accepts(case, "OutputTensor", [5, np.inf, 0, 0])
    powers = single(tmp_path, "LOCAL_RESPONSE_NORMALIZATION", desc.replace("100", "2"))
    right = evaluate(powers)["OutputTensor"].ravel().tolist()
    assert not accepts(powers, "OutputTensor", [np.nan, *right[1:]])


def test_zero_over_zero_before_an_activation_may_count_as_zero(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives GELU(0 - 3.25) = -0.00187533 for the first element."""
    case = single(tmp_path, "MEAN_VARIANCE_NORMALIZATION1", ONE_ELEMENT)
    assert accepts(case, "OutputTensor", [-0.00187533, np.nan, 1.9545, 2.99595])
    assert not accepts(case, "OutputTensor", [-0.00187533, 1.9545, 1.9545, 2.99595])
    assert not accepts(case, "OutputTensor", [-0.00187533, np.nan, 1.96, 2.99595])


GRADIENT = """
  InputTensor: {Sizes: [1, 2], DataType: FLOAT16, values: [0, 0]},
  InputGradientTensor: {Sizes: [1, 2], DataType: FLOAT16, values: [6.0e-8, 1]},
  MeanTensor: {Sizes: [1, 2], DataType: FLOAT16, values: [0.475, 0.475]},
  VarianceTensor: {Sizes: [1, 2], DataType: FLOAT16, values: [-3, -3]},
  ScaleTensor: {Sizes: [1, 2], DataType: FLOAT16, values: [1, 1]},
  OutputGradientTensor: {Sizes: [1, 2], DataType: FLOAT16},
  OutputScaleGradientTensor: {Sizes: [1, 2], DataType: FLOAT16},
  OutputBiasGradientTensor: {Sizes: [1, 2], DataType: FLOAT16}, Epsilon: 3"""


def test_underflowing_product_over_zero_may_be_nan(tmp_path: Path) -> None:
    """DirectML 1.15.4 stores 6e-8 * -0.475 as 0 in FLOAT16, before it divides by 0."""
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING_GRAD", GRADIENT)
    assert accepts(case, "OutputScaleGradientTensor", [-np.inf, -np.inf])
    assert accepts(case, "OutputScaleGradientTensor", [np.nan, -np.inf])
    assert not accepts(case, "OutputScaleGradientTensor", [-np.inf, np.nan])


FAR_FROM_MEAN = """InputTensor: {Sizes: [1, 2], DataType: FLOAT32, values: [3.0e+38, 3]},
  InputGradientTensor: {Sizes: [1, 2], DataType: FLOAT32, values: [0.01, 0.5]},
  MeanTensor: {Sizes: [1, 2], DataType: FLOAT32, values: [-3.0e+38, 1]},
  VarianceTensor: {Sizes: [1, 2], DataType: FLOAT32, values: [1, 1]},
  ScaleTensor: {Sizes: [1, 2], DataType: FLOAT32, values: [1, 1]},
  OutputGradientTensor: {Sizes: [1, 2], DataType: FLOAT32},
  OutputScaleGradientTensor: {Sizes: [1, 2], DataType: FLOAT32},
  OutputBiasGradientTensor: {Sizes: [1, 2], DataType: FLOAT32}, Epsilon: 3"""


@pytest.mark.parametrize(
    "operator", ["BATCH_NORMALIZATION_GRAD", "BATCH_NORMALIZATION_TRAINING_GRAD"]
)
def test_overflowing_difference_times_small_gradient_may_be_infinite(
    tmp_path: Path, operator: str
) -> None:
    """(3e38 + 3e38) * 0.01 / 2 is 3e36, and infinite on DirectML 1.15.4."""
    case = single(tmp_path, operator, FAR_FROM_MEAN)
    for first in (3e36, np.inf):
        assert accepts(case, "OutputScaleGradientTensor", [first, 0.5]), first
    assert not accepts(case, "OutputScaleGradientTensor", [3e36, np.inf])


TWO = "{Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: VALUES}"


@pytest.mark.parametrize(
    ("operator", "output"),
    [
        ("BATCH_NORMALIZATION", "OutputTensor"),
        ("BATCH_NORMALIZATION_GRAD", "OutputGradientTensor"),
        ("BATCH_NORMALIZATION_GRAD", "OutputScaleGradientTensor"),
        ("BATCH_NORMALIZATION_TRAINING_GRAD", "OutputScaleGradientTensor"),
    ],
)
def test_a_variance_that_overflows_with_epsilon_may_give_0(
    tmp_path: Path, operator: str, output: str
) -> None:
    """3e38 + 3e38, the variance plus Epsilon, is infinite in FLOAT32."""
    values = {"Input": [3e30, 2], "Mean": [0, 1], "Variance": [3e38, 3e37], "Scale": [2.5e19, 3]}
    outputs = ["OutputTensor"]
    if operator == "BATCH_NORMALIZATION":
        values["Bias"] = [0, 0]
    else:
        values["InputGradient"] = [1e10, 2e20]
        outputs = [f"Output{part}GradientTensor" for part in ("", "Scale", "Bias")]
    fields = [f"{name}Tensor: {TWO.replace('VALUES', str(each))}" for name, each in values.items()]
    fields += [f"{name}: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32}}" for name in outputs]
    fields += ["Epsilon: 3.0e+38"] + ["Spatial: false"] * (operator == "BATCH_NORMALIZATION")
    case = single(tmp_path, operator, ", ".join(fields))
    first, second = evaluate(case)[output].ravel().tolist()
    for right in (first, 0):
        assert accepts(case, output, [right, second]), right
    assert not accepts(case, output, [first, 0])


def test_subnormal_product_may_be_rounded_before_a_division(tmp_path: Path) -> None:
    """FLOAT32 has 1.4e-45 or 0 for 0.2 * 4.2e-45."""
    one = "Sizes: [1, 1], DataType: FLOAT32"
    desc = f"""InputTensor: {{{one}, values: [0.2]}}, MeanTensor: {{{one}, values: [0]}},
      InputGradientTensor: {{{one}, values: [4.2e-45]}}, ScaleTensor: {{{one}, values: [1]}},
      VarianceTensor: {{{one}, values: [1.0e-22]}}, Epsilon: 0, OutputGradientTensor: {{{one}}},
      OutputScaleGradientTensor: {{{one}}}, OutputBiasGradientTensor: {{{one}}}"""
    case = single(tmp_path, "BATCH_NORMALIZATION_GRAD", desc)
    (right,) = evaluate(case)["OutputScaleGradientTensor"].ravel().tolist()
    assert right == pytest.approx(8.4e-35, rel=1e-3)
    assert all(accepts(case, "OutputScaleGradientTensor", [value]) for value in (1.4e-34, 0))
    assert not accepts(case, "OutputScaleGradientTensor", [1e-30])


@pytest.mark.parametrize(
    ("operator", "element", "scale", "subnormal"),
    [
        ("BATCH_NORMALIZATION", "3.4e+38", "1.4e-45", True),
        ("BATCH_NORMALIZATION", "3.4e+38", "1.4e-37", False),
        ("BATCH_NORMALIZATION_TRAINING", "1.0e+9", "1.2e-36", True),
        ("BATCH_NORMALIZATION_TRAINING", "1.0e+2", "1.2e-36", False),
    ],
)
def test_subnormal_quotient_of_scale_and_deviation_may_be_rounded(
    tmp_path: Path, operator: str, element: str, scale: str, subnormal: bool
) -> None:
    """FLOAT32 rounds 1.4e-45 / 0.84 and 1.2e-36 / 1e9 to 2^-149, or flushes them to 0."""
    one, row = "Sizes: [1, 1], DataType: FLOAT32", "Sizes: [1, 2], DataType: FLOAT32"
    desc = f"""InputTensor: {{{row}, values: [{element}, -{element}]}},
      ScaleTensor: {{{one}, values: [{scale}]}}, BiasTensor: {{{one}, values: [0]}},
      OutputTensor: {{{row}}}, """
    if operator == "BATCH_NORMALIZATION":
        quotient = 2**-149 / 0.84
        desc += f"""MeanTensor: {{{one}, values: [0]}}, VarianceTensor: {{{one}, values: [0]}},
          Epsilon: {0.84**2}, Spatial: true"""
    else:
        quotient = 1.2e-36 / 1e9
        desc += f"OutputMeanTensor: {{{one}}}, OutputVarianceTensor: {{{one}}}, Epsilon: 0"
    case = single(tmp_path, operator, desc)
    right = evaluate(case)["OutputTensor"].ravel().tolist()
    assert accepts(case, "OutputTensor", right)
    rounded = [2**-149 / quotient * each for each in right]
    assert accepts(case, "OutputTensor", rounded) is subnormal
    assert accepts(case, "OutputTensor", [0, 0]) is subnormal
    assert not accepts(case, "OutputTensor", [1, right[1]])


SMALL_GRADIENTS = """
  InputTensor: {Sizes: [9, 17, 5, 2], DataType: FLOAT32, Strides: [1, 9, 153, 765],
                fill: {normal: {seed: 62692884}}},
  InputGradientTensor: {Sizes: [9, 17, 5, 2], DataType: FLOAT32,
                        fill: {specials: {seed: 17, every: 3}}},
  OutputGradientTensor: {Sizes: [9, 17, 5, 2], DataType: FLOAT32},
  CrossChannel: false, LocalSize: 2, Alpha: 0.25, Beta: BETA, Bias: 0.25"""


def test_power_may_overflow_before_a_small_gradient_multiplies_it(tmp_path: Path) -> None:
    """0.424 ^ -101 * 2 * 0.25 * 100 overflows, and DirectML 1.15.4 gives -inf."""
    for beta, overflows in (("100", True), ("10", False)):
        desc = SMALL_GRADIENTS.replace("BETA", beta)
        case = single(tmp_path, "LOCAL_RESPONSE_NORMALIZATION_GRAD", desc)
        outputs = evaluate(case)["OutputGradientTensor"]
        outputs[4, 0, 0, 1] = -np.inf
        assert accepts(case, "OutputGradientTensor", outputs) is overflows


def test_norm_beyond_float16_permits_no_infinite_quotient(tmp_path: Path) -> None:
    """The square of the norm, 1600 ** 2, is stored as infinity or 65504, or not stored."""
    case = single(
        tmp_path,
        "LP_NORMALIZATION",
        """
        InputTensor: {Sizes: [1, 4], DataType: FLOAT16, values: [300, 500, 300, 500]},
        OutputTensor: {Sizes: [1, 4], DataType: FLOAT16}, Axis: 1, Epsilon: 0, P: 1""",
    )
    for right in ([0.1875, 0.3125, 0.1875, 0.3125], [0] * 4, [1.172, 1.953, 1.172, 1.953]):
        assert accepts(case, "OutputTensor", right)
    for wrong in (np.nan, np.inf, -np.inf, -0.1875):
        assert not accepts(case, "OutputTensor", [wrong, 0.3125, 0.1875, 0.3125])


TINY = """
  InputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT16, values: [VALUES]},
  ScaleTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [0]},
  BiasTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [5]},
  OutputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT16}, Epsilon: 0, """
TRAINING = """
  OutputMeanTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16},
  OutputVarianceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16}"""


@pytest.mark.parametrize(
    ("operator", "fields"),
    [
        ("MEAN_VARIANCE_NORMALIZATION1", "Axes: [3], NormalizeVariance: true"),
        ("BATCH_NORMALIZATION_TRAINING", TRAINING),
    ],
)
def test_variance_and_scale_of_0_may_give_nan(tmp_path: Path, operator: str, fields: str) -> None:
    """A variance of 1e-8 is 0 in FLOAT16; DirectML 1.9.1 multiplies infinity by the scale."""
    for values, vanishes in (("1.0e-4, -1.0e-4, 1.0e-4, -1.0e-4", True), ("1, -1, 1, -1", False)):
        case = single(tmp_path, operator, TINY.replace("VALUES", values) + fields)
        assert accepts(case, "OutputTensor", [5, 5, 5, 5])
        assert accepts(case, "OutputTensor", [np.nan, 5, 5, 5]) is vanishes


NEAR_2048 = """
  InputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [2047, 2048]},
  ScaleTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [1]},
  BiasTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [0]},
  OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT16}, Epsilon: EPSILON, """


@pytest.mark.parametrize(
    ("operator", "fields"),
    [
        ("MEAN_VARIANCE_NORMALIZATION1", "Axes: [3], NormalizeVariance: true"),
        ("BATCH_NORMALIZATION_TRAINING", TRAINING),
    ],
)
def test_stored_mean_may_make_variance_plus_epsilon_0(
    tmp_path: Path, operator: str, fields: str
) -> None:
    """FLOAT16 stores the mean 2047.5 as 2048; the variance around 2048 is 0.5."""
    for epsilon, equal in (("-0.5", True), ("0.5", False)):
        case = single(tmp_path, operator, NEAR_2048.replace("EPSILON", epsilon) + fields)
        assert accepts(case, "OutputTensor", [-np.inf, np.inf]) is equal


def test_infinite_quotient_times_a_scale_of_0_may_be_nan(tmp_path: Path) -> None:
    """1e30 / sqrt(1e-20) overflows."""
    desc = """
  InputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1.0e+30]},
  MeanTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0]},
  VarianceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1.0e-20]},
  ScaleTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0]},
  BiasTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]},
  OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}, Spatial: true, Epsilon: 0"""
    case = single(tmp_path, "BATCH_NORMALIZATION", desc)
    assert accepts(case, "OutputTensor", [1])
    assert accepts(case, "OutputTensor", [np.nan])
    assert not accepts(case, "OutputTensor", [2])


@pytest.mark.parametrize("sign", ["", "-"])
def test_normalized_number_that_overflows_keeps_its_sign(sign: str, tmp_path: Path) -> None:
    desc = f"""
  InputTensor: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [{sign}3.0e+38, 1]}},
  MeanTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0.5]}},
  VarianceTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [2]}},
  ScaleTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [3]}},
  BiasTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}},
  OutputTensor: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32}}, Spatial: true, Epsilon: 0"""
    case = single(tmp_path, "BATCH_NORMALIZATION", desc)
    infinity = np.inf if sign == "" else -np.inf
    second = float(evaluate(case)["OutputTensor"].ravel()[1])
    assert accepts(case, "OutputTensor", [infinity, second])
    assert not accepts(case, "OutputTensor", [-infinity, second])
    assert not accepts(case, "OutputTensor", [np.nan, second])


def test_response_near_overflow_may_be_stored_as_65504(tmp_path: Path) -> None:
    """The first response is 2 ** 127.5, and the second is twice that."""
    desc = """
  InputTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT16, values: [1, 2]},
  OutputTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT16},
  CrossChannel: true, LocalSize: 1, Alpha: 0, Beta: -127.5, Bias: 2"""
    case = single(tmp_path, "LOCAL_RESPONSE_NORMALIZATION", desc)
    for right in (np.inf, 65504):
        assert accepts(case, "OutputTensor", [right, np.inf])
    for wrong in (60000, -np.inf, np.nan):
        assert not accepts(case, "OutputTensor", [wrong, np.inf])
