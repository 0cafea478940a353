"""A subnormal input, attribute or intermediate product may count as zero, or have fewer digits.

The tested code is in `dmlconf/permitted/subnormals.py`; for quantization also in
`dmlconf/permitted/quantization/quotients.py` and `dmlconf/permitted/quantization/arithmetic.py`,
for gradients in `dmlconf/permitted/normalization/batch_gradients.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dmlconf.reference.evaluation import evaluate
from tests.permitted.graphs.accepted import accepts, graph, single

ONE = "Sizes: [1], DataType: FLOAT32"


QUANTIZED = f"""ScaleTensor: {{{ONE}, values: [SCALE]}},
  InputTensor: {{{ONE}, values: [INPUT]}}, OutputTensor: {{Sizes: [1], DataType: UINT8}}"""


def test_subnormal_scale_of_a_quantization_may_count_as_zero(tmp_path: Path) -> None:
    """1.2e-37 / 1.1e-38 is 10.9; with a scale of 0 it is infinite, which becomes 255."""
    desc = QUANTIZED.replace("SCALE", "1.1e-38").replace("INPUT", "1.2e-37")
    case = single(tmp_path, "ELEMENT_WISE_QUANTIZE_LINEAR", desc)
    assert evaluate(case)["OutputTensor"] == [11]
    assert accepts(case, "OutputTensor", [255])
    assert not accepts(case, "OutputTensor", [12])


def test_subnormal_attribute_of_an_operator_may_count_as_zero(tmp_path: Path) -> None:
    desc = f"InputTensor: {{{ONE}, values: [0]}}, OutputTensor: {{{ONE}}}, "
    case = single(tmp_path, "ELEMENT_WISE_SQRT", desc + "ScaleBias: {Scale: 1, Bias: 1.0e-44}")
    assert accepts(case, "OutputTensor", [0])
    assert not accepts(case, "OutputTensor", [1e-20])


@pytest.mark.parametrize(("scale", "quotient"), [("1.0e-44", None), ("0.5", 10)])
def test_graph_permits_any_quotient_by_a_subnormal_scale(
    tmp_path: Path, scale: str, quotient: int | None
) -> None:
    inputs = f"""
  x: {{{ONE}, values: [5]}}
  s: {{{ONE}, values: [{scale}]}}"""
    nodes = """
  node: {operator: ELEMENT_WISE_QUANTIZE_LINEAR,
         desc: {InputTensor: x, ScaleTensor: s, OutputTensor: {DataType: UINT8}}}"""
    case = graph(tmp_path, inputs, nodes)
    for value in (0, 10, 174, 255):
        assert accepts(case, "y", [value]) is (quotient in (None, value)), value


def test_a_subnormal_intermediate_product_may_have_fewer_digits(tmp_path: Path) -> None:
    """1e-44 is 7 * 2^-149, and FLOAT32 rounds half of it to 4 * 2^-149."""
    tensors = {"Input": 0.5, "InputGradient": 1e-44, "Mean": 0, "Variance": 0.75, "Scale": 1e38}
    desc = ", ".join(f"{name}Tensor: {{{ONE}, values: [{v}]}}" for name, v in tensors.items())
    for name in ("", "Scale", "Bias"):
        desc += f", Output{name}GradientTensor: {{{ONE}}}"
    desc = f"{desc}, Epsilon: 0.25".replace("Sizes: [1]", "Sizes: [2]")
    desc = re.sub(r"values: \[(.*?)\]", r"values: [\1, \1]", desc)  # Two equal elements.
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING_GRAD", desc)
    (right, _) = evaluate(case)["OutputGradientTensor"].tolist()
    assert right < 0
    assert accepts(case, "OutputGradientTensor", [8 / 7 * right] * 2)
    assert not accepts(case, "OutputGradientTensor", [100 * right] * 2)


def test_subnormal_product_of_scales_may_be_rounded_or_zero(tmp_path: Path) -> None:
    """1e-20 * 1e-24 is 1e-44, which FLOAT32 rounds to 7 * 2^-149."""
    matrix = "{Sizes: [1, 1], DataType: INT32, values: [1000000000]}"
    scale = "{Sizes: [1, 1], DataType: FLOAT32, values: [SCALE]}"
    desc = f"""ATensor: {matrix}, AScaleTensor: {scale.replace("SCALE", "1.0e-20")},
      BTensor: {matrix}, BScaleTensor: {scale.replace("SCALE", "1.0e-24")},
      OutputTensor: {{Sizes: [1, 1], DataType: FLOAT32}}"""
    case = single(tmp_path, "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", desc)
    assert accepts(case, "OutputTensor", [7 * 2.0**-149 * 1e18])
    assert accepts(case, "OutputTensor", [0])
    assert not accepts(case, "OutputTensor", [1e-24])
