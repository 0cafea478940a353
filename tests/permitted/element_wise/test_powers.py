"""POW may round an exponent, and so raise a negative base to an even power, an odd one or none.

The exponent is rounded to a FLOAT32 number or to an INT32 number; a Scale and a Bias round it too.

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
def test_only_an_odd_exponent_that_float32_lacks_may_count_as_even_or_odd(
    tmp_path: Path, exponent: int, right: list[int]
) -> None:
    """DirectML 1.15.4 gives 1 for (-1) ^ 979433053. FLOAT32 lacks 33554434 and 979433053."""
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
def test_an_even_exponent_beyond_int32_may_count_as_odd_for_an_integer_base(
    tmp_path: Path, exponent: float, may_be_odd: bool
) -> None:
    """DirectML 1.8.2 to 1.15.4 give -128 for (-5) ^ 1e10, as INT32 has 2147483647 for 1e10."""
    case = single(tmp_path, "ELEMENT_WISE_POW", OF_INTEGERS.replace("EXPONENT", str(exponent)))
    assert accepts(case, "OutputTensor", [127, 25])
    assert accepts(case, "OutputTensor", [-128, 25]) == may_be_odd
    assert not accepts(case, "OutputTensor", [127, -25])


SCALED = """
  InputTensor: {Sizes: [2], DataType: FLOAT16, values: [-5, -5]},
  ExponentTensor: {Sizes: [2], DataType: FLOAT16, values: [EXPONENT, 25]},
  OutputTensor: {Sizes: [2], DataType: FLOAT16}, ScaleBias: {Scale: 0.1, Bias: -0.5}"""


@pytest.mark.parametrize(("exponent", "may_be_0"), [(5, True), (4, False)])
def test_the_power_of_a_negative_base_may_be_1_as_well_as_nan_if_the_scaled_exponent_may_be_0(
    tmp_path: Path, exponent: int, may_be_0: bool
) -> None:
    """FLOAT32 rounds 5 * 0.1 - 0.5 to 0 in two steps, and to 7e-9 in one; 4 * 0.1 - 0.5 is -0.1.

    The base is -5 * 0.1 - 0.5, which is -1. The second exponent is 2, so the second power is 1.
    """
    case = single(tmp_path, "ELEMENT_WISE_POW", SCALED.replace("EXPONENT", str(exponent)))
    assert accepts(case, "OutputTensor", [float("nan"), 1])
    assert accepts(case, "OutputTensor", [1, 1]) == may_be_0


SCALED_INTEGERS = """
  InputTensor: {Sizes: [2], DataType: INT8, values: [0, 0]},
  ExponentTensor: {Sizes: [2], DataType: INT8, values: [3, 4]},
  OutputTensor: {Sizes: [2], DataType: INT8}, ScaleBias: {Scale: -1.0e+38, Bias: -1.0}"""


def test_a_power_of_integers_may_be_0_only_if_scaling_makes_the_exponent_infinite(
    tmp_path: Path,
) -> None:
    """FLOAT32 holds 3 * -1e38, and 4 * -1e38 overflows; the base is 0 * -1e38 - 1, which is -1."""
    case = single(tmp_path, "ELEMENT_WISE_POW", SCALED_INTEGERS)
    for outputs, right in (([1, 1], True), ([1, 0], True), ([0, 1], False), ([1, -1], False)):
        assert accepts(case, "OutputTensor", outputs) == right, outputs
