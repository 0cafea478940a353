"""The outputs of graphs in which some nodes give unknown values."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.reference.evaluation import evaluate

__all__ = ["with_unknown_behind"]


def with_unknown_behind(case: Case, nodes: Iterable[str]) -> Computed | None:
    """Return a graph's right outputs; those of some nodes, and of all nodes behind, are unknown.

    None if no output of the graph is unknown.

    Args:
        nodes: the names of the nodes.
    """
    graph = case.graph
    reached = {each for name in nodes for each in (name, *graph.nodes_behind(name))}
    outputs = [output for output, (name, _) in graph.output_sources().items() if name in reached]
    if not outputs:
        return None
    right = evaluate(case)
    return Computed(
        right,
        allowance=CaseAllowances(case, right=right).of,
        unknown={output: np.ones(right[output].shape, np.bool_) for output in outputs},
    )
