"""Results of local response normalization whose base is negative, next to 0, or overflows.

The tested code is in `dmlconf/permitted/normalization/local_response.py`.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.permitted.graphs.accepted import accepts, passes, single

INFINITY, NAN = math.inf, math.nan

TENSOR = "{Sizes: [1, 3, 1, 1], DataType: TYPE"


def forward(values: str, attributes: str) -> tuple[str, str, str]:
    desc = f"InputTensor: {TENSOR}, values: {values}}}, OutputTensor: {TENSOR}}}"
    return "LOCAL_RESPONSE_NORMALIZATION", "OutputTensor", f"{desc}, {attributes}"


def gradient(values: str, attributes: str) -> tuple[str, str, str]:
    desc = (
        f"InputTensor: {TENSOR}, values: {values}}}, "
        f"InputGradientTensor: {TENSOR}, values: [1, 1, 1]}}, OutputGradientTensor: {TENSOR}}}"
    )
    operator = "LOCAL_RESPONSE_NORMALIZATION_GRAD"
    return operator, "OutputGradientTensor", f"{desc}, {attributes}"


def attributes(alpha: str, beta: str, bias: str) -> str:
    return f"CrossChannel: true, LocalSize: 1, Alpha: {alpha}, Beta: {beta}, Bias: {bias}"


@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize(
    ("case", "right", "wrong"),
    [
        # DirectML 1.8.0 to 1.15.4 give the first of the right results.
        (
            forward("[1, 2, -3]", attributes("0", "1", "-2")),
            [[NAN] * 3, [-0.5, -1, 1.5]],
            [[0.5, NAN, NAN], [INFINITY, NAN, NAN], [NAN, 0, NAN], [NAN, NAN, -INFINITY]],
        ),
        (
            forward("[1, 2, -3]", attributes("0", "2", "-2")),
            [[NAN] * 3, [0.25, 0.5, -0.75]],
            [[-0.25, NAN, NAN], [NAN, 0, NAN]],
        ),
        (
            forward("[1, 2, -3]", attributes("0", "0", "-2")),
            [[NAN] * 3, [1, 2, -3]],
            [[1, 2, 3], [INFINITY, 2, -3], [1, 0, -3]],
        ),
        (
            gradient("[1, 2, -3]", attributes("0", "1", "-2")),
            [[-0.5] * 3, [NAN] * 3],
            [[0.5, -0.5, -0.5], [-0.5, 0, -0.5], [INFINITY, NAN, NAN]],
        ),
        (
            gradient("[1, 2, -3]", attributes("1", "1", "-3")),
            [[-1, -7, -1 / 3], [NAN, -7, -1 / 3]],
            [[1, -7, -1 / 3], [0, -7, -1 / 3], [INFINITY, -7, -1 / 3], [NAN, NAN, -1 / 3]],
        ),
        # 4 - 4 is 0, or any number near it.
        (
            forward("[1, 2, -3]", attributes("1", "0.75", "-4")),
            [[NAN, INFINITY, -0.8972093], [NAN, NAN, -0.8972093]],
            [[NAN, -INFINITY, -0.8972093], [NAN, 0, -0.8972093], [NAN, 1, -0.8972093]],
        ),
        (
            forward("[1, 2, -3]", attributes("1", "0", "-4")),
            [[NAN, INFINITY, -3], [1, 2, -3], [1, NAN, -3]],
            [[1, -INFINITY, -3], [1, 0, -3]],
        ),
        (
            forward("[1, 2, -3]", attributes("1", "-0.5", "-4")),
            [[NAN, INFINITY, -6.7082039], [NAN, 0, -6.7082039]],
            [[NAN, -INFINITY, -6.7082039], [NAN, 1, -6.7082039]],
        ),
    ],
)
def test_power_of_a_negative_base_is_nan_or_that_of_a_whole_exponent(
    tmp_path: Path,
    data_type: str,
    case: tuple[str, str, str],
    right: list[list[float]],
    wrong: list[list[float]],
) -> None:
    operator, output, desc = case
    planned = single(tmp_path, operator, desc.replace("TYPE", data_type))
    for values in right:
        assert passes(planned, output, values), values
    for values in wrong:
        assert not accepts(planned, output, values), values


@pytest.mark.parametrize(
    ("beta", "right", "wrong"),
    [
        # DirectML 1.8.0 to 1.15.4 give the first of the right results.
        (
            "0.75",
            [[0, 0, 0.5981395], [1e-10, -1e-10, 0.5981395]],
            [[NAN, 0, 0.5981395], [0, INFINITY, 0.5981395], [1e-5, 0, 0.5981395]],
        ),
        (
            "0",
            [[NAN, NAN, 2], [1.0e20, -1.0e20, 2]],
            [[NAN, NAN, NAN], [0, NAN, 2], [INFINITY, NAN, 2], [NAN, 1.0e20, 2]],
        ),
        (
            "-0.75",
            [[INFINITY, -INFINITY, 6.6874027]],
            [[NAN, -INFINITY, 6.6874027], [0, -INFINITY, 6.6874027], [-INFINITY] * 3],
        ),
    ],
)
def test_result_over_an_infinite_base_is_0_or_has_its_own_sign(
    tmp_path: Path, beta: str, right: list[list[float]], wrong: list[list[float]]
) -> None:
    operator, output, desc = forward("[1.0e+20, -1.0e+20, 2]", attributes("1", beta, "1"))
    case = single(tmp_path, operator, desc.replace("TYPE", "FLOAT32"))
    for values in right:
        assert passes(case, output, values), values
    for values in wrong:
        assert not accepts(case, output, values), values


@pytest.mark.parametrize(("alpha", "is_open"), [("1.0e-45", True), ("1.0e-30", False)])
def test_any_result_is_right_with_a_subnormal_alpha(
    tmp_path: Path, alpha: str, is_open: bool
) -> None:
    """1e-45 times an infinite sum of squares is infinite, or NaN if 1e-45 counts as 0.

    DirectML 1.8.0 and 1.15.4 give NaN.
    """
    operator, output, desc = forward("[1.0e+20, 2, 0]", attributes(alpha, "-0.5", "1"))
    case = single(tmp_path, operator, desc.replace("TYPE", "FLOAT32"))
    for first in (NAN, 5):
        assert accepts(case, output, [first, 2, 0]) is is_open


@pytest.mark.parametrize(("bias", "may_be_infinite"), [("1.0e+20", True), ("1.0e+15", False)])
def test_gradient_may_be_infinite_where_the_power_overflows(
    tmp_path: Path, bias: str, may_be_infinite: bool
) -> None:
    """(1e20)^2 overflows, and 1e-38 times that does not."""
    operator, output, desc = gradient("[1, 2, -3]", attributes("0", "-2", bias))
    desc = desc.replace("[1, 1, 1]", "[1.0e-38, 1.0e-38, 1.0e-38]")
    case = single(tmp_path, operator, desc.replace("TYPE", "FLOAT32"))
    assert accepts(case, output, [INFINITY] * 3) is may_be_infinite


@pytest.mark.parametrize(("bias", "nan"), [(6.0e-5, True), (1.0e-3, False)])
def test_a_power_times_an_element_may_overflow_before_a_gradient_of_zero(
    tmp_path: Path, bias: float, nan: bool
) -> None:
    """14 * 2^24 * (6e-5)^-8 is infinite, and times 0 NaN; DirectML 1.15.4 gives 0 for 1e-3."""
    sizes = "Sizes: [1, 1, 1, 2], DataType: FLOAT32"
    desc = f"""InputTensor: {{{sizes}, values: [16777215, 0]}},
      InputGradientTensor: {{{sizes}, values: [0, 0]}}, OutputGradientTensor: {{{sizes}}},
      CrossChannel: false, LocalSize: 2, Alpha: 1, Beta: 7, Bias: {bias:f}"""
    case = single(tmp_path, "LOCAL_RESPONSE_NORMALIZATION_GRAD", desc)
    assert accepts(case, "OutputGradientTensor", [0, 0])
    assert accepts(case, "OutputGradientTensor", [NAN, 0]) is nan
    assert not accepts(case, "OutputGradientTensor", [1, 0])
