"""Outputs of graphs with injected defects of graph compilers, and with legitimate differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from dmlconf.cases.graph_case import with_graph
from dmlconf.cases.model import Case
from dmlconf.catalogue.precision import RuleKind
from dmlconf.graphs.model import Constant, IntermediateEdge, Node, Slot
from dmlconf.graphs.relations import alike_descs, swapped_inputs
from dmlconf.graphs.wiring import edge_problems
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.permitted.graphs.float32_edges import with_float32_edges
from dmlconf.precision.compare import compare
from dmlconf.precision.room import permitted_ends
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.graph_evaluation import NodeValues, Store, evaluate_nodes, graph_outputs
from dmlconf.strength.injection import Site
from dmlconf.strength.value_defects import VALUE_DEFECTS
from dmlconf.tensors.datatypes import Array

__all__ = ["GRAPH_DEFECTS", "LEGITIMATE_GRAPH_DIFFERENCES", "GraphSite"]

Outputs = Mapping[str, Array]


@dataclass(frozen=True)
class GraphSite:
    """A graph with its right outputs by name."""

    case: Case
    outputs: Outputs

    @cached_property
    def intermediates(self) -> tuple[Slot, ...]:
        """The outputs of operator nodes that feed other nodes."""
        links = self.case.graph.intermediate_edges
        constants = {node.name for node in self.case.graph.constants}
        slots = dict.fromkeys((link.from_node, link.from_tensor) for link in links)
        return tuple(slot for slot in slots if slot[0] not in constants)

    def stored(self, slot: Slot, change: Callable[[Array], Array]) -> Outputs:
        """Return the graph's outputs if nodes read a changed tensor.

        If the tensor is also an output of the graph, that output stays right.
        """

        def store(node: Node, case: Case, tensor: str, values: Array) -> Array:
            return change(values) if (node.name, tensor) == slot else values

        return self.stored_by(store)

    def stored_by(self, store: Store) -> Outputs:
        """Return the graph's outputs if edges have the values that `store` returns."""
        with np.errstate(all="ignore"):
            computed = evaluate_nodes(self.case, evaluate, store=store, earlier=self.nodes).outputs
        return graph_outputs(self.case.graph, computed)

    @cached_property
    def nodes(self) -> NodeValues:
        """The results of the nodes without a defect."""
        with np.errstate(all="ignore"):
            return evaluate_nodes(self.case, evaluate)

    @cached_property
    def feeders(self) -> Mapping[str, frozenset[str]]:
        """Each node's direct and indirect predecessors, and the node itself."""
        graph = self.case.graph
        direct: dict[str, set[str]] = {node.name: set() for node in graph.nodes}
        for link in graph.intermediate_edges:
            direct[link.to_node].add(link.from_node)
        feeders: dict[str, frozenset[str]] = {}
        for node in graph.in_order():
            before = (feeders[name] for name in direct[node.name])
            feeders[node.name] = frozenset({node.name}).union(*before)
        return feeders

    def rewired(self, **parts: Any) -> Outputs | None:
        """Return the outputs of a graph with other edges or nodes; None if an edge is invalid."""
        graph = replace(self.case.graph, **parts)
        if edge_problems(graph):
            return None
        case = with_graph(self.case, graph)
        with np.errstate(all="ignore"):
            return graph_outputs(graph, evaluate_nodes(case, evaluate, earlier=self.nodes).outputs)


Inject = Callable[[GraphSite], Iterator[tuple[str, Outputs]]]
"""Yields outputs of a graph with a defect or a difference, and a note on where it is.

The outputs may be right, and the note empty.
"""


def _other_buffers(site: GraphSite) -> Iterator[tuple[str, Outputs]]:
    """An edge reads another graph input or intermediate with `alike_descs`."""
    graph = site.case.graph
    for number, edge in enumerate(graph.input_edges):
        for other, tensor in graph.inputs.items():
            if other != edge.graph_input and alike_descs(tensor, graph.inputs[edge.graph_input]):
                edges = list(graph.input_edges)
                edges[number] = replace(edge, graph_input=other)
                if (outputs := site.rewired(input_edges=tuple(edges))) is not None:
                    yield f"{edge.node}.{edge.tensor} reads {other}", outputs
                    break
    nodes = graph.by_name
    uses = Counter(link.from_node for link in graph.intermediate_edges)
    uses.update(edge.node for edge in graph.output_edges)
    for number, link in enumerate(graph.intermediate_edges):
        if uses[link.from_node] < 2:
            continue  # Without this edge, the node would feed nothing.
        own = nodes[link.from_node].outputs[link.from_tensor]
        for node, name in site.intermediates:
            if (node, name) == (link.from_node, link.from_tensor):
                continue
            if link.to_node in site.feeders[node] or not alike_descs(
                own, nodes[node].outputs[name]
            ):
                continue
            links = list(graph.intermediate_edges)
            links[number] = IntermediateEdge(node, name, link.to_node, link.to_tensor)
            if (outputs := site.rewired(intermediate_edges=tuple(links))) is not None:
                yield f"{link.to_node}.{link.to_tensor} reads {node}.{name}", outputs
                break


def _dropped_nodes(site: GraphSite) -> Iterator[tuple[str, Outputs]]:
    """A node is left out: its readers get one of its inputs."""
    graph = site.case.graph
    cases = site.nodes.cases
    ends = {slot: name for name, slot in graph.output_sources().items()}
    for node in graph.operator_nodes:
        inputs = cases[node.name].inputs()
        for name, tensor in node.outputs.items():
            slot = node.name, name
            for source, given in node.inputs.items():
                if alike_descs(tensor, given):
                    outputs = dict(site.stored(slot, _always(inputs[source])))
                    if slot in ends:
                        outputs[ends[slot]] = inputs[source]
                    yield f"{node.name} is its {source}", outputs


def _always(values: Array) -> Callable[[Array], Array]:
    return lambda right: values


def _stale_data(site: GraphSite) -> Iterator[tuple[str, Outputs]]:
    """A constant or an owned input has stale data: zeros, or its elements moved by one."""
    case, graph = site.case, site.case.graph
    stale = (("zeros", np.zeros_like), ("moved by one", _moved))
    for name, tensor in graph.inputs.items():
        if tensor.Owned:
            data = case.inputs()
            for note, change in stale:
                yield f"{name} is {note}", evaluate(case, {**data, name: change(data[name])})
    for constant in graph.constants:
        for note, change in stale:
            nodes = tuple(
                Constant(node.name, node.tensor, change(constant.data))
                if node is constant
                else node
                for node in graph.nodes
            )
            if (outputs := site.rewired(nodes=nodes)) is not None:
                yield f"{constant.name} is {note}", outputs


def _moved(values: Array) -> Array:
    return np.roll(values.ravel(), 1).reshape(values.shape)


def _more_roundings(site: GraphSite) -> Iterator[tuple[str, Outputs]]:
    for slot in site.intermediates:
        tensor = site.case.graph.by_name[slot[0]].outputs[slot[1]]
        if tensor.DataType.dtype == np.float32:
            yield ".".join(slot), site.stored(slot, lambda a: a.astype(np.float16).astype(a.dtype))


def _swapped_inputs(site: GraphSite) -> Iterator[tuple[str, Outputs]]:
    for node, first, second, graph in swapped_inputs(site.case.graph):
        outputs = site.rewired(
            input_edges=graph.input_edges, intermediate_edges=graph.intermediate_edges
        )
        if outputs is not None:
            yield f"{node.name}: {first} and {second}", outputs


def _node_defects(site: GraphSite) -> Iterator[tuple[str, Outputs]]:
    right = site.nodes
    for node, tensor in site.intermediates:
        case = right.cases[node]
        outputs = {name: right.outputs[node, name] for name in case.outputs()}
        for defect in VALUE_DEFECTS:
            if defect.name in _NOT_OF_NODES:
                continue
            for note, wrong in defect.inject(Site(case, outputs, tensor)):
                if _permits(case, tensor, wrong, outputs[tensor]):
                    continue  # What the rule permits is no defect.
                text = f"{node}.{tensor}: {defect.name}{note and ', ' + note}"
                yield text, site.stored((node, tensor), _always(wrong))


_NOT_OF_NODES: Final = frozenset(
    {
        "1 ULP",
        "2 ULP",
        "16 ULP",
        "subnormals flushed",
        "sign of zero dropped",
        "rounded through float16",
    }
)
"""Defects that nodes do not get: a rule may permit them, or `_more_roundings` injects them."""


def _held_in_float32(site: GraphSite) -> Iterator[tuple[str, Outputs]]:
    with np.errstate(all="ignore"):
        wide = graph_outputs(
            site.case.graph, evaluate_nodes(with_float32_edges(site.case), evaluate).outputs
        )
    yield "", {name: wide[name].astype(right.dtype) for name, right in site.outputs.items()}


def _computed_in_float32(
    site: GraphSite,
    rounded: Callable[[Array, np.dtype[Any]], Array],
    held: Collection[Slot] = (),
) -> Outputs:
    """Return the outputs if nodes compute in FLOAT32 and round FLOAT16 outputs, except `held`."""
    whole = with_float32_edges(site.case)
    dtypes = {
        (node.name, name): tensor.DataType.dtype
        for node in site.case.graph.operator_nodes
        for name, tensor in node.outputs.items()
    }

    def store(node: Node, case: Case, tensor: str, values: Array) -> Array:
        slot = node.name, tensor
        if dtypes[slot] != np.float16 or slot in held:
            return values
        return rounded(values, dtypes[slot]).astype(values.dtype)

    with np.errstate(all="ignore"):
        computed = evaluate_nodes(whole, evaluate, store=store).outputs
        outputs = graph_outputs(site.case.graph, computed)
        return {
            name: rounded(outputs[name], right.dtype)
            if right.dtype == np.float16
            else outputs[name].astype(right.dtype)
            for name, right in site.outputs.items()
        }


def _nearest(values: Array, dtype: np.dtype[Any]) -> Array:
    return values.astype(dtype)


def _truncated(values: Array, dtype: np.dtype[Any]) -> Array:
    near = values.astype(dtype)
    beyond = np.abs(near.astype(np.float64)) > np.abs(values.astype(np.float64))
    return np.where(beyond, np.nextafter(near, dtype.type(0)), near)


def _stores_truncated(site: GraphSite) -> Iterator[tuple[str, Outputs]]:
    yield "", _computed_in_float32(site, _truncated)


def _stores_nearest(site: GraphSite) -> Iterator[tuple[str, Outputs]]:
    yield "", _computed_in_float32(site, _nearest)


def _sums_in_other_orders(site: GraphSite) -> Iterator[tuple[str, Outputs]]:
    """Sums are off by at most one ULP."""
    for seed in range(3):
        generator = np.random.Generator(np.random.PCG64([1, seed]))
        ends = {
            (name, tensor): _ends(case, tensor, site.nodes.outputs[name, tensor])
            for name, case in site.nodes.cases.items()
            for tensor in case.outputs()
            if case.rule(tensor).kind is RuleKind.ACCUMULATE
        }

        def store(
            node: Node,
            case: Case,
            tensor: str,
            values: Array,
            generator: np.random.Generator = generator,
            ends: Mapping[Slot, tuple[Array, Array]] = ends,
        ) -> Array:
            if (node.name, tensor) not in ends or values.dtype.kind != "f":
                return values
            low, high = ends[node.name, tensor]
            by_chance: Array = np.asarray(generator.integers(-1, 2, values.shape))
            steps = _alike_for_equal(by_chance, values, low, high)
            near = np.where(steps > 0, np.inf, -np.inf).astype(values.dtype)
            moved = np.nextafter(values, near)
            return np.where((steps == 0) | (moved < low) | (moved > high), values, moved)

        yield f"seed {seed}", site.stored_by(store)


def _alike_for_equal(steps: Array, values: Array, low: Array, high: Array) -> Array:
    """Return steps that are equal for elements with equal values and permitted ends.

    Equal sums, such as those of equal rows, have equal errors.
    """
    forms = np.stack([each.astype(np.float64).ravel() for each in (values, low, high)], axis=1)
    _, first, of_element = np.unique(forms, axis=0, return_index=True, return_inverse=True)
    alike: Array = steps.ravel()[first][of_element.ravel()].reshape(steps.shape)
    return alike


def _partly_in_float32(site: GraphSite) -> Iterator[tuple[str, Outputs]]:
    """Some edges keep FLOAT32 values, as in a kernel of several nodes, and others FLOAT16."""
    for seed in range(2):
        for name, rounded in (("to nearest", _nearest), ("truncated", _truncated)):
            generator = np.random.Generator(np.random.PCG64([2, seed]))
            held = {slot for slot in site.intermediates if generator.random() < 0.5}
            if len(held) not in (0, len(site.intermediates)):
                yield f"seed {seed}, {name}", _computed_in_float32(site, rounded, held)


def _permits(case: Case, tensor: str, actual: Array, right: Array) -> bool:
    allowance = CaseAllowances(case).of(tensor)
    return compare(actual, right, case.rule(tensor), allowance).passed


def _ends(case: Case, tensor: str, right: Array) -> tuple[Array, Array]:
    allowance = CaseAllowances(case).of(tensor)
    low, high = permitted_ends(right.ravel(), case.rule(tensor), allowance)
    return low.reshape(right.shape), high.reshape(right.shape)


GRAPH_DEFECTS: Final[Mapping[str, Inject]] = {
    "an edge reads another buffer": _other_buffers,
    "a node is dropped": _dropped_nodes,
    "stale data": _stale_data,
    "a rounding to FLOAT16 too much": _more_roundings,
    "inputs of a node swapped": _swapped_inputs,
    "a defect of a node": _node_defects,
}

LEGITIMATE_GRAPH_DIFFERENCES: Final[Mapping[str, Inject]] = {
    "edges held in FLOAT32": _held_in_float32,
    "some edges held in FLOAT32": _partly_in_float32,
    "FLOAT32 inside, stores to nearest": _stores_nearest,
    "FLOAT32 inside, stores truncated": _stores_truncated,
    "sums in other orders": _sums_in_other_orders,
}
