"""A sample of a suite: some random cases of each operator, determined by a seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from dmlconf.cases.model import PlannedCase

__all__ = ["sampled"]


def sampled(plan: Sequence[PlannedCase], count: int | None, seed: int) -> list[PlannedCase]:
    """Return at most `count` random cases of each operator, in the plan's order; None for all."""
    if count is None:
        return list(plan)
    by_operator: dict[str, list[int]] = {}
    for index, planned in enumerate(plan):
        by_operator.setdefault(planned.template.operator_name, []).append(index)
    chosen: set[int] = set()
    for operator, indices in by_operator.items():
        few = len(indices) <= count
        chosen.update(indices if few else Random(f"{seed} {operator}").sample(indices, count))
    return [plan[index] for index in sorted(chosen)]
