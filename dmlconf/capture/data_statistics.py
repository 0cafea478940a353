"""Statistics of a tensor's finite elements: range, share of zeros, count, whether all are whole.

A fill made from these statistics gives similar data, and reveals nothing else of the original.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["DataStatistics", "following"]

_MANY_ZEROS: Final = 1 / 8
"""Data with fractions whose least number is 0 is taken for RELU's output if at least this share of
it is 0.
"""

_LARGEST_WHOLE: Final = 2.0**53
"""FLOAT64 has every whole number up to this magnitude."""


@dataclass(frozen=True, slots=True)
class DataStatistics:
    """Statistics of the finite elements of a tensor.

    Attributes:
        low: the least element; `high` is the greatest.
        zeros: the share of zeros, from 0 to 1.
        whole: whether all are whole numbers.
        count: how many finite elements there are.
    """

    low: float
    high: float
    zeros: float
    whole: bool
    count: int

    @classmethod
    def of(cls, array: Array) -> DataStatistics | None:
        """Return the statistics of an array; None if it has no finite element."""
        finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array.ravel()
        if not finite.size:
            return None
        whole = array.dtype.kind != "f" or bool((np.trunc(finite) == finite).all())
        zeros = 1 - np.count_nonzero(finite) / finite.size
        return cls(finite.min().item(), finite.max().item(), float(zeros), whole, finite.size)

    def fill(self, seed: int) -> Mapping[str, Any]:
        """Return a fill, as in a case file, of about this range."""
        low, high = self.low, self.high
        if low == high:
            return {"constant": {"value": low}}
        if isinstance(low, int) or (self.whole and max(-low, high) <= _LARGEST_WHOLE):
            return {"integers": {"low": int(low), "high": int(high), "seed": seed}}
        if low == 0 and _MANY_ZEROS <= self.zeros < 1:
            from statistics import NormalDist  # Slow to import, and few fills need it.

            # The greatest of `count` numbers is about the quantile 1 - 0.5 / count.
            at = NormalDist().inv_cdf
            least, most = at(self.zeros), at(1 - 0.5 / self.count)
            deviation = high / (most - least)
            mean = -least * deviation
            return {"normal": {"mean": mean, "deviation": deviation, "least": 0, "seed": seed}}
        return {"uniform": {"low": low, "high": high, "seed": seed}}


def following(
    statistics: DataStatistics | None, generated: Mapping[str, Any], seed: int
) -> Mapping[str, Any]:
    """Return an input's data as in a case file: a fill that follows statistics, if possible.

    Args:
        statistics: the statistics of the application's data; None if unknown.
        generated: the data to return without statistics, or if it has no fill, such as a list of
            distinct indices.
    """
    if statistics is None or "fill" not in generated:
        return generated
    return {"fill": statistics.fill(seed)}
