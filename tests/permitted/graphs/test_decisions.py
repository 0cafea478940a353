"""A comparison of numbers that are equal within their errors may be true or false.

Such a comparison is in doubt. Element-wise nodes that read it give what follows from either
outcome. Elements of other nodes that read it, such as REDUCE, are open.

The tested code is in `dmlconf/permitted/graphs/decisions.py` and
`dmlconf/permitted/graphs/jumps.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.model import Case
from tests.permitted.graphs.accepted import accepts, graph

INPUTS = {
    "x": "[-0.00099486, 0.5, -0.00099486, 0.25]",
    "near": "[-0.000994861, 0.5, -0.000994861, 0.25]",
    "a": "[10, 20, 30, 40]",
    "b": "[100, 200, 300, 400]",
    "c": "[0.2, 0.1, 0.14, 0.3]",
}
"""Elements 0 and 2 of `x` and of `near` equal tanh(x) within its error; 1 and 3 do not."""


EQUALS = """
  tanh: {operator: ACTIVATION_TANH, desc: {InputTensor: x, OutputTensor: {}}}
  equals:
    operator: ELEMENT_WISE_LOGICAL_EQUALS
    desc: {ATensor: x, BTensor: tanh, OutputTensor: {Sizes: [2, 2], DataType: UINT8}}"""


CAST = """
  NAME:
    operator: CAST
    desc: {InputTensor: SOURCE, OutputTensor: {Sizes: [2, 2], DataType: FLOAT32}}"""


def after_equals(tmp_path: Path, nodes: str, *inputs: str, output: str = "node") -> Case:
    """Return a graph of x == tanh(x) and further nodes, which read these inputs."""
    given = "".join(
        f"\n  {name}: {{Sizes: [2, 2], DataType: FLOAT32, values: {INPUTS[name]}}}"
        for name in ("x", *inputs)
    )
    return graph(tmp_path, given, EQUALS + nodes, output)


def cast(name: str, source: str = "equals") -> str:
    return CAST.replace("NAME", name).replace("SOURCE", source)


@pytest.mark.parametrize("later", ["", "exp"])
def test_a_comparison_in_doubt_is_cast_to_0_or_1(tmp_path: Path, later: str) -> None:
    nodes = cast("number" if later else "node")
    true, false = 1.0, 0.0
    if later:
        nodes += """
  node: {operator: ELEMENT_WISE_EXP, desc: {InputTensor: number, OutputTensor: {}}}"""
        true, false = 2.7182817, 1.0
    case = after_equals(tmp_path, nodes)
    for first in (true, false):
        for third in (true, false):
            assert accepts(case, "y", [first, false, third, false])
    for wrong in (0.5, 1.5, 2, -1):
        assert not accepts(case, "y", [wrong, false, true, false]), wrong
    assert not accepts(case, "y", [true, true, true, false])


IF = """
  node:
    operator: ELEMENT_WISE_IF
    desc: {ConditionTensor: equals, ATensor: CHOSEN, BTensor: b, OutputTensor: {}}"""


def test_an_if_gives_one_of_its_two_elements(tmp_path: Path) -> None:
    case = after_equals(tmp_path, IF.replace("CHOSEN", "a"), "a", "b")
    assert accepts(case, "y", [10, 200, 300, 400])
    assert accepts(case, "y", [100, 200, 30, 400])
    for wrong in (55, 0, 100.01, -100):
        assert not accepts(case, "y", [wrong, 200, 300, 400]), wrong
    assert not accepts(case, "y", [10, 20, 300, 400])


TENSOR = "{Sizes: [2, 2], DataType: FLOAT32}"


CHOICE_OF_A_OR_B = f"""
  pick:
    operator: ELEMENT_WISE_IF
    desc: {{ConditionTensor: equals, ATensor: a, BTensor: b, OutputTensor: {TENSOR}}}"""


def test_a_sum_with_an_if_adds_one_of_two_elements(tmp_path: Path) -> None:
    node = "{operator: ELEMENT_WISE_ADD, desc: {ATensor: pick, BTensor: a, OutputTensor: {}}}"
    case = after_equals(tmp_path, f"{CHOICE_OF_A_OR_B}\n  node: {node}", "a", "b")
    assert accepts(case, "y", [20, 220, 330, 440])
    assert accepts(case, "y", [110, 220, 330, 440])
    for wrong in (50, float("nan"), float("inf")):
        assert not accepts(case, "y", [wrong, 220, 330, 440]), wrong


JOIN = """{operator: JOIN, desc: {InputTensors: [pick, a], Axis: 0,
    OutputTensor: {Sizes: [4, 2], DataType: FLOAT32}}}"""


SPLIT = f"{{operator: SPLIT, desc: {{InputTensor: pick, Axis: 0, OutputTensors: [{TENSOR}]}}}}"


@pytest.mark.parametrize("node", [JOIN, SPLIT], ids=["join", "split"])
def test_join_and_split_of_an_if_are_open_in_doubt(tmp_path: Path, node: str) -> None:
    output = "node" if node is JOIN else '"node.OutputTensors[0]"'
    case = after_equals(tmp_path, f"{CHOICE_OF_A_OR_B}\n  node: {node}", "a", "b", output=output)
    joined = [10, 20, 30, 40] if node is JOIN else []
    for first in (10, 100, 77):
        assert accepts(case, "y", [first, 200, 300, 400, *joined]), first
    assert not accepts(case, "y", [10, 20, 300, 400, *joined])


def test_an_if_gives_elements_with_their_own_errors(tmp_path: Path) -> None:
    """cos(0.2) is 0.98007, and may be off by 0.0008."""
    nodes = (
        IF.replace("CHOSEN", "cosine")
        + """
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: c, OutputTensor: {}}}"""
    )
    case = after_equals(tmp_path, nodes, "b", "c")
    for first in (0.98007, 0.9805, 100):
        assert accepts(case, "y", [first, 200, 300, 400]), first
    for wrong in (0.97, 0.985, 50, 100.01):
        assert not accepts(case, "y", [wrong, 200, 300, 400]), wrong


TWO_COMPARISONS = """
  other:
    operator: ELEMENT_WISE_LOGICAL_EQUALS
    desc: {ATensor: near, BTensor: tanh, OutputTensor: {Sizes: [2, 2], DataType: UINT8}}
  both:
    operator: ELEMENT_WISE_LOGICAL_OPERATOR
    desc: {ATensor: equals, BTensor: other, OutputTensor: {Sizes: [2, 2], DataType: UINT8}}"""


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["AND", "XOR"])
def test_and_and_xor_in_doubt_may_be_0_or_1(tmp_path: Path, operator: str) -> None:
    nodes = TWO_COMPARISONS.replace("OPERATOR", operator) + cast("node", "both")
    case = after_equals(tmp_path, nodes, "near")
    for first in (0, 1):
        assert accepts(case, "y", [first, 0, 1, 0])
    assert not accepts(case, "y", [0.5, 0, 1, 0])
    assert not accepts(case, "y", [1, 1, 1, 0])


def test_only_a_sum_of_comparisons_in_doubt_is_open(
    tmp_path: Path,
) -> None:
    nodes = (
        cast("number")
        + """
  node:
    operator: REDUCE
    desc: {InputTensor: number, Axes: [0], Function: SUM,
           OutputTensor: {Sizes: [1, 2], DataType: FLOAT32}}"""
    )
    of_columns = after_equals(tmp_path, nodes)
    for open_sum in (0, 1, 2, 7):
        assert accepts(of_columns, "y", [open_sum, 0])
    assert not accepts(of_columns, "y", [0, 1])


def test_a_sum_with_a_transpose_is_open_in_doubt(
    tmp_path: Path,
) -> None:
    """Elements 1 and 2 add an outcome in doubt to one that is not."""
    nodes = (
        cast("number")
        + """
  node:
    operator: ELEMENT_WISE_ADD
    desc: {ATensor: {from: number, Strides: [1, 2]}, BTensor: number, OutputTensor: {}}"""
    )
    case = after_equals(tmp_path, nodes)
    for second, third in ((0, 1), (1, 0), (1, 1), (7, 1)):
        assert accepts(case, "y", [0, second, third, 0])
    assert not accepts(case, "y", [0, 1, 1, 5])


COPY_EQUALS = """
  tanh: {operator: ACTIVATION_TANH, desc: {InputTensor: x, OutputTensor: {}}}
  copy: {operator: ELEMENT_WISE_IDENTITY, desc: {InputTensor: SOURCE, OutputTensor: {}}}
  node:
    operator: ELEMENT_WISE_LOGICAL_EQUALS
    desc: {ATensor: copy, BTensor: tanh, OutputTensor: {Sizes: [2], DataType: UINT8}}
"""


def test_numbers_equal_within_their_errors_may_be_called_equal(tmp_path: Path) -> None:
    """DirectML 1.13.1 gives 1 for -0.00099486 == tanh(-0.00099486)."""
    inputs = "\n  x: {Sizes: [2], DataType: FLOAT32, values: [-0.00099486, 0.5]}"
    case = graph(tmp_path, inputs, COPY_EQUALS.replace("SOURCE", "x"), "node")
    assert accepts(case, "y", [0, 0])
    assert accepts(case, "y", [1, 0])
    assert not accepts(case, "y", [2, 0])
    assert not accepts(case, "y", [0, 1])


def test_a_copy_of_an_inexact_number_equals_it(tmp_path: Path) -> None:
    inputs = "\n  x: {Sizes: [2], DataType: FLOAT32, values: [-0.00099486, 0.5]}"
    case = graph(tmp_path, inputs, COPY_EQUALS.replace("SOURCE", "tanh"), "node")
    assert accepts(case, "y", [1, 1])
    assert not accepts(case, "y", [1, 0])


def test_a_sum_of_two_outcomes_may_equal_one(tmp_path: Path) -> None:
    """One comparison of the first column may be true, and the other false."""
    column = "{Sizes: [1, 2], DataType: FLOAT32}"
    nodes = f"""{cast("number")}
  sum:
    operator: REDUCE
    desc: {{InputTensor: number, Axes: [0], Function: SUM, OutputTensor: {column}}}
  node:
    operator: ELEMENT_WISE_LOGICAL_EQUALS
    desc: {{ATensor: sum, BTensor: one, OutputTensor: {{Sizes: [1, 2], DataType: UINT8}}}}"""
    given = f"""
  x: {{Sizes: [2, 2], DataType: FLOAT32, values: {INPUTS["x"]}}}
  one: {{Sizes: [1, 2], DataType: FLOAT32, values: [1, 1]}}"""
    case = graph(tmp_path, given, EQUALS + nodes)
    assert accepts(case, "y", [0, 0])
    assert accepts(case, "y", [1, 0])
    assert not accepts(case, "y", [0, 1])
    assert not accepts(case, "y", [2, 0])


def test_a_truth_value_in_doubt_is_0_or_1(tmp_path: Path) -> None:
    """Sums of random errors would permit 3 for a number that is 1 in half of the samples."""
    numbers = [5.1, 5.7, 6.2, 6.4]
    powers = [float(np.float32(np.exp(np.float32(each)))) for each in numbers]
    inputs = f"""
  x: {{Sizes: [4], DataType: FLOAT32, values: {numbers}}}
  d: {{Sizes: [4], DataType: FLOAT32, values: {powers}}}"""
    nodes = """
  power: {operator: ELEMENT_WISE_EXP, desc: {InputTensor: x, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL,
         desc: {ATensor: power, BTensor: d, OutputTensor: {DataType: UINT8}}}"""
    case = graph(tmp_path, inputs, nodes)
    for value in (0, 1):
        assert accepts(case, "y", [value] * 4), value
    for value in (2, 3, 255):
        assert not accepts(case, "y", [1, 1, 1, value]), value
