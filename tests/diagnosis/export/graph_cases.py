"""Take graphs of the suite as cases that have arrays instead of fills."""

from __future__ import annotations

from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import valid_case
from dmlconf.diagnosis.reduction.reduce import with_own_data
from tests.bundled import bundled

__all__ = ["graph_of"]


def graph_of(beginning: str) -> GraphCase:
    """Return the first graph of the suite whose identifier begins with `graphs/` and this text."""
    file = beginning.partition("/")[0]
    plan = bundled(f"graphs/{file}.yaml").plan()
    named = (p for p in plan if p.identifier.startswith(f"graphs/{beginning}"))
    case = with_own_data(valid_case(next(named)))
    assert isinstance(case, GraphCase)
    return case
