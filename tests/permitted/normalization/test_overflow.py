"""Which infinities and NaN normalisations may give where a sum, a product or a variance overflows.

The tested code is in `dmlconf/permitted/normalization/overflows.py`,
`dmlconf/permitted/normalization/batch.py` and `dmlconf/permitted/normalization/mean_variance.py`.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.permitted.graphs.accepted import accepts, single

INFINITY, NAN = math.inf, math.nan

ONE = "{Sizes: [1, 1, 1, 1], DataType: FLOAT32"
FOUR = "{Sizes: [1, 1, 1, 4], DataType: FLOAT32"

TRAINING = (
    f"InputTensor: {FOUR}, values: VALUES}}, ScaleTensor: {ONE}, values: [1]}}, "
    f"BiasTensor: {ONE}, values: [0]}}, OutputTensor: {FOUR}}}, OutputMeanTensor: {ONE}}}, "
    f"OutputVarianceTensor: {ONE}}}, Epsilon: 1.0e-5"
)

MEAN_VARIANCE = (
    f"InputTensor: {FOUR}, values: VALUES}}, OutputTensor: {FOUR}}}, "
    f"ScaleTensor: {FOUR}, values: SCALE}}, BiasTensor: {FOUR}, values: BIAS}}, Axes: [3], "
    "UseMean: MEAN, UseVariance: VARIANCE, Epsilon: 1.0e-5"
)

INFERENCE = (
    f"InputTensor: {FOUR}, values: VALUES}}, MeanTensor: {ONE}, values: [0]}}, "
    f"VarianceTensor: {ONE}, values: [3.0e+38]}}, ScaleTensor: {ONE}, values: [1]}}, "
    f"BiasTensor: {ONE}, values: [5]}}, OutputTensor: {FOUR}}}, Spatial: true, Epsilon: 3.0e+38"
)


@pytest.mark.parametrize(
    ("values", "output", "right", "wrong"),
    [
        # DirectML 1.8.0 to 1.15.4 give the first of the right results.
        ("[3.0e+38, 3.0e+38, 3.0e+38, 3.0e+38]", "Mean", [INFINITY, 3e38], [-INFINITY, NAN]),
        ("[-3.0e+38, -3.0e+38, -3.0e+38, 1]", "Mean", [-INFINITY], [INFINITY, NAN]),
        (
            "[3.0e+38, 3.0e+38, -3.0e+38, -3.0e+38]",
            "Mean",
            [INFINITY, 0, -INFINITY, NAN],
            [1e34],
        ),
        ("[.nan, 3.0e+38, 3.0e+38, 1]", "Mean", [NAN], [INFINITY, -INFINITY]),
        ("[1.0e+20, -1.0e+20, 2, 3]", "Variance", [INFINITY], [-INFINITY, NAN]),
        ("[1.0e+20, 1, 2, 3]", "Variance", [INFINITY, NAN], [-INFINITY]),
        ("[3.0e+38, 3.0e+38, 3.0e+38, 3.0e+38]", "Variance", [INFINITY, NAN, 0], [-INFINITY]),
        ("[.inf, -3.0e+38, -3.0e+38, 1]", "Variance", [NAN], [INFINITY, -INFINITY]),
    ],
)
def test_mean_has_the_sign_of_its_terms_and_variance_is_not_negative(
    tmp_path: Path, values: str, output: str, right: list[float], wrong: list[float]
) -> None:
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING", TRAINING.replace("VALUES", values))
    for value in (*right, *wrong):
        assert accepts(case, f"Output{output}Tensor", [value]) == (value in right), value


@pytest.mark.parametrize(
    "operator", ["BATCH_NORMALIZATION_TRAINING", "MEAN_VARIANCE_NORMALIZATION2"]
)
@pytest.mark.parametrize(
    ("values", "right", "wrong"),
    [
        # The variance overflows. A kernel may subtract the infinite square of a mean from it.
        ("[1.0e+20, -1.0e+20, 1, -1]", [0], [NAN, INFINITY, -INFINITY]),
        ("[1.0e+20, 1, 2, 3]", [0, NAN], [INFINITY, -INFINITY]),
        # The mean overflows.
        ("[3.0e+38, 3.0e+38, -1.0e+38, 1]", [NAN, 0], [INFINITY, -INFINITY]),
        ("[.nan, 3.0e+38, 3.0e+38, 1]", [NAN], [INFINITY, -INFINITY, 0]),
    ],
)
def test_quotient_by_an_infinite_deviation_is_0_or_nan(
    tmp_path: Path, operator: str, values: str, right: list[float], wrong: list[float]
) -> None:
    """DirectML 1.8.0 to 1.15.4 give the first of the right results."""
    desc = MEAN_VARIANCE.replace("MEAN", "true").replace("VARIANCE", "true")
    desc = desc.replace("SCALE", "[1, 1, 1, 1]").replace("BIAS", "[0, 0, 0, 0]")
    desc = TRAINING if operator == "BATCH_NORMALIZATION_TRAINING" else desc
    case = single(tmp_path, operator, desc.replace("VALUES", values))
    for value in (*right, *wrong):
        assert accepts(case, "OutputTensor", [value] * 4) == (value in right), value


@pytest.mark.parametrize(
    ("flags", "values", "scale", "bias", "right", "wrong"),
    [
        # DirectML 1.15.4 gives the first of the right results.
        (
            ("false", "false"),
            "[1, -2, 3, 10]",
            "[3.0e+38, 3.0e+38, 3.0e+38, 3.0e+38]",
            "[0, 0, 0, 0]",
            [[3e38, -INFINITY, INFINITY, INFINITY]],
            [
                [3e38, INFINITY, INFINITY, INFINITY],
                [3e38, -INFINITY, -INFINITY, INFINITY],
                [3e38, -INFINITY, NAN, INFINITY],
                [NAN, -INFINITY, INFINITY, INFINITY],
            ],
        ),
        # The sum of the elements overflows before it is divided.
        (
            ("true", "false"),
            "[3.0e+38, 3.0e+38, -1, 0]",
            "[1, 1, 1, 1]",
            "[0, 0, 0, 0]",
            [[-INFINITY] * 4, [1.5e38, 1.5e38, -1.5e38, -1.5e38]],
            [[INFINITY] * 4, [NAN] * 4],
        ),
        (
            ("true", "false"),
            "[3.0e+38, 3.0e+38, -1, 0]",
            "[-1, -1, -1, 0]",
            "[0, 0, 0, 0]",
            [[INFINITY, INFINITY, INFINITY, NAN]],
            [[-INFINITY, INFINITY, INFINITY, NAN], [INFINITY] * 4],
        ),
        (
            ("true", "true"),
            "[1, 2, 3, 10]",
            "[3.0e+38, 3.0e+38, 3.0e+38, 3.0e+38]",
            "[-3.0e+38, -.inf, .inf, -3.0e+38]",
            [[-INFINITY, -INFINITY, INFINITY, 2.0911678e38]],
            [[INFINITY, -INFINITY, INFINITY, 2.0911678e38], [-INFINITY] * 4],
        ),
    ],
)
def test_scaled_difference_that_overflows_has_its_own_sign(
    tmp_path: Path,
    flags: tuple[str, str],
    values: str,
    scale: str,
    bias: str,
    right: list[list[float]],
    wrong: list[list[float]],
) -> None:
    desc = MEAN_VARIANCE.replace("MEAN", flags[0]).replace("VARIANCE", flags[1])
    desc = desc.replace("VALUES", values).replace("SCALE", scale).replace("BIAS", bias)
    case = single(tmp_path, "MEAN_VARIANCE_NORMALIZATION2", desc)
    for output in right:
        assert accepts(case, "OutputTensor", output), output
    for output in wrong:
        assert not accepts(case, "OutputTensor", output), output


def test_variance_plus_epsilon_beyond_float32_leaves_the_bias(tmp_path: Path) -> None:
    """DirectML 1.8.0 to 1.15.4 give the bias, 5."""
    values = "[3.0e+38, -3.0e+38, 1, 0]"
    case = single(tmp_path, "BATCH_NORMALIZATION", INFERENCE.replace("VALUES", values))
    for output in ([5, 5, 5, 5], [1.2247449e19, -1.2247449e19, 5, 5]):
        assert accepts(case, "OutputTensor", output)
    for value in (NAN, INFINITY, -INFINITY, 4, 1e30):
        assert not accepts(case, "OutputTensor", [5, 5, 5, value]), value


def test_quotient_by_a_variance_that_overflows_with_epsilon_is_0(tmp_path: Path) -> None:
    """DirectML 1.8.0 and 1.15.4 give the bias, 2.5, over a variance of 4.2e37 plus 3e38."""
    desc = TRAINING.replace("VALUES", "[1.3e+19, 1.3e+19, 0, 0]").replace("1.0e-5", "3.0e+38")
    desc = desc.replace("values: [0]", "values: [2.5]").replace("values: [1]", "values: [1.0e+10]")
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING", desc)
    assert accepts(case, "OutputTensor", [2.5] * 4)
    assert not accepts(case, "OutputTensor", [1e6] * 4)


def test_opposite_infinities_of_a_scaled_input_and_an_infinite_mean_may_be_nan(
    tmp_path: Path,
) -> None:
    """-1e38 * 1e19 is -infinity, and so is the mean of -infinity times 1e19. DirectML gives NaN."""
    desc = """
      InputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [-1.0e+38, 1]},
      MeanTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [-.inf]},
      VarianceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]},
      ScaleTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1.0e+19]},
      BiasTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0]},
      OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}, Spatial: true, Epsilon: 0"""
    case = single(tmp_path, "BATCH_NORMALIZATION", desc)
    assert accepts(case, "OutputTensor", [NAN, INFINITY])
    assert accepts(case, "OutputTensor", [INFINITY, INFINITY])
    assert not accepts(case, "OutputTensor", [INFINITY, NAN])
