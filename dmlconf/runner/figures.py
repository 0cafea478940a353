"""The figures that a verdict keeps of a comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.compare import Comparison
from dmlconf.precision.room import Room

__all__ = ["figures_of"]


def figures_of(comparison: Comparison, rule: PrecisionRule, room: Room) -> Mapping[str, Any]:
    """Return what the log keeps of a comparison.

    Args:
        comparison: what comparing an output found.
        rule: the rule that it was compared under.
        room: how many elements the rule hardly judges.
    """
    figures: dict[str, Any] = {
        "elements": comparison.elements,
        "differing": comparison.differing,
        "worst_ulp": comparison.worst_ulp,
        "rule": str(rule.kind),
        "limit": rule.limit,
        "margin": _margin(comparison),
        "source": rule.source,
        "open": room.open,
        "loose": room.loose,
    }
    if rule.kind == RuleKind.ACCUMULATE:
        figures["products"] = rule.products
    if comparison.worst_coordinates is not None:
        figures["worst_coordinates"] = list(comparison.worst_coordinates)
    if comparison.histogram:
        figures["histogram"] = {
            "NaN" if math.isinf(step) else f"{step:.0f}": count
            for step, count in comparison.histogram.items()
        }
    return figures


def _margin(comparison: Comparison) -> float:
    """Return the share of the limit that is used, by the worst element or by all together."""
    share = max(comparison.margin, comparison.spread)
    return share if math.isinf(share) else float(f"{share:.4g}")
