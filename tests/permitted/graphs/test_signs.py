"""Even powers, absolute values and similar results are not negative, whatever the input's error.

The tested code is in `dmlconf/permitted/graphs/signs.py` and
`dmlconf/permitted/element_wise/power.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.model import Case
from tests.permitted.graphs.accepted import accepts, graph, single

COSINES = """
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: x, OutputTensor: {}}}
  node: {operator: OPERATOR, desc: {DESC, OutputTensor: {}}}"""

NEAR_ZERO = """
  x: {Sizes: [2], DataType: FLOAT32, values: [1.5707964, 0]}
  e: {Sizes: [2], DataType: FLOAT32, values: [EXPONENT, 1]}"""
"""The first cosine is 0 with an error of 0.0008; 0.0008^2 is 6.4e-7, 0.0008^3 is 5.1e-10."""

POW = ("ELEMENT_WISE_POW", "InputTensor: cosine, ExponentTensor: e")
CONSTANT_POW = ("ELEMENT_WISE_CONSTANT_POW", "InputTensor: cosine, Exponent: EXPONENT")


def _power(tmp_path: Path, operator: str, desc: str, exponent: str) -> Case:
    nodes = COSINES.replace("OPERATOR", operator).replace("DESC", desc)
    inputs = NEAR_ZERO.replace("EXPONENT", exponent)
    if "ExponentTensor" not in desc:
        inputs = inputs[: inputs.index("\n  e:")]
    return graph(tmp_path, inputs, nodes.replace("EXPONENT", exponent))


@pytest.mark.parametrize(("operator", "desc"), [POW, CONSTANT_POW])
@pytest.mark.parametrize(
    ("exponent", "right", "wrong"),
    [
        ("2", [0, 4.0e-7], [-4.0e-8, -4.0e-7, 0.01]),
        ("-2", [1.0e8, float("inf")], [-1.0e8, -float("inf"), -1]),
        ("3", [-4.0e-10, 4.0e-10], [0.01, -0.01]),
    ],
)
def test_only_an_odd_power_of_about_zero_may_be_negative(
    tmp_path: Path, operator: str, desc: str, exponent: str, right: list[float], wrong: list[float]
) -> None:
    case = _power(tmp_path, operator, desc, exponent)
    for number in right:
        assert accepts(case, "y", [number, 1]), number
    for number in wrong:
        assert not accepts(case, "y", [number, 1]), number


@pytest.mark.parametrize(
    ("operator", "desc"),
    [
        ("ACTIVATION_RELU", "InputTensor: cosine"),
        ("ELEMENT_WISE_ABS", "InputTensor: cosine"),
        ("ELEMENT_WISE_DIFFERENCE_SQUARE", "ATensor: cosine, BTensor: e"),
        ("ELEMENT_WISE_EXP", "InputTensor: cosine, ScaleBias: {Scale: 1000, Bias: 0}"),
        ("ELEMENT_WISE_SQRT", "InputTensor: cosine"),
    ],
)
def test_operators_without_negative_results_refuse_negative_numbers(
    tmp_path: Path, operator: str, desc: str
) -> None:
    """The cosines are 0.00082 with an error of 0.0008."""
    nodes = COSINES.replace("OPERATOR", operator).replace("DESC", desc)
    inputs = NEAR_ZERO.replace("1.5707964, 0", "1.5699763, 1.5699763")
    inputs = inputs.replace("EXPONENT, 1", "0, 0")
    case = graph(
        tmp_path, inputs if "e" in desc.split() else inputs[: inputs.index("\n  e:")], nodes
    )
    assert accepts(case, "y", [0, 0])
    assert not accepts(case, "y", [-1.0e-8, 0])


@pytest.mark.parametrize(
    ("exponent", "right", "wrong"),
    [
        ("16777216", [1, np.exp(2)], [-1, -np.exp(2)]),
        ("2147483648", [1, float("inf")], []),
        ("2147483648", [-1, -float("inf")], []),
        ("-16777216", [1, np.exp(-2)], [-1, -np.exp(-2)]),
    ],
)
def test_only_even_exponents_beyond_int32_may_give_negatives(
    tmp_path: Path, exponent: str, right: list[float], wrong: list[float]
) -> None:
    """FLOAT32 has -(1 + 2^-23) for -1.0000001, and (1 + 2^-23)^(2^24) is about e^2."""
    tensor = "{Sizes: [2], DataType: FLOAT32, values: [-1, -1.0000001]}"
    output = "{Sizes: [2], DataType: FLOAT32}"
    desc = f"InputTensor: {tensor}, OutputTensor: {output}, Exponent: {exponent}, ScaleBias: null"
    case = single(tmp_path, "ELEMENT_WISE_CONSTANT_POW", desc)
    assert accepts(case, "OutputTensor", right)
    for at, number in enumerate(wrong):
        values = [*right]
        values[at] = number
        assert not accepts(case, "OutputTensor", values), values
