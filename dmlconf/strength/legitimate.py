"""Legitimate differences of hardware in single operators, which no rule may reject."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dmlconf.catalogue.precision import RuleKind
from dmlconf.strength.injection import Defect, Site
from dmlconf.strength.sums import ORDERS, added_up
from dmlconf.tensors.datatypes import Array

__all__ = ["LEGITIMATE_DIFFERENCES"]


def _flushed(site: Site) -> Iterator[tuple[str, Array]]:
    exact = site.rule.kind == RuleKind.EXACT  # `flushes` then concerns inputs.
    if site.correct.dtype == np.float32 and site.rule.flushes and not exact:
        subnormal = (site.correct != 0) & (np.abs(site.correct) < np.finfo(np.float32).tiny)
        yield "", np.where(subnormal, np.float32(0), site.correct)


def _added_up_in(order: str) -> Defect:
    def differ(site: Site) -> Iterator[tuple[str, Array]]:
        other = added_up(site, order, np.float32)
        if other is not None:
            yield "", other

    return Defect(f"added up {order} in float32", differ)


def _reciprocal(site: Site) -> Iterator[tuple[str, Array]]:
    inputs = site.case.inputs()
    if site.case.operator_name == "ELEMENT_WISE_DIVIDE" and site.correct.dtype.kind == "f":
        with np.errstate(all="ignore"):
            divisor = inputs["BTensor"].astype(np.float32)
            product = inputs["ATensor"].astype(np.float32) * (np.float32(1) / divisor)
            near = product.astype(site.correct.dtype)
            # A divisor whose reciprocal overflows, or is subnormal, may give quite another product.
            # Such divisors, and those within a factor of 4 of them, keep the right quotient.
            tiny, largest = np.finfo(np.float32).tiny, np.finfo(np.float32).max / 4
            usual = (np.abs(divisor) > 1 / largest) & (np.abs(divisor) < 1 / tiny / 4)
        yield "", np.where(usual, near, site.correct)


LEGITIMATE_DIFFERENCES: Final = (
    Defect("float32 subnormals flushed", _flushed),
    *(_added_up_in(order) for order in ORDERS),
    Defect("divided by way of the reciprocal", _reciprocal),
)
"""How right outputs of two devices may differ."""
