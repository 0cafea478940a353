"""Outputs of graphs may be as far off as the errors and overflows of their nodes permit.

The tested code is in `dmlconf/permitted/graphs/allowance.py`,
`dmlconf/permitted/graphs/bands.py` and `dmlconf/permitted/graphs/samples.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.reference.evaluation import evaluate
from tests.graphs.suites import graph_case
from tests.permitted.graphs.accepted import accepts, graph, passes


def test_a_number_that_may_exceed_float16_may_be_infinite(tmp_path: Path) -> None:
    """FLOAT16 may round 60001 by 32, so its cosine is unknown; 180000 times that overflows."""
    inputs = """
  x: {Sizes: [1], DataType: FLOAT16, values: [60000]}
  k: {Sizes: [1], DataType: FLOAT16, values: [60000]}"""
    nodes = """
  large: {operator: ACTIVATION_LINEAR, desc: {InputTensor: x, OutputTensor: {}, Alpha: 1, Beta: 1}}
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: large, OutputTensor: {}}}
  twice: {operator: ACTIVATION_LINEAR,
          desc: {InputTensor: cosine, OutputTensor: {}, Alpha: 3, Beta: 0}}
  node: {operator: ELEMENT_WISE_MULTIPLY, desc: {ATensor: twice, BTensor: k, OutputTensor: {}}}"""
    case = graph(tmp_path, inputs, nodes)
    for value in (-np.inf, -65504, 0, 65504, np.inf):
        assert accepts(case, "y", [value]), value
    assert not accepts(case, "y", [np.nan])


def test_a_constant_that_is_an_output_must_be_exact(tmp_path: Path) -> None:
    case = graph_case(
        tmp_path,
        """
inputs: {x: {Sizes: [2], DataType: FLOAT32, values: [1, -2]}}
constants: {k: {Sizes: [2], DataType: FLOAT32, values: [3, .nan]}}
nodes:
  node: {operator: ELEMENT_WISE_ADD, desc: {ATensor: x, BTensor: k, OutputTensor: {}}}
outputs: {y: node, z: k}
""",
    )
    assert accepts(case, "y", [4, np.nan])
    assert accepts(case, "z", [3, np.nan])
    assert not accepts(case, "z", [3.5, np.nan])
    assert not accepts(case, "z", [3, 0])


SUM_AND_QUARTER = """
  product:
    operator: GEMM
    desc: {ATensor: a, BTensor: b, OutputTensor: {Sizes: [1, 1, 1, 1]}, TransA: NONE,
           TransB: NONE, Alpha: 1, Beta: 0}
  node: {operator: ACTIVATION_LINEAR,
         desc: {InputTensor: product, OutputTensor: {}, Alpha: 0.25, Beta: 0}}"""


@pytest.mark.parametrize(("output", "factor"), [("product", 1), ("node", 0.25)])
def test_a_partial_sum_that_overflows_permits_infinity(
    tmp_path: Path, output: str, factor: float
) -> None:
    """The sum is 3e38, but 3e38 + 3e38 overflows. The output of a later node is open."""
    inputs = """
  a: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [3.0e+38, 3.0e+38, -3.0e+38]}
  b: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [1, 1, 1]}"""
    nodes = (
        SUM_AND_QUARTER
        if output == "node"
        else SUM_AND_QUARTER[: SUM_AND_QUARTER.index("\n  node:")]
    )
    case = graph(tmp_path, inputs, nodes, output)
    assert accepts(case, "y", [3e38 * factor])
    assert accepts(case, "y", [np.inf])
    assert accepts(case, "y", [1e37]) is (output == "node")


def test_a_sum_of_magnitudes_may_add_the_largest_permitted_sizes(
    tmp_path: Path,
) -> None:
    """The remainders of 16777215 by 3 may be -3 to 6, and those of -16777215 by -3 -6 to 3."""
    count = 512
    tensor = f"{{Sizes: [1, {count}], DataType: FLOAT32, values: "
    case = graph(
        tmp_path,
        f"\n  x: {tensor}{[16777215, -16777215] * (count // 2)}}}"
        f"\n  d: {tensor}{[3, -3] * (count // 2)}}}",
        """
  rest: {operator: ELEMENT_WISE_MODULUS_FLOOR, desc: {ATensor: x, BTensor: d, OutputTensor: {}}}
  node: {operator: REDUCE, desc: {Function: L1, InputTensor: rest, Axes: [1],
         OutputTensor: {Sizes: [1, 1], DataType: FLOAT32}}}""",
    )
    assert accepts(case, "y", [count * 6])
    assert not accepts(case, "y", [count * 6.1])


def test_a_sum_of_magnitudes_may_add_the_largest_candidates(
    tmp_path: Path,
) -> None:
    """RESAMPLE1 may turn [2, -1] into [2, -3.7], and [-2, 1] into [-2, 3.7]."""
    rows = 512
    numbers = ", ".join(["2, -1", "-2, 1"] * (rows // 2))
    case = graph(
        tmp_path,
        f"\n  x: {{Sizes: [{rows}, 2], DataType: FLOAT32, values: [{numbers}]}}",
        f"""
  e: {{operator: RESAMPLE1, desc: {{InputTensor: x, InterpolationMode: LINEAR, Scales: [1, 1],
       OutputTensor: {{Sizes: [{rows}, 2], DataType: FLOAT32}},
       InputPixelOffsets: [0, -1], OutputPixelOffsets: [0, 0.1]}}}}
  node: {{operator: REDUCE, desc: {{Function: L1, InputTensor: e, Axes: [0, 1],
          OutputTensor: {{Sizes: [1, 1], DataType: FLOAT32}}}}}}""",
    )
    greatest = rows * (2.0 + 3.7)
    assert accepts(case, "y", [greatest])
    assert not accepts(case, "y", [greatest * 1.01])


def test_a_gradient_beyond_float16_may_be_stored_as_65504(tmp_path: Path) -> None:
    """DirectML gives -65504 for the first element. The others are infinite in the reference."""
    row, one = "Sizes: [1, 7], DataType: FLOAT16", "Sizes: [1, 1], DataType: FLOAT16"
    case = graph(
        tmp_path,
        f"""
  x: {{{row}, values: [0.45263671875, 0, 0, 0, 0, 0, 65504]}}
  g: {{{row}, values: [0, 0, 0, 0, 0, 0, 65504]}}
  mean: {{{one}, values: [0.482421875]}}
  variance: {{{one}, values: [2048]}}""",
        """
  node:
    operator: BATCH_NORMALIZATION_TRAINING_GRAD
    desc: {InputTensor: x, InputGradientTensor: g, MeanTensor: mean, VarianceTensor: variance,
           ScaleTensor: variance, OutputGradientTensor: {Sizes: [1, 7]},
           OutputScaleGradientTensor: {Sizes: [1, 1]}, OutputBiasGradientTensor: {Sizes: [1, 1]},
           Epsilon: 0}""",
        "node.OutputGradientTensor",
    )
    assert accepts(case, "y", [-65504] * 7)
    assert not accepts(case, "y", [-60000, *[-65504] * 6])


SINH_OF_AN_UNKNOWN_SINE = """
  large: {operator: ACTIVATION_LINEAR, desc: {InputTensor: x, OutputTensor: {}, Alpha: 3, Beta: 1}}
  sine: {operator: ELEMENT_WISE_SIN, desc: {InputTensor: large, OutputTensor: {}}}
  scaled: {operator: ACTIVATION_LINEAR,
           desc: {InputTensor: sine, OutputTensor: {}, Alpha: 3000, Beta: 0}}
  node: {operator: ELEMENT_WISE_SINH, desc: {InputTensor: scaled, OutputTensor: {}}}"""


def test_any_number_is_right_if_both_ends_overflow(
    tmp_path: Path,
) -> None:
    """The sine of 9e20 may be -1 to 1. sinh(-3000) and sinh(3000) overflow."""
    case = graph(
        tmp_path,
        "\n  x: {Sizes: [1], DataType: FLOAT32, values: [3.0e+20]}",
        SINH_OF_AN_UNKNOWN_SINE,
    )
    for value in (-np.inf, -1e30, -27.3, 0.5, 1e30, np.inf):
        assert accepts(case, "y", [value]), value
    assert not accepts(case, "y", [np.nan])


HALF_OF_AN_OVERFLOW = """
inputs:
  x: {Sizes: [1, 1, 2, 1], DataType: FLOAT16, values: [60000, 30000]}
  w: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [2]}
nodes:
  product:
    operator: GEMM
    desc: {ATensor: x, BTensor: w, OutputTensor: {Sizes: [1, 1, 2, 1]}, TransA: NONE,
           TransB: NONE, Alpha: 1, Beta: 0}
  half:
    operator: ACTIVATION_LINEAR
    desc: {InputTensor: product, OutputTensor: {}, Alpha: 0.5, Beta: 0}
outputs: {y: half}
"""


def test_an_overflow_may_give_infinity_or_the_largest_number(tmp_path: Path) -> None:
    """FLOAT16 stores 2 * 60000 as infinity or as 65504, and half of 65504 is 32752."""
    case = graph_case(tmp_path, HALF_OF_AN_OVERFLOW)
    assert passes(case, "y", [np.inf, 30000])
    assert passes(case, "y", [32752, 30000])
    assert not passes(case, "y", [16000, 30000])
    assert not passes(case, "y", [np.nan, 30000])


def test_a_sum_of_gradients_is_one_of_three_candidates(tmp_path: Path) -> None:
    """Gradients 1 and 2 lie between two elements; element 1 may get either or both."""
    inputs = "\n  x: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [1, -1.0e+32, -3.402822e+38]}"
    nodes = """
  sums:
    operator: RESAMPLE_GRAD
    desc: {InputGradientTensor: x, OutputGradientTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT32},
           InterpolationMode: NEAREST_NEIGHBOR, Scales: [1, 1, 1, 1.00000012],
           InputPixelOffsets: [0, 0, 0, 0], OutputPixelOffsets: [0, 0, 0, 0.5]}"""
    case = graph(tmp_path, inputs, nodes, "sums.OutputGradientTensor")
    for middle in (-1.0e32, -3.402822e38, -3.402823e38):
        assert accepts(case, "y", [1, middle, 0]), middle
    for middle in (-3.0e38, np.nan):
        assert not accepts(case, "y", [1, middle, 0]), middle


def test_candidates_of_a_reduction_have_the_sizes_of_the_output(tmp_path: Path) -> None:
    """The first two maxima are open."""
    case = graph(
        tmp_path,
        """
  x: {Sizes: [3, 5, 2, 2], DataType: FLOAT16, fill: {specials: {seed: 61, every: 47}}}
  g: {Sizes: [3, 5, 2, 2], DataType: FLOAT16, fill: {uniform: {low: -1, high: 1, seed: 2}}}""",
        """
  n: {operator: LOCAL_RESPONSE_NORMALIZATION_GRAD, desc: {InputTensor: x, InputGradientTensor: g,
      OutputGradientTensor: {Sizes: [3, 5, 2, 2], DataType: FLOAT16}, CrossChannel: false,
      LocalSize: 3, Alpha: 0.0009765625, Beta: 7.0, Bias: 1.5}}
  node: {operator: REDUCE, desc: {Function: MAX, InputTensor: n, Axes: [2, 1, 2],
         OutputTensor: {Sizes: [3, 1, 1, 2], DataType: FLOAT16}}}""",
    )
    right = evaluate(case)["y"].ravel().tolist()
    assert accepts(case, "y", right)
    for n in range(len(right)):
        changed = [*right[:n], 60000, *right[n + 1 :]]
        assert accepts(case, "y", changed) is (n < 2), n


@pytest.mark.parametrize("negated", [False, True])
def test_a_power_may_be_infinite_or_inexact(negated: bool, tmp_path: Path) -> None:
    """DirectML 1.12.1 gives 1.3377088e22 for a FLOAT16 exponent."""
    inputs = "\n  x: {Sizes: [1], DataType: FLOAT32, values: [-0.46211717]}"
    inputs += "\n  k: {Sizes: [1], DataType: FLOAT16, values: [-66]}"
    power = "ELEMENT_WISE_POW, desc: {InputTensor: x, ExponentTensor: k, OutputTensor: {}}"
    nodes = f"\n  node: {{operator: {power}}}"
    sign = 1.0
    if negated:
        nodes = nodes.replace("node:", "n:")
        nodes += (
            "\n  node: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: n, OutputTensor: {}}}"
        )
        sign = -1.0
    case = graph(tmp_path, inputs, nodes)
    for right in (1.33770814e22, 1.3377088e22, np.inf):
        assert accepts(case, "y", [sign * right]), right
    for wrong in (1.3395e22, 1.336e22, 0.0):
        assert not accepts(case, "y", [sign * wrong]), wrong


def test_nan_is_wrong_beside_a_number_that_may_be_infinite(tmp_path: Path) -> None:
    """5 * exp(0) is 5, and 5 * exp(200) is infinite."""
    tensor = "Sizes: [1, 1, 1, 2], DataType: FLOAT32"
    nodes = f"""
      grown: {{operator: ELEMENT_WISE_EXP, desc: {{InputTensor: x, OutputTensor: {{}}}}}}
      node:
        operator: ELEMENT_WISE_IDENTITY
        desc:
          InputTensor: grown
          OutputTensor: {{{tensor}}}
          ScaleBias: {{Scale: 5, Bias: 0}}"""
    case = graph(tmp_path, f"\n  x: {{{tensor}, values: [0, 200]}}", nodes)
    assert accepts(case, "y", [5, np.inf])
    assert accepts(case, "y", [5, 3.4028235e38])
    assert not accepts(case, "y", [np.nan, np.inf])
    assert not accepts(case, "y", [np.inf, np.inf])


OVERFLOW = """
  sum:
    operator: GEMM
    desc: {ATensor: x, BTensor: w, OutputTensor: {Sizes: [1, 1, 1, 1]}, TransA: NONE,
           TransB: NONE, Alpha: 1, Beta: 0}
  node: {operator: ACTIVATION, desc: {InputTensor: sum, OutputTensor: {}}}"""


@pytest.mark.parametrize(
    ("activation", "sign", "right"),
    [("TANH", 1, 1), ("TANH", -1, -1), ("SIGMOID", -1, 0), ("RELU", 1, np.inf)],
)
def test_a_node_behind_a_sum_that_overflows_to_one_infinity_is_judged(
    tmp_path: Path, activation: str, sign: int, right: float
) -> None:
    """DirectML 1.8.0, 1.10.1 and 1.15.4 give the activation of that infinity."""
    inputs = f"""
  x: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [{sign * 3}.0e+38, 1]}}
  w: {{Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [2, 1]}}"""
    case = graph(tmp_path, inputs, OVERFLOW.replace("ACTIVATION", f"ACTIVATION_{activation}"))
    assert passes(case, "y", [right])
    for wrong in {-1.0, 0.0, 1.0, np.inf, -np.inf, np.nan} - {right}:
        assert not accepts(case, "y", [wrong]), wrong


def test_a_node_behind_a_sum_that_overflows_to_either_infinity_is_open(tmp_path: Path) -> None:
    inputs = """
  x: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [3.0e+38, -3.0e+38]}
  w: {Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [2, 1.5]}"""
    case = graph(tmp_path, inputs, OVERFLOW.replace("ACTIVATION", "ACTIVATION_TANH"))
    for right in (1, -1, np.nan):
        assert accepts(case, "y", [right]), right
