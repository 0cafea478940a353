"""Values of recurrent layers that carry their errors from step to step.

The reference computes a layer's equations on `Values`, this module on quantities. A quantity has an
error scale, the sum of all worst-case errors, and spreads, the likely errors. Both are linear: 2 x
has twice the errors of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dmlconf.permitted.activation.errors import ERRORS, infinite_by_factor
from dmlconf.permitted.activation.fused import activated_error_scale
from dmlconf.permitted.numbers.error_scale import LONGEST_WHOLE, ErrorScale
from dmlconf.permitted.numbers.rounding import (
    ANY_RESULT,
    HALF_STEP,
    finite_sizes,
    or_any_result,
    overflows,
)
from dmlconf.permitted.recurrent.spread import ROUNDING, Spread, independent, sources_of
from dmlconf.precision.accumulation import float16_ulps, roundings
from dmlconf.reference.activation.formulas import attributes_of
from dmlconf.reference.activation.fused import Activation
from dmlconf.reference.numbers.half import Store
from dmlconf.reference.recurrent.values import Values
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import (
    FLOAT16_EPSILON,
    LARGEST_FLOAT16,
    LARGEST_FLOAT32,
    LEAST_NORMAL_FLOAT32,
)

__all__ = ["Quantity", "next_state", "product_quantity", "quantity_of"]

_STORES_APART: Final = 2.0
"""How many ULP apart two kernels may store a value in FLOAT16, if it has errors of earlier stores.
This is about 5 standard deviations of the difference of two stores."""

_STORE_BIAS: Final = 0.5
"""The mean error of a store that rounds toward zero, in ULP."""

_CURVATURE: Final = 1.05
"""The factor by which the likely errors of FLOAT16 stores are enlarged in an output, since larger
errors change the slopes. Measured on DirectML 1.8.0: a GRU is off by 1.005 times its likely error.
"""

_ACTIVATION: Final = 2.0
"""The factor by which an activation's own greatest error is enlarged in a spread. The errors of exp
or tanh at similar arguments are similar, so errors of several steps do not cancel.
"""

_MOST_CARRIED: Final = 2.0**200
"""The greatest error scale that a product is computed from. Error scales grow with every step, and
would be infinite after some hundred steps."""

_TOGETHER: Final = 2.0**-20
"""Where two errors are multiplied, an error scale of 1 stands for this error: 16 HALF_STEP."""

_LEAST_REACH: Final = 2.0**-28
"""An activation's slopes are taken over the likely error of its argument, but at least over this
share of the greater of 1 and the argument's size. FLOAT64 then keeps 24 bits of the distance."""

_BESIDE: Final = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
"""Slopes are taken between these points around the argument; 1 stands for that distance."""


@dataclass(slots=True)
class Quantity(Values):
    """Values and the errors that they have in a right implementation.

    Attributes:
        error_scale: the bound of their worst-case errors.
        spreads: the likely errors of FLOAT32 operations, and those of FLOAT16 stores, both in the
            unit of the values; None for exact values.
        terms: for values that are sums, the sums of the terms' sizes; None for the values' own
            sizes.
    """

    error_scale: ErrorScale
    spreads: tuple[Spread, Spread] | None = None
    terms: Array | None = None

    def __getitem__(self, index: Any) -> Quantity:
        terms = None if self.terms is None else self.terms[index]
        spreads = self._each(lambda spread: spread[index])
        return Quantity(self.value[index], self.error_scale[index], spreads, terms)

    def __add__(self, other: Values) -> Quantity:
        other = quantity_of(other)
        total = self._derived(
            self.value + other.value,
            other,
            lambda first, second: first + second,
            lambda first, second: first + second,
        )
        # Finite terms may overflow to infinity; plus an opposite infinity, the sum is then NaN.
        infinite = np.isinf(self.value) | np.isinf(other.value)
        beyond = infinite & (overflows(self._terms()) | overflows(other._terms()))
        if beyond.any():
            total = total.open_where(beyond)
        return replace(total, terms=self._terms() + other._terms())

    def _terms(self) -> Array:
        return np.abs(self.value) if self.terms is None else self.terms

    def __mul__(self, other: Values) -> Quantity:
        other = quantity_of(other)
        product = self._derived(
            self.value * other.value,
            other,
            lambda first, second: first.scaled(other.value) + second.scaled(self.value),
            lambda first, second: first.scaled(other.value) + second.scaled(self.value),
        )
        # A factor that overflows FLOAT32 is infinite; times 0 it is NaN.
        beyond = overflows(np.abs(self.value)) | overflows(np.abs(other.value))
        for infinite, factor in ((self, other), (other, self)):
            beyond |= np.isinf(infinite.value) & factor._may_vanish()
        if beyond.any():
            product = product.open_where(beyond)
        return product._with_both_errors(self, other)

    def _with_both_errors(self, first: Quantity, second: Quantity) -> Quantity:
        """Return the product, with the product of the factors' errors added."""
        (single, half), (mine, held), (theirs, other_held) = (
            each._spreads() for each in (self, first, second)
        )
        together = mine.limit * theirs.limit
        whole = (mine.limit + held.limit) * (theirs.limit + other_held.limit)
        sums = first.error_scale.sums * second.error_scale.sums * _TOGETHER
        sums = np.where(np.isfinite(sums), np.minimum(sums, _MOST_CARRIED), 0.0)
        error_scale = self.error_scale + ErrorScale(sums)
        spreads = single.widened(together), half.widened(whole - together)
        return replace(self, error_scale=error_scale, spreads=spreads)

    def _open(self) -> Array:
        """Return where any result is right: a finite error scale of ANY_RESULT or more."""
        sums = self.error_scale.sums
        opened: Array = (sums >= ANY_RESULT) & np.isfinite(sums)
        return opened

    def _may_vanish(self) -> Array:
        """Return which values are 0 in some right implementations, and not in others."""
        size, reach = np.abs(self.value), self._reach()
        near: Array = (size < LEAST_NORMAL_FLOAT32) | (size <= reach)
        return near & ((size > 0) | (reach > 0))

    def _certainly_infinite(self) -> Array:
        """Return where every right implementation has the same infinity."""
        certain: Array = np.isinf(self.value) & ~self._open()
        return certain

    def _derived(
        self,
        value: Array,
        other: Quantity,
        carried: Callable[[ErrorScale, ErrorScale], ErrorScale],
        spread: Callable[[Spread, Spread], Spread],
    ) -> Quantity:
        """Return a sum or product of two quantities, with their errors and its own rounding."""
        error_scale = carried(self.error_scale, other.error_scale) + ErrorScale(_own_size(value))
        # NaN times zero, or plus any number, is NaN.
        error_scale = error_scale.open_where(self._open() | other._open())
        single, half = map(spread, self._spreads(), other._spreads())
        return Quantity(value, error_scale, (_rounded(single, value, half), half))

    def _spreads(self) -> tuple[Spread, Spread]:
        exact = Spread.none(self.value.shape)
        return (exact, exact) if self.spreads is None else self.spreads

    def _each(self, function: Callable[[Spread], Spread]) -> tuple[Spread, Spread] | None:
        if self.spreads is None:
            return None
        single, half = self.spreads
        return function(single), function(half)

    def complement(self) -> Quantity:
        """Return 1 - x."""
        value = 1 - self.value
        single, half = (spread.scaled(-1.0) for spread in self._spreads())
        error_scale = self.error_scale + ErrorScale(np.ones(1))
        return Quantity(value, error_scale, (_rounded(single, value, half), half))

    def clipped(self, threshold: float) -> Quantity:
        """Return the values between -threshold and threshold.

        Measured: max(NaN, -threshold) is -threshold. For NaN any result is permitted.
        """
        value = np.minimum(np.fmax(self.value, -threshold), threshold)
        exact = ErrorScale(np.zeros_like(value))
        error_scale = exact.where(self._certainly_infinite(), self.error_scale)
        beyond = np.abs(self.value) > threshold + self._reach()
        spreads = self._each(lambda spread: Spread.none(value.shape).where(beyond, spread))
        error_scale = error_scale.open_where(np.isnan(self.value))
        return Quantity(value, error_scale, spreads, self.terms)

    def held(
        self, rounded: Store, exact: Array | bool = False, rows: Array | bool = True
    ) -> Quantity:
        """Return the values as kernels store them in FLOAT16.

        A store removes errors that do not reach another FLOAT16 number. Where a finite number
        overflows in FLOAT16, any result is right.

        Args:
            exact: where the values have no error before the store.
            rows: which rows are stored, sizes {rows, 1}; the others stay as they are. True for all.
        """
        stored = rounded(self.value)
        value = stored if rows is True else np.where(rows, stored, self.value)
        reach = np.where(exact, 0.0, self._reach())
        below, above = rounded(np.stack([self.value - reach, self.value + reach]))
        finite = np.isfinite(self.value) & rows
        either = (below != above) & finite
        ulp = np.where(either, float16_ulps(self.value), 0.0)
        beyond = finite & (np.abs(self.value) > LARGEST_FLOAT16)
        kept = either | np.logical_not(rows)
        nothing = ErrorScale(np.zeros_like(value))
        scale = self.error_scale.where(kept, nothing).holding(ulp / FLOAT16_EPSILON)
        exact_spread = Spread.none(value.shape)
        single, half = (spread.where(kept, exact_spread) for spread in self._spreads())
        # If the values carry errors of earlier stores, two kernels may be further apart.
        half = half.widened(np.where(half.limit > 0, _STORES_APART, 1.0) * ulp)
        error_scale = scale.open_where(self._open() | beyond)
        return Quantity(value, error_scale, (single, half), self.terms, absent=self.absent)

    def storing(self, sizes: Array, stores: int) -> Quantity:
        """Return the quantity with the errors of `stores` FLOAT16 stores of values of `sizes`."""
        single, half = self._spreads()
        error_scale = self.error_scale.holding(stores * sizes, math.sqrt(stores) * sizes)
        spreads = single, half.widened(FLOAT16_EPSILON * stores * sizes)
        return replace(self, error_scale=error_scale, spreads=spreads)

    def _reach(self) -> Array:
        """Return how far the value is likely to be off."""
        single, half = self._spreads()
        reach: Array = single.limit + half.limit
        return reach

    def activated(self, activation: Activation, dtype: np.dtype[Any]) -> Quantity:
        """Return the activation of sums.

        Kernels may store a sum in `dtype` before its last term is added, and before its activation.
        """
        # An infinity has no error where the activation is flat, such as RELU below 0.
        return self._exact_infinities()._activated(activation, dtype)

    def _exact_infinities(self) -> Quantity:
        """Return the values, without errors where every right implementation is infinite."""
        certain = self._certainly_infinite()
        if not certain.any():
            return self
        exact = Quantity(self.value, ErrorScale(np.zeros_like(self.value)), terms=self._terms())
        return replace(exact.where(certain, self), terms=self.terms)

    def _activated(self, activation: Activation, dtype: np.dtype[Any]) -> Quantity:
        value = activation.formula(self.value)
        error = self._error_of(activation)
        error_scale, _ = activated_error_scale(
            self.value, self.error_scale, activation.desc, dtype, error, value
        )
        # A sum may be stored in the data type before the last term is added. The sizes of the terms
        # say whether that overflows.
        sums = self._terms()
        overflowed = np.isfinite(sums) & (sums > float(np.finfo(dtype).max))
        spreads = self._activated_spreads(activation, value, error)
        # Activations of NaN are not documented, and differ between layers.
        undefined = overflowed | np.isnan(self.value) | self._open()
        infinite = infinite_by_factor(self.value, activation.desc)
        if infinite is not None:
            undefined |= infinite
        if (subnormal := _subnormal(value)).any():
            error_scale += ErrorScale(np.where(subnormal, _own_size(value), 0.0))
        return Quantity(value, error_scale.open_where(undefined), spreads)

    def _error_of(self, activation: Activation) -> Array:
        """Return the activation's own greatest error, at the value and at both ends of its reach.

        An ELU has an error just below 0, and none above 0.
        """
        of, attributes = ERRORS[activation.desc["operator"]], attributes_of(activation.desc)
        error, reach = of(self.value, **attributes), self._reach()
        if not reach.any():
            return error
        for beside in (self.value - reach, self.value + reach):
            other = of(beside, **attributes)
            error = np.where(np.isfinite(other) & (other > error), other, error)
        return error

    def _activated_spreads(
        self, activation: Activation, value: Array, error: Array
    ) -> tuple[Spread, Spread]:
        """Return the spreads of an activation's values.

        The spread of the argument is multiplied by the mean slope of the activation. The argument's
        likely error times the greatest difference of a slope from the mean is an independent error.
        """
        likely = self._reach()
        reach = np.maximum(likely, _LEAST_REACH * np.maximum(np.abs(self.value), 1.0))
        beside = activation.formula(self.value + reach * _BESIDE.reshape(-1, *[1] * value.ndim))
        slopes = (beside[1:] - beside[:-1]) / (reach / 2)
        slope = np.add.reduce(slopes, 0) / len(slopes)
        bend = np.maximum.reduce(np.abs(slopes - slope), 0)
        # An exact value has no error, even where the slope is infinite.
        exact = (likely == 0) & ~np.isfinite(slope + bend)
        if exact.any():
            slope, bend = (np.where(exact, 0.0, each) for each in (slope, bend))
        single, half = (
            spread.scaled(slope).widened(bend * spread.limit) for spread in self._spreads()
        )
        return _rounded(single, value, half).widened(_ACTIVATION * np.abs(error)), half

    def times_matrix(self, matrix: Array) -> Quantity:
        """Return the product with a constant matrix.

        Products with absent values (`absent`) are 0 without an error, even for infinite weights.
        """
        if self.absent is not None:
            product = replace(self, absent=None).times_matrix(matrix)
            terms = None if product.terms is None else np.where(self.absent, 0.0, product.terms)
            return replace(product.nothing().where(self.absent, product), terms=terms)
        value = self.value @ matrix
        error_scale = self.error_scale.times(matrix)
        errors = self.error_scale.sums
        errors = np.where(errors >= ANY_RESULT, errors, np.minimum(errors, _MOST_CARRIED))
        sums = _product_size(np.abs(self.value) + errors, matrix)
        error_scale = replace(error_scale, sums=sums)
        # A value that overflows FLOAT32 is infinite; times 0 it is NaN.
        overflowed = np.isfinite(self.value) & (np.abs(self.value) > LARGEST_FLOAT32)
        undefined = np.asarray((self._open() | overflowed).any(axis=-1, keepdims=True))
        infinite = np.isinf(matrix)
        if infinite.any():
            # Infinity times a value that may be computed as 0 is NaN or an infinity.
            undefined = undefined | (self._may_vanish().astype(float) @ infinite.astype(float) > 0)
        error_scale = error_scale.open_where(undefined)
        sources = sources_of(self.value)
        carried = self._each(lambda spread: spread.times(matrix, sources))
        terms = _product_size(self.value, matrix)
        return _with_sum_errors(Quantity(value, error_scale, carried, terms), self.value, matrix)

    def where(self, chosen: Array, other: Values) -> Quantity:
        """Return this quantity where `chosen` is true, and the other elsewhere; without `terms`."""
        other = quantity_of(other)
        value = np.where(chosen, self.value, other.value)
        single, half = (
            mine.where(chosen, others)
            for mine, others in zip(self._spreads(), other._spreads(), strict=True)
        )
        return Quantity(value, self.error_scale.where(chosen, other.error_scale), (single, half))

    def common(self) -> Quantity:
        """Return the values, whose errors become common to all results computed from them."""
        if self.spreads is None:
            return self
        sources = sources_of(self.value)
        return replace(self, spreads=self._each(lambda spread: spread.common(sources)))

    def nothing(self) -> Quantity:
        """Return zeros of the same sizes."""
        zeros = np.zeros_like(self.value)
        return Quantity(zeros, ErrorScale(zeros))

    def open_where(self, undefined: Array) -> Quantity:
        """Return the values with undefined elements open, so that any result is right there."""
        return replace(self, error_scale=self.error_scale.open_where(undefined))

    def settled(self) -> Quantity:
        """Return the quantity for an output: no other quantity is computed from it."""
        return replace(self, spreads=self._each(Spread.settled))

    def narrowed(self, terms: int) -> ErrorScale:
        """Return the error scale with likely errors in place of larger worst-case errors.

        The rule counts the roundings of `terms` terms.
        """
        if self.spreads is None:
            return self.error_scale
        single, half = self.spreads
        before = self.error_scale
        sums = np.fmin(before.sums, single.limit / (HALF_STEP * roundings(terms)))
        # If a likely error exceeds FLOAT32, a sum may overflow.
        unbounded = (before.sums >= ANY_RESULT) | (sums > LARGEST_FLOAT32) & np.isfinite(sums)
        sums = np.where(unbounded, ANY_RESULT, sums)
        if before.stored is None:
            return replace(before, sums=sums)
        deviation = before.stored if before.deviation is None else before.deviation
        # The last store may round toward zero, as earlier stores do.
        last = _STORE_BIAS * float16_ulps(self.value)
        held = half.limit * _CURVATURE
        likely = np.hypot(last, held / 2) / FLOAT16_EPSILON
        return replace(
            before,
            sums=sums,
            stored=np.fmin(before.stored, held / FLOAT16_EPSILON),
            deviation=np.fmin(deviation, likely),
        )

    def stacked(self, others: Sequence[Values], axis: int = 0) -> Quantity:
        """Return these values and others along a new axis, for an output."""
        parts = [self, *map(quantity_of, others)]
        spreads = zip(*(part.settled()._spreads() for part in parts), strict=True)
        single, half = (Spread.stacked(each, axis) for each in spreads)
        error_scale = ErrorScale.stacked([part.error_scale for part in parts], axis)
        return Quantity(np.stack([part.value for part in parts], axis), error_scale, (single, half))


def quantity_of(values: Values) -> Quantity:
    """Return values as a quantity; `Values` that are no quantity have no errors."""
    if isinstance(values, Quantity):
        return values
    return Quantity(values.value, ErrorScale(np.zeros_like(values.value)), absent=values.absent)


def next_state(
    state: Sequence[Quantity], hold: Callable[[Quantity], Quantity], running: Array, step: int
) -> tuple[Quantity, ...]:
    """Return the next step's state; `hold` stores the parts of running sequences.

    `step` chooses the signs of mixtures (`independent`).
    """
    parts = [hold(part).where(running, part) for part in state]
    sources = sources_of(np.concatenate([part.value for part in parts], -1))
    singles, halves = zip(*(part._spreads() for part in parts), strict=True)
    spreads = zip(
        independent(singles, sources, 2 * step),
        independent(halves, sources, 2 * step + 1),
        strict=True,
    )
    return tuple(replace(part, spreads=both) for part, both in zip(parts, spreads, strict=True))


def product_quantity(rows: Array, matrix: Array, value: Array) -> Quantity:
    """Return `value`, the product of exact rows with a matrix, with its errors."""
    size = _product_size(rows, matrix)
    return _with_sum_errors(Quantity(value, ErrorScale(size), terms=size), rows, matrix)


def _with_sum_errors(product: Quantity, left: Array, right: Array) -> Quantity:
    """Return the product `left @ right` with the rounding errors of its sums added."""
    error_scale = _in_slices(product.error_scale, product.value, left, right)
    single, half = product._spreads()
    size = np.abs(left) @ np.abs(right)
    single = single.widened(HALF_STEP * roundings(len(right) + 1) * size)
    slices = _in_slices(ErrorScale(size), product.value, left, right).stored
    if slices is not None:
        half = half.widened(FLOAT16_EPSILON * slices)
    return Quantity(product.value, error_scale, (single, half), product.terms)


@np.errstate(over="ignore")
def _rounded(spread: Spread, values: Array, held: Spread) -> Spread:
    """Return the spread of values that FLOAT32 rounds once more.

    Exact values that are FLOAT32 numbers, and not subnormal, are not rounded. `held` is the spread
    of earlier FLOAT16 stores.
    """
    size = ROUNDING * HALF_STEP * _own_size(values)
    lossless = (values.astype(np.float32) == values) & ~_subnormal(values)
    if lossless.any():
        lossless &= (spread.limit == 0) & (held.limit == 0)
        size = np.where(lossless, 0.0, size)
    return spread.widened(size)


def _own_size(values: Array) -> Array:
    """Return the sizes of values: rounding changes a value by at most HALF_STEP times its size.

    A subnormal number may be flushed to 0, so its size is divided by HALF_STEP.
    """
    sizes = np.abs(values)
    subnormal = _subnormal(values)
    return np.where(subnormal, sizes / HALF_STEP, sizes) if subnormal.any() else sizes


def _subnormal(values: Array) -> Array:
    sizes = np.abs(values)
    subnormal: Array = (sizes > 0) & (sizes < LEAST_NORMAL_FLOAT32)
    return subnormal


def _product_size(left: Array, right: Array) -> Array:
    """Return |left| @ |right|.

    If it is not finite everywhere, it is ANY_RESULT where its finite terms overflow FLOAT32.
    """
    size: Array = np.abs(left) @ np.abs(right)
    if np.isfinite(size).all():
        return size
    return or_any_result(size, finite_sizes(left) @ finite_sizes(right))


def _in_slices(error_scale: ErrorScale, sums: Array, left: Array, right: Array) -> ErrorScale:
    """Return the error scale of a matrix product, which kernels may cut into slices as in GEMM."""
    if len(right) <= LONGEST_WHOLE:
        return error_scale
    return error_scale.in_slices(sums, np.square(left) @ np.square(right), len(right))
