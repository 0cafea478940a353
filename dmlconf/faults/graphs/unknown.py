"""The outputs of graphs in which some nodes give unknown values."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.reference.evaluation import evaluate

__all__ = ["with_unknown"]


def with_unknown(case: Case, nodes: Collection[str]) -> Computed | None:
    """Return a graph's right outputs, unknown where some nodes feed them; None if none does.

    Args:
        nodes: the names of the nodes, with all that read what is unknown.
    """
    sources = case.graph.output_sources()
    outputs = [output for output, (name, _) in sources.items() if name in nodes]
    if not outputs:
        return None
    right = evaluate(case)
    return Computed(
        right,
        allowance=CaseAllowances(case, right=right).of,
        unknown={output: np.ones(right[output].shape, np.bool_) for output in outputs},
    )
