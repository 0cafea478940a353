"""A failing graph is reduced to few nodes and elements, and every graph that is tried is valid.

The tested code is in `dmlconf/diagnosis/reduction/reduce.py`,
`dmlconf/diagnosis/reduction/graph_changes.py`, `dmlconf/diagnosis/reduction/graph_passes.py`,
`dmlconf/diagnosis/reduction/data.py` and `dmlconf/cases/writing/export.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.facts import names_of
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.cases.writing.export import export_case
from dmlconf.diagnosis.reduction.cost import element_count
from dmlconf.diagnosis.reduction.graph_changes import changed_graph
from dmlconf.diagnosis.reduction.number_ref import NumberRef, with_number
from dmlconf.diagnosis.reduction.reduce import Reduced, reduce_case, with_own_data
from dmlconf.expressions import Expression
from dmlconf.graphs.wiring import graph_problems
from tests.diagnosis.export.graph_cases import graph_of
from tests.graphs.suites import graph_case

CONDITIONS = [
    ("wiring/buffers-of-many-sizes", "NodeCount > 3", 2),
    ("gemm-activation/", "NodeCount > 1", 8),
    ("convolution-activation/", "NodeCount > 1", 8),
    ("attention/", "'GEMM>ACTIVATION_SOFTMAX' in Neighbours or NodeCount > 2", 12),
    ("views/", "NodeCount > 1", 8),
    ("split-join/", "NodeCount > 1", 16),
    ("constants/owned-input", "OWNED_BY_DML in Flags and NodeCount > 1", 8),
    ("constants/constant-node", "ConstantCount > 0", 8),
    ("quantization/", "NodeCount > 1", 8),
]
"""Beginning of a graph's identifier, condition of its failure, most elements once reduced."""


def reduce_graph(beginning: str, condition: str, tried: list[Case]) -> Reduced:
    """Reduce a graph that fails if it meets a condition; add each candidate to `tried`."""
    expression = Expression(condition)
    case = graph_of(beginning)
    assert expression.evaluate(names_of(case)), beginning

    def fails(candidate: Case) -> bool:
        tried.append(candidate)
        return bool(expression.evaluate(names_of(candidate)))

    return reduce_case(case, fails)


@pytest.mark.parametrize(("beginning", "condition", "elements"), CONDITIONS)
def test_reduced_graph_is_small_and_candidates_are_valid(
    beginning: str, condition: str, elements: int
) -> None:
    tried: list[Case] = []
    result = reduce_graph(beginning, condition, tried)
    assert result.complete
    assert result.trials == len(tried) > 0
    assert Expression(condition).evaluate(names_of(result.case))
    assert element_count(result.case) <= elements < element_count(graph_of(beginning))
    for candidate in tried:
        assert isinstance(candidate, GraphCase)
        assert not graph_problems(candidate.graph)
        assert {name: array.shape for name, array in candidate.inputs().items()} == {
            name: tensor.Sizes for name, tensor in candidate.graph.inputs.items()
        }
        for constant in candidate.graph.constants:
            assert constant.data.shape == constant.tensor.Sizes


def test_exported_reduced_graph_loads_as_the_same_graph(tmp_path: Path) -> None:
    case = reduce_graph("gemm-activation/", "NodeCount > 1", []).case
    path = tmp_path / "reduced.yaml"
    export_case(path, case, None, case.inputs(), listed=64, note="Reduced.")
    [planned] = load_suite([path]).plan()
    loaded = valid_case(planned)
    assert isinstance(loaded, GraphCase)
    assert isinstance(case, GraphCase)
    assert loaded.graph.content() == case.graph.content()
    assert {n: a.tolist() for n, a in loaded.inputs().items()} == {
        n: a.tolist() for n, a in case.inputs().items()
    }


def test_a_reduced_graph_has_only_zeros_and_ones_as_data() -> None:
    case = reduce_graph("constants/constant-node", "ConstantCount > 0", []).case
    assert isinstance(case, GraphCase)
    arrays = [*case.inputs().values(), *(constant.data for constant in case.graph.constants)]
    assert set(np.concatenate([array.ravel() for array in arrays]).tolist()) <= {0.0, 1.0}


def test_new_size_spreads_along_edges() -> None:
    graph = graph_of("gemm-activation/").graph
    gemm = graph.by_name[graph.in_order()[0].name]
    [node] = [each for each in graph.operator_nodes if each.name == gemm.name]
    rank = node.inputs["ATensor"].DimensionCount
    ref = NumberRef("ATensor", None, rank - 2)
    desc = with_number(node.desc, ref, 1)
    smaller = changed_graph(graph, {node.name: desc}, {node.name: frozenset({ref})})
    assert smaller is not None
    assert not graph_problems(smaller)
    assert [tensor.Sizes[-2] for tensor in smaller.outputs.values()] == [1]


def test_two_new_sizes_that_contradict_each_other_give_no_graph() -> None:
    graph = graph_of("gemm-activation/").graph
    [first, *_] = graph.operator_nodes
    rank = first.inputs["ATensor"].DimensionCount
    refs = NumberRef("ATensor", None, rank - 1), NumberRef("BTensor", None, rank - 2)
    desc = with_number(with_number(first.desc, refs[0], 1), refs[1], 2)
    assert changed_graph(graph, {first.name: desc}, {first.name: frozenset(refs)}) is None


@pytest.mark.parametrize("indices_of_x", ["-1, -1", "1, -2"])
def test_indices_of_candidates_are_within_their_axis(tmp_path: Path, indices_of_x: str) -> None:
    """An axis of one element has the index -1, but neither 1 nor -2."""
    graph = """
inputs:
  x: {Sizes: [1, 1, 2, 3], DataType: FLOAT32, values: [1, -2, 3, 4, 5, 6]}
  at: {Sizes: [1, 1, 1, 2], DataType: INT32, values: [INDICES]}
nodes:
  gather:
    operator: GATHER
    desc: {InputTensor: x, IndicesTensor: at, OutputTensor: {Sizes: [1, 1, 2, 3]}, Axis: 2,
           IndexDimensions: 1}
  relu: {operator: ACTIVATION_RELU, desc: {InputTensor: gather, OutputTensor: {}}}
outputs: {y: relu}
"""
    tried: list[Case] = []

    def fails(candidate: Case) -> bool:
        tried.append(candidate)
        return "at" in candidate.data and bool(np.any(candidate.input("at")))

    case = with_own_data(graph_case(tmp_path, graph.replace("INDICES", indices_of_x)))
    assert reduce_case(case, fails).complete
    indices = [(each.graph, each.input("at")) for each in tried if "at" in each.data]
    assert len(indices) > 5
    sizes = set()
    for candidate, at in indices:
        [gather] = [node for node in candidate.operator_nodes if node.operator_name == "GATHER"]
        size = gather.inputs["InputTensor"].Sizes[gather.desc["Axis"]]
        assert np.all((at >= -size) & (at < size))
        sizes.add(size)
    assert sizes >= {1, 2}
