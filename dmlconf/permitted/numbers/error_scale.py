"""Error scales: the numbers to which the rounding errors of sums are proportional.

A sum of n terms is off by at most about n u S, where u is the unit roundoff. S, the sum of the
terms' absolute values, is the error scale: 6 for 1 + 2 - 3. docs/bounds.md derives it for
operators.

Source: Higham, Accuracy and Stability of Numerical Algorithms, 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dmlconf.permitted.numbers.rounding import ANY_RESULT, overflows
from dmlconf.permitted.numbers.span import Span
from dmlconf.precision.allowance import SumErrors
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT16, LARGEST_FLOAT32, LEAST_NORMAL_FLOAT16

__all__ = ["LONGEST_WHOLE", "ErrorScale", "quantum_of", "store_sizes"]

_MOST_SLICES: Final = 8
"""The most slices into which a kernel cuts a long sum, as measured."""

LONGEST_WHOLE: Final = 128
"""The most terms of a sum that is never cut into slices; CONVOLUTION has a limit of its own."""

_MANY_ROUNDINGS: Final = 2.0**-16
"""The relative error of 256 roundings of 2^-24 each; `roundings` gives 256 for 7,056 terms."""

_FLOAT64_LOSS: Final = 2.0**-40
"""More than FLOAT64 loses of a sum of 2^12 terms, as a share of the sum of their sizes."""

_ABOVE: Final = 1 + 2.0**-7
"""The greatest factor by which earlier errors may have made a value too small."""


@dataclass(frozen=True, slots=True)
class ErrorScale(SumErrors):
    """The fields of `SumErrors`, with methods for what an operator does next with the sums.

    The error scale of `x + y` is the sum of both error scales; that of `3 x` is three times that of
    `x`. Methods that say which fields they return leave the other fields at their defaults.
    """

    @property
    def exact(self) -> Array:
        """Which sums FLOAT32 computes exactly in every order, and FLOAT16 stores do not change."""
        exact: Array = self.sums <= self.quantum * 2.0**24
        exact &= self.quantum > 0
        return exact if self.stored is None else exact & (self.stored == 0)

    def __getitem__(self, index: Any) -> ErrorScale:
        """Return the sums, stores and deviations of some elements."""
        return self.map(lambda values: values[index])

    def __add__(self, other: ErrorScale) -> ErrorScale:
        """Return the sums, stores, overflows and growth of a sum of two outputs, not yet rounded.

        The growth is the greater one of both.
        """
        stored = other.stored if self.stored is None else self.stored
        if self.stored is not None and other.stored is not None:
            stored = self.stored + other.stored
        growths = [part.growth for part in (self, other) if part.growth is not None]
        growth = np.maximum.reduce(growths) if growths else None
        scale = ErrorScale(self.sums + other.sums, stored, growth=growth)
        for part in (self, other):
            if part.overflows is not None:
                scale = scale.overflowing_where(part.overflows)
        return scale

    def map(self, function: Callable[[Array], Array]) -> ErrorScale:
        """Return a linear function of the sums, of the stores and of the deviations."""
        stored = None if self.stored is None else function(self.stored)
        deviation = None if self.deviation is None else function(self.deviation)
        return ErrorScale(function(self.sums), stored, deviation)

    def times(self, matrix: Array) -> ErrorScale:
        """Return the sums, stores and deviations of an output times a constant matrix."""
        return self.map(lambda values: values @ np.abs(matrix))

    def where(self, chosen: Array, other: ErrorScale) -> ErrorScale:
        """Return the sums and stores of this error scale where `chosen`, else the other's."""
        stored = None
        if self.stored is not None or other.stored is not None:
            first, second = (0.0 if part.stored is None else part.stored for part in (self, other))
            stored = np.where(chosen, first, second)
        return ErrorScale(np.where(chosen, self.sums, other.sums), stored)

    def open_where(self, undefined: Array) -> ErrorScale:
        """Return the error scale with undefined elements open: any result is right for them."""
        return self._with_sums(np.where(undefined, ANY_RESULT, self.sums))

    def _with_sums(self, sums: Array) -> ErrorScale:
        """Return the error scale with other sums; this is faster than `replace`."""
        return ErrorScale(
            sums,
            self.stored,
            self.deviation,
            self.quantum,
            self.overflows,
            self.others,
            self.terms_vary,
            self.sums_shared,
            self.spans,
            self.growth,
            self.terms_repeat,
            self.by_sign,
        )

    def signed(
        self, values: Array, terms: float = 1.0, of_finite: tuple[Array, Array] | None = None
    ) -> ErrorScale:
        """Return the error scale of sums with the field `by_sign`.

        Args:
            values: the right results, FLOAT64, whose error scales are `sums`.
            terms: what the results are multiplied by to get the sums that may overflow: n for the
                mean of n numbers.
            of_finite: the results and the error scales if infinite terms are 0; None if no term is
                infinite.
        """
        halves = 0.5 * terms
        finite, sizes = of_finite or (values, self.sums)
        # FLOAT64 loses the sum of a few terms next to much larger ones of the other sign.
        with np.errstate(all="ignore"):
            sizes = sizes * (1 + _FLOAT64_LOSS)
            least, greatest = (finite - sizes) * halves, (finite + sizes) * halves
        if of_finite is not None:
            least = np.where(values == -np.inf, values, least)
            greatest = np.where(values == np.inf, values, greatest)
        return replace(self, by_sign=(least, greatest))

    def with_others(self, results: Iterable[Array], dtype: np.dtype[Any]) -> ErrorScale:
        """Return the error scale with further results, in an output's type, that are as right."""
        others = tuple(result.astype(dtype) for result in results)
        return replace(self, others=self.others + others) if others else self

    def at_most(self, sums: Array) -> ErrorScale:
        """Return the error scale with the lesser of its sums and another bound of the same errors.

        Elements whose own sums exceed FLOAT32 are marked in `overflows`.
        """
        narrow = replace(self, sums=np.fmin(self.sums, sums))
        return narrow.overflowing_where(overflows(self.sums))

    def overflowing_where(self, beyond: Array) -> ErrorScale:
        """Return the error scale with further elements whose intermediates may overflow."""
        before = False if self.overflows is None else self.overflows
        return replace(self, overflows=before | beyond)

    @staticmethod
    def stacked(parts: Sequence[ErrorScale], axis: int = 0) -> ErrorScale:
        """Return one error scale with the sums and stores of several, along a new axis."""
        stored = None
        if any(part.stored is not None for part in parts):
            stored = np.stack(
                [np.zeros_like(p.sums) if p.stored is None else p.stored for p in parts], axis
            )
        return ErrorScale(np.stack([part.sums for part in parts], axis), stored)

    @staticmethod
    def joined(parts: Sequence[ErrorScale], axis: int) -> ErrorScale:
        """Return the error scale of an output from those of its parts, in order along an axis.

        It has the sums, stores, deviations and overflows of several parts, and the least quantum.
        """
        if len(parts) == 1:
            return parts[0]

        def along(arrays: Sequence[Array | None]) -> Array | None:
            if all(array is None for array in arrays):
                return None
            filled = [
                np.zeros_like(part.sums, bool if array is None else array.dtype)
                if array is None
                else array
                for part, array in zip(parts, arrays, strict=True)
            ]
            return np.concatenate(filled, axis)

        return ErrorScale(
            np.concatenate([part.sums for part in parts], axis),
            along([part.stored for part in parts]),
            along([p.stored if p.deviation is None else p.deviation for p in parts]),
            min(part.quantum for part in parts),
            along([part.overflows for part in parts]),
        )

    def holding(self, sizes: Array, deviation: Array | None = None) -> ErrorScale:
        """Return the error scale with further values that a kernel stores in FLOAT16.

        Args:
            sizes: for each element, the sum of the sizes of these values (`store_sizes`).
            deviation: the root of the sum of the squares of these sizes; None if each element has
                one such value.
        """
        sizes_deviation = sizes if deviation is None else deviation
        if self.stored is None:
            return replace(self, stored=sizes, deviation=sizes_deviation)
        before = self.stored if self.deviation is None else self.deviation
        return replace(
            self, stored=self.stored + sizes, deviation=np.hypot(before, sizes_deviation)
        )

    def spanned(self, *spans: Span) -> ErrorScale:
        """Return the error scale with spans of the output instead of errors of FLOAT16 stores.

        Each element of the output lies in one of the spans before it is stored. A span with an end
        that is not finite does not count, and the errors of stores stay there.
        """
        known = np.logical_and.reduce([span.finite for span in spans])
        ends = tuple(
            (
                np.where(span.finite, span.least, np.nan),
                np.where(span.finite, span.greatest, np.nan),
            )
            for span in spans
        )
        stored, deviation = (
            None if sizes is None else np.where(known, 0.0, sizes)
            for sizes in (self.stored, self.deviation)
        )
        return replace(self, stored=stored, deviation=deviation, spans=self.spans + ends)

    def in_slices(
        self,
        sums: Array,
        squares: Array,
        terms: int,
        longest: int = LONGEST_WHOLE,
        added: Array | float | None = None,
    ) -> ErrorScale:
        """Return the error scale of long sums, which a kernel may cut into slices of FLOAT16.

        Measured on DirectML 1.8.0 to 1.15.4: for FLOAT16, GEMM cuts sums of 192 terms or more into
        4 or 8 slices, and CONVOLUTION some of 108 or more. Both add up each slice in FLOAT32,
        truncate its sum to FLOAT16, and add up the truncated sums. Where a slice ends depends on
        the device, so its sum is estimated as if its terms had random signs.

        Truncation limits sums to 65504 in size. So any result is right where a slice, and what it
        is added to, may exceed 65504.

        Args:
            sums: the right values of the sums.
            squares: the sums of the squares of the terms.
            terms: how many terms each sum has.
            longest: the most terms of a sum that is not cut.
            added: the absolute value of what the slices are added to, such as a bias. None if a
                kernel may keep the sums of slices in FLOAT32.
        """
        if terms <= longest:
            return self
        estimated = np.abs(sums) + np.sqrt(_MOST_SLICES * squares)
        held = np.fmin(self.sums, estimated)
        scale = self.holding(held, np.fmin(held, np.sqrt(squares + np.square(sums))))
        if added is None:
            return scale
        greatest = np.fmin(self.sums, estimated + added)
        beyond = np.isfinite(greatest) & (greatest > LARGEST_FLOAT16)
        return scale.open_where(beyond) if beyond.any() else scale

    def scaled(self, factor: Array | float) -> ErrorScale:
        """Return the sums, stores, deviations, overflows and growth of a product with a factor."""
        size = np.abs(factor)
        stored = None if self.stored is None else self.stored * size
        deviation = None if self.deviation is None else self.deviation * size
        return ErrorScale(
            self.sums * size,
            stored,
            deviation,
            overflows=self.overflows,
            growth=None if self.growth is None else self.growth * size,
        )

    @np.errstate(invalid="ignore")
    def growing(self, factor: Array, values: Array) -> ErrorScale:
        """Return the error scale with the field `growth`.

        It is 1 for results that overflow even if 256 roundings make them smaller.

        Args:
            factor: the growth of other results, by which later steps multiply a sum.
            values: the results in FLOAT64.
        """
        least = np.abs(values) - self.sums * _MANY_ROUNDINGS
        return replace(self, growth=np.where(least > LARGEST_FLOAT32, 1.0, factor))

    @classmethod
    def of(cls, scale: Array | ErrorScale) -> ErrorScale:
        """Return an error scale as it is, and sums as one with nothing stored in FLOAT16."""
        return scale if isinstance(scale, cls) else cls(np.asarray(scale))


@np.errstate(over="ignore")
def store_sizes(values: Array, exact: Array | bool = False) -> Array:
    """Return what intermediates that are stored in FLOAT16 add to the field `stored`, FLOAT64.

    A store is off by at most one ULP: 2^-10 times the largest power of two that does not exceed the
    value. This power, or 2^-14 if it is less, is the size: 8 for 11.3. For 7.96 it is 8 too, since
    earlier errors may have turned 8 into 7.96. The size is 0 for an exact value that FLOAT16 holds,
    and for a value that is not finite.

    Args:
        exact: which values are computed without an error before they are stored.
    """
    size = np.abs(values)
    _, exponent = np.frexp(np.maximum(size * _ABOVE, LEAST_NORMAL_FLOAT16))
    power: Array = np.ldexp(0.5, exponent)
    lossless = (values.astype(np.float16) == values) & exact
    return np.where(lossless | ~np.isfinite(size), 0.0, power)


def quantum_of(*factors: Array | float) -> float:
    """Return a power of two that all products of one element of each factor are multiples of.

    Zeros are multiples of everything, and NaN is ignored. If an element is infinite, the quantum is
    0.
    """
    quantum = 1.0
    for factor in factors:
        values = np.asarray(factor).reshape(-1)
        least = min((_least_bit(block) for block in _blocks(values)), default=math.inf)
        if least == 0:
            return 0.0
        quantum *= 1.0 if math.isinf(least) else least
    return quantum


_BLOCK: Final = 1 << 15
"""How many elements are examined at once."""

_FRACTION: Final = (1 << 52) - 1
"""The mask of the 52 fraction bits of a FLOAT64 number."""


def _blocks(values: Array) -> Iterator[Array]:
    for start in range(0, len(values), _BLOCK):
        yield np.abs(values[start : start + _BLOCK], dtype=np.float64)


def _least_bit(values: Array) -> float:
    """Return the value of the lowest bit that is 1 in any of the sizes: 0.25 for 1.25 and 2.5.

    Infinity if no size is positive, 0 if one is infinite.
    """
    values = values[values > 0]
    if not len(values):
        return math.inf
    if not np.isfinite(values).all():
        return 0.0
    bits = values.view(np.int64)
    # `without` lacks the lowest bit that is 1. A power of two has none in its fraction.
    without = (bits & (bits - 1)).view(np.float64)
    whole = (bits & _FRACTION == 0) & (bits > _FRACTION)
    return float(np.where(whole, values, values - without).min())
