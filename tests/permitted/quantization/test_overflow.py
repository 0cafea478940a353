"""Which infinity MATRIX_MULTIPLY_INTEGER_TO_FLOAT may give where a number or a sum overflows.

The tested code is in `dmlconf/permitted/quantization/overflows.py`.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.permitted.graphs.accepted import accepts, single

INFINITY, NAN = math.inf, math.nan

PRODUCT = (
    "ATensor: {Sizes: [1, 2], DataType: INT8, values: A_VALUES}, "
    "AScaleTensor: {Sizes: [1], DataType: TYPE, values: [A_SCALE]}, "
    "BTensor: {Sizes: [2, 1], DataType: INT8, values: B_VALUES}, "
    "BScaleTensor: {Sizes: [1], DataType: TYPE, values: [B_SCALE]}, "
    "BiasTensor: {Sizes: [1, 1], DataType: TYPE, values: [BIAS]}, "
    "OutputTensor: {Sizes: [1, 1], DataType: TYPE}"
)


@pytest.mark.parametrize(
    ("data_type", "a", "b", "scales", "bias", "right", "wrong"),
    [
        # DirectML 1.13.1 and 1.15.4 give the first of the right results.
        ("FLOAT32", [1, 2], [3, 4], ("3.0e+38", "1"), "0", [INFINITY], [-INFINITY, NAN]),
        ("FLOAT32", [1, 2], [-3, -4], ("3.0e+38", "1"), "0", [-INFINITY], [INFINITY, NAN]),
        ("FLOAT32", [1, 2], [3, 4], ("-3.0e+38", "1"), "0", [-INFINITY], [INFINITY, NAN]),
        (
            "FLOAT32",
            [100, 100],
            [100, -100],
            ("3.0e+38", "1"),
            "0",
            [NAN, 0, INFINITY, -INFINITY],
            [],
        ),
        (
            "FLOAT32",
            [100, 1],
            [100, -1],
            ("3.0e+37", "1"),
            "0",
            [INFINITY],
            [-INFINITY, NAN],
        ),
        # The numbers of A overflow, and what is left of their products does not.
        (
            "FLOAT32",
            [100, 100],
            [1, 2],
            ("3.0e+37", "1.0e-30"),
            "0",
            [INFINITY, 9e9],
            [-INFINITY, NAN],
        ),
        (
            "FLOAT32",
            [-100, -100],
            [1, 2],
            ("3.0e+37", "1.0e-30"),
            "0",
            [-INFINITY, -9e9],
            [INFINITY, NAN],
        ),
        ("FLOAT32", [100, 1], [0, 1], ("3.0e+37", "1"), "0", [NAN, 3e37], [INFINITY, -INFINITY]),
        ("FLOAT32", [1, 1], [1, 1], ("3.0e+38", "1"), "-3.0e+38", [INFINITY, 3e38], [-INFINITY]),
        ("FLOAT32", [1, 1], [1, 1], ("3.0e+38", "1"), "-.inf", [NAN, -INFINITY], [INFINITY, 1]),
        ("FLOAT32", [1, 1], [1, 1], ("3.0e+38", "1"), ".inf", [INFINITY], [NAN, -INFINITY]),
        ("FLOAT32", [1, 1], [1, 2], (".inf", "1"), "0", [INFINITY], [NAN, -INFINITY]),
        ("FLOAT32", [1, 1], [-1, 2], (".inf", "1"), "0", [NAN, INFINITY], [-INFINITY]),
        (
            "FLOAT16",
            [100, 100],
            [1, 2],
            ("1000", "1.0e-3"),
            "0",
            [INFINITY, 300, 196.5],
            [NAN, -INFINITY],
        ),
        ("FLOAT16", [100, -100], [1, 2], ("1000", "1.0e-3"), "0", [NAN, -100], [1]),
    ],
)
def test_product_that_overflows_has_its_own_sign(
    tmp_path: Path,
    data_type: str,
    a: list[int],
    b: list[int],
    scales: tuple[str, str],
    bias: str,
    right: list[float],
    wrong: list[float],
) -> None:
    desc = PRODUCT.replace("TYPE", data_type).replace("BIAS", bias)
    desc = desc.replace("A_VALUES", str(a)).replace("B_VALUES", str(b))
    desc = desc.replace("A_SCALE", scales[0]).replace("B_SCALE", scales[1])
    case = single(tmp_path, "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", desc)
    for value in (*right, *wrong):
        assert accepts(case, "OutputTensor", [value]) == (value in right), value
