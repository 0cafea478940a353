"""What RECIP, POW, LOG, SQRT and ACOS may give for inexact numbers near poles and ends of domains.

The tested code is in `dmlconf/permitted/graphs/poles.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.permitted.graphs.accepted import Values, accepts, graph

ONE = "Sizes: [1], DataType: FLOAT32"


def test_reciprocal_of_about_zero_may_be_any_large_number(tmp_path: Path) -> None:
    """sqrt(0.25) - 0.5 may be 0, or a tiny number of either sign."""
    nodes = """
  root: {operator: ELEMENT_WISE_SQRT, desc: {InputTensor: x, OutputTensor: {}}}
  rest: {operator: ELEMENT_WISE_SUBTRACT, desc: {ATensor: root, BTensor: h, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_RECIP, desc: {InputTensor: rest, OutputTensor: {}}}"""
    inputs = """
  x: {Sizes: [2], DataType: FLOAT32, values: [0.25, 0.25]}
  h: {Sizes: [2], DataType: FLOAT32, values: [0.5, 0.25]}"""
    case = graph(tmp_path, inputs, nodes)
    for value in (np.inf, -np.inf, 1e10, -1e38):
        assert accepts(case, "y", [value, 4]), value
    assert not accepts(case, "y", [np.nan, 4])
    assert not accepts(case, "y", [np.inf, np.inf])


POWER = """
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: x, OutputTensor: {}}}
  base: {operator: ACTIVATION, desc: {InputTensor: cosine, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_CONSTANT_POW,
         desc: {InputTensor: base, OutputTensor: {}, Exponent: EXPONENT}}"""


@pytest.mark.parametrize(
    ("activation", "exponent", "infinities"),
    [
        ("ACTIVATION_IDENTITY", -3, [np.inf, -np.inf]),
        ("ACTIVATION_IDENTITY", -2, [np.inf]),
        ("ACTIVATION_RELU", -3, [np.inf]),
        ("ACTIVATION_RELU", 3, []),
    ],
)
def test_negative_power_of_about_zero_may_be_infinite(
    tmp_path: Path, activation: str, exponent: int, infinities: Values
) -> None:
    """The base, COS(1.5707964), is 0 with an error of 0.0008. DirectML gives 0 for the base 0."""
    nodes = POWER.replace("ACTIVATION", activation).replace("EXPONENT", str(exponent))
    case = graph(tmp_path, "\n  x: {Sizes: [2], DataType: FLOAT32, values: [1.5707964, 0]}", nodes)
    for value in (0, np.inf, -np.inf):
        assert accepts(case, "y", [value, 1]) == (value in [0, *infinities]), value
    assert not accepts(case, "y", [0, np.inf])


@pytest.mark.parametrize(
    ("operator", "right"), [("ELEMENT_WISE_LOG", -8), ("ELEMENT_WISE_SQRT", 0.01)]
)
def test_log_and_sqrt_of_about_zero_may_be_nan_but_not_large(
    tmp_path: Path, operator: str, right: float
) -> None:
    """The operand, COS(2.0943951) + 0.5, is 0 with an error of 0.0008."""
    nodes = f"""
  cosine: {{operator: ELEMENT_WISE_COS, desc: {{InputTensor: x, OutputTensor: {{}}}}}}
  node: {{operator: {operator}, desc: {{InputTensor: cosine, OutputTensor: {{}},
         ScaleBias: {{Scale: 1, Bias: 0.5}}}}}}"""
    case = graph(tmp_path, f"\n  x: {{{ONE}, values: [2.0943951]}}", nodes)
    for value in (right, np.nan):
        assert accepts(case, "y", [value]), value
    for value in (7, np.inf):
        assert not accepts(case, "y", [value]), value


def test_acos_of_an_uncertain_remainder_may_be_any_angle(tmp_path: Path) -> None:
    """A kernel may round 16777215 / 3 down by 1, which changes the remainder by 3."""
    nodes = """
  rest: {operator: ELEMENT_WISE_MODULUS_FLOOR, desc: {ATensor: x, BTensor: d, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_ACOS, desc: {InputTensor: rest, OutputTensor: {},
         ScaleBias: {Scale: 1, Bias: 0.5}}}"""
    inputs = f"""
  x: {{{ONE}, values: [16777215]}}
  d: {{{ONE}, values: [3]}}"""
    case = graph(tmp_path, inputs, nodes)
    for value in (0.0005, 1, np.pi / 2, 2, np.pi, np.nan):
        assert accepts(case, "y", [value]), value
    for value in (-0.5, 3.2, np.inf):
        assert not accepts(case, "y", [value]), value
