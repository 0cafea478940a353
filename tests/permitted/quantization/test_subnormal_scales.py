"""Quantized results may be 0 or infinite if a scale, a product of scales or a reciprocal may be.

The tested code is in `quantized_candidates` of `dmlconf/permitted/quantization/quotients.py`, and
`quantized_sum_candidates` of `dmlconf/permitted/quantization/arithmetic.py`.
"""

from __future__ import annotations

from pathlib import Path

from tests.permitted.graphs.accepted import accepts, single

PRODUCTS = """
  ATensor: {Sizes: [3, 1], DataType: INT8, values: [84, -4, 0]},
  AScaleTensor: {Sizes: [1], DataType: FLOAT32, values: [0.6657384]},
  BTensor: {Sizes: [1, 1], DataType: INT8, values: [1]},
  BScaleTensor: {Sizes: [1], DataType: FLOAT32, values: [B_SCALE]},
  OutputScaleTensor: {Sizes: [1], DataType: FLOAT32, values: [OUTPUT_SCALE]},
  OutputTensor: {Sizes: [3, 1], DataType: INT8}"""

QUANTIZED = """
  InputTensor: {Sizes: [3], DataType: FLOAT32, values: [5.6e-45, -5.6e-45, 0]},
  ScaleTensor: {Sizes: [3], DataType: FLOAT32, values: [SCALE, SCALE, SCALE]},
  OutputTensor: {Sizes: [3], DataType: INT8}"""


def products_may_be(tmp_path: Path, b_scale: str, output_scale: str, *outputs: int) -> bool:
    desc = PRODUCTS.replace("B_SCALE", b_scale).replace("OUTPUT_SCALE", output_scale)
    case = single(tmp_path, "QUANTIZED_LINEAR_MATRIX_MULTIPLY", desc)
    return accepts(case, "OutputTensor", list(outputs))


def test_product_divided_by_a_subnormal_scale_may_be_infinite(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives 127 for 84 * 0.6657 * 1.4e-45 / 1.4e-45, which is 56."""
    subnormal = "1.4e-45", "1.4e-45"
    assert products_may_be(tmp_path, *subnormal, 56, -3, 0)
    assert products_may_be(tmp_path, *subnormal, 127, -128, 0)
    assert not products_may_be(tmp_path, *subnormal, -128, -3, 0)
    assert not products_may_be(tmp_path, *subnormal, 56, -3, 56)
    usual = "1.0e-30", "1.0e-30"
    assert products_may_be(tmp_path, *usual, 56, -3, 0)
    assert not products_may_be(tmp_path, *usual, 127, -128, 0)


def test_subnormal_product_of_two_scales_may_count_as_0(tmp_path: Path) -> None:
    """0.6657 * 1.2e-38 is subnormal."""
    scales = "1.2e-38", "2.4e-38"
    assert products_may_be(tmp_path, *scales, 28, -1, 0)
    assert products_may_be(tmp_path, *scales, 0, 0, 0)
    assert not products_may_be(tmp_path, *scales, -1, 0, 0)
    assert not products_may_be(tmp_path, "1.2e-36", "2.4e-36", 0, 0, 0)


def test_scale_may_overflow_before_a_small_scale_multiplies_it(tmp_path: Path) -> None:
    """-4 * 2^125 * 2^-126 / 2^-4 is -32, and 2^125 / 2^-4 is infinite."""
    large = PRODUCTS.replace("0.6657384", f"{2.0**125!r}")
    desc = large.replace("B_SCALE", f"{2.0**-126!r}").replace("OUTPUT_SCALE", "0.0625")
    case = single(tmp_path, "QUANTIZED_LINEAR_MATRIX_MULTIPLY", desc)
    assert accepts(case, "OutputTensor", [127, -32, 0])
    assert accepts(case, "OutputTensor", [127, -128, 0])
    assert not accepts(case, "OutputTensor", [127, 127, 0])
    assert not accepts(case, "OutputTensor", [127, -32, -128])  # 0 * infinity
    normal = PRODUCTS.replace("0.6657384", "0.5").replace("B_SCALE", "1")
    case = single(
        tmp_path, "QUANTIZED_LINEAR_MATRIX_MULTIPLY", normal.replace("OUTPUT_SCALE", "0.0625")
    )
    assert accepts(case, "OutputTensor", [127, -32, 0])
    assert not accepts(case, "OutputTensor", [127, -128, 0])


def test_number_divided_by_a_subnormal_scale_may_be_infinite(tmp_path: Path) -> None:
    case = single(tmp_path, "ELEMENT_WISE_QUANTIZE_LINEAR", QUANTIZED.replace("SCALE", "1.4e-45"))
    assert accepts(case, "OutputTensor", [4, -4, 0])
    assert accepts(case, "OutputTensor", [127, -128, 0])
    assert not accepts(case, "OutputTensor", [-128, -4, 0])
