"""Count the cases of each operator in a plan, or of one operator in the bundled suite."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from dmlconf.cases.building.graph_build import operators_in
from dmlconf.cases.model import PlannedCase
from dmlconf.cli.options.selection import load

__all__ = ["all_case_counts", "case_counts"]


def case_counts(name: str) -> Counter[str]:
    """Return how many cases of an operator the bundled suite has, by file name.

    A case in `gather/documented.yaml` counts for `documented`, and a graph with a node of the
    operator for `graphs`.
    """
    return all_case_counts(load((), operators=[name]).plan())[name]


def all_case_counts(plan: Iterable[PlannedCase]) -> Mapping[str, Counter[str]]:
    """Return the counts of `case_counts` for each operator in a plan."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for planned in plan:
        template = planned.template
        counts[template.operator_name][template.about.location.path.stem] += 1
        for name in operators_in(planned):
            counts[name]["graphs"] += 1
    return counts
