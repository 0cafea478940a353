"""POW may round the exponent of a negative base to an even number, an odd number or a fraction.

A conversion to FLOAT32 or INT32 rounds exponents, and so do a Scale and a Bias.

The tested code is in `dmlconf/permitted/element_wise/power.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.permitted.graphs.accepted import accepts, single

OF_UNSIGNED_EXPONENTS = """
  InputTensor: {Sizes: [2], DataType: FLOAT32, values: [-1, -1]},
  ExponentTensor: {Sizes: [2], DataType: UINT32, values: [EXPONENT, 2]},
  OutputTensor: {Sizes: [2], DataType: FLOAT32}"""


@pytest.mark.parametrize(
    ("exponent", "right"), [(16777215, [-1]), (33554434, [1]), (979433053, [-1, 1])]
)
def test_an_odd_exponent_that_float32_lacks_may_count_as_even(
    tmp_path: Path, exponent: int, right: list[int]
) -> None:
    """FLOAT32 lacks 33554434 and 979433053. DirectML 1.15.4 gives 1 for (-1) ^ 979433053."""
    case = single(
        tmp_path, "ELEMENT_WISE_POW", OF_UNSIGNED_EXPONENTS.replace("EXPONENT", str(exponent))
    )
    for value in (-1, 1):
        assert accepts(case, "OutputTensor", [value, 1]) == (value in right), value
    assert not accepts(case, "OutputTensor", [-1, -1])


OF_INTEGERS = """
  InputTensor: {Sizes: [2], DataType: INT8, values: [-5, -5]},
  ExponentTensor: {Sizes: [2], DataType: FLOAT32, values: [EXPONENT, 2]},
  OutputTensor: {Sizes: [2], DataType: INT8}"""


@pytest.mark.parametrize(("exponent", "may_be_odd"), [(1e10, True), (16777216.0, False)])
def test_an_exponent_beyond_int32_may_count_as_odd(
    tmp_path: Path, exponent: float, may_be_odd: bool
) -> None:
    """DirectML 1.8.2 to 1.15.4 convert 1e10 to 2147483647, and give -128 for (-5) ^ 1e10."""
    case = single(tmp_path, "ELEMENT_WISE_POW", OF_INTEGERS.replace("EXPONENT", str(exponent)))
    assert accepts(case, "OutputTensor", [127, 25])
    assert accepts(case, "OutputTensor", [-128, 25]) == may_be_odd
    assert not accepts(case, "OutputTensor", [127, -25])


SCALED = """
  InputTensor: {Sizes: [2], DataType: FLOAT16, values: [-5, -5]},
  ExponentTensor: {Sizes: [2], DataType: FLOAT16, values: [EXPONENT, 25]},
  OutputTensor: {Sizes: [2], DataType: FLOAT16}, ScaleBias: {Scale: 0.1, Bias: -0.5}"""


@pytest.mark.parametrize(("exponent", "may_be_0"), [(5, True), (4, False), (3, False)])
def test_a_scaled_exponent_that_may_be_0_permits_1(
    tmp_path: Path, exponent: int, may_be_0: bool
) -> None:
    """The exponent 5 * 0.1 - 0.5 is 0 if FLOAT32 rounds twice, and 7e-9 if it rounds once.

    The base is -5 * 0.1 - 0.5, which is -1.
    """
    case = single(tmp_path, "ELEMENT_WISE_POW", SCALED.replace("EXPONENT", str(exponent)))
    assert accepts(case, "OutputTensor", [float("nan"), 1])
    assert accepts(case, "OutputTensor", [1, 1]) == may_be_0


SCALED_INTEGERS = """
  InputTensor: {Sizes: [2], DataType: INT8, values: [0, 0]},
  ExponentTensor: {Sizes: [2], DataType: INT8, values: [3, 4]},
  OutputTensor: {Sizes: [2], DataType: INT8}, ScaleBias: {Scale: -1.0e+38, Bias: -1.0}"""


def test_an_infinite_scaled_exponent_permits_a_power_of_0(
    tmp_path: Path,
) -> None:
    """Both bases are -1. The exponents are 3 * -1e38, and 4 * -1e38, which overflows."""
    case = single(tmp_path, "ELEMENT_WISE_POW", SCALED_INTEGERS)
    for outputs, right in (([1, 1], True), ([1, 0], True), ([0, 1], False), ([1, -1], False)):
        assert accepts(case, "OutputTensor", outputs) == right, outputs
