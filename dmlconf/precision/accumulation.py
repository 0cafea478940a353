"""The limit of a sum's error, from its terms, its stores and its last rounding.

Kernels add up in FLOAT32, in any order, and store FLOAT32 or FLOAT16. The error of an element has
up to three parts:

- the additions: 13 roundings for 9 terms and 34 for 100, each 2^-24 of the error scale;
- the stores of intermediates in FLOAT16, in kernels known to do so: 2^-10 of each value;
- the last store in FLOAT16, rounded to nearest or toward zero: one ULP of the result, and half an
  ULP for the rounding of the expected value.

Sums are computed in FLOAT64 for FLOAT64 outputs, and in FLOAT16 for FLOAT16 outputs if the backend
may do so.

docs/bounds.md derives the limits; `dmlconf.permitted` computes the error scales.

Sources: IEEE 754-2019, 4.3 (roundings); Higham and Mary, A new approach to probabilistic rounding
error analysis (2019), for the root of the number of terms; TOSA 1.1, dot products, for sums of
FLOAT16 and for the mean of squared errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, overload

import numpy as np
from numpy.typing import DTypeLike

from dmlconf.catalogue.precision import PrecisionRule
from dmlconf.precision.allowance import SumErrors
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import FLOAT16_EPSILON, LARGEST_FLOAT32

__all__ = ["Accumulation", "float16_ulps", "roundings"]

_UNIT_ROUNDOFF: Final = {np.dtype(np.float16): 2.0**-24, np.dtype(np.float32): 2.0**-24}
"""The relative error of one addition in FLOAT32, by the type of the output."""

_ANYTHING: Final = 2.0**300
"""The error scale above which any result of a sum computed in FLOAT32 is right.

`ANY_RESULT` of `dmlconf.permitted.numbers.rounding` exceeds this number.
"""

_FLOAT16_BITS: Final = 11
_FLOAT32_BITS: Final = 24

_STORES: Final = 1.5
"""The most ULPs between a truncated result and an expected value that is rounded to nearest."""

_OWN_STORE: Final = 1.0
"""The most ULPs between a number and the same number stored in FLOAT16."""

_CONSTANT: Final = 4.0
_PER_ROOT: Final = 3.0
"""A sum of n > 5 terms may be off by `_CONSTANT + _PER_ROOT * sqrt(n)` roundings. Random errors of
n additions are about 0.41 sqrt(n) roundings, and hardly ever more than 3 sqrt(n)."""

_VARIANCE: Final = 0.8
"""For n terms, the mean of squared errors may be `_VARIANCE * n + _CONSTANT`, in roundings."""

_ITERATIONS: Final = 3
"""How often an interval's end is computed at most, if the limit depends on that end."""

_TOSA_VARIANCE: Final = 1.6
"""TOSA permits `_TOSA_VARIANCE * n` as mean of squared errors.

This limit holds for sums computed in FLOAT16, and for sums of fewer than 5 terms, for which it is
below `_VARIANCE * n + _CONSTANT`.
"""


@dataclass(frozen=True, slots=True)
class Accumulation:
    """The limits of a rule of the kind `accumulate` for an output, or for a part of it.

    Attributes:
        errors: the error scales of the output's elements, as flat arrays.
        half: whether the backend may compute sums in FLOAT16.
        varied: whether the output's elements are many and mostly different, so that their errors
            count as independent.
        terms_vary: whether the terms of each sum differ, so that the errors of its additions count
            as independent.
    """

    rule: PrecisionRule
    errors: SumErrors
    half: bool
    varied: bool
    terms_vary: bool

    @property
    def may_overflow(self) -> bool:
        """Whether an intermediate may overflow FLOAT32, so that a result far off may be right.

        Also true if there is an array `errors.overflows`, even if it marks no element.
        """
        if self.errors.overflows is not None:
            return True
        finite = np.isfinite(self.errors.sums)
        return bool((finite & (self.errors.sums > LARGEST_FLOAT32)).any())

    def part(self, block: slice) -> Accumulation:
        """Return the limits for a block of elements."""
        if block.start == 0 and block.stop >= self.errors.sums.size:
            return self
        return replace(self, errors=self.errors.at(block))

    def ends(self, expected: Array, dtype: np.dtype[Any] | None = None) -> tuple[Array, Array]:
        """Return the least and the greatest right values, both infinite if every value is right.

        If only the lower end is -2^128 or less, it becomes -infinity; if only the upper end is
        2^128 or more, infinity. In FLOAT16 the bound is 2^16.
        Infinities that only `overflowing` permits may lie outside of the ends.

        Args:
            expected: the expected values in the output's type, or FLOAT64 values that have not been
                rounded to the output's type.
            dtype: the output's type if `expected` has not been rounded.
        """
        stores = _STORES if dtype is None else _OWN_STORE
        dtype = dtype or expected.dtype
        beyond = _beyond(dtype)
        with np.errstate(all="ignore"):
            values = np.clip(expected.astype(np.float64), -beyond, beyond)
            error_scale = self._error_scale(values, dtype)
            limits = self._limits(values, error_scale, dtype, stores)
            nothing = error_scale == 0

            def reach(end: Array) -> Array:
                limit = limits.at(limits.ulps(end, values))
                return np.where(nothing | ~np.isfinite(limit), 0.0, limit)

            near = reach(values)
            undefined = self._undefined(dtype)
            ends = []
            for side in (-1.0, 1.0):
                end = values + side * near
                # A limit may include the ULP at the end of the interval, and so depend on it.
                for _ in range(_ITERATIONS - 1 if limits.stores else 0):
                    before, end = end, values + side * reach(end)
                    if np.array_equal(before, end):
                        break
                if limits.stores:
                    # The next power of two has a larger ULP, so it may be right although the
                    # numbers just below it are wrong.
                    power: Array = np.ldexp(limits.ulps(end, values), _FLOAT16_BITS)
                    farther: Array = values + side * reach(power)
                    end = np.where(side * farther >= power, farther, end)
                ends.append(np.where(undefined, side * np.inf, end))
            # An element that may be any finite number is not open: NaN may still be wrong.
            lowest, highest = ends
            one_sided = ~((lowest <= -beyond) & (highest >= beyond))
            lowest = np.where(one_sided & (lowest <= -beyond), -np.inf, lowest)
            highest = np.where(one_sided & (highest >= beyond), np.inf, highest)
        return lowest, highest

    def overflowing(self, dtype: np.dtype[Any]) -> Array | None:
        """Return where infinities and NaN may also be right; None for nowhere."""
        scale = self.errors.sums
        beyond: Array = np.isfinite(scale) & (scale > self._largest_sum(dtype))
        if self.errors.overflows is not None:
            beyond = beyond | self.errors.overflows
        if self.half and self.errors.by_sign is not None:
            # Finite terms may overflow FLOAT16 beside infinite ones.
            least, greatest = (np.where(np.isfinite(s), s, 0.0) for s in self.errors.by_sign)
            beyond = beyond | (np.maximum(-least, greatest) > self._largest_sum(dtype))
        return beyond if beyond.any() else None

    def overflowing_to(self, value: float, dtype: np.dtype[Any]) -> Array | None:
        """Return where an infinite or NaN `value` is right since a sum may overflow, or None."""
        beyond = self.overflowing(dtype)
        if beyond is None:
            return None
        shape = beyond.shape
        values = np.full(shape, value, dtype)
        return beyond & self._overflowed(values, lambda array: np.broadcast_to(array, shape))

    def _overflowed(self, actual: Array, select: Callable[[Array], Array]) -> Array:
        """Return which values an overflow may give: infinities and NaN that `by_sign` permits.

        Args:
            select: returns the elements of an array to which `actual` belongs.
        """
        if self.errors.by_sign is None:
            return ~np.isfinite(actual)
        possible = self.errors.overflow_results(self._largest_sum(actual.dtype))
        up, down, nan = map(select, possible)
        return np.where(np.isnan(actual), nan, np.isinf(actual) & np.where(actual > 0, up, down))

    def _largest_sum(self, dtype: np.dtype[Any]) -> float:
        own = self.half or dtype.itemsize == 8
        return float(np.finfo(dtype if own else np.float32).max)

    def _undefined(self, dtype: np.dtype[Any]) -> Array:
        """Return which elements are open, since their error scales are too large."""
        overflow = self._largest_sum(dtype)
        undefined: Array = np.isfinite(self.errors.sums) & (
            self.errors.sums > (_ANYTHING if overflow == LARGEST_FLOAT32 else overflow)
        )
        return undefined

    def shares(self, actual: Array, expected: Array) -> tuple[Array, Array]:
        """Return each error as a share of its limit, and as a share of the permitted deviation.

        The permitted deviation limits the root mean square of the errors of many elements. Infinity
        counts as the number that `_beyond` returns. The share is 0 for equal values, for open
        elements, and for infinities and NaN where `overflowing` permits them.

        Args:
            expected: the expected values in the output's type, or FLOAT64 values that have not been
                rounded to the output's type.
        """
        dtype, beyond = actual.dtype, _beyond(actual.dtype)
        with np.errstate(all="ignore"):
            a = np.clip(actual.astype(np.float64), -beyond, beyond)
            e = np.clip(expected.astype(np.float64), -beyond, beyond)
            error_scale = self._error_scale(e, dtype)
            overflows = self.overflowing(dtype)
            error = np.abs(a - e)
            limits = self._limits(
                e, error_scale, dtype, _STORES if expected.dtype == dtype else _OWN_STORE
            )
            ulps = limits.ulps(a, e)
            share, apart = error / limits.at(ulps), error / self._deviation(limits, ulps, dtype)
        odd_elements = ~np.isfinite(share) | (error_scale == 0)
        special = np.nonzero(odd_elements if overflows is None else odd_elements | overflows)
        if special[0].size:

            def odd(values: Array) -> Array:
                return np.broadcast_to(values, share.shape)[special]

            x, y, m = odd(actual), odd(expected), odd(self.errors.sums)
            right = (x == y) | (np.isnan(x) & np.isnan(y)) | odd(self._undefined(dtype))
            if overflows is not None:
                right |= odd(overflows) & self._overflowed(x, odd)
            for values in (share, apart):
                wrong = np.where(np.isnan(values[special]) | (m == 0), math.inf, values[special])
                values[special] = np.where(right, 0.0, wrong)
        return share, apart

    def _error_scale(self, expected: Array, dtype: np.dtype[Any]) -> Array:
        """Return the error scale, at most the largest number of the type of sums.

        `errors.growth` above 1 multiplies this bound. The magnitude of the expected value replaces
        an infinite or NaN error scale.
        """
        sums, largest = self.errors.sums, self._largest_sum(dtype)
        error_scale = np.where(np.isfinite(sums), sums, np.abs(expected))
        growth = self.errors.growth
        if growth is None:
            return np.minimum(error_scale, largest)
        return np.minimum(error_scale, largest * np.fmax(growth, 1.0))

    def _limits(
        self, expected: Array, error_scale: Array, dtype: np.dtype[Any], stores: float
    ) -> _Limits:
        """Return the greatest permitted error of each element.

        Args:
            stores: the ULPs that rounding to FLOAT16 adds to sums in FLOAT32.
        """
        info, terms = np.finfo(dtype), self.rule.products
        stored = self._lost_in_stores(self.errors.stored)
        if self.half and dtype == np.float16:
            unit = np.maximum(error_scale * 2.0**-11, float(info.smallest_subnormal) / 2)
            unit *= self.rule.limit
            return _Limits(unit, 2 * terms * unit + 2 * stored)
        share = _UNIT_ROUNDOFF.get(dtype, 2.0**-53)
        floor = float(info.tiny) if self.rule.flushes else float(info.smallest_subnormal) / 2
        unit = error_scale * share
        if dtype != np.float16:
            unit = np.maximum(unit, floor)
        unit = unit * self.rule.limit
        additions = unit * self._roundings(np.abs(expected), error_scale)
        exact = self._exact(
            error_scale, _FLOAT32_BITS, np.float32 if dtype == np.float16 else dtype
        )
        if dtype != np.float16:
            return _Limits(unit, additions, lossless=exact)
        if exact is not None:
            # The expected value is rounded as well, so an error before the store adds to both.
            exact = exact & (stored == 0)
        # A store beyond the largest number is not exact: some kernels round it, others truncate it.
        lossless = self._exact(error_scale, _FLOAT16_BITS, np.float16)
        if lossless is not None:
            lossless = lossless & (stored == 0) & (error_scale <= float(info.max))
        return _Limits(unit, additions, stores, stored, exact, lossless)

    def _deviation(self, limits: _Limits, ulps: Array | float, dtype: np.dtype[Any]) -> Array:
        """Return for each element the deviation that `shares` permits."""
        terms, stored = self.rule.products, self._lost_in_stores(self.errors.stored)
        if self.half and dtype == np.float16:
            return math.sqrt(_TOSA_VARIANCE * terms) * limits.unit + 2 * stored
        mean = math.sqrt(min(_TOSA_VARIANCE * terms, _VARIANCE * terms + _CONSTANT))
        # The root mean square of equal errors is as large as each of them.
        share = max(mean, roundings(terms) / 2) if self.errors.sums_shared else mean
        deviation: Array = limits.unit * share
        if self.errors.terms_repeat:
            deviation = np.maximum(deviation, limits.additions / 2)
        if dtype != np.float16:
            return deviation
        in_stores = (
            stored if self.errors.deviation is None else self._lost_in_stores(self.errors.deviation)
        )
        together: Array = np.sqrt(np.square(deviation) + np.square(ulps) + np.square(in_stores))
        return together

    @staticmethod
    def _lost_in_stores(sizes: Array | None) -> Array | float:
        """Return how much a FLOAT16 store may lose of numbers of these sizes."""
        return 0.0 if sizes is None else FLOAT16_EPSILON * sizes

    def _roundings(self, expected: Array, error_scale: Array) -> Array | float:
        terms = self.rule.products
        most = 2.0 * terms
        likely = roundings(terms)
        if likely >= most or self.terms_vary:
            return likely
        # The errors of additions of equal terms may all have the same sign.
        size: Array = np.divide(
            expected, error_scale, out=np.ones_like(expected), where=error_scale > 0
        )
        return np.minimum(most, likely + terms * np.minimum(size, 1.0))

    def _exact(self, error_scale: Array, bits: int, dtype: DTypeLike) -> Array | None:
        """Return which sums are exact in a type of `bits` significant bits.

        None if the quantum is less than the least subnormal number of the type.
        """
        if self.errors.quantum < float(np.finfo(dtype).smallest_subnormal):
            return None
        exact: Array = error_scale <= self.errors.quantum * 2.0**bits
        return exact


@dataclass(frozen=True, slots=True)
class _Limits:
    """The greatest permitted errors, as a function of the ULP of the value that is stored.

    Attributes:
        unit: the error of one rounding, times the limit of the rule.
        additions: the greatest error of all additions together; for sums computed in FLOAT16, with
            the errors of stores.
        stores: the ULPs that the last store may add; 0 if no error depends on a ULP.
        stored: the errors of intermediates that are stored in FLOAT16; 0 if `additions` has them.
        exact: where additions are exact and no intermediate is stored, so that the last store is
            off by one ULP at most; None for nowhere.
        lossless: where all stores are exact as well; None for nowhere.
    """

    unit: Array
    additions: Array
    stores: float = 0.0
    stored: Array | float = 0.0
    exact: Array | None = None
    lossless: Array | None = None

    def ulps(self, actual: Array, expected: Array) -> Array | float:
        """Return the FLOAT16 ULP at the greater magnitude of each pair; 0 if no limit needs it."""
        if not self.stores:
            return 0.0
        return float16_ulps(np.maximum(np.abs(actual), np.abs(expected)))

    def at(self, ulps: Array | float) -> Array:
        """Return the greatest permitted error of elements with these ULPs."""
        limit = self.additions
        if self.stores:
            limit = limit + self.stores * ulps
            limit = limit if self.exact is None else np.where(self.exact, ulps, limit)
            limit = limit + self.stored
        return limit if self.lossless is None else np.where(self.lossless, 0.0, limit)


def _beyond(dtype: np.dtype[Any]) -> float:
    """Return the number as which infinity counts: 2^16 in FLOAT16, 2^128 in FLOAT32.

    These are the least powers of two that overflow. FLOAT64 keeps infinity.
    """
    return math.inf if dtype.itemsize == 8 else 2.0 ** math.frexp(float(np.finfo(dtype).max))[1]


@overload
def roundings(terms: int) -> float: ...
@overload
def roundings(terms: Array) -> Array: ...
def roundings(terms: int | Array) -> float | Array:
    """Return the greatest likely error of a sum, in roundings of its error scale."""
    likely: float | Array = np.minimum(2.0 * terms, _CONSTANT + _PER_ROOT * np.sqrt(terms))
    return likely


def float16_ulps(values: Array) -> Array:
    """Return the ULP of FLOAT16 at finite values, FLOAT64: 2^-10 at 1.5."""
    least = 2.0**-14
    _, exponent = np.frexp(np.maximum(np.abs(values), least))
    ulp: Array = np.ldexp(1.0, exponent - _FLOAT16_BITS)
    return ulp
