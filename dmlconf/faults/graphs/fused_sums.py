"""A fault of graphs: a sum is fused into a GEMM, but added before the GEMM's activation."""

from __future__ import annotations

from dataclasses import replace

from dmlconf.cases.graph_case import with_graph
from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.graphs.model import Graph, IntermediateEdge, Node
from dmlconf.reference.evaluation import evaluate

__all__ = ["sum_before_the_activation"]

_OPERANDS = {"ATensor": "BTensor", "BTensor": "ATensor"}
"""The other operand of ELEMENT_WISE_ADD."""


def sum_before_the_activation(case: Case) -> Computed | None:
    """Return a graph's outputs if ELEMENT_WISE_ADD adds before a GEMM's FusedActivation.

    The other operand of the sum becomes the CTensor of the GEMM. If the matrix product is -2 and
    that operand is 3, the result is RELU(-2 + 3) = 1, not RELU(-2) + 3 = 3. This concerns a GEMM
    with a FusedActivation and without a CTensor, whose result is one operand of a sum and nothing
    else. Of two such GEMMs with the same sum, one is fused. None if the graph has no such GEMM.
    """
    graph = case.graph
    for edge in case.graph.intermediate_edges:
        graph = _with_one_node(graph, edge)
    if graph is case.graph:
        return None
    wrong = with_graph(case, graph)
    return Computed(evaluate(wrong), around=wrong)


def _with_one_node(graph: Graph, edge: IntermediateEdge) -> Graph:
    """Return the graph with one node for the GEMM and the sum that an edge joins, if any."""
    product, sums = graph.by_name.get(edge.from_node), graph.by_name.get(edge.to_node)
    if not (isinstance(product, Node) and isinstance(sums, Node)):
        return graph
    if (product.operator_name, sums.operator_name) != ("GEMM", "ELEMENT_WISE_ADD"):
        return graph
    if product.desc["FusedActivation"] is None or product.desc["CTensor"] is not None:
        return graph
    readers = [each for each in graph.intermediate_edges if each.from_node == product.name]
    if len(readers) > 1 or any(each.node == product.name for each in graph.output_edges):
        return graph
    other = _OPERANDS[edge.to_tensor]
    desc = {**product.desc, "CTensor": sums.desc[other], "OutputTensor": sums.desc["OutputTensor"]}
    joined = Node(sums.name, "GEMM", {**desc, "Beta": 1.0})

    def end_of(node: str, tensor: str) -> tuple[str, str]:
        if node == product.name:
            return sums.name, tensor
        return (node, "CTensor") if node == sums.name else (node, tensor)

    inputs = []
    for given in graph.input_edges:
        node, tensor = end_of(given.node, given.tensor)
        inputs.append(replace(given, node=node, tensor=tensor))
    between = []
    for each in graph.intermediate_edges:
        if each != edge:
            node, tensor = end_of(each.to_node, each.to_tensor)
            between.append(replace(each, to_node=node, to_tensor=tensor))
    nodes = [joined if each is sums else each for each in graph.nodes if each is not product]
    return replace(
        graph, nodes=tuple(nodes), input_edges=tuple(inputs), intermediate_edges=tuple(between)
    )
