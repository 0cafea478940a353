"""Fused activations give several results for NaN, and magnify the error of their argument.

The tested code is in `dmlconf/permitted/activation/fused.py` and
`dmlconf/permitted/activation/slopes.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.permitted.activation.fused import fused_span
from dmlconf.permitted.numbers.span import Span
from dmlconf.reference.evaluation import evaluate
from tests.permitted.graphs.accepted import accepts, single

ONE = "Sizes: [1], DataType: FLOAT32"


def test_a_fused_relu_of_nan_is_nan_or_zero(tmp_path: Path) -> None:
    desc = """ATensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [.nan, 1]},
      BTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [1, 1]}, TransA: NONE,
      TransB: NONE, Alpha: 1, Beta: 0, FusedActivation: {operator: ACTIVATION_RELU},
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}"""
    case = single(tmp_path, "GEMM", desc)
    assert accepts(case, "OutputTensor", [np.nan])
    assert accepts(case, "OutputTensor", [0])
    assert not accepts(case, "OutputTensor", [1])


def test_a_fused_relu_of_an_overflow_has_four_results(
    tmp_path: Path,
) -> None:
    """2 * 3e38 - 1.5 * 3e38 may be infinite or NaN. DirectML 1.8.2 gives 0 for NaN."""
    desc = """ATensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [3.0e+38, -3.0e+38]},
      BTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [2, 1.5]}, TransA: NONE,
      TransB: NONE, Alpha: 1, Beta: 0, FusedActivation: {operator: ACTIVATION_RELU},
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}"""
    case = single(tmp_path, "GEMM", desc)
    for value in (1.5e38, np.inf, np.nan, 0):
        assert accepts(case, "OutputTensor", [value]), value
    assert not accepts(case, "OutputTensor", [1.0e37])


def test_a_steep_activation_magnifies_the_error_of_its_argument(tmp_path: Path) -> None:
    """CELU turns 110 * -1.125 / sqrt(2) into -exp(87.5); DirectML 1.15.4 is 0.0012% off."""
    tensors = {"Input": -1.125, "Mean": 0, "Variance": 0, "Scale": 110, "Bias": 0}
    desc = ", ".join(f"{name}Tensor: {{{ONE}, values: [{v}]}}" for name, v in tensors.items())
    desc += f", OutputTensor: {{{ONE}}}, Spatial: false, Epsilon: 2.0, "
    desc += "FusedActivation: {operator: ACTIVATION_CELU, Alpha: -1.0}"
    case = single(tmp_path, "BATCH_NORMALIZATION", desc)
    (right,) = evaluate(case)["OutputTensor"].tolist()
    assert accepts(case, "OutputTensor", [right * 1.000012])
    assert not accepts(case, "OutputTensor", [right * 1.01])


def test_the_slope_of_negative_arguments_does_not_affect_positive_ones(
    tmp_path: Path,
) -> None:
    """DirectML 1.13.1 is off by 0.05 * 2**-24 * 3e38."""
    desc = """
      ATensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [1.5e+38, 1.0e+36, -1.5e+38]},
      BTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [1, 1, 1]}, TransA: NONE,
      TransB: NONE, Alpha: 0.5, Beta: 0, OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32},
      FusedActivation: {operator: ACTIVATION_SCALED_ELU, Alpha: -.inf, Gamma: 0.1}"""
    case = single(tmp_path, "GEMM", desc)
    (right,) = evaluate(case)["OutputTensor"].ravel().tolist()
    assert accepts(case, "OutputTensor", [right + 0.05 * 2.0**-24 * 3e38])
    assert not accepts(case, "OutputTensor", [right + 0.05 * 2.0**-16 * 3e38])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_beyond_float16_may_be_stored_before_the_activation(
    tmp_path: Path, sign: int
) -> None:
    """DirectML 1.13.1 gives tanh(6e-6 * 65504), 0.3737, instead of tanh(6e-6 * 300 * 300)."""
    desc = f"""
      ATensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [{sign * 300}]}},
      BTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [300]}}, TransA: NONE,
      TransB: NONE, Alpha: 1, Beta: 0, OutputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16}},
      FusedActivation: {{operator: ACTIVATION_SCALED_TANH, Alpha: 1, Beta: 6.0e-6}}"""
    case = single(tmp_path, "GEMM", desc)
    for right in (0.493, 0.3737, 1):  # 1 is tanh of infinity.
        assert accepts(case, "OutputTensor", [sign * right]), right
    for wrong in (0.43, -1):
        assert not accepts(case, "OutputTensor", [sign * wrong]), wrong


GEMM_WITH_C = """
  ATensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [A]},
  BTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [300]},
  CTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [-40000]},
  TransA: NONE, TransB: NONE, Alpha: 1, Beta: 1,
  OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16}"""
CONVOLUTION_WITH_BIAS = """
  InputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [A]},
  FilterTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [300]},
  BiasTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [-40000]},
  Mode: CROSS_CORRELATION, Direction: FORWARD, Strides: [1, 1], Dilations: [1, 1],
  StartPadding: [0, 0], EndPadding: [0, 0], OutputPadding: [0, 0], GroupCount: 1,
  OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16}"""


@pytest.mark.parametrize(
    ("operator", "desc"), [("GEMM", GEMM_WITH_C), ("CONVOLUTION", CONVOLUTION_WITH_BIAS)]
)
@pytest.mark.parametrize(
    ("activation", "exact", "stored_first"),
    [("", 50000, 25504), ("{operator: ACTIVATION_LINEAR, Alpha: 0.1, Beta: 0}", 5000, 2550)],
)
def test_products_beyond_float16_may_be_stored_before_the_bias(
    tmp_path: Path, operator: str, desc: str, activation: str, exact: float, stored_first: float
) -> None:
    """DirectML 1.8.2 to 1.15.4 store 300 * 300 as 65504, and then subtract 40000."""
    fused = f", FusedActivation: {activation}" if activation else ""
    case = single(tmp_path, operator, desc.replace("[A]", "[300]") + fused)
    for right in (exact, stored_first):
        assert accepts(case, "OutputTensor", [right]), right
    assert not accepts(case, "OutputTensor", [(exact + stored_first) / 2])
    case = single(tmp_path, operator, desc.replace("[A]", "[200]") + fused)
    assert not accepts(case, "OutputTensor", [stored_first])


def test_a_normalized_product_may_be_stored_before_the_activation(
    tmp_path: Path,
) -> None:
    """DirectML 1.8.2 and 1.15.4 store 3 / sqrt(5) * 60000 as 65504."""
    desc = """
      InputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT16, values: [-3, -1, 1, 3]},
      ScaleTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [60000]},
      OutputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT16}, Axes: [3],
      NormalizeVariance: true, Epsilon: 0,
      FusedActivation: {operator: ACTIVATION_SCALED_TANH, Alpha: 1, Beta: 6.0e-6}"""
    case = single(tmp_path, "MEAN_VARIANCE_NORMALIZATION1", desc)
    right = evaluate(case)["OutputTensor"].ravel().tolist()
    assert accepts(case, "OutputTensor", [-0.3738, *right[1:3], 0.3738])
    assert not accepts(case, "OutputTensor", [-0.41, *right[1:3], 0.41])


def test_a_steep_softplus_may_be_one_ulp_off(tmp_path: Path) -> None:
    """DirectML 1.13.1 rounds 1.5 * log(1 + exp(1e38)) at each step."""
    desc = f"""ATensor: {{{ONE}, values: [1]}}, BTensor: {{{ONE}, values: [0]}},
      OutputTensor: {{{ONE}}},
      FusedActivation: {{operator: ACTIVATION_PARAMETRIC_SOFTPLUS, Alpha: 1.5, Beta: 1.0e+38}}"""
    case = single(tmp_path, "ELEMENT_WISE_ADD1", desc)
    (right,) = evaluate(case)["OutputTensor"].tolist()
    assert accepts(case, "OutputTensor", [right * (1 + 2.0**-23)])
    assert not accepts(case, "OutputTensor", [right * 1.0001])


def test_an_infinite_softplus_times_a_vanishing_factor_may_be_nan(tmp_path: Path) -> None:
    """DirectML 1.15.4 takes Alpha * ln(2) for 0 if it is subnormal."""
    desc = f"InputTensor: {{{ONE}, values: [.inf]}}, OutputTensor: {{{ONE}}}, Alpha: ALPHA, Beta: 1"
    for alpha, vanishes in (("1.2e-38", True), ("1.0e-30", False)):
        case = single(tmp_path, "ACTIVATION_PARAMETRIC_SOFTPLUS", desc.replace("ALPHA", alpha))
        assert accepts(case, "OutputTensor", [np.inf])
        assert accepts(case, "OutputTensor", [np.nan]) is vanishes


@pytest.mark.parametrize(
    ("activation", "total", "right", "wrong"),
    [
        ("{operator: ACTIVATION_RELU}", -3000, 0, -1),
        ("{operator: ELEMENT_WISE_CLIP, Min: -1.125, Max: 1.375}", 3000, 1.375, 4),
        ("{operator: ELEMENT_WISE_CLIP, Min: -1.125, Max: 1.375}", -3000, -1.125, 0),
        ("{operator: ACTIVATION_ELU, Alpha: 1}", -3000, -1, 0.5),
        ("{operator: ACTIVATION_GELU}", -3000, 0, -1),
        ("{operator: ACTIVATION_HARD_SWISH, Alpha: 0.2, Beta: 0.5}", -3000, 0, 1),
        ("{operator: ACTIVATION_LEAKY_RELU, Alpha: 0.01}", -3000, -30, -31),
        ("{operator: ACTIVATION_PARAMETRIC_SOFTPLUS, Alpha: 1, Beta: 1}", -3000, 0, 1),
        ("{operator: ACTIVATION_SCALED_ELU, Alpha: 1.5, Gamma: 2}", -3000, -3, 0),
        ("{operator: ACTIVATION_SCALED_TANH, Alpha: 2, Beta: 1}", 3000, 2, 3),
        ("{operator: ACTIVATION_SOFTPLUS, Steepness: 1}", -3000, 0, 1),
        ("{operator: ACTIVATION_SOFTSIGN}", 3000, 1, 2),
        ("{operator: ACTIVATION_SWISH, SigmoidInputScale: 1}", -3000, 0, 1),
        ("{operator: ACTIVATION_THRESHOLDED_RELU, Alpha: 1}", -3000, 0, 1),
    ],
)
def test_an_activation_that_is_flat_loses_the_error_of_its_argument(
    tmp_path: Path, activation: str, total: float, right: float, wrong: float
) -> None:
    """A FLOAT16 sum near 3000 may be 2 off, and its RELU is still no negative number."""
    desc = f"""
      ATensor: {{Sizes: [1, 1, 1, 3], DataType: FLOAT16, values: [{total}, 0.1, 0.3]}},
      BTensor: {{Sizes: [1, 1, 3, 1], DataType: FLOAT16, values: [1, 1, 1]}}, TransA: NONE,
      TransB: NONE, Alpha: 1, Beta: 0, OutputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16}},
      FusedActivation: {activation}"""
    case = single(tmp_path, "GEMM", desc)
    assert accepts(case, "OutputTensor", [right])
    assert not accepts(case, "OutputTensor", [wrong])


@pytest.mark.parametrize("last", [1, -1])
def test_an_activation_keeps_the_error_of_an_argument_that_may_be_on_either_side(
    tmp_path: Path, last: int
) -> None:
    """1.1e7 - 1.1e7 - 1 may be 2 in FLOAT32, and so may its RELU."""
    desc = f"""
      ATensor: {{Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [1.0e+7, -1.0e+7, {last}]}},
      BTensor: {{Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [1.1, 1.1, 1]}}, TransA: NONE,
      TransB: NONE, Alpha: 1, Beta: 0, OutputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32}},
      FusedActivation: {{operator: ACTIVATION_RELU}}"""
    case = single(tmp_path, "GEMM", desc)
    assert accepts(case, "OutputTensor", [2])
    assert not accepts(case, "OutputTensor", [1000])


def test_the_scale_of_a_fused_clip_is_ignored(tmp_path: Path) -> None:
    """Measured on DirectML 1.13.1 and 1.15.4."""
    desc = """
      ATensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [0.25, 0.5, -3]},
      BTensor: {Sizes: [1, 1, 3, 3], DataType: FLOAT32, values: [1, 0, 0, 0, 1, 0, 0, 0, 1]},
      OutputTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT32}, TransA: NONE, TransB: NONE, Alpha: 1,
      Beta: 0, FusedActivation: {operator: ELEMENT_WISE_CLIP, Min: -1, Max: 0.3,
                                 ScaleBias: {Scale: 2, Bias: 0}}"""
    case = single(tmp_path, "GEMM", desc)
    assert accepts(case, "OutputTensor", [0.25, 0.3, -1])
    assert not accepts(case, "OutputTensor", [0.3, 0.3, -1])


def test_the_span_of_an_activation_keeps_an_infinite_end() -> None:
    """SHRINK of -infinity is -infinity."""
    differences = Span(np.array([-np.inf, -2.0]), np.array([-65504.0, -1.0]))
    shrink = {"operator": "ACTIVATION_SHRINK", "Bias": 0.5, "Threshold": 0.5}
    span = fused_span(differences, shrink)
    assert span.finite.tolist() == [False, True]
    assert (span.least[1], span.greatest[1]) == (-1.5, -0.5)


@pytest.mark.parametrize(("low", "may_be_zero"), [("-5.0e-8", True), ("-1", False)])
def test_a_factor_of_nan_does_not_apply_to_a_sum_that_may_be_held_as_zero(
    tmp_path: Path, low: str, may_be_zero: bool
) -> None:
    """DirectML 1.9.1 truncates 0.3 * 6e-8 - 0.8 * 6e-8 to -0 before LEAKY_RELU."""
    desc = f"""
      ATensor: {{Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [0, 1]}},
      BTensor: {{Sizes: [1, 1, 2, 1], DataType: FLOAT16, values: [1, 1]}},
      CTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [0]}}, TransA: NONE,
      TransB: NONE, Alpha: {low}, Beta: 1, OutputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16}},
      FusedActivation: {{operator: ACTIVATION_LEAKY_RELU, Alpha: .nan}}"""
    case = single(tmp_path, "GEMM", desc)
    assert accepts(case, "OutputTensor", [float("nan")])
    assert accepts(case, "OutputTensor", [-0.0]) is may_be_zero
    assert not accepts(case, "OutputTensor", [-1])


def test_hard_swish_of_an_infinite_sum_is_nan_alone(tmp_path: Path) -> None:
    """It multiplies -infinity by 0."""
    desc = """
      ATensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [-.inf]},
      BTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}, TransA: NONE,
      TransB: NONE, Alpha: 1, Beta: 0, OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32},
      FusedActivation: {operator: ACTIVATION_HARD_SWISH, Alpha: 0.2, Beta: 0.5}"""
    case = single(tmp_path, "GEMM", desc)
    assert accepts(case, "OutputTensor", [float("nan")])
    assert not accepts(case, "OutputTensor", [0])


BEYOND_FLOAT16 = [
    ("RELU", 65504, np.inf, {-65504, 0, 1, np.nan, -np.inf}),
    ("LEAKY_RELU, Alpha: 0.5", 65504, np.inf, {-65504, 0, 1, np.nan, -np.inf}),
    ("LINEAR, Alpha: -0.5, Beta: 0", -32752, -np.inf, {32752, 0, 1, np.nan, np.inf}),
    ("SOFTSIGN", 1, np.nan, {0, -1, np.inf}),
]


@pytest.mark.parametrize(("activation", "held", "infinite", "wrong"), BEYOND_FLOAT16)
@pytest.mark.parametrize(
    ("operator", "desc"), [("GEMM", GEMM_WITH_C), ("CONVOLUTION", CONVOLUTION_WITH_BIAS)]
)
def test_an_activation_of_a_sum_beyond_float16_is_that_of_what_holds_the_sum(
    tmp_path: Path,
    operator: str,
    desc: str,
    activation: str,
    held: float,
    infinite: float,
    wrong: set[float],
) -> None:
    """DirectML 1.8.0 to 1.15.4 give the activation of 65504 for 600 * 300, and no other number."""
    desc = desc.replace("[A]", "[600]").replace("-40000", "0")
    desc += f", FusedActivation: {{operator: ACTIVATION_{activation}}}"
    case = single(tmp_path, operator, desc)
    for right in (held, infinite):
        assert accepts(case, "OutputTensor", [right]), right
    for number in wrong:
        assert not accepts(case, "OutputTensor", [number]), number


BEYOND_FLOAT32 = [
    ("RELU", np.inf, {-np.inf, np.nan, 0, 1}),
    ("SIGMOID", 1, {0, np.nan}),
    ("LEAKY_RELU, Alpha: 0.5", np.inf, {-np.inf, np.nan, 0}),
    ("ELU, Alpha: 0.5", np.inf, {-np.inf, np.nan, -0.5, 0}),
    ("LINEAR, Alpha: -0.5, Beta: 0", -np.inf, {np.inf, np.nan, 0}),
]


@pytest.mark.parametrize(("activation", "right", "wrong"), BEYOND_FLOAT32)
@pytest.mark.parametrize(
    ("operator", "desc"),
    [
        ("GEMM", GEMM_WITH_C),
        ("GEMM", GEMM_WITH_C.replace("Alpha: 1", "Alpha: 0.5")),
        ("CONVOLUTION", CONVOLUTION_WITH_BIAS),
    ],
)
def test_an_activation_of_an_overflow_is_that_of_its_infinity(
    tmp_path: Path,
    operator: str,
    desc: str,
    activation: str,
    right: float,
    wrong: set[float],
) -> None:
    """Products of one sign overflow to one infinity, and never become NaN."""
    desc = desc.replace("FLOAT16", "FLOAT32").replace("[A]", "[3.0e+36]").replace("-40000", "0")
    desc += f", FusedActivation: {{operator: ACTIVATION_{activation}}}"
    case = single(tmp_path, operator, desc)
    assert accepts(case, "OutputTensor", [right])
    for number in wrong:
        assert not accepts(case, "OutputTensor", [number]), number


@pytest.mark.parametrize(
    ("activation", "right", "wrong"),
    [
        ("RELU", {1.5e38, np.inf, np.nan, 0}, {-np.inf, 1e37}),
        ("SIGMOID", {1, 0, np.nan}, {0.5, np.inf}),
        ("LEAKY_RELU, Alpha: 0.5", {1.5e38, np.inf, -np.inf, np.nan}, {0, 1e37}),
    ],
)
def test_an_activation_of_an_overflow_of_either_sign_has_results_of_both(
    tmp_path: Path, activation: str, right: set[float], wrong: set[float]
) -> None:
    """DirectML 1.8.0 to 1.15.4 give the activation of NaN for 2 * 3e38 - 1.5 * 3e38."""
    desc = f"""ATensor: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [3.0e+38, -3.0e+38]}},
      BTensor: {{Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [2, 1.5]}}, TransA: NONE,
      TransB: NONE, Alpha: 1, Beta: 0, FusedActivation: {{operator: ACTIVATION_{activation}}},
      OutputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32}}"""
    case = single(tmp_path, "GEMM", desc)
    for number in right:
        assert accepts(case, "OutputTensor", [number]), number
    for number in wrong:
        assert not accepts(case, "OutputTensor", [number]), number


def test_an_activation_of_an_infinity_beside_an_overflow_is_that_of_it_or_of_nan(
    tmp_path: Path,
) -> None:
    desc = """ATensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [.inf, -3.0e+38]},
      BTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [2, 1.5]}, TransA: NONE,
      TransB: NONE, Alpha: 1, Beta: 0, FusedActivation: {operator: ACTIVATION_SIGMOID},
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}"""
    case = single(tmp_path, "GEMM", desc)
    for right in (1, np.nan):
        assert accepts(case, "OutputTensor", [right]), right
    for wrong in (0, 0.5):
        assert not accepts(case, "OutputTensor", [wrong]), wrong


def test_an_activation_of_a_product_held_as_65504_errs_though_that_of_the_sum_is_exact(
    tmp_path: Path,
) -> None:
    """-90000 + 65504 is 0 if the product is held, whose HARD_SIGMOID DirectML truncates."""
    desc = GEMM_WITH_C.replace("[A]", "[-300]").replace("-40000", "65504")
    desc += ", FusedActivation: {operator: ACTIVATION_HARD_SIGMOID, Alpha: 1, Beta: 1.0e-5}"
    case = single(tmp_path, "GEMM", desc)
    for right in (0, 1.0014e-5, 9.954e-6):
        assert accepts(case, "OutputTensor", [right]), right
    assert not accepts(case, "OutputTensor", [9.0e-6])


@pytest.mark.parametrize(("activation", "held", "infinite", "wrong"), BEYOND_FLOAT16)
def test_an_activation_of_a_normalized_number_beyond_float16_is_that_of_what_holds_it(
    tmp_path: Path, activation: str, held: float, infinite: float, wrong: set[float]
) -> None:
    """DirectML 1.8.0 to 1.15.4 give the activation of 65504 for (60000 - 0) / 1 * 2."""
    one = "Sizes: [1, 1, 1, 1], DataType: FLOAT16"
    tensors = {"Input": 60000, "Mean": 0, "Variance": 1, "Scale": 2, "Bias": 0}
    desc = ", ".join(f"{name}Tensor: {{{one}, values: [{v}]}}" for name, v in tensors.items())
    desc += f", OutputTensor: {{{one}}}, Spatial: true, Epsilon: 0, "
    desc += f"FusedActivation: {{operator: ACTIVATION_{activation}}}"
    case = single(tmp_path, "BATCH_NORMALIZATION", desc)
    for right in (held, infinite):
        assert accepts(case, "OutputTensor", [right]), right
    for number in wrong:
        assert not accepts(case, "OutputTensor", [number]), number


@pytest.mark.parametrize(
    "activation", ["SHRINK, Bias: 0.25, Threshold: 0.5", "THRESHOLDED_RELU, Alpha: 0.5"]
)
def test_an_infinite_sum_is_on_one_side_of_a_jump(tmp_path: Path, activation: str) -> None:
    tensors = {"Input": ".inf", "Mean": 0, "Variance": 1, "Scale": 2, "Bias": 0.5}
    desc = ", ".join(f"{name}Tensor: {{{ONE}, values: [{v}]}}" for name, v in tensors.items())
    desc += f", OutputTensor: {{{ONE}}}, Spatial: true, Epsilon: 0, "
    desc += f"FusedActivation: {{operator: ACTIVATION_{activation}}}"
    case = single(tmp_path, "BATCH_NORMALIZATION", desc)
    assert accepts(case, "OutputTensor", [np.inf])
    for wrong in (0, -np.inf, 12345, np.nan):
        assert not accepts(case, "OutputTensor", [wrong]), wrong
