"""An odd exponent of POW that FLOAT32 cannot represent may be rounded to an even one.

The tested code is in `dmlconf/permitted/element_wise/power.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.permitted.graphs.accepted import accepts, single

DESC = """
  InputTensor: {Sizes: [2], DataType: FLOAT32, values: [-1, -1]},
  ExponentTensor: {Sizes: [2], DataType: UINT32, values: [EXPONENT, 2]},
  OutputTensor: {Sizes: [2], DataType: FLOAT32}"""


@pytest.mark.parametrize(
    ("exponent", "may_be_even"), [(16777215, False), (33554434, False), (979433053, True)]
)
def test_an_odd_exponent_may_count_as_even_only_if_float32_lacks_it(
    tmp_path: Path, exponent: int, may_be_even: bool
) -> None:
    """DirectML 1.15.4 gives 1 for (-1) ^ 979433053."""
    case = single(tmp_path, "ELEMENT_WISE_POW", DESC.replace("EXPONENT", str(exponent)))
    assert accepts(case, "OutputTensor", [-1, 1]) == (exponent % 2 == 1)
    assert accepts(case, "OutputTensor", [1, 1]) == (may_be_even or exponent % 2 == 0)
    assert not accepts(case, "OutputTensor", [-1, -1])


OF_INTEGERS = """
  InputTensor: {Sizes: [2], DataType: INT8, values: [-5, -5]},
  ExponentTensor: {Sizes: [2], DataType: FLOAT32, values: [EXPONENT, 2]},
  OutputTensor: {Sizes: [2], DataType: INT8}"""


@pytest.mark.parametrize(("exponent", "may_be_odd"), [(1e10, True), (16777216.0, False)])
def test_an_even_exponent_beyond_32_bits_may_count_as_odd_for_integers_too(
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


@pytest.mark.parametrize(("exponent", "may_be_whole"), [(5, True), (4, False)])
def test_the_power_of_a_negative_base_may_be_nan_where_the_exponent_may_be_whole(
    tmp_path: Path, exponent: int, may_be_whole: bool
) -> None:
    """FLOAT32 rounds 5 * 0.1 - 0.5 to 0 in two steps, and to 7e-9 in one."""
    case = single(tmp_path, "ELEMENT_WISE_POW", SCALED.replace("EXPONENT", str(exponent)))
    assert accepts(case, "OutputTensor", [float("nan"), 1])
    assert accepts(case, "OutputTensor", [1, 1]) == may_be_whole
