"""A `relation` names another form of a graph, such as cut in two, that gives equal outputs.

The tested code is in `dmlconf/graphs/relations.py`, `dmlconf/judging/relations.py` and
`dmlconf/cases/building/graph_build.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.cases.graph_case import GraphCase
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.graphs.relations import (
    Relation,
    exported,
    halves,
    lacking,
    owned_otherwise,
    part,
    reversed_nodes,
)
from dmlconf.graphs.wiring import graph_problems
from dmlconf.judging.needs_run import answered
from dmlconf.judging.relations import in_other_form
from dmlconf.reference.evaluation import evaluate
from tests.graphs.suites import TWO_NODES, graph_case

BRANCHES = """
inputs:
  x: {Sizes: [1, 1, 2, 3], DataType: FLOAT32, values: [1, -2, 3, 4, 5, -6]}
  w: {Sizes: [1, 1, 2, 3], DataType: FLOAT32, Flags: OWNED_BY_DML, values: [2, 3, 2, 3, 2, 3]}
constants:
  c: {Sizes: [1, 1, 2, 3], DataType: FLOAT32, values: [1, 1, 1, 0, 0, 0]}
nodes:
  product: {operator: ELEMENT_WISE_MULTIPLY, desc: {ATensor: x, BTensor: w, OutputTensor: {}}}
  sum: {operator: ELEMENT_WISE_ADD, desc: {ATensor: product, BTensor: c, OutputTensor: {}}}
  split:
    operator: SPLIT
    desc: {InputTensor: sum, OutputTensors: [{Sizes: [1, 1, 1, 3]}, {Sizes: [1, 1, 1, 3]}], Axis: 2}
  join:
    operator: JOIN
    desc: {InputTensors: ["split.OutputTensors[1]", "split.OutputTensors[0]"],
           OutputTensor: {Sizes: [1, 1, 2, 3]}, Axis: 2}
outputs: {y: join, product_too: product}
"""
"""A graph with an owned input, a constant, a node of two outputs, and two outputs."""


@pytest.fixture
def branches(tmp_path: Path) -> GraphCase:
    return graph_case(tmp_path, BRANCHES)


@pytest.mark.parametrize("relation", Relation)
def test_each_form_gives_the_outputs_of_the_graph(branches: GraphCase, relation: Relation) -> None:
    assert lacking(branches.graph, relation) is None
    outputs = answered(in_other_form(branches, relation), run_case)
    assert isinstance(outputs, dict)
    for name, array in evaluate(branches).items():
        np.testing.assert_array_equal(outputs[name], array)


def test_forms_of_a_graph_are_valid_graphs(branches: GraphCase) -> None:
    graph = branches.graph
    pieces = [part(graph, names).graph for names in halves(graph)]
    for other in (exported(graph), reversed_nodes(graph), owned_otherwise(graph), *pieces):
        assert graph_problems(other) == ()


def test_exported_form_has_all_intermediates_as_outputs(branches: GraphCase) -> None:
    outputs = list(exported(branches.graph).outputs)
    assert outputs[:2] == ["y", "product_too"]
    assert set(outputs[2:]) == {
        "sum.OutputTensor",
        "split.OutputTensors[0]",
        "split.OutputTensors[1]",
    }


def test_form_order_reverses_nodes_and_edges(
    branches: GraphCase,
) -> None:
    graph, other = branches.graph, reversed_nodes(branches.graph)
    for name in ("nodes", "input_edges", "intermediate_edges", "output_edges"):
        listed = getattr(graph, name)
        assert len(listed) > 1
        assert getattr(other, name) == tuple(reversed(listed)), name


def test_form_cut_has_two_operators_in_each_half(branches: GraphCase) -> None:
    assert halves(branches.graph) == (("product", "sum"), ("split", "join"))


def test_form_owned_turns_constants_into_owned_inputs(
    branches: GraphCase,
) -> None:
    other = owned_otherwise(branches.graph)
    assert not other.constants
    assert other.inputs["w"].Flags == ()
    assert other.inputs["c"].Flags == ("OWNED_BY_DML",)
    product, total = other.operator_nodes[:2]
    assert product.desc["BTensor"].Flags == ()
    assert total.desc["BTensor"].Flags == ("OWNED_BY_DML",)


CONSTANT_OUTPUT = """
inputs:
  x: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
constants:
  c: {Sizes: [2], DataType: FLOAT32, values: [3, 4]}
  d: {Sizes: [2], DataType: FLOAT32, values: [5, 6]}
nodes:
  sum: {operator: ELEMENT_WISE_ADD, desc: {ATensor: x, BTensor: c, OutputTensor: {}}}
  product: {operator: ELEMENT_WISE_MULTIPLY, desc: {ATensor: sum, BTensor: d, OutputTensor: {}}}
outputs: {y: product, held: c}
"""


@pytest.mark.parametrize("relation", Relation)
def test_each_form_keeps_a_constant_output(tmp_path: Path, relation: Relation) -> None:
    graph = graph_case(tmp_path, CONSTANT_OUTPUT)
    outputs = answered(in_other_form(graph, relation), run_case)
    assert isinstance(outputs, dict)
    assert {name: array.tolist() for name, array in outputs.items()} == {
        "y": [20, 36],
        "held": [3, 4],
    }


def test_constant_output_does_not_become_an_input(tmp_path: Path) -> None:
    other = owned_otherwise(graph_case(tmp_path, CONSTANT_OUTPUT).graph)
    assert [node.name for node in other.constants] == ["c"]
    assert other.inputs.keys() == {"x", "d"}
    assert graph_problems(other) == ()


def test_unknown_or_inapplicable_relation_is_refused(
    tmp_path: Path,
) -> None:
    for relation, message in (
        ("owned", "it has no constant and no owned input"),
        ("fused", "'fused' is not a relation"),
    ):
        with pytest.raises(InvalidFilesError, match=message):
            graph_case(tmp_path, TWO_NODES + f"relation: {relation}\n")


@pytest.mark.parametrize("relation", ["unfusd", "=Relation"])
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ELEMENT_WISE_ADD", "ELEMENT_WISE_AD", "no operator ELEMENT_WISE_AD"),
        ("ATensor: x", "ATensor: z", "no node, graph input or constant z"),
        ("InputTensor: double", "Input: double", "unknown field `Input`"),
        ("FLOAT32", "FLOAT33", "FLOAT33"),
    ],
)
def test_unknown_relation_is_reported_beside_other_problems(
    tmp_path: Path, relation: str, old: str, new: str, message: str
) -> None:
    wrong = TWO_NODES.replace(old, new)
    matrix = "matrix: {Relation: [unfusd]}\n" if relation == "=Relation" else ""
    with pytest.raises(InvalidFilesError) as refusal:
        graph_case(tmp_path, f"{wrong}{matrix}relation: {relation}\n")
    messages = [problem.message for problem in refusal.value.problems]
    assert any(message in text for text in messages)
    # With an unknown field, no case of the matrix is made, and no relation is computed.
    no_case_is_made = relation == "=Relation" and "field" in message
    if not no_case_is_made:
        assert "'unfusd' is not a relation" in messages
