"""What a rule of several candidates makes of an output, for tests of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.allowance import Interval
from dmlconf.precision.compare import compare
from dmlconf.tensors.datatypes import Array

__all__ = ["is_permitted"]


@dataclass(frozen=True)
class _Candidates:
    """An allowance of candidates and nothing else."""

    intervals: Sequence[Interval]
    half_precision: bool = False

    def right(self) -> Array:
        raise NotImplementedError

    def magnitude(self) -> None:
        return None

    def interval(self) -> Interval | None:
        return None

    def candidates(self) -> Sequence[Interval]:
        return self.intervals

    def flushed(self) -> tuple[Array, Array] | None:
        return None


def is_permitted(actual: Array, expected: Array, *intervals: Interval) -> Array:
    """Tell which elements a rule `one of` permits."""
    rule = PrecisionRule(RuleKind.ONE_OF, 0, "test")
    singles = zip(actual.ravel(), expected.ravel(), strict=True)
    permitted = [
        compare(
            np.array([value], actual.dtype),
            np.array([right], expected.dtype),
            rule,
            _Candidates(
                [(low.ravel()[at : at + 1], high.ravel()[at : at + 1]) for low, high in intervals]
            ),
        ).passed
        for at, (value, right) in enumerate(singles)
    ]
    return np.array(permitted).reshape(actual.shape)
