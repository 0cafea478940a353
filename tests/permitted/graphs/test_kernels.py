"""Graphs pass with the outputs of fused and truncating kernels, and fail with those of wrong ones.

The tested code is in `dmlconf/permitted/graphs/allowance.py`,
`dmlconf/permitted/graphs/samples.py`, `dmlconf/permitted/graphs/float32_edges.py` and
`dmlconf/permitted/windows/pooling.py` (powers that overflow).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.model import Case
from dmlconf.cases.variation import varied
from dmlconf.graphs.model import IntermediateEdge, Node
from dmlconf.judging.judge import judge
from dmlconf.permitted.graphs.float32_edges import with_float32_edges
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.graph_evaluation import evaluate_nodes, graph_outputs
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import Status
from tests.bundled import bundled
from tests.graphs.suites import PRODUCT, TWO_NODES, graph_case
from tests.permitted.graphs.accepted import status_of
from tests.truncation import toward_zero


def passes(case: GraphCase, outputs: Mapping[str, Array]) -> bool:
    return status_of(case, outputs) is Status.PASSED


def test_a_fused_kernel_may_hold_an_edge_in_float32(tmp_path: Path) -> None:
    """FLOAT16 lacks 2048.5, so the reference gives 0 and 0.5."""
    text = """
inputs:
  x: {Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [2048, 512]}
  half: {Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [0.5, 0.5]}
nodes:
  sum: {operator: ELEMENT_WISE_ADD, desc: {ATensor: x, BTensor: half, OutputTensor: {}}}
  rest: {operator: ELEMENT_WISE_SUBTRACT, desc: {ATensor: sum, BTensor: x, OutputTensor: {}}}
outputs: {y: rest}
"""
    case = graph_case(tmp_path, text)
    fused = np.array([0.5, 0.5], np.float16).reshape(1, 1, 1, 2)
    assert passes(case, {"y": fused})
    assert not passes(case, {"y": fused * 4})


def test_a_graph_of_exact_nodes_is_exact(tmp_path: Path) -> None:
    case = graph_case(tmp_path, TWO_NODES)
    right = evaluate(case)["y"]
    assert passes(case, {"y": right})
    assert not passes(case, {"y": np.nextafter(right, np.float32(9))})


def test_outputs_of_fused_and_of_truncating_kernels_pass(
    tmp_path: Path,
) -> None:
    case = graph_case(tmp_path, PRODUCT)
    fused = graph_outputs(case.graph, evaluate_nodes(with_float32_edges(case), evaluate).outputs)
    assert passes(case, {"y": fused["y"].astype(np.float16)})

    def next_to_zero(node: object, own: object, tensor: str, values: Array) -> Array:
        return np.nextafter(values, np.float16(0))

    truncated = graph_outputs(
        case.graph, evaluate_nodes(case, evaluate, store=next_to_zero).outputs
    )
    assert passes(case, truncated)


@pytest.mark.parametrize(("node", "tensor"), [("sum", "BTensor"), ("scaled", "BTensor")])
def test_an_edge_that_reads_another_buffer_fails(tmp_path: Path, node: str, tensor: str) -> None:
    case = graph_case(tmp_path, PRODUCT)
    graph = case.graph
    edges = tuple(
        replace(edge, graph_input="d" if edge.graph_input == "c" else "c")
        if (edge.node, edge.tensor) == (node, tensor)
        else edge
        for edge in graph.input_edges
    )
    wrong = replace(case, graph=replace(graph, input_edges=edges))
    assert not passes(case, evaluate(wrong))


def test_a_dropped_node_fails(tmp_path: Path) -> None:
    case = graph_case(tmp_path, PRODUCT)
    graph = case.graph
    # The node `scaled` reads `product` instead of `sum`.
    links = tuple(
        IntermediateEdge("product", "OutputTensor", "scaled", "ATensor")
        if edge.to_node == "scaled"
        else edge
        for edge in graph.intermediate_edges
    )
    wrong = replace(case, graph=replace(graph, intermediate_edges=links))
    assert not passes(case, evaluate(wrong))


def test_an_overflow_may_be_infinite_or_held_in_float32(
    tmp_path: Path,
) -> None:
    """2 * 60000 exceeds FLOAT16; a fused kernel holds it in FLOAT32."""
    text = """
inputs:
  x: {Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [60000, 2]}
  two: {Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [2, 2]}
  half: {Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [0.5, 0.5]}
nodes:
  double: {operator: ELEMENT_WISE_MULTIPLY, desc: {ATensor: x, BTensor: two, OutputTensor: {}}}
  back: {operator: ELEMENT_WISE_MULTIPLY, desc: {ATensor: double, BTensor: half, OutputTensor: {}}}
outputs: {y: back}
"""
    case = graph_case(tmp_path, text)
    for value, right in ((np.inf, True), (60000, True), (65504, False), (-np.inf, False)):
        outputs = {"y": np.array([value, 2], np.float16).reshape(1, 1, 1, 2)}
        assert passes(case, outputs) is right, value


def test_argmax_of_inexact_scores_gives_possible_maxima(tmp_path: Path) -> None:
    """Scores 0 and 4 are 1.5 and 1.5000001, which may be off by more than they differ."""
    text = """
inputs:
  a: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [0.1, 0.7]}
  b: {Sizes: [1, 1, 2, 5], DataType: FLOAT32, values: [8, 1, 1, 1, 8.000001, 1, 0, 0, 0, 1]}
nodes:
  scores:
    operator: GEMM
    desc: {ATensor: a, BTensor: b, OutputTensor: {Sizes: [1, 1, 1, 5]}, TransA: NONE,
           TransB: NONE, Alpha: 1, Beta: 0}
  best:
    operator: ARGMAX
    desc: {InputTensor: scores, OutputTensor: {Sizes: [1, 1, 1, 1], DataType: UINT32}, Axes: [3],
           AxisDirection: INCREASING}
outputs: {y: best}
"""
    case = graph_case(tmp_path, text)
    allowed = [
        index for index in range(5) if passes(case, {"y": np.full((1, 1, 1, 1), index, np.uint32)})
    ]
    assert allowed == [0, 4]


def test_outputs_that_are_shifted_by_one_element_fail(tmp_path: Path) -> None:
    case = graph_case(tmp_path, PRODUCT)

    def reference(asked: object) -> Outcome:
        return run_case(case)

    right = run_case(case)
    assert isinstance(right, Outputs)
    assert judge(case, right, reference).status is Status.PASSED
    rolled = {name: np.roll(array, 1, axis=-1) for name, array in right.arrays.items()}
    verdict = judge(case, replace(right, arrays=rolled), reference)
    assert verdict.status is Status.FAILED
    assert verdict.operator == "GRAPHS"


TWO_BRANCHES = """
inputs:
  x: {Sizes: [1, 1, 1, 30], DataType: FLOAT32, fill: {constant: {value: 4}}}
  z: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [4]}
  two: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [2]}
nodes:
  roots: {operator: ELEMENT_WISE_SQRT, desc: {InputTensor: x, OutputTensor: {}}}
  rest:
    operator: ELEMENT_WISE_SUBTRACT
    desc: {ATensor: roots, BTensor: {from: two, Sizes: [1, 1, 1, 30], Strides: [0, 0, 0, 0]},
           OutputTensor: {}}
  relu: {operator: ACTIVATION_RELU, desc: {InputTensor: rest, OutputTensor: {}}}
  sum:
    operator: REDUCE
    desc: {InputTensor: relu, OutputTensor: {Sizes: [1, 1, 1, 1]}, Function: SUM, Axes: [3]}
  root: {operator: ELEMENT_WISE_SQRT, desc: {InputTensor: z, OutputTensor: {}}}
  other: {operator: ELEMENT_WISE_SUBTRACT, desc: {ATensor: root, BTensor: two, OutputTensor: {}}}
  all: {operator: ELEMENT_WISE_SUBTRACT, desc: {ATensor: other, BTensor: sum, OutputTensor: {}}}
  end: {operator: ACTIVATION_RELU, desc: {InputTensor: all, OutputTensor: {}}}
outputs: {y: end}
"""


def test_errors_of_two_branches_are_independent(
    tmp_path: Path,
) -> None:
    """If `root` is 1 ULP above 2, and all of `roots` are 2, the output is 2**-22."""
    case = graph_case(tmp_path, TWO_BRANCHES)
    near = np.nextafter(np.float32(2), np.float32(3)) - np.float32(2)
    assert passes(case, {"y": near.reshape(1, 1, 1, 1)})
    assert not passes(case, {"y": 64 * near.reshape(1, 1, 1, 1)})


SUMS = """
inputs:
  x: {Sizes: [1, 1, 8, 11], DataType: FLOAT16, fill: {uniform: {low: -1, high: 1, seed: 1}}}
  b: {Sizes: [1, 1, 8, 11], DataType: FLOAT16, fill: {uniform: {low: -1, high: 1, seed: 2}}}
nodes:
  step:
    operator: ELEMENT_WISE_ADD
    repeat: 10
    desc: {ATensor: {chain: x}, BTensor: b, OutputTensor: {}}
outputs: {y: step}
"""


@pytest.mark.parametrize("stored", [(1,), (4, 7), (2, 3, 6, 8)])
def test_a_kernel_may_keep_float32_between_some_nodes_only(
    tmp_path: Path, stored: tuple[int, ...]
) -> None:
    case = graph_case(tmp_path, SUMS)

    def store(node: Node, own: object, tensor: str, values: Array) -> Array:
        rounds = node.name in {f"step[{index}]" for index in stored}
        return values.astype(np.float16).astype(values.dtype) if rounds else values

    sums = graph_outputs(
        case.graph, evaluate_nodes(with_float32_edges(case), evaluate, store=store).outputs
    )
    assert passes(case, {"y": sums["y"].astype(np.float16)})
    assert not passes(case, {"y": (sums["y"] + 0.25).astype(np.float16)})


@pytest.mark.slow
def test_a_kernel_may_truncate_all_that_it_stores() -> None:
    suite = bundled("graphs/attention.yaml")
    [planned] = [
        planned
        for planned in suite.plan()
        if planned.identifier == "graphs/attention/decoder-layer[DataType=FLOAT16,Step=0.25]"
    ]
    for variation in range(Case.most_variations):
        case = varied(build(planned), variation)
        assert isinstance(case, GraphCase)

        def truncate(node: Node, own: Case, tensor: str, values: Array) -> Array:
            return toward_zero(values.astype(np.float64)).astype(values.dtype)

        values = evaluate_nodes(with_float32_edges(case), evaluate, store=truncate).outputs
        outputs = {
            name: truncate(case.graph.operator_nodes[0], case, name, array).astype(np.float16)
            for name, array in graph_outputs(case.graph, values).items()
        }
        assert passes(case, outputs)


def test_rounding_an_edge_to_eight_significant_bits_fails(tmp_path: Path) -> None:
    """FLOAT16 has eleven significant bits."""
    text = """
inputs:
  x: {Sizes: [1, 1, 20, 9], DataType: FLOAT16, fill: {uniform: {low: -3, high: 3, seed: 1}}}
  b: {Sizes: [1, 1, 20, 9], DataType: FLOAT16, fill: {uniform: {low: -1, high: 1, seed: 2}}}
nodes:
  norm:
    operator: MEAN_VARIANCE_NORMALIZATION1
    desc: {InputTensor: x, OutputTensor: {}, Axes: [3], NormalizeVariance: true, Epsilon: 0.001}
  sum: {operator: ELEMENT_WISE_ADD, desc: {ATensor: norm, BTensor: b, OutputTensor: {}}}
outputs: {y: sum}
"""
    case = graph_case(tmp_path, text)

    def to_eight_bits(node: Node, own: object, tensor: str, values: Array) -> Array:
        if node.name != "norm":
            return values
        fraction, exponent = np.frexp(values.astype(np.float64))
        return np.ldexp(np.round(fraction * 2**8) / 2**8, exponent).astype(values.dtype)

    wrong = graph_outputs(case.graph, evaluate_nodes(case, evaluate, store=to_eight_bits).outputs)
    assert not passes(case, wrong)


OVERFLOWING_POWER = """
inputs:
  x: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [3.0e+38, 1]}
nodes:
  pooled:
    operator: LP_POOLING
    desc: {InputTensor: x, OutputTensor: {Sizes: [1, 1, 1, 2]}, Strides: [1, 1],
           WindowSize: [1, 1], StartPadding: [0, 0], EndPadding: [0, 0], P: 3}
outputs: {y: pooled}
"""


def test_a_power_that_overflows_gives_infinity_or_the_expected_value(
    tmp_path: Path,
) -> None:
    """The cube of 3e38 exceeds FLOAT32."""
    case = graph_case(tmp_path, OVERFLOWING_POWER)
    right = evaluate(case)["y"]
    assert passes(case, {"y": right})
    assert passes(case, {"y": np.where(right > 2, np.float32(np.inf), right)})
    assert not passes(case, {"y": np.where(right > 2, np.float32(1), right)})
