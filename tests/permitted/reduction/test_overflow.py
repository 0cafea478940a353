"""Which infinity a sum or a product that overflows may be, and when it may be NaN.

The tested code is in `dmlconf/precision/accumulation.py`, `dmlconf/permitted/reduction/`,
`dmlconf/permitted/products/gemm.py`, `dmlconf/permitted/windows/` and
`dmlconf/permitted/graphs/bands.py`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from dmlconf.cases.model import HALF_PRECISION_TAG
from dmlconf.reference.evaluation import evaluate
from tests.permitted.graphs.accepted import accepts, graph, single

FOUR = "{Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: VALUES}"
ONE = "{Sizes: [1, 1, 1, 1], DataType: FLOAT32}"
ONES = "{Sizes: [1, 1, 4, 1], DataType: FLOAT32, values: [1, 1, 1, 1]}"
WINDOW = "Strides: [1, 1], WindowSize: [1, 4], StartPadding: [0, 0], EndPadding: [0, 0]"

IMAGE = "{Sizes: [1, 4, 1, 1], DataType: FLOAT32, values: VALUES}"
CONVOLUTION = (
    f"InputTensor: {IMAGE}, FilterTensor: {IMAGE.replace('VALUES', '[1, 1, 1, 1]')}, "
    f"OutputTensor: {ONE}, Mode: CROSS_CORRELATION, Direction: FORWARD, Strides: [1, 1], "
    "Dilations: [1, 1], StartPadding: [0, 0], EndPadding: [0, 0], OutputPadding: [0, 0], "
    "GroupCount: 1"
)
BACKWARD_CONVOLUTION = CONVOLUTION.replace("FORWARD", "BACKWARD").replace(
    "FilterTensor: {Sizes: [1, 4, 1, 1]", "FilterTensor: {Sizes: [4, 1, 1, 1]"
)

SUMS = {
    "REDUCE": f"Function: SUM, InputTensor: {FOUR}, OutputTensor: {ONE}, Axes: [3]",
    "GEMM": f"ATensor: {FOUR}, BTensor: {ONES}, OutputTensor: {ONE}, TransA: NONE, TransB: NONE, "
    "Alpha: 1, Beta: 0",
    "AVERAGE_POOLING": f"InputTensor: {FOUR}, OutputTensor: {ONE}, {WINDOW}, IncludePadding: false",
    "CONVOLUTION": CONVOLUTION,
    "CONVOLUTION, BACKWARD": BACKWARD_CONVOLUTION,
}
"""Sums and a mean of four numbers, by operator."""

FOLD = (
    "InputTensor: {Sizes: [1, 2, 2], DataType: FLOAT32, values: VALUES}, "
    f"OutputTensor: {ONE.replace('[1, 1, 1, 1]', '[1, 1, 1]')}, WindowSizes: [2], Strides: [1], "
    "Dilations: [1], StartPadding: [1], EndPadding: [1]"
)
"""It adds the second and the third number only."""

CUMULATIVE = (
    f"InputTensor: {FOUR}, OutputTensor: {{Sizes: [1, 1, 1, 4], DataType: FLOAT32}}, Axis: 3, "
    "AxisDirection: INCREASING, HasExclusiveSum: false"
)

GRAPH = f"""
  sum:
    operator: REDUCE
    desc: {{Function: SUM, InputTensor: x, OutputTensor: {ONE}, Axes: [3]}}"""

PRODUCT = f"Function: MULTIPLY, InputTensor: {FOUR}, OutputTensor: {ONE}, Axes: [3]"

INFINITY, NAN = math.inf, math.nan


@pytest.mark.parametrize("operator", SUMS)
@pytest.mark.parametrize(
    ("terms", "right", "wrong"),
    [
        ("[3.0e+38, 3.0e+38, 3.0e+38, 3.0e+38]", [INFINITY], [-INFINITY, NAN]),
        ("[-3.0e+38, -3.0e+38, -3.0e+38, -3.0e+38]", [-INFINITY], [INFINITY, NAN]),
        ("[3.0e+38, 3.0e+38, -1.0e+38, -1.0e+38]", [INFINITY], [-INFINITY, NAN]),
        ("[3.0e+38, 3.0e+38, -3.0e+38, -3.0e+38]", [0, INFINITY, -INFINITY, NAN], []),
        ("[.inf, -3.0e+38, -3.0e+38, 1]", [INFINITY, NAN], [1, -INFINITY]),
        ("[.inf, 3.0e+38, 3.0e+38, 1]", [INFINITY], [NAN, -INFINITY]),
        ("[-.inf, 3.0e+38, 3.0e+38, 1]", [-INFINITY, NAN], [INFINITY]),
        ("[.nan, 3.0e+38, 3.0e+38, 1]", [NAN], [INFINITY, 1]),
    ],
)
def test_overflowing_sum_has_the_sign_of_its_large_terms(
    tmp_path: Path, operator: str, terms: str, right: list[float], wrong: list[float]
) -> None:
    """DirectML 1.8.0 to 1.15.4 give one of the right results."""
    case = single(tmp_path, operator.split(",")[0], SUMS[operator].replace("VALUES", terms))
    for value in (*right, *wrong):
        assert accepts(case, "OutputTensor", [value]) == (value in right), value


@pytest.mark.parametrize(
    ("terms", "right", "wrong"),
    [
        ("[1, 3.0e+38, 3.0e+38, 1]", [INFINITY], [-INFINITY, NAN]),
        ("[1, -3.0e+38, -3.0e+38, 1]", [-INFINITY], [INFINITY, NAN]),
    ],
)
def test_overflowing_sum_of_a_window_has_the_sign_of_its_terms(
    tmp_path: Path, terms: str, right: list[float], wrong: list[float]
) -> None:
    """DirectML 1.8.0 and 1.15.4 give these infinities."""
    case = single(tmp_path, "FOLD", FOLD.replace("VALUES", terms))
    for value in (*right, *wrong):
        assert accepts(case, "OutputTensor", [value]) == (value in right), value


def test_a_sum_of_enormous_squares_is_not_negative(tmp_path: Path) -> None:
    desc = SUMS["REDUCE"].replace("SUM", "SUM_SQUARE").replace("VALUES", "[3.0e+38, 1, -2, 3]")
    case = single(tmp_path, "REDUCE", desc)
    for value in (INFINITY, -INFINITY, NAN):
        assert accepts(case, "OutputTensor", [value]) == (value == INFINITY), value


ROW = "{Sizes: [1, 1, 1, SIZE], DataType: FLOAT32, values: VALUES}"


def convolution(values: str, weights: str, direction: str, stride: int, outputs: int) -> str:
    image = ROW.replace("VALUES", values).replace("SIZE", str(values.count(",") + 1))
    filter_ = ROW.replace("VALUES", weights).replace("SIZE", "3")
    return (
        f"InputTensor: {image}, FilterTensor: {filter_}, "
        f"OutputTensor: {{Sizes: [1, 1, 1, {outputs}], DataType: FLOAT32}}, "
        f"Mode: CROSS_CORRELATION, Direction: {direction}, Strides: [1, {stride}], "
        "Dilations: [1, 1], StartPadding: [0, 0], EndPadding: [0, 0], OutputPadding: [0, 0], "
        "GroupCount: 1"
    )


@pytest.mark.parametrize(
    ("desc", "right", "wrong"),
    [
        # The infinite weight meets the zeros between the elements.
        (
            convolution("[1, 2]", "[1, .inf, 1]", "BACKWARD", 2, 5),
            [
                [NAN, INFINITY, NAN, INFINITY, NAN],
                [1, INFINITY, 3, INFINITY, 2],
                [NAN] * 5,
            ],
            [
                [INFINITY, INFINITY, NAN, INFINITY, NAN],
                [-INFINITY, INFINITY, NAN, INFINITY, NAN],
                [NAN, -INFINITY, NAN, INFINITY, NAN],
                [NAN, INFINITY, 4, INFINITY, NAN],
            ],
        ),
        (
            convolution("[.nan, -3.0e+38, -3.0e+38, 5]", "[1, 2, 1]", "FORWARD", 1, 2),
            [[NAN, -INFINITY]],
            [[INFINITY, -INFINITY], [-INFINITY, -INFINITY], [0, -INFINITY], [NAN, 0]],
        ),
        (
            convolution("[1, .inf, 2, 5]", "[1, 0, 1]", "FORWARD", 1, 2),
            [[NAN, INFINITY]],
            [[3, INFINITY], [INFINITY, INFINITY], [NAN, NAN], [NAN, -INFINITY], [NAN, 5]],
        ),
    ],
)
def test_convolution_beside_infinity_or_nan_has_no_other_infinity(
    tmp_path: Path, desc: str, right: list[list[float]], wrong: list[list[float]]
) -> None:
    """DirectML 1.8.0 to 1.15.4 give the first of the right results."""
    case = single(tmp_path, "CONVOLUTION", desc)
    for output in right:
        assert accepts(case, "OutputTensor", output), output
    for output in wrong:
        assert not accepts(case, "OutputTensor", output), output


@pytest.mark.parametrize("operator", [*SUMS, "CUMULATIVE_SUMMATION"])
@pytest.mark.parametrize(
    ("terms", "only_half", "wrong"),
    [
        ("[.inf, -6.0e+4, -6.0e+4, 1]", [NAN], [-INFINITY, 1]),
        ("[-.inf, 6.0e+4, 6.0e+4, 1]", [NAN], [INFINITY, 1]),
        ("[.inf, 6.0e+4, 6.0e+4, 1]", [], [NAN, -INFINITY]),
        ("[.inf, -6.0e+4, 1, 1]", [], [NAN, -INFINITY]),
        ("[6.0e+4, 6.0e+4, -6.0e+4, -6.0e+4]", [NAN, INFINITY, -INFINITY], []),
    ],
)
def test_sums_held_in_float16_are_nan_where_partial_sums_of_both_signs_overflow(
    tmp_path: Path, operator: str, terms: str, only_half: list[float], wrong: list[float]
) -> None:
    desc = SUMS.get(operator, CUMULATIVE).replace("VALUES", terms).replace("FLOAT32", "FLOAT16")
    case = single(tmp_path, operator.split(",")[0], desc)
    half = replace(case, tags=(HALF_PRECISION_TAG,))
    right = evaluate(half)["OutputTensor"].ravel().tolist()
    for value in (*only_half, *wrong):
        output = [*right[:-1], value]
        assert not accepts(case, "OutputTensor", output), value
        assert accepts(half, "OutputTensor", output) == (value in only_half), value


@pytest.mark.parametrize(
    ("factors", "right", "wrong"),
    [
        ("[3.0e+38, 3.0e+38, 1, 1]", [INFINITY], [-INFINITY, NAN, 0]),
        ("[3.0e+38, -3.0e+38, 1, 1]", [-INFINITY], [INFINITY, NAN, 0]),
        ("[-3.0e+38, -3.0e+38, 1, 1]", [INFINITY], [-INFINITY, NAN, 0]),
        ("[1.0e+30, 1.0e+30, 1.0e-30, 1]", [1e30, INFINITY], [-INFINITY, NAN, 0]),
        ("[3.0e+38, 3.0e+38, 0, 1]", [0, NAN], [1, INFINITY, -INFINITY]),
        ("[3.0e+38, 3.0e+38, 0, .inf]", [NAN], [0, 1, INFINITY, -INFINITY]),
        ("[3.0e+38, 3.0e+38, 0, .nan]", [NAN], [0, 1, INFINITY, -INFINITY]),
        ("[1.0e-30, 1.0e-30, -.inf, 1]", [-INFINITY, NAN], [0, 1, INFINITY]),
    ],
)
def test_overflowing_product_keeps_its_sign_except_beside_0(
    tmp_path: Path, factors: str, right: list[float], wrong: list[float]
) -> None:
    case = single(tmp_path, "REDUCE", PRODUCT.replace("VALUES", factors))
    for value in (*right, *wrong):
        assert accepts(case, "OutputTensor", [value]) == (value in right), value


@pytest.mark.parametrize(
    ("factors", "right", "only_half", "wrong"),
    [
        ("[300, 300, 0.01, 1]", 900, [INFINITY], [NAN, -INFINITY, 65504]),
        ("[300, -300, 0.01, 1]", -900, [-INFINITY], [NAN, INFINITY]),
        ("[300, 0.01, 2, 1]", 6, [], [NAN, INFINITY, -INFINITY]),
        ("[300, 300, 0, 1]", 0, [], [INFINITY, -INFINITY]),
        ("[300, 300, -.inf, 1]", -INFINITY, [], [INFINITY, NAN]),
    ],
)
def test_products_in_float16_may_overflow_on_the_way(
    tmp_path: Path, factors: str, right: float, only_half: list[float], wrong: list[float]
) -> None:
    """DirectML 1.8.0 to 1.15.4 multiply in FLOAT32, and give the right result."""
    desc = PRODUCT.replace("VALUES", factors).replace("FLOAT32", "FLOAT16")
    case = single(tmp_path, "REDUCE", desc)
    half = replace(case, tags=(HALF_PRECISION_TAG,))
    assert accepts(case, "OutputTensor", [right])
    assert accepts(half, "OutputTensor", [right])
    for value in (*only_half, *wrong):
        assert not accepts(case, "OutputTensor", [value]), value
        assert accepts(half, "OutputTensor", [value]) == (value in only_half), value


@pytest.mark.parametrize(
    ("terms", "right", "wrong"),
    [
        ("[3.0e+38, 3.0e+38, 3.0e+38, 3.0e+38]", [INFINITY], [-INFINITY, NAN]),
        ("[3.0e+38, 3.0e+38, -3.0e+38, -3.0e+38]", [0, INFINITY, -INFINITY, NAN], []),
    ],
)
def test_overflowing_sum_in_a_graph_has_the_sign_of_its_terms(
    tmp_path: Path, terms: str, right: list[float], wrong: list[float]
) -> None:
    inputs = f"\n  x: {FOUR.replace('VALUES', terms)}"
    case = graph(tmp_path, inputs, GRAPH, "sum")
    for value in (*right, *wrong):
        assert accepts(case, "y", [value]) == (value in right), value


def test_a_product_beside_0_in_a_graph_is_0_or_nan(tmp_path: Path) -> None:
    inputs = f"\n  x: {FOUR.replace('VALUES', '[3.0e+38, 3.0e+38, 0, 1]')}"
    case = graph(tmp_path, inputs, GRAPH.replace("SUM", "MULTIPLY"), "sum")
    for value in (0, NAN, INFINITY, -INFINITY, 1):
        assert accepts(case, "y", [value]) == (value == 0 or math.isnan(value)), value
