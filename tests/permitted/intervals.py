"""Judge an output by a rule of several candidates, for tests of what is permitted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.allowance import Allowance, Interval
from dmlconf.precision.compare import compare
from dmlconf.tensors.datatypes import Array

__all__ = ["hull", "is_permitted"]


def hull(intervals: Sequence[Interval]) -> Interval:
    """Return the least and the greatest value that several candidates permit."""
    lowest, highest = zip(*intervals, strict=True)
    return np.fmin.reduce(lowest), np.fmax.reduce(highest)


def is_permitted(actual: Array, expected: Array, *intervals: Interval) -> Array:
    """Return which elements of `actual` a rule `one of` permits, each compared alone.

    The intervals are its candidates; `expected` is permitted, too.
    """
    rule = PrecisionRule(RuleKind.ONE_OF, 0, "test")
    singles = zip(actual.ravel(), expected.ravel(), strict=True)
    permitted = [
        compare(
            np.array([value], actual.dtype),
            np.array([right], expected.dtype),
            rule,
            Allowance(
                candidates=[
                    (low.ravel()[at : at + 1], high.ravel()[at : at + 1]) for low, high in intervals
                ]
            ),
        ).passed
        for at, (value, right) in enumerate(singles)
    ]
    return np.array(permitted).reshape(actual.shape)
