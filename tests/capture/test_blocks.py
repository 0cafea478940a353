"""A graph is split into blocks, which share no node and compute the values of the graph.

The tested code is in `dmlconf/capture/blocks.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.capture.blocks import blocks
from dmlconf.capture.case_files import with_data
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.cases.writing.desc_entry import attribute_entry, tensor_entry
from dmlconf.cases.writing.document_text import document_text
from dmlconf.cases.writing.graph_entry import graph_parts
from dmlconf.fuzzing.graphs import graph_case
from dmlconf.graphs.model import CONSTANT_TENSOR
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.graph_evaluation import evaluate_nodes

OPERATORS = ("ELEMENT_WISE_ADD", "ACTIVATION_RELU", "REDUCE", "SPLIT", "JOIN", "CONVOLUTION")


def parts_of(case: Case) -> dict[str, Any]:
    """Return a graph as the mappings of a case file."""
    constants = {each.name: each.data.ravel().tolist() for each in case.graph.constants}
    return graph_parts(case.graph, constants, tensor_entry, attribute_entry)


def loaded(path: Path, parts: Any) -> Case:
    entry = {"name": "block", **with_data(parts)}
    path.write_text(document_text({"graph": "a block", "cases": [entry]}), "utf-8")
    [planned] = load_suite([path]).plan()
    return valid_case(planned)


@pytest.mark.parametrize("number", range(3))
def test_blocks_compute_the_same_values_as_the_whole_graph(tmp_path: Path, number: int) -> None:
    whole = valid_case(graph_case(OPERATORS, seed=3, number=number, nodes=12))
    assert isinstance(whole, GraphCase)
    parts = parts_of(whole)
    values = evaluate_nodes(whole, evaluate)
    found = blocks(parts, most_nodes=3)
    assert sorted(name for each in found for name in each.nodes) == sorted(parts["nodes"])
    assert max(len(each.nodes) for each in found) <= 3
    for each in found:
        case = loaded(tmp_path / "block.yaml", each.parts)
        data = {}  # The whole graph has or computes each input of the block.
        for name, source in each.sources.items():
            node, _, tensor = source.partition(".")
            slot = node, tensor or CONSTANT_TENSOR
            known = values.outputs.get(slot)
            data[name] = whole.inputs()[source] if known is None else known
        computed = evaluate_nodes(case, evaluate, data)
        for slot, array in computed.outputs.items():
            np.testing.assert_array_equal(array, values.outputs[slot])


def test_tensors_that_other_blocks_read_are_outputs_of_a_block() -> None:
    whole = valid_case(graph_case(OPERATORS, seed=3, number=1, nodes=12))
    parts = parts_of(whole)
    found = blocks(parts, most_nodes=2)
    returned = {(each.nodes, source) for each in found for source in each.parts["outputs"].values()}
    sources = [source for each in found for source in each.sources.values()]
    computed = [each for each in sources if each.partition(".")[0] in parts["nodes"]]
    assert computed
    for source in computed:
        owner = source.partition(".")[0]
        assert any(owner in nodes and source == output for nodes, output in returned)


@pytest.mark.parametrize(
    ("read_outside", "outputs"), [("first", ["first", "second"]), ("second", ["second"])]
)
def test_only_tensors_read_outside_a_block_are_its_outputs(
    read_outside: str, outputs: list[str]
) -> None:
    tensor = {"Sizes": [2], "DataType": "FLOAT32"}

    def reading(operator: str, **inputs: str) -> dict[str, Any]:
        desc = {field: {"from": source, **tensor} for field, source in inputs.items()}
        return {"operator": operator, "desc": {**desc, "OutputTensor": tensor}}

    parts = {
        "inputs": {"x": tensor},
        "nodes": {
            "first": reading("ACTIVATION_RELU", InputTensor="x"),
            "second": reading("ACTIVATION_RELU", InputTensor="first"),
            "sum": reading("ELEMENT_WISE_ADD", ATensor=read_outside, BTensor="second"),
        },
        "outputs": {"y": "sum"},
    }
    block, _ = blocks(parts, most_nodes=2)
    assert block.nodes == ("first", "second")
    assert sorted(block.parts["outputs"].values()) == outputs


def test_node_named_like_an_output_is_a_separate_input(
    tmp_path: Path,
) -> None:
    # A block's input from `s.OutputTensors[0]` is called `s-OutputTensors-0`.
    whole, half = ({"Sizes": [size], "DataType": "FLOAT32"} for size in (4, 2))
    named_alike = "s-OutputTensors-0"
    split = {
        "InputTensor": {"from": "x", **whole},
        "OutputTensors": [half, half],
        "Axis": 0,
    }
    relu = {"InputTensor": {"from": "x", **whole}, "OutputTensor": whole}
    join = {
        "InputTensors": [{"from": "s.OutputTensors[0]", **half}, {"from": named_alike, **whole}],
        "OutputTensor": {"Sizes": [6], "DataType": "FLOAT32"},
        "Axis": 0,
    }
    parts = {
        "inputs": {"x": whole},
        "nodes": {
            "s": {"operator": "SPLIT", "desc": split},
            named_alike: {"operator": "ACTIVATION_RELU", "desc": relu},
            "j": {"operator": "JOIN", "desc": join},
        },
        "outputs": {"y": "j"},
    }
    last = next(each for each in blocks(parts, most_nodes=1) if each.nodes == ("j",))
    assert sorted(last.sources.values()) == [named_alike, "s.OutputTensors[0]"]
    case = loaded(tmp_path / "block.yaml", last.parts)
    assert sorted(len(array) for array in case.inputs().values()) == [2, 4]


def test_block_with_an_input_named_output_1_is_loaded(
    tmp_path: Path,
) -> None:
    # The block would give this name to its output.
    tensor = {"Sizes": [2], "DataType": "FLOAT32"}
    desc = {"InputTensor": {"from": "output-1", **tensor}, "OutputTensor": tensor}
    parts = {
        "inputs": {"output-1": tensor},
        "nodes": {"relu": {"operator": "ACTIVATION_RELU", "desc": desc}},
        "outputs": {"y": "relu"},
    }
    [block] = blocks(parts, most_nodes=2)
    assert list(block.parts["outputs"].values()) == ["relu"]
    assert loaded(tmp_path / "block.yaml", block.parts).input_names() == ("output-1",)
