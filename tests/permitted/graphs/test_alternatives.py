"""If a rule permits several results of a node, each leads to a right output of the graph.

An element is called open if any value of it is right.

The tested code is in `dmlconf/permitted/` and `dmlconf/reference/activation/operators.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.model import Case
from dmlconf.permitted.graphs.alternatives import PASS_SIGNS_ON
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array
from tests.bundled import bundled
from tests.graphs.suites import graph_case
from tests.permitted.graphs.accepted import Values, accepts, graph, single

ONE = "Sizes: [1], DataType: FLOAT32"

QUANTIZED = f"""ScaleTensor: {{{ONE}, values: [SCALE]}},
  InputTensor: {{{ONE}, values: [INPUT]}}, OutputTensor: {{Sizes: [1], DataType: UINT8}}"""

FLUSHED: Final[Mapping[str, tuple[str, str, Values, Values]]] = {
    "subnormal input": (
        "[1.0e-44]",
        "ELEMENT_WISE_SQRT, desc: {InputTensor: x, OutputTensor: {}}",
        [0.0],
        [1.0e-20],
    ),
    "subnormal bias": (
        "[0]",
        "ELEMENT_WISE_SQRT, desc: {InputTensor: x, OutputTensor: {}, "
        "ScaleBias: {Scale: 1, Bias: 1.0e-44}}",
        [0.0],
        [1.0e-20],
    ),
    "subnormal exponent": (
        "[.inf]",
        "ELEMENT_WISE_CONSTANT_POW, desc: {InputTensor: x, OutputTensor: {}, Exponent: 1.0e-44}",
        [np.nan],
        [1.0],
    ),
    "subnormal factor": (
        "[1.0e+38]",
        "ACTIVATION_LINEAR, desc: {InputTensor: x, OutputTensor: {}, Alpha: 1.0e-39, Beta: 0.25}",
        [0.25],
        [0.5],
    ),
}
"""The input x, the node, its output if the subnormal number counts as 0, and a wrong output."""


@pytest.mark.parametrize("name", FLUSHED)
def test_a_node_may_take_a_subnormal_number_for_zero(tmp_path: Path, name: str) -> None:
    values, node, flushed, wrong = FLUSHED[name]
    nodes = f"\n  node: {{operator: {node}}}"
    case = graph(tmp_path, f"\n  x: {{{ONE}, values: {values}}}", nodes)
    assert accepts(case, "y", evaluate(case)["y"].tolist())
    assert accepts(case, "y", flushed)
    assert not accepts(case, "y", wrong)


def test_each_node_may_take_a_subnormal_number_for_zero_whatever_others_do(tmp_path: Path) -> None:
    """Two nodes read 1.1e-38. Each may take it for 0, whether the other does or not."""
    nodes = """
  first: {operator: ELEMENT_WISE_SQRT, desc: {InputTensor: x, OutputTensor: {}}}
  second: {operator: ELEMENT_WISE_RECIP, desc: {InputTensor: x, OutputTensor: {}}}
  scaled:
    operator: ACTIVATION_LINEAR
    desc: {InputTensor: first, OutputTensor: {}, Alpha: 1.0e+22, Beta: 1}
  node: {operator: ELEMENT_WISE_ADD, desc: {ATensor: scaled, BTensor: third, OutputTensor: {}}}
  third: {operator: ACTIVATION_HARD_SIGMOID,
          desc: {InputTensor: second, OutputTensor: {}, Alpha: 1.0e-38, Beta: 0}}
"""
    case = graph(tmp_path, f"\n  x: {{{ONE}, values: [1.1e-38]}}", nodes)
    root = 1.1e-38**0.5 * 1e22 + 1
    third = 1e-38 / 1.1e-38
    for values in ([root + third], [1 + third], [root + 1], [2]):
        assert accepts(case, "y", values), values
    assert not accepts(case, "y", [(root + 1 + third) / 2])


def test_a_subnormal_scale_of_a_quantization_may_count_as_zero(tmp_path: Path) -> None:
    """1.2e-37 / 1.1e-38 is 10.9; with a scale of 0 it is infinite, which becomes 255."""
    desc = QUANTIZED.replace("SCALE", "1.1e-38").replace("INPUT", "1.2e-37")
    case = single(tmp_path, "ELEMENT_WISE_QUANTIZE_LINEAR", desc)
    assert evaluate(case)["OutputTensor"] == [11]
    assert accepts(case, "OutputTensor", [255])
    assert not accepts(case, "OutputTensor", [12])


def test_a_subnormal_attribute_of_a_single_operator_may_count_as_zero(tmp_path: Path) -> None:
    desc = f"InputTensor: {{{ONE}, values: [0]}}, OutputTensor: {{{ONE}}}, "
    case = single(tmp_path, "ELEMENT_WISE_SQRT", desc + "ScaleBias: {Scale: 1, Bias: 1.0e-44}")
    assert accepts(case, "OutputTensor", [0])
    assert not accepts(case, "OutputTensor", [1e-20])


SHIFTED = """
  a: {Sizes: [2], DataType: UINT64, values: [6, 16]}
  b: {Sizes: [2], DataType: UINT64, values: [64, 2]}
  m: {Sizes: [2], DataType: UINT64, values: [7, 7]}"""
SHIFT = """
  SHIFT: {operator: ELEMENT_WISE_BIT_SHIFT_RIGHT,
          desc: {ATensor: a, BTensor: b, OutputTensor: {}}}"""


def test_undefined_elements_of_64_bits_are_open(tmp_path: Path) -> None:
    """A shift by 64 is undefined, so any 64-bit number is right for the first element."""
    inputs = SHIFTED[: SHIFTED.index("\n  m:")]
    case = graph(tmp_path, inputs, SHIFT.replace("SHIFT:", "node:"))
    for value in (0, 6, 1 << 63, (1 << 64) - 1):
        assert accepts(case, "y", [value, 4])
        assert not accepts(case, "y", [value, 5])


def test_elements_computed_from_open_elements_of_64_bits_are_open(tmp_path: Path) -> None:
    modulus = """
  node: {operator: ELEMENT_WISE_MODULUS_TRUNCATE,
         desc: {ATensor: shifted, BTensor: m, OutputTensor: {}}}"""
    case = graph(tmp_path, SHIFTED, SHIFT.replace("SHIFT:", "shifted:") + modulus)
    for value in range(7):
        assert accepts(case, "y", [value, 4])
    assert not accepts(case, "y", [0, 5])


def test_64_bit_indices_of_the_greatest_elements_are_open_if_one_is_nan(tmp_path: Path) -> None:
    nodes = """
  node: {operator: TOP_K1,
         desc: {InputTensor: x, OutputValueTensor: {Sizes: [2]}, Axis: 0, K: 2,
                OutputIndexTensor: {Sizes: [2], DataType: UINT64}, AxisDirection: DECREASING}}"""
    inputs = "\n  x: {Sizes: [3], DataType: FLOAT32, values: [.nan, 1, 2]}"
    case = graph(tmp_path, inputs, nodes, "node.OutputIndexTensor")
    assert accepts(case, "y", [2, 1])


def test_a_number_that_may_exceed_float16_may_be_infinite(tmp_path: Path) -> None:
    """The FLOAT16 number 60001 may be off by 32, so its cosine is unknown."""
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


MASKED = """
  root: {operator: ELEMENT_WISE_SQRT, desc: {InputTensor: x, OutputTensor: {}}}
  node: {operator: OPERATOR, desc: {INPUTS, OutputTensor: {}}}"""


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("ELEMENT_WISE_BIT_NOT", "InputTensor: root"),
        ("ELEMENT_WISE_BIT_XOR", "ATensor: root, BTensor: m"),
        ("ELEMENT_WISE_BIT_AND", "ATensor: m, BTensor: root"),
    ],
)
def test_bits_of_approximate_numbers_are_unknown(
    tmp_path: Path, operator: str, inputs: str
) -> None:
    nodes = MASKED.replace("OPERATOR", operator).replace("INPUTS", inputs)
    given = "\n  x: {Sizes: [2], DataType: FLOAT32, values: [2, .nan]}"
    if "BTensor" in inputs:
        given += "\n  m: {Sizes: [2], DataType: FLOAT32, values: [-9, 5]}"
    case = graph(tmp_path, given, nodes)
    assert accepts(case, "y", [0.5, 0.25])


def test_bits_of_constants_are_known(tmp_path: Path) -> None:
    """The constants are 0x3F800000, 0x40000000 and 0x40400000 as FLOAT32."""
    text = """
constants:
  c: {Sizes: [3], DataType: FLOAT32, values: [1, 2, 3]}
nodes:
  node: {operator: ELEMENT_WISE_BIT_COUNT,
         desc: {InputTensor: c, OutputTensor: {Sizes: [3], DataType: UINT8}}}
outputs: {y: node}
"""
    case = graph_case(tmp_path, text)
    assert accepts(case, "y", [7, 1, 2])
    assert not accepts(case, "y", [7, 1, 3])


SIGNED = {
    "MIN": "ELEMENT_WISE_MIN, desc: {ATensor: x, BTensor: z, OutputTensor: {}}",
    "MAX": "ELEMENT_WISE_MAX, desc: {ATensor: z, BTensor: x, OutputTensor: {}}",
    "CLIP": "ELEMENT_WISE_CLIP, desc: {InputTensor: x, OutputTensor: {}, Min: -1, Max: 0,"
    " ScaleBias: {Scale: 1, Bias: 0}}",
}


@pytest.mark.parametrize("operator", SIGNED)
def test_a_zero_may_have_either_sign_where_the_rule_permits_both(
    tmp_path: Path, operator: str
) -> None:
    inputs = "\n  x: {Sizes: [2], DataType: FLOAT32, values: [0.0, -0.5]}"
    if "z" in SIGNED[operator]:
        inputs += "\n  z: {Sizes: [2], DataType: FLOAT32, values: [-0.0, -0.5]}"
    nodes = f"""
  zero: {{operator: {SIGNED[operator]}}}
  node: {{operator: ELEMENT_WISE_RECIP, desc: {{InputTensor: zero, OutputTensor: {{}}}}}}"""
    case = graph(tmp_path, inputs, nodes)
    assert accepts(case, "y", [np.inf, -2])
    assert accepts(case, "y", [-np.inf, -2])
    assert not accepts(case, "y", [np.nan, -2])
    assert not accepts(case, "y", [1e38, -2])


@pytest.mark.parametrize("operator", sorted(PASS_SIGNS_ON))
def test_operators_that_pass_signs_on_give_equal_numbers_for_both_zeros(operator: str) -> None:
    plan = list(bundled(f"{operator.lower()}/matrix.yaml").plan())
    cases = [build(planned) for planned in plan[:: max(1, len(plan) // 20)]]
    small = [case for case in cases if not case.violations() and _has_few_numbers(case)]
    assert len(small) >= 6
    for case in small:
        plus, minus = (
            evaluate(case.with_data({n: _every_third(a, zero) for n, a in case.inputs().items()}))
            for zero in (0.0, -0.0)
        )
        for name, values in plus.items():
            np.testing.assert_array_equal(minus[name], values)


def _has_few_numbers(case: Case) -> bool:
    """Return whether a case has floating-point inputs, and no input of more than 1,000 elements."""
    inputs = case.inputs().values()
    return any(array.dtype.kind == "f" for array in inputs) and all(a.size <= 1000 for a in inputs)


def _every_third(array: Array, zero: float) -> Array:
    """Return floating-point numbers with a zero for every third, and other arrays as they are."""
    if array.dtype.kind != "f":
        return array
    changed = array.copy()
    changed.flat[::3] = zero
    return changed


def test_the_signs_of_two_zeros_are_independent(tmp_path: Path) -> None:
    """The reciprocals are infinities, whose sum is NaN if the signs differ."""
    nodes = """
  zero: {operator: ELEMENT_WISE_MIN, desc: {ATensor: x, BTensor: z, OutputTensor: {}}}
  other: {operator: ELEMENT_WISE_MAX, desc: {ATensor: x, BTensor: z, OutputTensor: {}}}
  first: {operator: ELEMENT_WISE_RECIP, desc: {InputTensor: zero, OutputTensor: {}}}
  second: {operator: ELEMENT_WISE_RECIP, desc: {InputTensor: other, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_ADD, desc: {ATensor: first, BTensor: second, OutputTensor: {}}}"""
    inputs = "".join(f"\n  {n}: {{{ONE}, values: [{v}]}}" for n, v in (("x", "0.0"), ("z", "-0.0")))
    case = graph(tmp_path, inputs, nodes)
    for value in (np.inf, -np.inf, np.nan):
        assert accepts(case, "y", [value])
    assert not accepts(case, "y", [0])


def test_a_zero_that_is_copied_keeps_its_sign(tmp_path: Path) -> None:
    nodes = """
  copy: {operator: ELEMENT_WISE_IDENTITY, desc: {InputTensor: x, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_RECIP, desc: {InputTensor: copy, OutputTensor: {}}}"""
    case = graph(tmp_path, f"\n  x: {{{ONE}, values: [-0.0]}}", nodes)
    assert accepts(case, "y", [-np.inf])
    assert not accepts(case, "y", [np.inf])


def test_leaky_relu_keeps_the_sign_of_zero(tmp_path: Path) -> None:
    desc = f"InputTensor: {{{ONE}, values: [-0.0]}}, OutputTensor: {{{ONE}}}, Alpha: 0.01"
    assert np.signbit(evaluate(single(tmp_path, "ACTIVATION_LEAKY_RELU", desc))["OutputTensor"])


def test_the_reciprocal_of_about_zero_may_be_any_large_number(tmp_path: Path) -> None:
    """sqrt(0.25) - 0.5 is 0 or next to it, so its reciprocal may be any large number."""
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


OVERFLOW = """
  product:
    operator: GEMM
    desc: {ATensor: a, BTensor: b, OutputTensor: {Sizes: [1, 1, 1, 1]}, TransA: NONE,
           TransB: NONE, Alpha: 1, Beta: 0}
  node: {operator: ACTIVATION_LINEAR,
         desc: {InputTensor: product, OutputTensor: {}, Alpha: 0.25, Beta: 0}}"""


@pytest.mark.parametrize(("output", "factor"), [("product", 1), ("node", 0.25)])
def test_a_sum_whose_terms_overflow_may_be_infinite(
    tmp_path: Path, output: str, factor: float
) -> None:
    inputs = """
  a: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [3.0e+38, 3.0e+38, -3.0e+38]}
  b: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [1, 1, 1]}"""
    nodes = OVERFLOW if output == "node" else OVERFLOW[: OVERFLOW.index("\n  node:")]
    case = graph(tmp_path, inputs, nodes, output)
    assert accepts(case, "y", [3e38 * factor])
    assert accepts(case, "y", [np.inf])
    if output == "product":
        assert not accepts(case, "y", [1e38])


REMAINDER = """
  power: {operator: ELEMENT_WISE_EXP, desc: {InputTensor: x, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_MODULUS_TRUNCATE,
         desc: {ATensor: power, BTensor: d, OutputTensor: {}}}"""


def test_if_a_quotient_may_lie_on_both_sides_of_an_integer_any_remainder_is_right(
    tmp_path: Path,
) -> None:
    """exp(7) is 1096.633; quotients by `divisors`, such as 100000.21, are off by about 0.2."""
    divisors = [float(np.float32(np.exp(7) / (100000 + share))) for share in (0.02, 0.21, 0.98)]
    inputs = f"""
  x: {{Sizes: [4], DataType: FLOAT32, values: [7, 7, 7, 7]}}
  d: {{Sizes: [4], DataType: FLOAT32, values: {[*divisors, 1]}}}"""
    case = graph(tmp_path, inputs, REMAINDER)
    remainder = float(np.exp(7) % 1)
    for share in (0, 0.01, 0.5, 0.99):
        assert accepts(case, "y", [*(share * d for d in divisors), remainder]), share
    assert not accepts(case, "y", [*divisors, 0.0])


def test_a_fused_relu_of_nan_is_nan_or_zero(tmp_path: Path) -> None:
    desc = """ATensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [.nan, 1]},
      BTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [1, 1]}, TransA: NONE,
      TransB: NONE, Alpha: 1, Beta: 0, FusedActivation: {operator: ACTIVATION_RELU},
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}"""
    case = single(tmp_path, "GEMM", desc)
    assert accepts(case, "OutputTensor", [np.nan])
    assert accepts(case, "OutputTensor", [0])
    assert not accepts(case, "OutputTensor", [1])


def test_a_gradient_may_belong_to_any_element_that_may_be_the_greatest(tmp_path: Path) -> None:
    """The hyperbolic tangents of numbers beyond 9 are 1, or a little less."""
    inputs = f"""
  x: {{Sizes: [1, 1, 1, 42], DataType: FLOAT32, values: {[9.5] * 40 + [2, 1]}}}
  g: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [7]}}"""
    nodes = """
  tangent: {operator: ELEMENT_WISE_TANH, desc: {InputTensor: x, OutputTensor: {}}}
  node:
    operator: MAX_POOLING_GRAD
    desc: {InputTensor: tangent, InputGradientTensor: g, Strides: [1, 1], WindowSize: [1, 42],
           OutputGradientTensor: {}, StartPadding: [0, 0], EndPadding: [0, 0], Dilations: [1, 1]}"""
    case = graph(tmp_path, inputs, nodes)
    for index in (0, 7, 20, 33, 39, 40, 41):
        values = [0.0] * 42
        values[index] = 7.0
        assert accepts(case, "y", values) is (index < 40), index


def test_a_quotient_by_the_root_of_about_zero_may_be_infinite_or_nan(tmp_path: Path) -> None:
    """Softmax adds up to about 1, so with an Epsilon of -1 the norm's divisor is about 0."""
    inputs = "\n  x: {Sizes: [8, 13], DataType: FLOAT16, fill: {normal: {seed: 1}}}"
    nodes = """
  shares: {operator: ACTIVATION_SOFTMAX, desc: {InputTensor: x, OutputTensor: {}}}
  node: {operator: LP_NORMALIZATION,
         desc: {InputTensor: shares, OutputTensor: {}, Axis: 1, Epsilon: -1, P: 1}}"""
    case = graph(tmp_path, inputs, nodes)
    for value in (np.inf, np.nan, 1000):
        assert accepts(case, "y", [value] * 104), value


def test_a_subnormal_scale_makes_quotients_undefined(tmp_path: Path) -> None:
    inputs = f"""
  x: {{{ONE}, values: [5]}}
  s: {{{ONE}, values: [1.0e-44]}}"""
    nodes = """
  node: {operator: ELEMENT_WISE_QUANTIZE_LINEAR,
         desc: {InputTensor: x, ScaleTensor: s, OutputTensor: {DataType: UINT8}}}"""
    case = graph(tmp_path, inputs, nodes)
    for value in (0, 174, 255):
        assert accepts(case, "y", [value]), value


def test_either_result_of_comparing_two_unknown_numbers_is_right(tmp_path: Path) -> None:
    """The argument may overflow, so the two sines may be any two numbers."""
    inputs = "\n  x: {Sizes: [2], DataType: FLOAT32, values: [1, 1]}"
    nodes = """
  sine: {operator: ELEMENT_WISE_SIN, desc: {InputTensor: x, OutputTensor: {},
         ScaleBias: {Scale: 1, Bias: 3.4028234663852886e+38}}}
  halves: {operator: SPLIT, desc: {InputTensor: sine, Axis: 0,
           OutputTensors: [{Sizes: [1], DataType: FLOAT32}, {Sizes: [1], DataType: FLOAT32}]}}
  node: {operator: ELEMENT_WISE_LOGICAL_LESS_THAN,
         desc: {ATensor: "halves.OutputTensors[0]", BTensor: "halves.OutputTensors[1]",
                OutputTensor: {DataType: UINT8}}}"""
    case = graph(tmp_path, inputs, nodes)
    assert accepts(case, "y", [0])
    assert accepts(case, "y", [1])


LINE = "Sizes: [10], DataType: FLOAT32, values: [1, 1, 1, 1, 7, .nan, 1, 1, 1, 1]"


def test_nan_is_right_if_either_of_two_elements_may_be_the_nearest(tmp_path: Path) -> None:
    """The coordinate 0.5 / 0.1 - 0.5 is 4.5, so that element 4 or 5 is read."""
    nodes = """
  node: {operator: RESAMPLE, desc: {InputTensor: x, OutputTensor: {Sizes: [1]},
         InterpolationMode: NEAREST_NEIGHBOR, Scales: [0.1]}}"""
    case = graph(tmp_path, f"\n  x: {{{LINE}}}", nodes)
    assert accepts(case, "y", [np.nan])
    assert accepts(case, "y", [7])
    assert not accepts(case, "y", [1])


HARDMAX = """InputTensor: {Sizes: [2, 2], DataType: FLOAT32, values: [VALUES]},
  OutputTensor: {Sizes: [2, 2], DataType: FLOAT32}, Axes: AXES"""


def test_hardmax_of_a_row_with_nan_may_choose_any_element_along_several_axes(
    tmp_path: Path,
) -> None:
    """Measured on DirectML 1.13.1, which compares such a row in parts, so NaN may hide the 3."""
    desc = HARDMAX.replace("VALUES", "1, .nan, 3, 2").replace("AXES", "[0, 1]")
    assert accepts(single(tmp_path, "ACTIVATION_HARDMAX1", desc), "OutputTensor", [0, 1, 0, 0])
    desc = HARDMAX.replace("VALUES", "1, 4, 3, 2").replace("AXES", "[0, 1]")
    assert not accepts(single(tmp_path, "ACTIVATION_HARDMAX1", desc), "OutputTensor", [0, 0, 1, 0])
    desc = HARDMAX.replace("VALUES", "1, .nan, 3, 2").replace("AXES", "[1]")
    assert not accepts(single(tmp_path, "ACTIVATION_HARDMAX1", desc), "OutputTensor", [0, 1, 1, 0])


REGION = """InputGradientTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [.inf]},
  ROITensor: {Sizes: [1, 4], DataType: FLOAT32, values: [-0.8, -0.8, -0.8, -0.8]},
  BatchIndicesTensor: {Sizes: [1], DataType: UINT32, values: [0]},
  OutputGradientTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32},
  ReductionFunction: AVERAGE, InterpolationMode: LINEAR, SpatialScaleX: 1, SpatialScaleY: 1,
  InputPixelOffset: 0, OutputPixelOffset: 0, MinimumSamplesPerOutput: 1,
  MaximumSamplesPerOutput: 1, AlignRegionsToCorners: false"""


def test_0_times_an_infinite_gradient_may_be_nan_or_0(tmp_path: Path) -> None:
    """The sample is above the input; element 1 gets 0 * infinity: NaN or 0, as was measured."""
    case = single(tmp_path, "ROI_ALIGN_GRAD", REGION)
    for second in (np.nan, 0.0):
        assert accepts(case, "OutputGradientTensor", [np.inf, second, 0])
    assert not accepts(case, "OutputGradientTensor", [np.inf, 0, 1])


def test_any_gradient_is_right_if_the_offset_of_a_region_is_nan(tmp_path: Path) -> None:
    text = REGION.replace("[.inf]", "[1]").replace("InputPixelOffset: 0", "InputPixelOffset: .nan")
    case = single(tmp_path, "ROI_ALIGN_GRAD", text)
    assert accepts(case, "OutputGradientTensor", [0, 5, 1])


def test_a_subnormal_intermediate_product_may_have_fewer_digits(tmp_path: Path) -> None:
    """1e-44 is 7 steps of 2^-149. Half of it, 3.5 steps, becomes 4; a Scale of 1e38 shows that."""
    tensors = {"Input": 0.5, "InputGradient": 1e-44, "Mean": 0, "Variance": 0.75, "Scale": 1e38}
    desc = ", ".join(f"{name}Tensor: {{{ONE}, values: [{v}]}}" for name, v in tensors.items())
    for name in ("", "Scale", "Bias"):
        desc += f", Output{name}GradientTensor: {{{ONE}}}"
    desc = f"{desc}, Epsilon: 0.25".replace("Sizes: [1]", "Sizes: [2]")
    desc = re.sub(r"values: \[(.*?)\]", r"values: [\1, \1]", desc)
    case = single(tmp_path, "BATCH_NORMALIZATION_TRAINING_GRAD", desc)
    (right, _) = evaluate(case)["OutputGradientTensor"].tolist()
    assert right < 0
    assert accepts(case, "OutputGradientTensor", [8 / 7 * right] * 2)
    assert not accepts(case, "OutputGradientTensor", [100 * right] * 2)


def test_a_subnormal_product_of_scales_may_have_fewer_digits(tmp_path: Path) -> None:
    matrix = "{Sizes: [1, 1], DataType: INT32, values: [1000000000]}"
    scale = "{Sizes: [1, 1], DataType: FLOAT32, values: [SCALE]}"
    desc = f"""ATensor: {matrix}, AScaleTensor: {scale.replace("SCALE", "1.0e-20")},
      BTensor: {matrix}, BScaleTensor: {scale.replace("SCALE", "1.0e-24")},
      OutputTensor: {{Sizes: [1, 1], DataType: FLOAT32}}"""
    case = single(tmp_path, "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", desc)
    assert accepts(case, "OutputTensor", [7 * 2.0**-149 * 1e18])
    assert accepts(case, "OutputTensor", [0])
    assert not accepts(case, "OutputTensor", [1e-24])


def test_a_steep_activation_magnifies_the_error_of_its_argument(tmp_path: Path) -> None:
    """CELU with Alpha -1 turns -87.5 into -exp(87.5); DirectML 1.15.4 is 0.0012% off."""
    tensors = {"Input": -1.125, "Mean": 0, "Variance": 0, "Scale": 110, "Bias": 0}
    desc = ", ".join(f"{name}Tensor: {{{ONE}, values: [{v}]}}" for name, v in tensors.items())
    desc += f", OutputTensor: {{{ONE}}}, Spatial: false, Epsilon: 2.0, "
    desc += "FusedActivation: {operator: ACTIVATION_CELU, Alpha: -1.0}"
    case = single(tmp_path, "BATCH_NORMALIZATION", desc)
    (right,) = evaluate(case)["OutputTensor"].tolist()
    assert accepts(case, "OutputTensor", [right * 1.000012])
    assert not accepts(case, "OutputTensor", [right * 1.01])


def test_the_greatest_sum_of_magnitudes_takes_the_ends_farther_from_zero(
    tmp_path: Path,
) -> None:
    # RESAMPLE1 turns [2, -1] into [-0.7, -1], and may give up to [2, -3.7]; [-2, 1] likewise.
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


def test_a_gradient_beyond_float16_may_be_stored_as_the_largest_number(tmp_path: Path) -> None:
    """The gradient of 45.25 * (0 - 9357) is beyond FLOAT16. Measured: -65504 in a graph."""
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
def test_a_negative_power_of_a_number_near_zero_may_be_infinite(
    tmp_path: Path, activation: str, exponent: int, infinities: Values
) -> None:
    """The cosine of 1.5707964 is 0 with an error of 0.0008; the base 0 gives 0 for any exponent."""
    nodes = POWER.replace("ACTIVATION", activation).replace("EXPONENT", str(exponent))
    case = graph(tmp_path, "\n  x: {Sizes: [2], DataType: FLOAT32, values: [1.5707964, 0]}", nodes)
    for value in (0, np.inf, -np.inf):
        assert accepts(case, "y", [value, 1]) == (value in [0, *infinities]), value
    assert not accepts(case, "y", [0, np.inf])


@pytest.mark.parametrize("negated", [False, True])
def test_a_power_that_may_be_infinite_may_also_be_finite_and_inexact(
    negated: bool, tmp_path: Path
) -> None:
    """DirectML 1.12.1 gives 1.3377088e22 for a FLOAT16 exponent, and infinity is right too."""
    inputs = f"\n  x: {{{ONE}, values: [-0.46211717]}}"
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
