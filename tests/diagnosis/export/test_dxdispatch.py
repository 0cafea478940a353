"""Models for DxDispatch dispatch the nodes of graphs in order, on the right resources.

The tested code is in `dmlconf/diagnosis/export/dxdispatch.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.cases.graph_case import GraphCase
from dmlconf.diagnosis.export.dxdispatch import write_model
from dmlconf.diagnosis.reduction.graph_passes import graph_part
from tests.diagnosis.export.graph_cases import graph_of
from tests.graphs.suites import graph_case


def model_of(folder: Path, case: GraphCase) -> Any:
    write_model(folder / "model.json", case)
    return json.loads((folder / "model.json").read_text())


def test_nodes_are_dispatched_after_those_that_feed_them(tmp_path: Path) -> None:
    case = graph_of("wiring/nodes-in-another-order")
    model = model_of(tmp_path, case)
    dispatches = [each for each in model["commands"] if each["type"] == "dispatch"]
    order = [each["dispatchable"] for each in dispatches]
    assert sorted(order) == sorted(node.name for node in case.graph.nodes)
    assert order != [node.name for node in case.graph.nodes]
    for edge in case.graph.intermediate_edges:
        assert order.index(edge.from_node) < order.index(edge.to_node)
    assert {each["dmlCompileType"] for each in model["dispatchables"].values()} == {"DmlCompileOp"}


@pytest.mark.parametrize(
    "beginning",
    ["wiring/top-k-values-only", "split-join/", "constants/constant-node", "attention/"],
)
def test_both_ends_of_an_edge_are_one_resource(tmp_path: Path, beginning: str) -> None:
    case = graph_of(beginning)
    model = model_of(tmp_path, case)
    bound = {
        each["dispatchable"]: {**each["bindings"]}
        for each in model["commands"]
        if each["type"] == "dispatch"
    }
    for name, entry in model["dispatchables"].items():
        bound[name] |= entry.get("bindings", {})

    def resource(node: str, tensor: str) -> Any:
        field, _, index = tensor.partition("[")
        value = bound[node][field]
        return value[int(index[:-1])] if index else value

    constants = {constant.name for constant in case.graph.constants}
    for link in case.graph.intermediate_edges:
        source = link.from_node
        if source not in constants:
            source = resource(link.from_node, link.from_tensor)
        assert resource(link.to_node, link.to_tensor) == source
    for edge in case.graph.input_edges:
        assert resource(edge.node, edge.tensor) == edge.graph_input
    for out in case.graph.output_edges:
        assert {"type": "print", "resource": resource(out.node, out.tensor)} in model["commands"]
    for node in case.graph.operator_nodes:
        for tensor in (*node.inputs, *node.outputs):
            assert resource(node.name, tensor) in model["resources"]


def test_owned_inputs_are_bound_at_initialization_only(tmp_path: Path) -> None:
    case = graph_of("constants/owned-input")
    model = model_of(tmp_path, case)
    for node in case.graph.operator_nodes:
        owned = {name for name, tensor in node.inputs.items() if tensor.Owned}
        at_initialization = model["dispatchables"][node.name].get("bindings", {})
        [dispatch] = [c for c in model["commands"] if c.get("dispatchable") == node.name]
        assert at_initialization.keys() == owned
        assert dispatch["bindings"].keys() == {*node.inputs, *node.outputs} - owned
    assert any("bindings" in entry for entry in model["dispatchables"].values())


def test_constants_are_resources_with_their_data(tmp_path: Path) -> None:
    case = graph_of("constants/constant-node")
    model = model_of(tmp_path, case)
    [constant] = case.graph.constants
    file = model["resources"][constant.name]["initialValues"]["sourcePath"]
    content = np.frombuffer((tmp_path / file).read_bytes(), constant.data.dtype)
    assert content[: constant.data.size].tolist() == constant.data.ravel().tolist()


def test_inputs_with_similar_names_have_separate_files(tmp_path: Path) -> None:
    nodes = """
nodes:
  sum: {operator: ELEMENT_WISE_ADD, desc: {ATensor: x, BTensor: x-, OutputTensor: {}}}
outputs: {y: sum}
"""
    tensor = "Sizes: [1, 1, 1, 2], DataType: FLOAT32"
    inputs = f"inputs: {{x: {{{tensor}, values: [1, 2]}}, x-: {{{tensor}, values: [3, 4]}}}}"
    model = model_of(tmp_path, graph_case(tmp_path, inputs + nodes))
    paths = [model["resources"][name]["initialValues"]["sourcePath"] for name in ("x", "x-")]
    contents = [np.frombuffer((tmp_path / path).read_bytes(), np.float32) for path in paths]
    assert [content.tolist() for content in contents] == [[1, 2], [3, 4]]


def test_a_graph_of_one_operator_is_compiled_as_a_graph(tmp_path: Path) -> None:
    case = graph_of("wiring/nodes-in-another-order")
    single = graph_part(case, [case.graph.operator_nodes[0].name])
    with_constant = graph_of("combinations/megabyte-and-owned-bias[Step=0]")
    assert len(with_constant.nodes) == 2
    for each in single, with_constant:
        [entry] = model_of(tmp_path, each)["dispatchables"].values()
        assert entry["dmlCompileType"] == "DmlCompileGraph"
