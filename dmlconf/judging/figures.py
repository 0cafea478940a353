"""The figures that a verdict keeps of a comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dmlconf.cases.model import Provenance
from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.compare import Comparison
from dmlconf.precision.room import Room
from dmlconf.tensors.sample import Sample

__all__ = ["figures_of"]


def figures_of(
    comparison: Comparison,
    rule: PrecisionRule,
    room: Room,
    provenance: Provenance,
    sample: Sample | None = None,
) -> Mapping[str, Any]:
    """Return what the log keeps of a comparison.

    Args:
        comparison: of an output.
        rule: the rule that it was compared under.
        room: number of elements that the rule hardly judges.
        provenance: where the expected values of the output are from.
        sample: of the output, if only a sample was recorded.
    """
    figures: dict[str, Any] = {
        "elements": comparison.elements,
        "differing": comparison.differing,
        "worst_ulp": comparison.worst_ulp,
        "rule": str(rule.kind),
        "limit": rule.limit,
        "margin": _margin(comparison),
        "source": rule.source,
        "expectation": str(provenance),
        "open": room.open,
        "loose": room.loose,
    }
    if rule.typical is not None:
        figures["typical"] = rule.typical
        figures["typical_margin"] = _rounded(comparison.margin / rule.typical)
    if rule.kind == RuleKind.ACCUMULATE:
        figures["products"] = rule.products
    if sample is not None:
        figures["sample"] = len(sample.values)
    if comparison.worst_coordinates is not None:
        figures["worst_coordinates"] = list(comparison.worst_coordinates)
    if comparison.histogram:
        figures["histogram"] = {
            "NaN" if math.isinf(step) else f"{step:.0f}": count
            for step, count in comparison.histogram.items()
        }
    return figures


def _margin(comparison: Comparison) -> float:
    """Return the share of the limit that the worst element uses, or all elements together."""
    return _rounded(max(comparison.margin, comparison.spread))


def _rounded(share: float) -> float:
    return share if math.isinf(share) else float(f"{share:.4g}")
