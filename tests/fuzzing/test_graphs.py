"""Generated graphs are valid and differ, and a seed gives the same ones on every machine.

The tested code is in `dmlconf/fuzzing/graphs.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

import numpy as np
import pytest

from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import valid_case
from dmlconf.fuzzing.graphs import graph_case

OPERATORS = (
    "ACTIVATION_RELU",
    "CONVOLUTION",
    "ELEMENT_WISE_ADD",
    "GEMM",
    "REDUCE",
    "SPLIT",
    "CAST",
)


def graphs(count: int, nodes: int = 5, operators: Sequence[str] = OPERATORS) -> list[GraphCase]:
    """Return the first random graphs of seed 1, of at most this many nodes each."""
    cases = [valid_case(graph_case(operators, 1, number, nodes)) for number in range(count)]
    return [case for case in cases if isinstance(case, GraphCase)]


@pytest.mark.slow
def test_graphs_are_valid_different_and_mostly_connected() -> None:
    actual = graphs(30)
    assert len(actual) == 30
    assert not any(case.violations() for case in actual)
    fed = [case for case in actual if case.graph.intermediate_edges]
    assert len(fed) >= 27
    assert len({repr(case.graph) for case in actual}) == 30


@pytest.mark.slow
def test_graphs_have_at_most_the_given_number_of_nodes() -> None:
    counts = Counter(len(case.graph.nodes) for case in graphs(30, 7))
    assert max(counts) == 7
    assert len(counts) >= 4
    assert {len(case.graph.nodes) for case in graphs(5, 1)} == {1}


@pytest.mark.slow
def test_some_intermediates_are_read_twice_or_are_outputs() -> None:
    actual = graphs(60)
    feeders = [Counter(edge.from_node for edge in case.graph.intermediate_edges) for case in actual]
    assert any(count > 1 for each in feeders for count in each.values())
    assert any(
        {edge.from_node for edge in case.graph.intermediate_edges}
        & {edge.node for edge in case.graph.output_edges}
        for case in actual
    )


def test_seed_and_number_determine_a_graph() -> None:
    entries = [graph_case(OPERATORS, 7, number, 5).template.data for number in range(4)]
    assert sha256(json.dumps(entries).encode()).hexdigest()[:16] == "0c3aae6573b68b7c"


def test_max_unpooling_behind_a_node_has_different_indices() -> None:
    """Equal indices would leave the output undefined."""
    fed = 0
    for case in graphs(60, 3, ("ACTIVATION_RELU", "MAX_UNPOOLING")):
        inputs = case.inputs()
        sources = case.graph.sources()
        for node in case.graph.operator_nodes:
            source = sources[node.name, next(iter(node.inputs))]
            if node.operator_name != "MAX_UNPOOLING" or isinstance(source, str):
                continue
            indices = sources[node.name, "IndicesTensor"]
            assert isinstance(indices, str)
            assert len(np.unique(inputs[indices])) == inputs[indices].size
            fed += 1
    assert fed >= 5
