"""Find the operators in the graphs of a suite, and the pairs of neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from dmlconf.cases.building.build import build
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.selection import graphs_in

__all__ = ["GraphCoverage", "graph_coverage"]


@dataclass(frozen=True, slots=True)
class GraphCoverage:
    """Which of some operators the graphs of a suite contain.

    Attributes:
        cases: number of graphs with any of the operators.
        most_nodes: the nodes of the largest of these graphs, with constants; 0 without graphs.
        operators: those of the operators that a graph contains.
        neighbours: for each pair of operators, in how many graphs the first feeds the second. At
            least one of the pair is among the operators.
    """

    cases: int
    most_nodes: int
    operators: frozenset[str]
    neighbours: Counter[tuple[str, str]]


def graph_coverage(plan: Iterable[PlannedCase], operators: Collection[str]) -> GraphCoverage:
    """Return which of some operators the graphs of a plan contain.

    Args:
        operators: graphs and pairs without any of these do not count.
    """
    cases = most = 0
    nodes: set[str] = set()
    pairs: Counter[tuple[str, str]] = Counter()
    for planned in graphs_in(plan):
        graph = build(planned).graph
        if not {*graph.operators} & {*operators}:
            continue
        cases += 1
        most = max(most, len(graph.nodes))
        nodes |= {*graph.operators} & {*operators}
        pairs.update(pair for pair in graph.neighbours() if {*pair} & {*operators})
    return GraphCoverage(cases, most, frozenset(nodes), pairs)
