"""Facts of a graph, from which its parameters are read."""

from __future__ import annotations

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.expressions import Namespace, namespace
from dmlconf.graphs.model import Constant
from dmlconf.tensors.datatypes import DataType

__all__ = ["graph_facts"]


def graph_facts(case: Case) -> Namespace:
    """Return the facts of a graph.

    - `Nodes`: how many operators
    - `DataTypes` of all tensors
    - `ConstantBytes` of the largest constant, 0 without one; an element of 4 bits counts as a byte
    - `FitsHalf`: whether FLOAT16 holds the FLOAT32 constants exactly; None without such a constant
    - `Owned`: whether DirectML owns an input
    - `Fans`: whether a node's output, or a constant, feeds several inputs of nodes
    - `Outputs`: how many outputs
    """
    graph = case.graph
    sources = [(edge.from_node, edge.from_tensor) for edge in graph.intermediate_edges]
    return namespace(
        {
            "Nodes": len(graph.operator_nodes),
            "DataTypes": tuple(sorted(str(each) for each in case.data_types)),
            "ConstantBytes": max((each.data.nbytes for each in graph.constants), default=0),
            "FitsHalf": _fits_half(graph.constants),
            "Owned": any(each.Owned for each in graph.inputs.values()),
            "Fans": len(set(sources)) < len(sources),
            "Outputs": len(graph.outputs),
        }
    )


def _fits_half(constants: tuple[Constant, ...]) -> bool | None:
    real = [each.data for each in constants if each.tensor.DataType is DataType.FLOAT32]
    if not real:
        return None
    with np.errstate(over="ignore"):
        return all(
            np.array_equal(data, data.astype(np.float16).astype(data.dtype), equal_nan=True)
            for data in real
        )
