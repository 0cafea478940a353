"""Cases of single nodes of a graph."""

from __future__ import annotations

from collections.abc import Mapping

from dmlconf.cases.graph_case import node_case
from dmlconf.cases.model import Case, Fill
from dmlconf.graphs.model import Node, Slot
from dmlconf.reference.graph_evaluation import seen_through
from dmlconf.tensors.datatypes import Array

__all__ = ["data_of_constants", "node_alone"]


def data_of_constants(case: Case) -> dict[Slot, Array]:
    """Return the data of a graph's constants, by output."""
    return {(node.name, name): node.data for node in case.graph.constants for name in node.outputs}


def node_alone(case: Case, node: Node, computed: Mapping[Slot, Array]) -> Case:
    """Return a node of a graph as a case of its own, given what the earlier nodes gave.

    Args:
        computed: the outputs of the nodes that it reads.
    """
    graph, inputs = case.graph, case.inputs()
    sources, nodes = graph.sources(), graph.by_name
    constants = data_of_constants(case)
    data: dict[str, Array | Fill] = {}
    for name, tensor in node.inputs.items():
        source = sources[node.name, name]
        if isinstance(source, str):
            data[name] = seen_through(inputs[source], graph.inputs[source], tensor)
        else:
            values = constants[source] if source in constants else computed[source]
            producer = nodes[source[0]].outputs[source[1]]
            data[name] = seen_through(values, producer, tensor)
    return node_case(case, node, data)
