"""The reference evaluates a graph node by node, and rounds each edge to its data type.

The tested code is in `dmlconf/reference/graph_evaluation.py` and
`dmlconf/backends/numpy/backend.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Outputs
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.graphs.model import Node
from dmlconf.judging.judge import judge
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.graph_evaluation import evaluate_nodes, seen_through
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.verdicts.verdict import Status
from tests.graphs.suites import PRODUCT, TWO_NODES, graph_case


def test_a_graph_is_evaluated_node_by_node(tmp_path: Path) -> None:
    case = graph_case(tmp_path, TWO_NODES)
    np.testing.assert_array_equal(evaluate(case)["y"].ravel(), [2, 0, 6])


def test_each_edge_is_rounded_to_its_data_type(tmp_path: Path) -> None:
    """FLOAT16 holds 512.5 but not 2048.5."""
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
    np.testing.assert_array_equal(evaluate(case)["y"].ravel(), [0, 0.5])


def test_a_consumer_reads_the_buffer_through_its_own_strides() -> None:
    producer = TensorDesc(DataType.FLOAT32, (2, 3))
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    transposed = TensorDesc(DataType.FLOAT32, (3, 2), (1, 3))
    np.testing.assert_array_equal(seen_through(array, producer, transposed), array.T)
    repeated = TensorDesc(DataType.FLOAT32, (2, 3, 2), (3, 1, 0))
    assert seen_through(array, producer, repeated)[1, 2].tolist() == [5, 5]
    flat = TensorDesc(DataType.FLOAT32, (6,))
    stored = TensorDesc(DataType.FLOAT32, (2, 3), (1, 2))
    assert seen_through(array, stored, flat).tolist() == [0, 3, 1, 4, 2, 5]


def test_the_backend_numpy_runs_a_graph(tmp_path: Path) -> None:
    outcome = run_case(graph_case(tmp_path, TWO_NODES))
    assert isinstance(outcome, Outputs)
    np.testing.assert_array_equal(outcome.arrays["y"].ravel(), [2, 0, 6])


def test_edge_of_other_sizes_than_its_input_is_refused(
    tmp_path: Path,
) -> None:
    outputs = run_case(graph_case(tmp_path, TWO_NODES))
    wrong = TWO_NODES.replace("BTensor: x", "BTensor: {from: x, Sizes: [1, 1, 1, 4]}")
    wrong += "expect: {rejected: E_INVALIDARG, constraint: edge-size}\n"
    rejected = graph_case(tmp_path, wrong)
    assert judge(rejected, run_case(rejected), lambda case: None).status is Status.PASSED
    assert judge(rejected, outputs, lambda case: None).status is Status.FAILED


def test_only_nodes_whose_inputs_change_are_evaluated_again(tmp_path: Path) -> None:
    case = graph_case(tmp_path, PRODUCT)
    earlier = evaluate_nodes(case, evaluate)

    def add_1_to_sum(node: Node, own: object, tensor: str, values: Array) -> Array:
        return values + 1 if node.name == "sum" else values

    from_scratch = evaluate_nodes(case, evaluate, store=add_1_to_sum)
    again = evaluate_nodes(case, evaluate, store=add_1_to_sum, earlier=earlier)
    # `scaled` reads `sum`, `weights` reads `scaled`, and `product` reads neither.
    evaluated = {name for name, node in again.cases.items() if node is not earlier.cases[name]}
    assert evaluated == {"scaled", "weights"}
    for slot, values in from_scratch.outputs.items():
        np.testing.assert_array_equal(again.outputs[slot], values)
