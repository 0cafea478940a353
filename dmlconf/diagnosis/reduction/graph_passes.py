"""The passes that reduce a graph: first its nodes, then their descs and the data.

`passes` has those for an operator's case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dmlconf.cases.graph_case import GraphCase, with_graph
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.diagnosis.reduction.changes import (
    PLAINER,
    retyped,
    simpler_attributes,
    smaller_sizes,
    with_tensors,
    without_dimension,
)
from dmlconf.diagnosis.reduction.cost import type_cost
from dmlconf.diagnosis.reduction.data import (
    Part,
    fitted_array,
    index_limits,
    simpler_values,
)
from dmlconf.diagnosis.reduction.graph_changes import (
    INPUT,
    changed_graph,
    graph_tensors,
    with_graph_tensors,
)
from dmlconf.diagnosis.reduction.number_ref import NumberRef, with_counts, with_number
from dmlconf.diagnosis.reduction.passes import reduce_data
from dmlconf.diagnosis.reduction.search import Search
from dmlconf.graphs.model import Constant, Graph, Node, Slot
from dmlconf.graphs.relations import owned_otherwise, part
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.graph_evaluation import evaluate_nodes
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["GRAPH_PASSES", "graph_part", "reduce_nodes"]


def reduce_nodes(search: Search) -> None:
    """Remove nodes from a graph: halves first, single nodes last.

    Nothing is removed if the case must be rejected or has a relation.
    """
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
    """Return some nodes as a separate graph. The reference computes the data of its new inputs.

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
    """Return a name of a graph's input or output in a form for case files."""
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


def _graph(search: Search) -> Graph:
    return search.case.graph


def _attempt(search: Search, graph: Graph) -> bool:
    """Try a graph with the data that each `Part` keeps, until the search adopts a case."""
    return any(search.attempt(candidate) for candidate in _with_graph(search, graph))


def _with_graph(search: Search, graph: Graph) -> Iterator[Case]:
    case = search.case
    limits = index_limits(graph)
    seen: set[bytes] = set()
    for kept in Part:

        def fitted(name: str, values: Any, tensor: TensorDesc, kept: Part = kept) -> Array:
            return fitted_array(values, tensor, kept, limits.get(name))

        given = {**case.data, **{each.name: each.data for each in case.graph.constants}}
        data = {name: fitted(name, given[name], t) for name, t in graph.inputs.items()}
        nodes = tuple(
            replace(node, data=fitted(node.name, given[node.name], node.tensor))
            if isinstance(node, Constant)
            else node
            for node in graph.nodes
        )
        other = replace(graph, nodes=nodes)
        arrays = [*data.values(), *(constant.data for constant in other.constants)]
        digest = b"|".join(array.tobytes() for array in arrays)
        if digest not in seen:
            seen.add(digest)
            yield with_graph(case, other, data=data)


def _reduce_sizes(search: Search) -> None:
    again = True
    while again:
        again = False
        for slot, tensor in list(graph_tensors(_graph(search)).items()):
            for dimension in range(tensor.DimensionCount):
                while _reduce_size(search, slot, dimension):
                    again = True


def _reduce_size(search: Search, slot: Slot, dimension: int) -> bool:
    tensor = graph_tensors(_graph(search)).get(slot)
    if tensor is None or dimension >= tensor.DimensionCount:
        return False  # Another change removed the dimension.
    return any(
        _attempt(search, smaller)
        for target in smaller_sizes(tensor.Sizes[dimension])
        for smaller in _resized(search, slot, dimension, target)
    )


def _resized(search: Search, slot: Slot, dimension: int, target: int) -> Iterator[Graph]:
    """Yield graphs in which a size is `target`, alone or together with equal sizes."""
    graph = _graph(search)
    tensors = graph_tensors(graph)
    size = tensors[slot].Sizes[dimension]
    from_end = dimension - tensors[slot].DimensionCount
    alike = [
        (other, at)
        for other, tensor in tensors.items()
        for at in range(tensor.DimensionCount)
        if tensor.Sizes[at] == size
    ]
    same = [(other, at) for other, at in alike if at - tensors[other].DimensionCount == from_end]
    own = [(other, dimension) for other in _ends(graph, slot)]
    seen: list[Mapping[str, Desc]] = []
    for group in (own, same, alike):
        changes, fixed = _size_changes(graph, group, target)
        if changes and changes not in seen:
            seen.append(changes)
            smaller = changed_graph(graph, changes, fixed, search.permitted)
            if smaller is not None:
                yield smaller


def _ends(graph: Graph, slot: Slot) -> list[Slot]:
    """Return the tensor or, for an input of the graph, the tensors of equal Sizes that it feeds."""
    if slot[0] != INPUT:
        return [slot]
    tensor = graph.inputs[slot[1]]
    tensors = graph_tensors(graph)
    ends = [end for end, source in graph.sources().items() if source == slot[1]]
    return [end for end in ends if tensors[end].Sizes == tensor.Sizes]


def _size_changes(
    graph: Graph, sizes: list[tuple[Slot, int]], target: int
) -> tuple[dict[str, Desc], dict[str, frozenset[NumberRef]]]:
    nodes = {node.name: node for node in graph.operator_nodes}
    changes: dict[str, Desc] = {}
    fixed: dict[str, frozenset[NumberRef]] = {}
    for (name, tensor), dimension in sizes:
        if name in nodes:
            of = TensorRef.of(tensor)
            ref = NumberRef(of.field, of.index, dimension)
            changes[name] = with_number(changes.get(name, nodes[name].desc), ref, target)
            fixed[name] = fixed.get(name, frozenset()) | {ref}
    return changes, fixed


def _everywhere(graph: Graph, change: Callable[[Node], Desc]) -> Graph:
    """Return the graph with each node's desc changed; inputs, constants and outputs follow."""
    nodes = tuple(
        replace(node, desc=change(node)) if isinstance(node, Node) else node for node in graph.nodes
    )
    other = replace(graph, nodes=nodes)
    tensors = graph_tensors(other)
    by_name = other.by_name
    for slot, source in graph.sources().items():
        if isinstance(source, str):
            tensors[INPUT, source] = tensors[slot]
        elif isinstance(by_name[source[0]], Constant):
            tensors[source] = replace(tensors[slot], Flags=())
    outputs = {name: tensors[slot] for name, slot in graph.output_sources().items()}
    return replace(with_graph_tensors(other, tensors), outputs=outputs)


def _reduce_ranks(search: Search) -> None:
    while any(_attempt(search, graph) for graph in _lower_ranks(_graph(search))):
        pass


def _lower_ranks(graph: Graph) -> Iterator[Graph]:
    tensors = graph_tensors(graph)
    rank = max(tensor.DimensionCount for tensor in tensors.values())
    for dimension in range(rank if rank > 1 else 0):
        dimensions = [(dimension - rank + t.DimensionCount, t) for t in tensors.values()]
        if all(at < 0 or t.Sizes[at] == 1 for at, t in dimensions):
            yield _everywhere(
                graph,
                lambda node, at=dimension: without_dimension(node.operator, node.desc, at, rank),  # type: ignore[misc]  # mypy infers no type for a default.
            )


def _reduce_tensors(search: Search) -> None:
    """Leave out optional fields, turn constants into inputs, and leave out layouts and flags."""
    for node in _graph(search).operator_nodes:
        for field in node.operator.fields:
            if field.optional:
                _leave_out(search, node.name, field.name)
    if _graph(search).constants:
        unowned = owned_otherwise(_graph(search))
        _attempt(search, _everywhere(unowned, lambda node: node.desc))
    for plain in PLAINER:
        graph = _graph(search)
        if _attempt(search, _everywhere(graph, lambda n: with_tensors(n.operator, n.desc, plain))):  # noqa: B023  # Called at once.
            continue
        for name in [node.name for node in graph.operator_nodes]:
            _attempt(search, _with_node(_graph(search), name, plain))


def _with_node(graph: Graph, name: str, plain: Callable[[TensorDesc], TensorDesc]) -> Graph:

    def change(node: Node) -> Desc:
        return with_tensors(node.operator, node.desc, plain) if node.name == name else node.desc

    return _everywhere(graph, change)


def _leave_out(search: Search, name: str, field: str) -> None:
    graph = _graph(search)
    node = graph.by_name.get(name)
    if not isinstance(node, Node) or node.desc.get(field) is None:
        return
    desc = with_counts(node.operator, {**node.desc, field: None})
    nodes = tuple(replace(node, desc=desc) if each is node else each for each in graph.nodes)

    def stays(end: str, tensor: str) -> bool:
        return end != name or TensorRef.of(tensor).field != field

    edges = tuple(edge for edge in graph.input_edges if stays(edge.node, edge.tensor))
    links = tuple(e for e in graph.intermediate_edges if stays(e.to_node, e.to_tensor))
    used = {edge.graph_input for edge in edges}
    _attempt(
        search,
        replace(
            graph,
            nodes=nodes,
            inputs={name: tensor for name, tensor in graph.inputs.items() if name in used},
            input_edges=edges,
            intermediate_edges=links,
        ),
    )


def _reduce_types(search: Search) -> None:
    types = {tensor.DataType for tensor in graph_tensors(_graph(search)).values()}
    for old in sorted(types, key=type_cost, reverse=True):
        for new in sorted(DataType, key=type_cost):
            if type_cost(new) < type_cost(old) and _attempt(
                search, _retyped(_graph(search), old, new)
            ):
                break


def _retyped(graph: Graph, old: DataType, new: DataType) -> Graph:
    return _everywhere(graph, lambda node: retyped(node.operator, node.desc, old, new))


def _reduce_attributes(search: Search) -> None:
    for name in [node.name for node in _graph(search).operator_nodes]:
        node = _graph(search).by_name[name]
        assert isinstance(node, Node)
        for field in node.operator.fields:
            if not field.is_tensor and field.name not in node.operator.count_fields:
                while _reduce_attribute(search, name, field.name):
                    pass


def _reduce_attribute(search: Search, name: str, field: str) -> bool:
    graph = _graph(search)
    node = graph.by_name[name]
    assert isinstance(node, Node)
    for simpler in simpler_attributes(node.operator.field(field), node.desc.get(field)):
        desc = with_counts(node.operator, {**node.desc, field: simpler})
        fixed = {name: frozenset({NumberRef(field)})}
        other = changed_graph(graph, {name: desc}, fixed, search.permitted)
        if other is not None and _attempt(search, other):
            return True
    return False


def _reduce_constants(search: Search) -> None:
    for name in [constant.name for constant in _graph(search).constants]:
        again = True
        while again:
            again = any(
                search.attempt(replace(search.case, graph=graph))  # type: ignore[call-arg]  # The case is a GraphCase.
                for graph in _simpler_constants(_graph(search), name)
            )


def _simpler_constants(graph: Graph, name: str) -> Iterator[Graph]:
    constant = next(each for each in graph.constants if each.name == name)
    index = name in index_limits(graph)
    for values in simpler_values(np.asarray(constant.data), index=index):
        nodes = (
            replace(constant, data=values) if each is constant else each for each in graph.nodes
        )
        yield replace(graph, nodes=tuple(nodes))


def _unless_rejected(reduction: Callable[[Search], None]) -> Callable[[Search], None]:

    def apply(search: Search) -> None:
        if not search.rejected:
            reduction(search)

    return apply


GRAPH_PASSES: Final[tuple[Callable[[Search], None], ...]] = (
    reduce_nodes,
    *map(
        _unless_rejected,
        (_reduce_sizes, _reduce_ranks, _reduce_tensors, _reduce_types, _reduce_attributes),
    ),
    reduce_data,
    _unless_rejected(_reduce_constants),
)
"""The passes; those that remove the most come first."""
