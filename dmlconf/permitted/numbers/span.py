"""Interval arithmetic: all values that an intermediate may have after FLOAT16 stores.

A kernel may keep an intermediate in FLOAT32, or store it in FLOAT16, truncated or rounded to
nearest. Each gives a number between two ends, and further operations are applied to these ends. 0.1
becomes 0.09998 in FLOAT16. So an intermediate of 0.1 is between 0.09998 and 0.1, and 10 times the
intermediate is between 0.9998 and 1.

Source: IEEE 1788-2015 (interval arithmetic), 10.5.3, for operations on intervals. The ends here are
FLOAT64; their own rounding errors are far below those of FLOAT32, and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dmlconf.permitted.numbers.rounding import HALF_STEP, STEP
from dmlconf.precision.accumulation import float16_ulps, roundings
from dmlconf.precision.allowance import Interval
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT16

__all__ = ["Span"]


@dataclass(frozen=True, slots=True)
class Span:
    """For each element, all values between two FLOAT64 ends; unknown if an end is NaN."""

    least: Array
    greatest: Array

    @classmethod
    def of(cls, values: Array) -> Span:
        """Return the span of exact values."""
        return cls(values, values)

    @classmethod
    def sums(cls, values: Array, sizes: Array, terms: int, exact: Array | bool = False) -> Span:
        """Return the span of sums of `terms` terms that FLOAT32 adds up in any order.

        `sizes` are the sums of the absolute values of the terms; `exact` sums have no error.
        """
        error = np.where(exact, 0.0, roundings(terms) * HALF_STEP * sizes)
        return cls(values - error, values + error)

    @classmethod
    def around(cls, *values: Array) -> Span:
        """Return the least span that contains some values; NaN if one of them is NaN."""
        return cls(reduce(np.minimum, values), reduce(np.maximum, values))

    @property
    def ends(self) -> Interval:
        """The least and the greatest value."""
        return self.least, self.greatest

    @property
    def finite(self) -> Array:
        """Which elements have two finite ends."""
        return np.isfinite(self.least) & np.isfinite(self.greatest)

    def __add__(self, other: Span | Array | float) -> Span:
        least, greatest = _ends(other)
        return Span(self.least + least, self.greatest + greatest)

    def __sub__(self, other: Span | Array | float) -> Span:
        least, greatest = _ends(other)
        return Span(self.least - greatest, self.greatest - least)

    def __mul__(self, other: Span | Array | float) -> Span:
        least, greatest = _ends(other)
        if least is greatest:
            return Span.around(self.least * least, self.greatest * least)
        return Span.around(
            *(mine * its for mine in (self.least, self.greatest) for its in (least, greatest))
        )

    def __truediv__(self, other: Span | Array | float) -> Span:
        """Return the quotients; the ends of a divisor must not have opposite signs."""
        least, greatest = _ends(other)
        if least is greatest:
            return Span.around(self.least / least, self.greatest / least)
        return Span.around(
            *(mine / its for mine in (self.least, self.greatest) for its in (least, greatest))
        )

    def square(self) -> Span:
        """Return the squares."""
        ends = Span.around(np.square(self.least), np.square(self.greatest))
        crosses = (self.least < 0) & (self.greatest > 0)
        return Span(np.where(crosses, 0.0, ends.least), ends.greatest)

    def map(self, function: Callable[[Array], Array]) -> Span:
        """Return the span of an increasing function of the values."""
        return Span(function(self.least), function(self.greatest))

    def rounded(self, exact: Array | bool = False) -> Span:
        """Return the span of the results of a FLOAT32 operation, rounded once in any direction.

        Results that are `exact` are not rounded.
        """
        step = np.where(exact, 0.0, STEP)
        # Multiplying by factors leaves infinities as they are.
        return Span(
            self.least * (1 - np.copysign(step, self.least)),
            self.greatest * (1 + np.copysign(step, self.greatest)),
        )

    def widened(self, error: Array) -> Span:
        """Return the span with both ends moved outward by an error."""
        return Span(self.least - error, self.greatest + error)

    def held(self) -> Span:
        """Return the span of the values as stored in FLOAT32, or in FLOAT16 with either rounding.

        A number that FLOAT16 has stays as it is.
        """
        return Span(_least_stored(self.least), -_least_stored(-self.greatest))

    def stores(self) -> Iterator[Span]:
        """Yield the spans of stored values: one, or three if a greatest value exceeds 65504.

        A value above this largest FLOAT16 number is kept in FLOAT32, or stored as 65504 or as
        infinity, but not as a number between. Values below -65504 are stored as by `held`.
        """
        held = self.held()
        beyond = self.greatest > LARGEST_FLOAT16
        if not beyond.any():
            yield held
            return
        least = np.where(self.least > LARGEST_FLOAT16, self.least, held.least)
        yield Span(least, np.where(beyond, self.greatest, held.greatest))
        for end in (LARGEST_FLOAT16, np.inf):
            yield Span(np.where(beyond, end, held.least), np.where(beyond, end, held.greatest))

    def or_any(self, others: Iterable[Span]) -> Span:
        """Return the least span that contains this one and others."""
        return reduce(
            lambda a, b: Span(np.minimum(a.least, b.least), np.maximum(a.greatest, b.greatest)),
            others,
            self,
        )


def _least_stored(values: Array) -> Array:
    """Return the least of each value and of the FLOAT16 numbers as which it may be stored."""
    size = np.abs(values)
    ulp = float16_ulps(size)
    truncated = np.floor(size / ulp) * ulp
    # Truncation turns all numbers above 65504 but infinity into 65504.
    truncated = np.where(np.isinf(size), size, np.minimum(truncated, LARGEST_FLOAT16))
    # Rounding to nearest may enlarge a size from half way between two numbers on. Half way it does
    # so only if the larger one is even, but here always.
    largest = np.where(size - truncated >= ulp / 2, truncated + ulp, size)
    # A larger size than the largest FLOAT16 number may be stored as infinity.
    largest = np.where(largest > LARGEST_FLOAT16, np.inf, largest)
    return np.where(values >= 0, truncated, -largest)


def _ends(other: Span | Array | float) -> Interval:
    if isinstance(other, Span):
        return other.ends
    values = np.asarray(other, np.float64)
    return values, values
