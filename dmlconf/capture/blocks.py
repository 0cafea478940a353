"""Split a graph into blocks: connected parts of few nodes, each a graph of its own.

Every node adds rounding, so the permitted range is wide for 300 nodes and narrow for eight. A
block's inputs are the tensors that it reads from the graph's inputs or from other blocks. Its
outputs include the tensors that other blocks read or the graph returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.cases.identifiers import unique_name
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.model import FieldKind
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.graphs.model import CONSTANT_TENSOR

__all__ = ["Block", "blocks", "with_references"]

Parts = Mapping[str, Any]
"""The parts of a graph's entry in a case file, with each tensor in full.

References are as in `dmlconf.cases.writing.graph_entry`: `NODE` for the OutputTensor of a node,
`NODE.TENSOR` for any other output.
"""

_DATA: Final = ("values", "fill", "from")
"""The keys of a tensor that say where its data comes from; other keys are fields of its desc."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a graph.

    Attributes:
        nodes: the names of its nodes, each after those that it reads.
        parts: the parts of its entry in a case file.
        sources: for each input its tensor in the graph, such as `x`, `NODE` or `NODE.TENSOR`.
    """

    nodes: tuple[str, ...]
    parts: Parts
    sources: Mapping[str, str]


def blocks(parts: Parts, most_nodes: int) -> list[Block]:
    """Return blocks of at most `most_nodes` nodes, which together have every node once.

    Nodes are ordered depth first, each after those that it reads. Each `most_nodes` successive
    nodes form a piece, and each connected part of a piece is a block. A block reads other blocks
    only of earlier pieces, so that blocks form no cycle.
    """
    graph = _Graph(parts)
    order = graph.in_order()
    found = []
    for start in range(0, len(order), most_nodes):
        for names in graph.connected(order[start : start + most_nodes]):
            found.append(graph.block(names))
    return found


class _Graph:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._nodes: Mapping[str, Any] = parts["nodes"]
        self._outer = {*parts.get("inputs", {}), *parts.get("constants", {})}
        self._feeders = {
            name: list(dict.fromkeys(filter(None, map(self._node_of, self._references(node)))))
            for name, node in self._nodes.items()
        }
        self._readers: dict[str, list[str]] = {name: [] for name in self._nodes}
        for name, feeders in self._feeders.items():
            for feeder in feeders:
                self._readers[feeder].append(name)

    def _references(self, node: Any) -> Iterator[str]:
        for value in node["desc"].values():
            for item in value if isinstance(value, list) else [value]:
                source = item.get("from") if isinstance(item, Mapping) else None
                yield from [source] if isinstance(source, str) else source or ()

    def _node_of(self, reference: str) -> str | None:
        return None if reference in self._outer else reference.partition(".")[0]

    def in_order(self) -> list[str]:
        missing = {name: len(feeders) for name, feeders in self._feeders.items()}
        ready = [name for name in reversed([*self._nodes]) if not missing[name]]
        order = []
        while ready:
            name = ready.pop()
            order.append(name)
            for reader in reversed(self._readers[name]):
                missing[reader] -= 1
                if not missing[reader]:
                    ready.append(reader)
        return order

    def connected(self, piece: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield the connected parts of a piece, each in the piece's order."""
        left = set(piece)
        for first in piece:
            if first not in left:
                continue
            part, waiting = set(), [first]
            while waiting:
                name = waiting.pop()
                if name in left:
                    left.remove(name)
                    part.add(name)
                    waiting += [*self._feeders[name], *self._readers[name]]
            yield tuple(name for name in piece if name in part)

    def block(self, names: tuple[str, ...]) -> Block:
        inside = set(names)
        read = {
            reference: None for name in names for reference in self._references(self._nodes[name])
        }
        renamed: dict[str, str] = {}
        inputs: dict[str, Any] = {}
        used = {*names, *self._parts.get("constants", {})}
        for reference in read:
            owner = self._node_of(reference)
            if owner in inside or reference in self._parts.get("constants", {}):
                continue
            tensor = self._parts["inputs"][reference] if owner is None else self._tensor(reference)
            name = reference.replace(".", "-").replace("[", "-").replace("]", "")
            name = unique_name(name, used)
            renamed[reference] = name
            inputs[name] = {key: item for key, item in tensor.items() if key not in _DATA}
        constants = {
            name: value for name, value in self._parts.get("constants", {}).items() if name in read
        }

        def new_name(reference: str) -> str:
            return renamed.get(reference, reference)

        nodes = {
            name: {**node, "desc": with_references(node["desc"], new_name)}
            for name, node in ((name, self._nodes[name]) for name in names)
        }
        found = {
            "inputs": inputs,
            "constants": constants,
            "nodes": nodes,
            "outputs": self._outputs(inside, {*inputs}),
        }
        parts = {key: value for key, value in found.items() if value}
        return Block(names, parts, {name: reference for reference, name in renamed.items()})

    def _tensor(self, reference: str) -> Mapping[str, Any]:
        name, _, tensor = reference.partition(".")
        value = TensorRef.of(tensor or CONSTANT_TENSOR).read(self._nodes[name]["desc"])
        assert isinstance(value, Mapping)
        return value

    def _outputs(self, inside: set[str], used: set[str]) -> Mapping[str, str]:
        """Return the block's outputs by name, each as `NODE` or `NODE.TENSOR`.

        An output is what a node outside the block reads or the graph returns. If nothing reads or
        returns an output of a node, the node's first output is an output of the block.

        Args:
            used: the names of the block's inputs, to which the names of outputs are added.
        """
        own = self._parts["outputs"].values()
        returned = {
            each for value in own for each in ([value] if isinstance(value, str) else value)
        }
        elsewhere = {
            reference
            for name, node in self._nodes.items()
            if name not in inside
            for reference in self._references(node)
        }
        within = {each for name in inside for each in self._references(self._nodes[name])}
        found = []
        for name in self._nodes:
            if name not in inside:
                continue
            slots = list(self._slots(name))
            wanted = [slot for slot in slots if slot in returned | elsewhere]
            found += wanted or ([] if within & set(slots) else slots[:1])
        numbered = enumerate(found, 1)
        return {unique_name(f"output-{number}", used): slot for number, slot in numbered}

    def _slots(self, name: str) -> Iterator[str]:
        node = self._nodes[name]
        for field in catalogue.operator(node["operator"]).of_kind(FieldKind.OUTPUT):
            value = node["desc"].get(field.name)
            if isinstance(value, list):
                yield from (f"{name}.{TensorRef(field.name, i)}" for i in range(len(value)))
            elif value is not None:
                yield name if field.name == CONSTANT_TENSOR else f"{name}.{field.name}"


def with_references(value: Any, new_name: Callable[[str], str]) -> Any:
    """Return a node or a desc of a case file with new names of the tensors that it reads."""
    if isinstance(value, list):
        return [with_references(item, new_name) for item in value]
    if not isinstance(value, Mapping):
        return value
    new = {}
    for key, item in value.items():
        if key != "from":
            new[key] = with_references(item, new_name)
        else:
            new[key] = new_name(item) if isinstance(item, str) else list(map(new_name, item))
    return new
