"""The infinities and NaN that overflows in normalisations may give.

Derived in docs/bounds.md, Overflow of normalisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from dmlconf.permitted.normalization.parameters import partial_mean, unbounded
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.numbers.rounding import ANY_RESULT, STEP, greatest_product, overflows
from dmlconf.precision.accumulation import roundings
from dmlconf.precision.allowance import Interval
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32, LEAST_NORMAL_FLOAT32

__all__ = ["Normalization", "only_overflowing_to", "sides_of_products", "sides_of_sums"]


def sides_of_sums(terms: Array, over: tuple[int, ...]) -> Interval:
    """Return the sums of the negative terms and of the positive ones along some dimensions."""
    return (
        np.minimum(terms, 0).sum(over, keepdims=True),
        np.maximum(terms, 0).sum(over, keepdims=True),
    )


def sides_of_products(
    terms: Sequence[Array], scale: Array, inverse: Array, added: Sequence[Array], either: Array
) -> Interval:
    """Return the field `by_sign` of `terms * scale * inverse + added`, in any order of factors.

    Where `either` is true, both infinities, and so NaN, are possible.
    """
    parts = [
        np.copysign(greatest_product(np.abs(term), scale, inverse), term * scale) for term in terms
    ]
    parts += added
    least = reduce(np.add, (np.minimum(part, 0) for part in parts))
    greatest = reduce(np.add, (np.maximum(part, 0) for part in parts))
    return np.where(either, -np.inf, least), np.where(either, np.inf, greatest)


def only_overflowing_to(
    error_scale: ErrorScale, sides: Interval, nan: Array, right: Array, dtype: np.dtype[Any]
) -> ErrorScale:
    """Return the error scale with the field `by_sign`, without overflows of a NaN.

    What `overflows` and `sums` do not mark stays as it is.

    Args:
        nan: which results that may overflow may be NaN, whatever `sides` are.
        right: the right results, FLOAT64.
        dtype: the output's type.
    """
    marked = overflows(error_scale.sums)
    if error_scale.overflows is not None:
        marked = marked | error_scale.overflows
    if not marked.any():
        return error_scale
    ends = (np.where(marked, end, side * np.inf) for side, end in zip((-1, 1), sides, strict=True))
    least, greatest = (np.broadcast_to(end, error_scale.sums.shape) for end in ends)
    error_scale = replace(
        error_scale, by_sign=(least, greatest), overflows=marked & ~np.isnan(right)
    )
    nan = nan & marked
    if not nan.any():
        return error_scale
    return error_scale.with_others([np.where(nan, np.nan, right)], dtype)


@dataclass(frozen=True, slots=True)
class Normalization:
    """The steps of `(x - mean) * scale * inverse + added`, FLOAT64.

    Attributes:
        values: the elements x.
        mean: their mean; None if none is subtracted.
        over: the dimensions in which elements share a mean and a variance.
        scale: the scale, or 1.
        deviation: the root of variance plus Epsilon; None if nothing is divided by it.
        added: what is added to the products.
        dtype: the output's type, in which intermediates may be held.
    """

    values: Array
    mean: Array | None
    over: tuple[int, ...]
    scale: Array
    deviation: Array | None
    added: Sequence[Array]
    dtype: np.dtype[Any]

    def limited(self, error_scale: ErrorScale, right: Array) -> ErrorScale:
        """Return the error scale whose overflows give only what these steps may give.

        Args:
            right: the right results, FLOAT64.
        """
        sides = self._sides()
        if self.dtype == np.float16:
            # FLOAT16 arithmetic may add up squares, and subtract the square of the mean.
            squares = np.square(self.values).sum(self.over, keepdims=True)
            sides = sides[0] - squares, sides[1] + squares
        return only_overflowing_to(error_scale, sides, self._may_be_nan(), right, self.dtype)

    def _sides(self) -> Interval:
        terms = [self.values, -self._subtracted, *self._errors_of_mean()]
        if self.deviation is not None:
            factor = self.scale / self.deviation
            either = unbounded(factor, self.deviation) | overflows(np.abs(factor))
            return sides_of_products(terms, self.scale, 1 / self.deviation, self.added, either)
        down, up = self._overflows_of_mean()
        terms += np.where(up, -ANY_RESULT, 0.0), np.where(down, ANY_RESULT, 0.0)
        one, never = np.ones(()), np.zeros((), bool)
        return sides_of_products(terms, self.scale, one, self.added, never)

    def _errors_of_mean(self) -> Sequence[Array]:
        """Return the least and the greatest error of the mean, which may decide a sign."""
        if self.mean is None:
            return ()
        count = self.values.size // self.mean.size
        error = roundings(count) * STEP * partial_mean(self.values, self.over)
        return -error, error

    @property
    def _subtracted(self) -> Array:
        return np.zeros(()) if self.mean is None else self.mean

    def _overflows_of_mean(self) -> tuple[Array, Array]:
        """Return whether the mean may be -infinity, and whether it may be infinity."""
        if self.mean is None:
            return np.zeros((), bool), np.zeros((), bool)
        least, greatest = sides_of_sums(self.values, self.over)
        return -least > LARGEST_FLOAT32, greatest > LARGEST_FLOAT32

    def _may_be_nan(self) -> Array:
        largest, least = float(np.finfo(self.dtype).max), float(np.finfo(self.dtype).tiny)
        down, up = self._overflows_of_mean()
        mean = self._subtracted
        centred = np.abs(self.values - mean)
        sizes = np.abs(self.values) + np.abs(mean)
        infinite = (centred > largest) | (sizes > LARGEST_FLOAT32)
        # Of infinite scales, the difference may come out as 0.
        nan = np.isinf(self.scale)
        if self.deviation is None:
            # Either infinity of the mean, or the infinite difference times a scale of 0.
            nan = nan | ((infinite | down | up) & (np.abs(self.scale) < least))
            return np.asarray(nan | (down & up))
        squares = np.square(centred).sum(self.over, keepdims=True)
        mean_of_squares = np.square(self.deviation)
        beyond = (squares > LARGEST_FLOAT32) | (mean_of_squares > largest)
        # A kernel may subtract the infinite square of the mean from the infinite mean of squares.
        nan = nan | down | up | (beyond & (np.square(mean) > LARGEST_FLOAT32))
        # The variance of infinite differences is infinite or NaN, and so are their quotients NaN.
        nan = nan | infinite.any(self.over, keepdims=True)
        # Infinity meets a factor of 0.
        inverse = 1 / self.deviation
        product = greatest_product(centred, self.scale)
        nan = nan | ((product > largest) & (beyond | (inverse < LEAST_NORMAL_FLOAT32)))
        lost = np.abs(self.scale) * inverse < least
        return np.asarray(nan | ((product > LARGEST_FLOAT32) & lost))
