"""Change descs of a graph's nodes, with all tensors that must change, too.

A new size or data type propagates along edges, since both ends share a buffer. Within a node,
broken constraints are solved (`reduction.repair`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.diagnosis.reduction.number_ref import NumberRef, with_sizes
from dmlconf.diagnosis.reduction.repair import repaired
from dmlconf.graphs.model import CONSTANT_TENSOR, Constant, Graph, Node, Slot
from dmlconf.tensors.layout import packed_strides

__all__ = ["INPUT", "changed_graph", "graph_tensors", "with_graph_tensors", "with_node_tensor"]

INPUT: Final = "<input>"
"""Stands for a node's name where a tensor is an input of the graph."""

_OUTPUT: Final = "<output>"
"""Stands for a node's name where a tensor is an output of the graph."""
_MOST_STEPS: Final = 12
"""The most repairs per node, on average."""


def graph_tensors(graph: Graph) -> dict[Slot, TensorDesc]:
    """Return the tensors of a graph's inputs, nodes, constants and outputs."""
    tensors = {(INPUT, name): tensor for name, tensor in graph.inputs.items()}
    for node in graph.nodes:
        for name, tensor in (*node.inputs.items(), *node.outputs.items()):
            tensors[node.name, name] = tensor
    return tensors | {(_OUTPUT, name): tensor for name, tensor in graph.outputs.items()}


def _joined(graph: Graph) -> dict[Slot, list[Slot]]:
    """Return, for each tensor, the other tensors in the same buffer."""
    buffers: dict[Slot, list[Slot]] = {}
    for slot, source in graph.sources().items():
        origin = (INPUT, source) if isinstance(source, str) else source
        buffers.setdefault(origin, [origin]).append(slot)
    for output, slot in graph.output_sources().items():
        buffers.setdefault(slot, [slot]).append((_OUTPUT, output))
    return {
        slot: [other for other in ends if other != slot]
        for ends in buffers.values()
        for slot in ends
    }


def changed_graph(
    graph: Graph,
    changes: Mapping[str, Desc],
    fixed: Mapping[str, frozenset[NumberRef]],
    permitted: frozenset[str] = frozenset(),
) -> Graph | None:
    """Return a graph with other descs of some nodes, and with all tensors that must change, too.

    Args:
        graph: a graph that breaks only permitted constraints.
        changes: other descs, by node.
        fixed: for each node, the numbers of its desc that must not change.
        permitted: names of constraints that may be broken.

    Returns:
        the graph, whose strides may not fit the new sizes; None if none was found.
    """
    change = _Change(graph, changes, fixed, permitted)
    return change.graph() if change.spread() else None


class _Change:
    def __init__(
        self,
        graph: Graph,
        changes: Mapping[str, Desc],
        fixed: Mapping[str, frozenset[NumberRef]],
        permitted: frozenset[str],
    ) -> None:
        self._of, self._permitted = graph, permitted
        self._nodes = {node.name: node for node in graph.operator_nodes}
        self._descs = {name: changes.get(name, node.desc) for name, node in self._nodes.items()}
        self._fixed = {name: fixed.get(name, frozenset()) for name in self._nodes}
        self._tensors = graph_tensors(graph)
        self._joined = _joined(graph)
        self._queue = deque(name for name in self._nodes if name in changes)

    def spread(self) -> bool:
        """Propagate the changes; return whether all fit together."""
        steps = _MOST_STEPS * len(self._nodes)
        while self._queue:
            steps -= 1
            name = self._queue.popleft()
            node = self._nodes[name]
            desc = repaired(node.operator, self._descs[name], self._fixed[name], self._permitted)
            if desc is None or steps < 0:
                return False
            self._descs[name] = desc
            own = replace(node, desc=desc)
            for tensor, changed in (*own.inputs.items(), *own.outputs.items()):
                if not self._follow((name, tensor), changed):
                    return False
        return True

    def _follow(self, slot: Slot, changed: TensorDesc) -> bool:
        """Change the other tensors in the buffer of a tensor; return whether that is possible."""
        before = self._tensors[slot]
        if (changed.Sizes, changed.DataType) == (before.Sizes, before.DataType):
            return True
        self._tensors[slot] = changed
        for other in self._joined.get(slot, ()):
            tensor = self._tensors[other]
            following = _following(tensor, before, changed)
            if following is None:
                return False
            refs = _changed_refs(other[1], tensor, following)
            if not refs:
                continue
            node = self._nodes.get(other[0])
            if node is None:
                self._tensors[other] = following
                continue
            if refs & self._fixed[node.name]:
                return False
            self._tensors[other] = following
            self._descs[node.name] = with_node_tensor(
                replace(node, desc=self._descs[node.name]), other[1], following
            )
            self._fixed[node.name] |= refs
            if node.name not in self._queue:
                self._queue.append(node.name)
        return True

    def graph(self) -> Graph:
        descs = self._descs
        nodes = tuple(
            replace(node, desc=descs[node.name]) if isinstance(node, Node) else node
            for node in self._of.nodes
        )
        return with_graph_tensors(replace(self._of, nodes=nodes), self._tensors)


def with_graph_tensors(graph: Graph, tensors: Mapping[Slot, TensorDesc]) -> Graph:
    """Return the graph with other tensors for its inputs, outputs and constants."""
    return replace(
        graph,
        inputs={name: tensors[INPUT, name] for name in graph.inputs},
        outputs={name: tensors[_OUTPUT, name] for name in graph.outputs},
        nodes=tuple(
            replace(node, tensor=tensors[node.name, CONSTANT_TENSOR])
            if isinstance(node, Constant)
            else node
            for node in graph.nodes
        ),
    )


def with_node_tensor(node: Node, name: str, tensor: TensorDesc) -> Desc:
    """Return a node's desc with another tensor `name`, such as `InputTensors[1]`."""
    return TensorRef.of(name).replaced(node.desc, tensor)


def _following(tensor: TensorDesc, before: TensorDesc, changed: TensorDesc) -> TensorDesc | None:
    """Return a tensor that fits the change of another tensor in its buffer; None if none fits."""
    sizes: tuple[int, ...] | None = changed.Sizes
    if tensor.Sizes != before.Sizes:
        sizes = _viewed(tensor.Sizes, before, changed.Sizes)
    if sizes is None:
        return None
    other = replace(with_sizes(replace(tensor, Strides=None), sizes), DataType=changed.DataType)
    if tensor.Strides is None or len(tensor.Strides) != len(sizes):
        return other
    return replace(other, Strides=_dense(tensor.Strides, sizes), DeclaredTensorSizeInBytes=None)


def _viewed(
    sizes: tuple[int, ...], before: TensorDesc, changed: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the sizes of a view after another view of the buffer changed; None if unknown.

    Args:
        sizes: the view's sizes before the change.
        before: the other view before its change.
        changed: the other view's new sizes.
    """
    rank = len(changed)
    if before.DimensionCount != rank:
        return None
    strides = before.Strides or (1,) * rank
    other = list(sizes)
    for at, (old, new, stride) in enumerate(zip(before.Sizes, changed, strides, strict=True)):
        if old == new or not stride:
            continue  # A broadcast dimension has no elements of its own.
        alike = [dimension for dimension, size in enumerate(other) if size == old]
        if not alike:
            alike = [dimension for dimension, size in enumerate(other) if size % old == 0]
        if not alike:
            return None
        same = at - rank + len(other)
        dimension = same if same in alike else alike[0]
        other[dimension] = other[dimension] // old * new
    return tuple(other)


def _dense(strides: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides without gaps in the same order of dimensions; strides of 0 stay."""
    order = sorted(range(len(sizes)), key=lambda at: (-strides[at], at))
    dense = [0] * len(sizes)
    moving = [at for at in order if strides[at]]
    for at, stride in zip(moving, packed_strides([sizes[at] for at in moving]), strict=True):
        dense[at] = stride
    return tuple(dense)


def _changed_refs(name: str, before: TensorDesc, after: TensorDesc) -> frozenset[NumberRef]:
    tensor = TensorRef.of(name)
    refs = {
        NumberRef(tensor.field, tensor.index, at)
        for at, size in enumerate(after.Sizes)
        if at >= before.DimensionCount or before.Sizes[at] != size
    }
    if before.DataType is not after.DataType:
        refs.add(NumberRef(tensor.field, tensor.index))
    return frozenset(refs)
