"""The figures that a verdict keeps of a comparison."""

from __future__ import annotations

import math

from dmlconf.cases.model import Provenance
from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.compare import Comparison
from dmlconf.precision.room import Room
from dmlconf.tensors.sample import Sample
from dmlconf.verdicts.figures import Figures

__all__ = ["figures_of"]


def figures_of(
    comparison: Comparison,
    rule: PrecisionRule,
    room: Room,
    provenance: Provenance,
    sample: Sample | None = None,
) -> Figures:
    """Return what the log keeps of a comparison of an output.

    Args:
        room: how many elements are open, and how many are loose.
        provenance: where the expected values are from.
        sample: the sample, if only a sample of the output was recorded.
    """
    typical = rule.typical
    worst = comparison.worst_coordinates
    return Figures(
        elements=comparison.elements,
        differing=comparison.differing,
        worst_ulp=comparison.worst_ulp,
        rule=str(rule.kind),
        limit=rule.limit,
        margin=_margin(comparison),
        source=rule.source,
        expectation=provenance,
        open=room.open,
        loose=room.loose,
        typical=typical,
        typical_margin=None if typical is None else _rounded(comparison.margin / typical),
        products=rule.products if rule.kind == RuleKind.ACCUMULATE else None,
        sample=None if sample is None else len(sample.values),
        worst_coordinates=None if worst is None else tuple(worst),
        histogram={
            "NaN" if math.isinf(step) else f"{step:.0f}": count
            for step, count in comparison.histogram.items()
        },
    )


def _margin(comparison: Comparison) -> float:
    """Return the larger share of the limit: the worst element's or that of the squared errors."""
    return _rounded(max(comparison.margin, comparison.spread))


def _rounded(share: float) -> float:
    return share if math.isinf(share) else float(f"{share:.4g}")
