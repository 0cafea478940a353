"""Remove nodes from a graph; what they computed becomes inputs of the others."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from dmlconf.cases.graph_case import GraphCase, with_graph
from dmlconf.cases.model import Case
from dmlconf.diagnosis.reduction.search import Search
from dmlconf.graphs.model import Graph, Node
from dmlconf.graphs.relations import part
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.graph_evaluation import evaluate_nodes

__all__ = ["graph_part", "reduce_nodes"]


def reduce_nodes(search: Search) -> None:
    """Remove parts of a graph, the largest first, then single nodes."""
    case = search.case
    if case.relation is not None or search.rejected:
        return
    size = len(case.graph.operator_nodes) // 2
    while size:
        names = [node.name for node in _nodes(search)]
        for start in range(0, len(names), size):
            left = [n for n in names if n not in names[start : start + size]]
            if left and search.attempt(graph_part(search.case, left)):
                break
        else:
            size //= 2


def _nodes(search: Search) -> list[Node]:
    return [node for node in search.case.graph.in_order() if isinstance(node, Node)]


def graph_part(case: Case, names: Collection[str]) -> GraphCase:
    """Return some nodes of a graph as a separate graph, with the data that reach them.

    Args:
        case: the graph, whose data are arrays.
        names: the operator nodes that stay.
    """
    cut = part(case.graph, names)
    values = evaluate_nodes(case, evaluate).outputs
    data = {
        _plain(name): values[cut.fed[name]] if name in cut.fed else case.data[name]
        for name in cut.graph.inputs
    }
    graph = _plainly_named(cut.graph)
    return with_graph(case, graph, data=data)


def _plain(name: str) -> str:
    """Return the name of a graph's input or output in a form valid in case files."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", name)


def _plainly_named(graph: Graph) -> Graph:
    return replace(
        graph,
        inputs={_plain(name): tensor for name, tensor in graph.inputs.items()},
        outputs={_plain(name): tensor for name, tensor in graph.outputs.items()},
        input_edges=tuple(
            replace(edge, graph_input=_plain(edge.graph_input)) for edge in graph.input_edges
        ),
        output_edges=tuple(
            replace(edge, graph_output=_plain(edge.graph_output)) for edge in graph.output_edges
        ),
    )
