"""MATRIX_MULTIPLY_INTEGER_TO_FLOAT may store factors and sums in FLOAT16, or overflow on the way.

The tested code is in `dmlconf/permitted/quantization/arithmetic.py`.
"""

from __future__ import annotations

from pathlib import Path

from dmlconf.permitted.allowance import CaseAllowances
from tests.permitted.graphs.accepted import accepts, single

FACTOR_BEYOND_FLOAT16 = """
  ATensor: {Sizes: [1, 1], DataType: INT32, values: [2147483647]},
  AScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [6.1e-5]},
  AZeroPointTensor: {Sizes: [1, 1], DataType: INT32, values: [0]},
  BTensor: {Sizes: [1, 1], DataType: INT32, values: [1]},
  BScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [-6.103515625e-5]},
  OutputTensor: {Sizes: [1, 1], DataType: FLOAT16}"""


def test_factor_beyond_float16_may_be_stored_as_65504(tmp_path: Path) -> None:
    """DirectML 1.15.4 stores 2147483647 * 6.1e-5, about 131000, as 65504, and gives -3.998."""
    case = single(tmp_path, "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", FACTOR_BEYOND_FLOAT16)
    assert accepts(case, "OutputTensor", [-7.9921875])
    assert accepts(case, "OutputTensor", [-3.998046875])
    assert not accepts(case, "OutputTensor", [-2])


def test_overflowing_sum_times_a_scale_of_zero_may_be_nan(tmp_path: Path) -> None:
    """8 * 3.4e38 is infinite in FLOAT32, and infinity times 0 is NaN."""
    desc = """
  ATensor: {Sizes: [1, 1], DataType: INT8, values: [1]},
  AScaleTensor: {Sizes: [1, 1], DataType: FLOAT32, values: [A_SCALE]},
  BTensor: {Sizes: [1, 1], DataType: INT8, values: [8]},
  BScaleTensor: {Sizes: [1, 1], DataType: FLOAT32, values: [0]},
  OutputTensor: {Sizes: [1, 1], DataType: FLOAT32}"""
    for a_scale, overflows in (("3.4028235e+38", True), ("1", False)):
        scaled = desc.replace("A_SCALE", a_scale)
        case = single(tmp_path, "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", scaled)
        assert accepts(case, "OutputTensor", [float("nan")]) == overflows
        assert accepts(case, "OutputTensor", [0])
        assert not accepts(case, "OutputTensor", [5])


def test_sum_below_float16_may_be_stored_as_minus_65504(tmp_path: Path) -> None:
    """DirectML 1.15.4 stores -16129 * 8 as -65504, and adds the bias of 65504."""
    desc = """
  ATensor: {Sizes: [1, 1], DataType: INT16, values: [-16129]},
  AScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [1]},
  BTensor: {Sizes: [1, 1], DataType: INT16, values: [8]},
  BScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [1]},
  BiasTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [65504]},
  OutputTensor: {Sizes: [1, 1], DataType: FLOAT16}"""
    case = single(tmp_path, "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", desc)
    assert accepts(case, "OutputTensor", [0])
    assert accepts(case, "OutputTensor", [-16129 * 8 + 65504])
    assert not accepts(case, "OutputTensor", [-1000])


def test_scaled_integer_may_be_rounded_three_times(tmp_path: Path) -> None:
    """FLOAT16 truncates 33407 to 33376, 33376 * 0.65625 to 21888, and 21888 * 0.3 to 6564.

    The exact result is 6578.1. DirectML 1.13.1 is off as far.
    """
    desc = """
  ATensor: {Sizes: [1, 1], DataType: UINT16, values: [33407]},
  AScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [0.65625]},
  BTensor: {Sizes: [1, 1], DataType: UINT16, values: [1]},
  BScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [0.30004883]},
  OutputTensor: {Sizes: [1, 1], DataType: FLOAT16}"""
    case = single(tmp_path, "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", desc)
    assert accepts(case, "OutputTensor", [6564])
    assert not accepts(case, "OutputTensor", [6544])


def test_candidates_have_the_sizes_of_the_output(tmp_path: Path) -> None:
    desc = """
  ATensor: {Sizes: [3, 3], DataType: UINT8, fill: {constant: {value: 2}}},
  AScaleTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [2, 3, 4]},
  BTensor: {Sizes: [3, 3], DataType: UINT8, fill: {constant: {value: 1}}},
  BScaleTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]},
  OutputScaleTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [1, 1, 1]},
  OutputTensor: {Sizes: [3, 3], DataType: UINT8}"""
    case = single(tmp_path, "QUANTIZED_LINEAR_MATRIX_MULTIPLY", desc)
    candidates = CaseAllowances(case).of("OutputTensor").candidates
    assert {end.shape for interval in candidates for end in interval} == {(3, 3)}


def test_integer_without_zero_point_may_be_limited_to_float16(tmp_path: Path) -> None:
    """DirectML 1.15.4 limits 300000 to 65504, and does not limit 200000 - 1."""
    desc = """
  ATensor: {Sizes: [1, 2], DataType: INT32, values: [200000, 3]},
  AScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [0.0078125]},
  AZeroPointTensor: {Sizes: [1, 1], DataType: INT32, values: [1]},
  BTensor: {Sizes: [2, 1], DataType: INT32, values: [2, 300000]},
  BScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [0.00390625]},
  OutputTensor: {Sizes: [1, 1], DataType: FLOAT16}"""
    case = single(tmp_path, "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", desc)
    for right in (30.5, 16.1875, 8.0):
        assert accepts(case, "OutputTensor", [[right]]), right
    for wrong in (12.0, 20.0):
        assert not accepts(case, "OutputTensor", [[wrong]]), wrong


def test_rounding_of_the_right_value_counts_beside_the_store_of_a_factor(tmp_path: Path) -> None:
    """-60 * -0.27393 is 16.4355, held as 16.4219; 29 times that is 476.23, truncated to 476.

    The right value is 476.63, or 476.75 in FLOAT16. DirectML 1.15.4 gives 476.
    """
    desc = """
  ATensor: {Sizes: [1, 1], DataType: INT16, values: [29]},
  AScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [1]},
  BTensor: {Sizes: [1, 1], DataType: INT16, values: [-60]},
  BScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [-0.27392578125]},
  OutputTensor: {Sizes: [1, 1], DataType: FLOAT16}"""
    case = single(tmp_path, "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", desc)
    assert accepts(case, "OutputTensor", [476])
    assert not accepts(case, "OutputTensor", [475.75])
