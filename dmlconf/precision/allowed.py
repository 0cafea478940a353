"""The values that a rule allows for single elements, and how far off a wrong element is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.allowance import Allowance, permitted_intervals
from dmlconf.precision.room import permitted_ends
from dmlconf.precision.rules import within
from dmlconf.precision.ulp import ulp_distance
from dmlconf.tensors.datatypes import Array

__all__ = ["MOST_INTERVALS", "allowed_at", "off_by"]

MOST_INTERVALS: Final = 4
"""The most intervals that are returned for one element."""

Ends = tuple[float | int, float | int]


def allowed_at(
    expected: Array, rule: PrecisionRule, allowance: Allowance, indices: Sequence[int]
) -> list[list[Ends]]:
    """Return the intervals of right values of some elements.

    Values that do not count as room (`room.room`), such as flushed numbers, are left out.

    Args:
        indices: the elements, by their indices in row-major order.

    Returns:
        For each of these elements, the least and the greatest right value of each interval: at most
        `MOST_INTERVALS` under a rule `one of`, one under other rules.

    Raises:
        ValueError: a rule `accumulate` or `interval` needs something that the allowance does not
            have.
    """
    flat = np.ascontiguousarray(expected).ravel()
    if rule.kind != RuleKind.ONE_OF:
        lowest, highest = permitted_ends(flat, rule, allowance)
        return [[(lowest[at].item(), highest[at].item())] for at in indices]
    intervals = [(a.ravel(), b.ravel()) for a, b in permitted_intervals(rule.kind, allowance)]
    is_candidate = np.zeros(len(flat), bool)
    for ends_of_candidate in intervals:
        is_candidate |= within(flat, *ends_of_candidate)
    allowed = []
    for at in indices:
        ends = [(lowest[at].item(), highest[at].item()) for lowest, highest in intervals]
        if not is_candidate[at]:
            value = flat[at].item()
            ends = [(value, value)]
        allowed.append(list(dict.fromkeys(ends))[:MOST_INTERVALS])
    return allowed


def off_by(
    actual: float, expected: float, rule: PrecisionRule, like: Array
) -> tuple[float | int | None, str]:
    """Return how far a value is from the expected one, and the unit of that distance.

    For floating-point types, the unit is `ULP` under a rule `ulp`, and `relative` under a rule
    `relative` unless 0 is expected. Other distances are differences, with an empty unit. If a
    floating-point value is NaN or infinite, the distance is None.

    Args:
        like: an array of the output's data type.
    """
    if like.dtype.kind != "f":
        return abs(int(actual) - int(expected)), ""
    if not (math.isfinite(actual) and math.isfinite(expected)):
        return None, ""
    if rule.kind == RuleKind.ULP:
        pair = np.array([actual], like.dtype), np.array([expected], like.dtype)
        return int(ulp_distance(*pair)[0]), "ULP"
    distance = abs(actual - expected)
    if rule.kind == RuleKind.RELATIVE and expected:
        return distance / abs(expected), "relative"
    return distance, ""
