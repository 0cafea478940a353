"""A case that is a graph, with the interface of an operator's case (`model.Case`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, Self

from dmlconf.cases.errors import CaseError, desc_location
from dmlconf.cases.model import REJECTION_HINT, Case, Fill
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.graph import GRAPHS, graph_entry
from dmlconf.catalogue.levels import LevelNeed, highest_level, level_needs, required_level
from dmlconf.catalogue.model import Entry, FeatureLevel
from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.graphs.model import Graph, GraphNode, Node
from dmlconf.graphs.relations import Relation
from dmlconf.graphs.wiring import WiringProblem, graph_problems
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["GraphCase", "node_case", "problem_location", "with_graph"]

_COMPILE_GRAPH: Final = LevelNeed(FeatureLevel(2, 1), "IDMLDevice1::CompileGraph")
_CONSTANT_NODE: Final = LevelNeed(FeatureLevel(6, 2), "DML_CONSTANT_DATA_GRAPH_NODE_DESC")

_RULE: Final = PrecisionRule(
    RuleKind.ONE_OF, 0, "what the rules of a graph's nodes permit, carried to its outputs"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCase(Case):
    """One graph, with its input data and the expected result.

    `operator_name` is `GRAPHS`; `desc` holds the graph's inputs and outputs by name, and `data` the
    inputs' data.

    Attributes:
        relation: the other form that must give the same outputs, or None.
    """

    graph: Graph = field()  # Without field(), the property of `Case` would be its default.
    relation: Relation | None = None

    most_variations: ClassVar[int] = 2
    """The case's own inputs and one other set, since computing what a graph permits takes long."""

    is_compiled_as_graph: ClassVar[bool] = True
    forms: ClassVar[tuple[Relation, ...]] = tuple(Relation)

    @property
    def entry(self) -> Entry:
        """The graph's own entry: its fields are the inputs and outputs, and `GRAPH_FACTS`."""
        entry: Entry = self.once(
            "entry", lambda: graph_entry(self.graph.inputs, self.graph.outputs)
        )
        return entry

    @property
    def nodes(self) -> tuple[GraphNode, ...]:
        """The operators and constants."""
        return self.graph.nodes

    @property
    def content(self) -> Desc:
        """The description of what is compiled, as `Graph.content` returns it."""
        return self.graph.content()

    @property
    def described(self) -> Desc:
        """The inputs and outputs by name, and the facts about nodes that `GRAPH_FACTS` lists."""
        graph = self.graph
        return {
            **self.desc,
            "Operators": graph.operators,
            "Neighbours": tuple(f"{first}>{second}" for first, second in graph.neighbours()),
            "NodeCount": len(graph.nodes),
            "ConstantCount": len(graph.constants),
        }

    @property
    def required_level(self) -> FeatureLevel | None:
        """The lowest feature level that must support the graph; None if a node has none."""
        levels = [required_level(node.operator, node.desc) for node in self.graph.operator_nodes]
        return None if None in levels else highest_level(self.level_needs)

    @property
    def level_needs(self) -> tuple[LevelNeed, ...]:
        """The feature levels that the nodes, CompileGraph and constant nodes need."""
        needs: tuple[LevelNeed, ...] = self.once("levels", self._level_needs)
        return needs

    def _level_needs(self) -> tuple[LevelNeed, ...]:
        needs = [_COMPILE_GRAPH]
        needs += [_CONSTANT_NODE] if self.graph.constants else []
        for node in self.graph.operator_nodes:
            needs += [
                LevelNeed(need.level, f"{need.part} of the node {node.name}")
                for need in level_needs(node.operator, node.desc)
            ]
        return tuple(needs)

    def _data_types(self) -> frozenset[DataType]:
        graph = self.graph
        tensors: list[TensorDesc] = [*graph.inputs.values(), *graph.outputs.values()]
        for node in graph.nodes:
            tensors += [*node.inputs.values(), *node.outputs.values()]
        return frozenset(tensor.DataType for tensor in tensors)

    def violations(self) -> tuple[str, ...]:
        """Return the names of the broken wiring rules and enforced constraints."""
        broken: tuple[str, ...] = self.once(
            "violations",
            lambda: tuple(dict.fromkeys(problem.rule for problem in graph_problems(self.graph))),
        )
        return broken

    def documented_violations(self) -> tuple[str, ...]:
        """Return what `violations` returns, which leaves out unenforced constraints of nodes."""
        return self.violations()

    def with_tensors(self, change: Callable[[str, TensorDesc], TensorDesc]) -> Self:
        """Return the case unchanged, since its tensors also have a desc in each node."""
        return self

    def constraint_error(self) -> CaseError:
        """Return the problems of the graph as one error; there must be a problem."""
        first, *others = [
            CaseError(problem_location(problem), problem.message, problem.hint or REJECTION_HINT)
            for problem in graph_problems(self.graph)
        ]
        return CaseError(first.where, first.message, first.hint, others)

    def _own_rule(self, output: str) -> PrecisionRule:
        return _RULE


def problem_location(problem: WiringProblem) -> tuple[str | int, ...]:
    """Return the keys that lead to a problem in the case's YAML, such as `nodes`, `conv`."""
    if not problem.node:
        return ("outputs", problem.tensor) if problem.tensor else ("outputs",)
    where = ("nodes", problem.node.partition("[")[0])
    return (*where, *desc_location(problem.tensor)) if problem.tensor else where


def with_graph(case: Case, graph: Graph, **changes: Any) -> GraphCase:
    """Return a graph case that is otherwise like the given case of an operator or a graph.

    Args:
        changes: other attributes to change, such as `data`.
    """
    kept = {each.name: getattr(case, each.name) for each in fields(Case) if each.init}
    of_graph = {
        "operator_name": GRAPHS,
        "desc": {**graph.inputs, **graph.outputs},
        "graph": graph,
        "relation": case.relation,
    }
    return GraphCase(**(kept | of_graph | changes))


def node_case(case: Case, node: Node, data: Mapping[str, Array | Fill]) -> Case:
    """Return a node as a separate case: the operator, with these inputs.

    Args:
        case: the graph. A pair of `in_place` is kept if both tensors belong to the node.
        data: the node's inputs by tensor, shaped like the node's descs.
    """
    return Case(
        identifier=f"{case.identifier}#{node.name}",
        operator_name=node.operator_name,
        desc=node.desc,
        data=data,
        expectation=None,
        tags=case.tags,
        about=case.about,
        in_place=_in_place(case, node) if case.in_place else {},
    )


def _in_place(case: Case, node: Node) -> dict[str, str]:
    sources, outputs = case.graph.sources(), case.graph.output_sources()
    readers = {
        sources[node.name, name]: name for name in node.inputs if (node.name, name) in sources
    }
    return {
        outputs[output][1]: readers[source]
        for output, source in case.in_place.items()
        if outputs[output][0] == node.name and source in readers
    }
