"""Formulas of wrong results of ONNX Runtime's OpenVINO provider for graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from dmlconf.cases.graph_case import with_graph
from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.graphs.model import Graph, Node, Slot
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array

__all__ = [
    "casts_left_out",
    "constants_combined_first",
    "data_of_unread_inputs",
    "products_merged_with_the_transposed",
]

_SIGNS: Final = {"ELEMENT_WISE_ADD": 1, "ELEMENT_WISE_SUBTRACT": -1}
_POWERS: Final = {"ELEMENT_WISE_MULTIPLY": 1, "ELEMENT_WISE_DIVIDE": -1}


def data_of_unread_inputs(case: Case) -> Computed | None:
    """Return the outputs of a graph if unread inputs shift the data of other inputs.

    If nodes read only B and C of the inputs A, B and C, then B gets the data of A, and C the data
    of B. Constants of the model do not count as inputs. None if an input gets too few bytes.
    """
    inputs, graph = case.inputs(), case.graph
    order = [name for name in inputs if not graph.inputs[name].Owned]
    read = {source for source in graph.sources().values() if isinstance(source, str)}
    changed = dict(inputs)
    for name, source in zip([name for name in order if name in read], order, strict=False):
        right, data = inputs[name], inputs[source].tobytes()
        if len(data) < right.nbytes:
            return None  # What comes behind the data in memory is unknown.
        changed[name] = np.frombuffer(data, right.dtype, right.size).reshape(right.shape)
    return Computed(evaluate(case, changed))


def constants_combined_first(case: Case) -> Computed | None:
    """Return the output of a graph of two operators if their second operands are combined first.

    If the second operands c and d are constants of the model, (x + c) - d becomes x + (c - d), and
    (x * c) / d becomes x * (c / d). None for integers, and if the graph has two outputs.
    """
    if len(case.graph.operator_nodes) != 2 or len(case.graph.outputs) != 1:
        return None
    first, second = case.graph.operator_nodes
    sources = case.graph.sources()
    if sources.get((second.name, "ATensor")) != (first.name, "OutputTensor"):
        return None
    constants = {each.name: each.data for each in case.graph.constants}
    inputs = case.inputs()

    def held(slot: Slot) -> Array | None:
        source = sources.get(slot)
        if isinstance(source, str):
            return inputs[source] if case.graph.inputs[source].Owned else None
        return constants.get(source[0]) if source else None

    source = sources.get((first.name, "ATensor"))
    x = inputs[source] if isinstance(source, str) else held((first.name, "ATensor"))
    c, d = held((first.name, "BTensor")), held((second.name, "BTensor"))
    if x is None or c is None or d is None or x.dtype.kind != "f":
        return None
    names = first.operator_name, second.operator_name
    with np.errstate(all="ignore"):
        if set(names) <= _POWERS.keys():
            result = x * (c ** _POWERS[names[0]] * d ** _POWERS[names[1]])
        elif set(names) <= _SIGNS.keys():
            result = x + (_SIGNS[names[0]] * c + _SIGNS[names[1]] * d)
        else:
            return None
    [(output, right)] = evaluate(case).items()
    return Computed({output: result.astype(right.dtype).reshape(right.shape)})


def casts_left_out(case: Case) -> Computed | None:
    """Return the outputs of a graph without casts to another type and back, such as to FLOAT16."""
    graph = case.graph
    sources, nodes = graph.sources(), graph.by_name
    changed: dict[str, Node] = {}
    for back in graph.operator_nodes:
        source = sources.get((back.name, "InputTensor"))
        there = nodes.get(source[0]) if isinstance(source, tuple) else None
        if not (isinstance(there, Node) and there.operator_name == back.operator_name == "CAST"):
            continue
        kept = there.desc["InputTensor"].DataType
        if kept is back.desc["OutputTensor"].DataType:
            changed[there.name] = _with_type(there, "OutputTensor", kept)
            changed[back.name] = _with_type(back, "InputTensor", kept)
    if not changed:
        return None
    wrong = with_graph(case, _with_nodes(graph, changed))
    return Computed(evaluate(wrong), around=wrong)


def _with_type(node: Node, tensor: str, data_type: Any) -> Node:
    desc = {**node.desc, tensor: replace(node.desc[tensor], DataType=data_type)}
    return replace(node, desc=desc)


def _with_nodes(graph: Graph, changed: dict[str, Node]) -> Graph:
    return replace(graph, nodes=tuple(changed.get(each.name, each) for each in graph.nodes))


def products_merged_with_the_transposed(case: Case) -> Computed | None:
    """Return the outputs of a graph if products with B and with B transposed are merged.

    If two GEMM have the same inputs, TransA, Alpha and Beta, both use the first one's TransB.
    """
    graph = case.graph
    sources = graph.sources()
    first: dict[tuple[object, ...], str] = {}
    changed: dict[str, Node] = {}
    for node in graph.operator_nodes:
        if node.operator_name != "GEMM":
            continue
        read = tuple(sources.get((node.name, name)) for name in ("ATensor", "BTensor", "CTensor"))
        others = tuple(str(node.desc[name]) for name in ("TransA", "Alpha", "Beta"))
        of_first = first.setdefault((*read, *others), node.desc["TransB"])
        if node.desc["TransB"] != of_first:
            changed[node.name] = replace(node, desc={**node.desc, "TransB": of_first})
    if not changed:
        return None
    wrong = with_graph(case, _with_nodes(graph, changed))
    return Computed(evaluate(wrong), around=wrong)
