"""Evaluate a graph node by node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dmlconf.cases.graph_case import node_case
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.graphs.model import CONSTANT_TENSOR, Constant, Graph, Node, Slot
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.layout import element_offsets

__all__ = [
    "NodeValues",
    "evaluate_nodes",
    "graph_outputs",
    "seen_through",
]

Evaluate = Callable[[Case], Mapping[str, Array]]
"""Computes the outputs of one operator."""

Store = Callable[[Node, Case, str, Array], Array]
"""Returns what an edge holds of a node's output, an array of the same sizes.

Takes the node, the node as a case of its own, and the output tensor's name and array. Never called
for constants.
"""


@dataclass(frozen=True, slots=True)
class NodeValues:
    """The results of a graph's nodes.

    Attributes:
        cases: each operator node as a case of its own, with its inputs, by name.
        outputs: the data of each constant, and the array of each node's output tensor, shaped like
            its Sizes, before an edge stores it.
        sources: the graph input or the output of a node that feeds each input tensor.
    """

    cases: Mapping[str, Case]
    outputs: Mapping[Slot, Array]
    sources: Mapping[Slot, str | Slot]

    def outputs_of(self, node: Node) -> Mapping[str, Array]:
        """Return the outputs of an operator node by name."""
        return {name: self.outputs[node.name, name] for name in self.cases[node.name].outputs()}


def evaluate_nodes(
    case: Case,
    evaluate: Evaluate,
    inputs: Mapping[str, Array] | None = None,
    store: Store | None = None,
    earlier: NodeValues | None = None,
) -> NodeValues:
    """Return the outputs of all nodes, each computed from the tensors that its edges hold.

    Args:
        case: a graph case that breaks no rule of wiring.
        evaluate: computes the outputs of an operator node.
        inputs: arrays by graph input instead of the case's own.
        store: None if edges hold the outputs themselves.
        earlier: an evaluation of the same nodes from the case's own inputs, without `store`.
            Its outputs are reused for nodes that read the same data from the same sources, unless
            they read one of `inputs`.
    """
    graph = case.graph
    arrays = case.inputs() if inputs is None else inputs
    sources = graph.sources()
    same: set[str | Slot] = set(arrays) if inputs is None else set()
    outputs: dict[Slot, Array] = {}
    held: dict[Slot, Array] = {}
    cases: dict[str, Case] = {}
    for node in graph.in_order():
        if isinstance(node, Constant):
            slot = node.name, CONSTANT_TENSOR
            outputs[slot] = held[slot] = node.data
            if earlier is not None and earlier.outputs.get(slot) is node.data:
                same.add(slot)
            continue
        before = None if earlier is None else earlier.cases.get(node.name)
        if (
            earlier is not None
            and before is not None
            and _reads_the_same(node, graph, same, earlier)
        ):
            cases[node.name], computed = before, earlier.outputs_of(node)
        else:
            if before is None or before.desc is not node.desc:
                before = node_case(case, node, {})
            cases[node.name] = before.with_data(_inputs_of(node, graph, arrays, held))
            computed = evaluate(cases[node.name])
        for name, array in computed.items():
            slot = node.name, name
            outputs[slot] = array
            held[slot] = array if store is None else store(node, cases[node.name], name, array)
            if earlier is not None and _same(held[slot], earlier.outputs.get(slot)):
                same.add(slot)
    return NodeValues(cases, outputs, sources)


def _reads_the_same(node: Node, graph: Graph, same: set[str | Slot], earlier: NodeValues) -> bool:
    return all(
        source in same and earlier.sources[node.name, tensor] == source
        for tensor, source in graph.reads[node.name]
    )


def _same(values: Array, other: Array | None) -> bool:
    return values is other or (other is not None and values.tobytes() == other.tobytes())


def _inputs_of(
    node: Node, graph: Graph, arrays: Mapping[str, Array], held: Mapping[Slot, Array]
) -> dict[str, Array]:
    data = {}
    for name, tensor in node.inputs.items():
        source = graph.sources()[node.name, name]
        array = arrays[source] if isinstance(source, str) else held[source]
        data[name] = seen_through(array, graph.producers[source], tensor)
    return data


def graph_outputs(graph: Graph, outputs: Mapping[Slot, Array]) -> dict[str, Array]:
    """Return the graph's outputs by name, from the outputs of its nodes."""
    return {name: outputs[slot] for name, slot in graph.output_sources().items()}


def seen_through(array: Array, producer: TensorDesc, consumer: TensorDesc) -> Array:
    """Return the elements that a consumer reads from a producer's buffer, converted to its dtype.

    Args:
        array: what the producer wrote, shaped like its Sizes.
        producer: the tensor as it was written; gaps that its Strides leave are zero.
        consumer: the tensor as it is read, perhaps with other Sizes and Strides.
    """
    if (producer.Sizes, producer.Strides) != (consumer.Sizes, consumer.Strides):
        dtype = array.dtype
        size_in_bytes = max(producer.TotalTensorSizeInBytes, consumer.TotalTensorSizeInBytes)
        buffer = np.zeros(size_in_bytes * 8 // producer.DataType.bits, dtype)
        if producer.Strides is None:
            buffer[: array.size] = array.reshape(-1)
        else:
            buffer[element_offsets(producer.Sizes, producer.Strides)] = array
        array = _read(buffer, consumer)
    dtype = consumer.DataType.dtype
    return array if array.dtype == dtype else array.astype(dtype)


def _read(buffer: Array, tensor: TensorDesc) -> Array:
    if tensor.Strides is None:
        return buffer[: tensor.ElementCount].reshape(tensor.Sizes)
    strides = [stride * buffer.itemsize for stride in tensor.Strides]
    return np.ndarray(tensor.Sizes, buffer.dtype, buffer, strides=strides).copy()
