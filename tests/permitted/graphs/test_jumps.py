"""At a jump, errors of an intermediate permit results that lie far apart.

The tested code is in `dmlconf/permitted/graphs/jumps.py`; for LP_NORMALIZATION in
`dmlconf/permitted/normalization/mean_variance.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.model import Case
from tests.permitted.graphs.accepted import accepts, graph

REMAINDER = """
  power: {operator: ELEMENT_WISE_EXP, desc: {InputTensor: x, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_MODULUS_TRUNCATE,
         desc: {ATensor: power, BTensor: d, OutputTensor: {}}}"""


def test_a_quotient_near_an_integer_permits_any_remainder(
    tmp_path: Path,
) -> None:
    """Quotients by `divisors` may be off by about 0.2; exp(7) / 1 is far from an integer."""
    divisors = [float(np.float32(np.exp(7) / (100000 + more))) for more in (0.02, 0.21, 0.98)]
    inputs = f"""
  x: {{Sizes: [4], DataType: FLOAT32, values: [7, 7, 7, 7]}}
  d: {{Sizes: [4], DataType: FLOAT32, values: {[*divisors, 1]}}}"""
    case = graph(tmp_path, inputs, REMAINDER)
    remainder = float(np.exp(7) % 1)
    for part in (0, 0.01, 0.5, 0.99):
        assert accepts(case, "y", [*(part * d for d in divisors), remainder]), part
    assert not accepts(case, "y", [0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("operator", ["FLOOR", "TRUNCATE"])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_remainder_near_a_jump_is_no_larger_than_the_divisor(
    tmp_path: Path, operator: str, sign: int
) -> None:
    """The dividend is near 33 divisors, or near 0 if the divisor may be 0."""
    divisor = float(np.float32(np.exp(7) / 33))
    inputs = f"""
  x: {{Sizes: [2], DataType: FLOAT32, values: [7, 7]}}
  d: {{Sizes: [2], DataType: FLOAT32, values: [{sign * divisor}, {sign * divisor}]}}"""
    nodes = REMAINDER.replace("TRUNCATE", operator)
    case = graph(tmp_path, inputs, nodes)
    for size in (0, 1e-4, divisor - 1e-4, divisor):
        assert accepts(case, "y", [size * sign, 0]), size
    for wrong in (np.nan, np.inf, -np.inf, 1.01 * divisor, -1.01 * divisor, 1e30):
        assert not accepts(case, "y", [wrong, 0]), wrong


def test_a_remainder_by_a_divisor_that_may_be_zero_is_any_number(tmp_path: Path) -> None:
    inputs = """
  x: {Sizes: [1], DataType: FLOAT32, values: [7]}
  d: {Sizes: [1], DataType: FLOAT32, values: [1096.6331]}"""
    nodes = """
  power: {operator: ELEMENT_WISE_EXP, desc: {InputTensor: x, OutputTensor: {}}}
  less: {operator: ELEMENT_WISE_SUBTRACT, desc: {ATensor: power, BTensor: d, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_MODULUS_FLOOR,
         desc: {ATensor: d, BTensor: less, OutputTensor: {}}}"""
    case = graph(tmp_path, inputs, nodes)
    for value in (np.nan, 1e-5, 0):
        assert accepts(case, "y", [value]), value


GRADIENT_OF_TANH = """
  tangent: {operator: ELEMENT_WISE_TANH, desc: {InputTensor: x, OutputTensor: {}}}
  node:
    operator: MAX_POOLING_GRAD
    desc: {InputTensor: tangent, InputGradientTensor: g, Strides: [1, 1], WindowSize: [1, COUNT],
           OutputGradientTensor: {}, StartPadding: [0, 0], EndPadding: [0, 0], Dilations: [1, 1]}"""


def test_a_gradient_may_belong_to_any_possible_maximum(tmp_path: Path) -> None:
    """tanh(9.5) is 1, or a little less."""
    inputs = f"""
  x: {{Sizes: [1, 1, 1, 42], DataType: FLOAT32, values: {[9.5] * 40 + [2, 1]}}}
  g: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [7]}}"""
    case = graph(tmp_path, inputs, GRADIENT_OF_TANH.replace("COUNT", "42"))
    for index in (0, 7, 20, 33, 39, 40, 41):
        values = [0.0] * 42
        values[index] = 7.0
        assert accepts(case, "y", values) is (index < 40), index


def test_a_gradient_belongs_to_the_only_possible_maximum(tmp_path: Path) -> None:
    inputs = """
  x: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [9.5, 2, 1]}
  g: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [7]}"""
    case = graph(tmp_path, inputs, GRADIENT_OF_TANH.replace("COUNT", "3"))
    assert accepts(case, "y", [7, 0, 0])
    for wrong in ([0, 7, 0], [0, 0, 0], [5, 0, 0]):
        assert not accepts(case, "y", wrong), wrong


ONE = "Sizes: [1, 1, 1, 1], DataType: FLOAT32"


def normalized(tmp_path: Path, subtrahend: str) -> Case:
    """Return a graph that divides 3 by the root of cos(0.5) minus a number.

    cos(0.5) is 0.87758, and may be off by 0.0008.
    """
    values = {"x": "0.5", "h": subtrahend, "three": "3", "one": "1", "zero": "0"}
    inputs = "".join(f"\n  {name}: {{{ONE}, values: [{v}]}}" for name, v in values.items())
    nodes = """
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: x, OutputTensor: {}}}
  rest: {operator: ELEMENT_WISE_SUBTRACT, desc: {ATensor: cosine, BTensor: h, OutputTensor: {}}}
  node: {operator: BATCH_NORMALIZATION,
         desc: {InputTensor: three, MeanTensor: zero, VarianceTensor: rest, ScaleTensor: one,
                BiasTensor: zero, OutputTensor: {}, Spatial: true, Epsilon: 0}}"""
    return graph(tmp_path, inputs, nodes)


@pytest.mark.parametrize(("subtrahend", "any_number"), [("0.8776", True), ("0.5", False)])
def test_any_quotient_is_right_if_a_variance_may_be_negative(
    tmp_path: Path, subtrahend: str, any_number: bool
) -> None:
    case = normalized(tmp_path, subtrahend)
    for value in (np.inf, np.nan, 1000, 50, 0):
        assert accepts(case, "y", [value]) is any_number, value


def test_only_nan_is_right_if_a_variance_is_negative(tmp_path: Path) -> None:
    case = normalized(tmp_path, "2")
    assert accepts(case, "y", [np.nan])
    for wrong in (np.inf, 50, 0):
        assert not accepts(case, "y", [wrong]), wrong


@pytest.mark.slow
def test_a_norm_near_zero_permits_any_quotient(tmp_path: Path) -> None:
    """A softmax adds up to about 1; with an Epsilon of -1, the norm is about 0."""
    inputs = "\n  x: {Sizes: [8, 13], DataType: FLOAT16, fill: {normal: {seed: 1}}}"
    nodes = """
  softmax: {operator: ACTIVATION_SOFTMAX, desc: {InputTensor: x, OutputTensor: {}}}
  node: {operator: LP_NORMALIZATION,
         desc: {InputTensor: softmax, OutputTensor: {}, Axis: 1, Epsilon: EPSILON, P: 1}}"""
    near_zero = graph(tmp_path, inputs, nodes.replace("EPSILON", "-1"))
    near_one = graph(tmp_path, inputs, nodes.replace("EPSILON", "0"))
    for value in (np.inf, np.nan, 1000):
        assert accepts(near_zero, "y", [value] * 8 * 13), value
        assert not accepts(near_one, "y", [value] * 8 * 13), value
