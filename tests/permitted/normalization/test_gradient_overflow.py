"""Which infinities and NaN gradients of batch normalisation may give where a sum overflows.

The tested code is in `dmlconf/permitted/normalization/gradient_overflows.py` and
`dmlconf/permitted/normalization/batch_gradients.py`.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.permitted.graphs.accepted import accepts, single

INFINITY, NAN = math.inf, math.nan

ONE = "{Sizes: [1, 1, 1, 1], DataType: TYPE"
THREE = "{Sizes: [1, 1, 1, 3], DataType: TYPE"

GRADIENTS = (
    f"InputTensor: {THREE}, values: VALUES}}, InputGradientTensor: {THREE}, values: SLOPES}}, "
    f"MeanTensor: {ONE}, values: [0]}}, VarianceTensor: {ONE}, values: [VARIANCE]}}, "
    f"ScaleTensor: {ONE}, values: [SCALE]}}, OutputGradientTensor: {THREE}}}, "
    f"OutputScaleGradientTensor: {ONE}}}, OutputBiasGradientTensor: {ONE}}}, Epsilon: EPSILON"
)


def gradients(values: str, slopes: str, scale: str = "1", data_type: str = "FLOAT32") -> str:
    desc = GRADIENTS.replace("VALUES", values).replace("SLOPES", slopes).replace("SCALE", scale)
    return desc.replace("TYPE", data_type).replace("VARIANCE", "1").replace("EPSILON", "0")


@pytest.mark.parametrize(
    "operator", ["BATCH_NORMALIZATION_GRAD", "BATCH_NORMALIZATION_TRAINING_GRAD"]
)
@pytest.mark.parametrize(
    ("desc", "output", "right", "wrong"),
    [
        # DirectML 1.8.0 to 1.15.4 give the first of the right results.
        (
            gradients("[1, 2, 3]", "[3.0e+38, 3.0e+38, 1]"),
            "Bias",
            [INFINITY],
            [-INFINITY, NAN],
        ),
        (
            gradients("[1, 2, 3]", "[-3.0e+38, -3.0e+38, 1]"),
            "Scale",
            [-INFINITY],
            [INFINITY, NAN],
        ),
        (
            gradients("[1, 2, 3]", "[3.0e+38, 3.0e+38, -3.0e+38]"),
            "Bias",
            [INFINITY, 3e38],
            [-INFINITY, NAN],
        ),
        (
            gradients("[1, 2, 3]", "[3.0e+38, 3.0e+38, -3.0e+38]"),
            "Scale",
            [NAN, INFINITY, -INFINITY],
            [],
        ),
        (
            gradients("[-1.0e+30, -1.0e+30, 1]", "[1.0e+20, 1.0e+20, 1]"),
            "Scale",
            [-INFINITY],
            [INFINITY, NAN],
        ),
        (gradients("[1, 2, 3]", "[.nan, 3.0e+38, 3.0e+38]"), "Bias", [NAN], [INFINITY]),
        (
            gradients("[1, 2, 3]", "[.inf, -3.0e+38, -3.0e+38]"),
            "Scale",
            [NAN, INFINITY],
            [-INFINITY],
        ),
        (
            gradients("[1, 2, 3]", "[6.0e+4, 6.0e+4, 1]", data_type="FLOAT16"),
            "Bias",
            [65504, INFINITY],
            [NAN, -INFINITY, 6e4],
        ),
        (
            gradients("[1, 2, 3]", "[6.0e+4, 6.0e+4, 1]", data_type="FLOAT16"),
            "Scale",
            [65504, INFINITY],
            [NAN, -INFINITY],
        ),
    ],
)
def test_overflowing_gradient_of_a_parameter_has_the_sign_of_its_terms(
    tmp_path: Path, operator: str, desc: str, output: str, right: list[float], wrong: list[float]
) -> None:
    case = single(tmp_path, operator, desc)
    for value in (*right, *wrong):
        accepted = accepts(case, f"Output{output}GradientTensor", [value])
        assert accepted == (value in right), value


@pytest.mark.parametrize(
    ("operator", "desc", "right", "wrong"),
    [
        # DirectML 1.8.0 to 1.15.4 give the first of the right results.
        (
            "BATCH_NORMALIZATION_GRAD",
            gradients("[1, 2, 3]", "[1.0e+20, 2, -1.0e+20]", "-1.0e+30"),
            [[-INFINITY, -2e30, INFINITY]],
            [[INFINITY, -2e30, INFINITY], [NAN, -2e30, INFINITY], [-INFINITY, -2e30, -INFINITY]],
        ),
        (
            "BATCH_NORMALIZATION_TRAINING_GRAD",
            gradients("[1, 2, 3]", "[3.0e+38, 3.0e+38, 1]"),
            [[-INFINITY] * 3, [-2e38, -INFINITY, -INFINITY]],
            [[INFINITY, -INFINITY, -INFINITY], [-INFINITY, -INFINITY, NAN]],
        ),
        (
            "BATCH_NORMALIZATION_TRAINING_GRAD",
            gradients("[-1.0e+30, -1.0e+30, 1]", "[1.0e+20, 1.0e+20, 1]"),
            [[-INFINITY, -INFINITY, INFINITY]],
            [[-INFINITY] * 3, [NAN, -INFINITY, INFINITY], [INFINITY] * 3],
        ),
        (
            "BATCH_NORMALIZATION_TRAINING_GRAD",
            gradients("[1, 2, 3]", "[.inf, -3.0e+38, -3.0e+38]"),
            [[NAN] * 3, [NAN, -INFINITY, -INFINITY]],
            [[INFINITY, NAN, NAN], [NAN, INFINITY, NAN]],
        ),
    ],
)
def test_overflowing_gradient_of_the_input_has_the_sign_of_its_terms(
    tmp_path: Path, operator: str, desc: str, right: list[list[float]], wrong: list[list[float]]
) -> None:
    case = single(tmp_path, operator, desc)
    for output in right:
        assert accepts(case, "OutputGradientTensor", output), output
    for output in wrong:
        assert not accepts(case, "OutputGradientTensor", output), output


@pytest.mark.parametrize(
    "operator", ["BATCH_NORMALIZATION_GRAD", "BATCH_NORMALIZATION_TRAINING_GRAD"]
)
def test_gradients_over_an_infinite_variance_are_0(tmp_path: Path, operator: str) -> None:
    """DirectML 1.8.0 to 1.15.4 give 0 for a variance and an Epsilon of 3e38."""
    desc = GRADIENTS.replace("VALUES", "[1, 2, 3]").replace("SLOPES", "[1, 2, 3]")
    desc = desc.replace("SCALE", "1").replace("TYPE", "FLOAT32")
    desc = desc.replace("VARIANCE", "3.0e+38").replace("EPSILON", "3.0e+38")
    case = single(tmp_path, operator, desc)
    assert accepts(case, "OutputGradientTensor", [0, 0, 0])
    assert accepts(case, "OutputScaleGradientTensor", [0])
    for value in (1, NAN, INFINITY, -INFINITY, 1e-17):
        assert not accepts(case, "OutputGradientTensor", [0, 0, value]), value
        assert not accepts(case, "OutputScaleGradientTensor", [value]), value


@pytest.mark.parametrize(
    ("scale", "variance", "epsilon"), [("0", "1.0e+10", "0"), ("-2.5", "1.0e+38", "3.0e+38")]
)
def test_product_that_overflows_before_a_factor_of_0_may_be_nan(
    tmp_path: Path, scale: str, variance: str, epsilon: str
) -> None:
    """1e20 times the sum 5e20 overflows; DirectML 1.8.0 and 1.15.4 give NaN, infinity times 0."""
    desc = GRADIENTS.replace("VALUES", "[-1.0e+20, 1.0e+20, 0]").replace("SLOPES", "[-2.5, 2.5, 0]")
    for name, value in (("SCALE", scale), ("VARIANCE", variance), ("EPSILON", epsilon)):
        desc = desc.replace(name, value)
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING_GRAD", desc.replace("TYPE", "FLOAT32"))
    right = [0, 0, 0]
    assert accepts(case, "OutputGradientTensor", right)
    assert accepts(case, "OutputGradientTensor", [NAN, NAN, 0])
    assert not accepts(case, "OutputGradientTensor", [5, NAN, 0])
    assert not accepts(case, "OutputGradientTensor", [0, 0, 5])
