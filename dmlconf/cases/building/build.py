"""Build a case from its entry in a file and its row of the matrix."""

from __future__ import annotations

from dmlconf.cases.building.operator_build import build_operator_case
from dmlconf.cases.model import Case, PlannedCase

__all__ = ["build"]


def build(planned: PlannedCase) -> Case:
    """Return the case.

    Raises:
        CaseError: the entry is not a valid case with these parameters.
    """
    if planned.template.is_graph:
        from dmlconf.cases.building.graph_build import build_graph  # Few runs have graphs only.

        return build_graph(planned)
    return build_operator_case(planned)
