"""The infinities and NaN that overflows in gradients of batch normalisation may give.

Derived in docs/bounds.md, Gradients of normalisation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlconf.permitted.normalization.overflows import only_overflowing_to, sides_of_sums
from dmlconf.permitted.normalization.parameters import unbounded
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.numbers.rounding import ANY_RESULT, greatest_product, overflows
from dmlconf.precision.allowance import Interval
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32, LEAST_NORMAL_FLOAT32

__all__ = ["OverflowingGradients"]


@dataclass(frozen=True, slots=True)
class OverflowingGradients:
    """The numbers of which the gradients are made, FLOAT64.

    Attributes:
        gradient: the gradient g of the normalized elements.
        values: the elements x.
        mean, scale, deviation: those of each channel.
        over: the dimensions in which elements share a scale.
        dtype: the type of the outputs, in which sums are held.
    """

    gradient: Array
    values: Array
    mean: Array
    scale: Array
    deviation: Array
    over: tuple[int, ...]
    dtype: np.dtype[Any]

    def of_bias(self, error_scale: ErrorScale) -> ErrorScale:
        """Return the error scale of `sum(g)`, whose overflows give only what they may give."""
        right = self.gradient.sum(self.over, keepdims=True)
        never = np.zeros((), bool)
        return only_overflowing_to(error_scale, self._sums(), never, right, self.dtype)

    def of_scale(self, error_scale: ErrorScale) -> ErrorScale:
        """Return the error scale of `sum(g * (x - mean)) / deviation` likewise."""
        inverse = 1 / self.deviation
        held = self._products()
        divided = self._products(inverse)
        sides = np.minimum(held[0], divided[0]), np.maximum(held[1], divided[1])
        infinite = greatest_product(self._centred, inverse) > LARGEST_FLOAT32
        lost = np.abs(self.gradient) < LEAST_NORMAL_FLOAT32
        nan = np.asarray((infinite & lost).any(self.over, keepdims=True))
        beyond = np.fmax(-held[0], held[1]) > self._largest
        nan |= beyond & ((inverse < LEAST_NORMAL_FLOAT32) | self._infinite_deviation)
        right = (self.gradient * self._centred).sum(self.over, keepdims=True) * inverse
        return only_overflowing_to(error_scale, sides, nan, right, self.dtype)

    def of_input(self, error_scale: ErrorScale, vanishing: Array) -> ErrorScale:
        """Return the error scale of `g * scale / deviation` likewise.

        Args:
            vanishing: for which elements an intermediate may be flushed to 0.
        """
        product, inverse = self.gradient * self.scale, 1 / self.deviation
        of_scale = greatest_product(self.scale, inverse)
        sizes = np.fmax(greatest_product(self.gradient, self.scale, inverse), of_scale)
        parts = np.where(product == 0, 0.0, np.copysign(sizes, product))
        least = np.fmin(np.fmin(np.abs(self.gradient), np.abs(self.scale)), inverse)
        nan = (sizes > LARGEST_FLOAT32) & (least < LEAST_NORMAL_FLOAT32)
        nan |= vanishing | ((sizes > LARGEST_FLOAT32) & self._infinite_deviation)
        sides = np.minimum(parts, 0), np.maximum(parts, 0)
        return only_overflowing_to(error_scale, sides, nan, product * inverse, self.dtype)

    def of_input_in_training(
        self, error_scale: ErrorScale, right: Array, others: Sequence[Array]
    ) -> ErrorScale:
        """Return the error scale of the input's gradient likewise, if the mean depends on it.

        That is `(g - mean(g) - (x - mean) * mean(g * (x - mean)) / deviation**2) * scale /
        deviation`.

        Args:
            right: the right results, FLOAT64.
            others: those by sums that are held as the largest number, which may overflow as well.
        """
        inverse = 1 / self.deviation
        factor = self.scale * inverse
        either = unbounded(factor, self.deviation) | overflows(np.abs(factor))
        least, greatest = np.where(either, -np.inf, 0.0), np.where(either, np.inf, 0.0)
        beyond = np.zeros((), bool)
        for sizes, part in self._terms():
            least, greatest = least + np.minimum(part, 0), greatest + np.maximum(part, 0)
            beyond = beyond | (np.fmax(sizes, np.abs(part)) > LARGEST_FLOAT32)
        for other in others:
            least = np.where(other < -self._largest, np.fmin(least, -ANY_RESULT), least)
            greatest = np.where(other > self._largest, np.fmax(greatest, ANY_RESULT), greatest)
        lost = np.fmin(np.fmin(np.abs(self.scale), np.abs(factor)), inverse) < LEAST_NORMAL_FLOAT32
        lost |= self._infinite_deviation
        held = self._products()
        change = np.abs(self._centred) / self._count * np.square(inverse)
        infinite = np.fmax(-held[0], held[1]) > self._largest
        nan = (beyond & lost) | (infinite & (change < LEAST_NORMAL_FLOAT32))
        return only_overflowing_to(error_scale, (least, greatest), nan, right, self.dtype)

    def _terms(self) -> Iterator[tuple[Array, Array]]:
        """Yield the sizes of the greatest partial products of the terms of the input's gradient.

        After the sizes come the same numbers with the signs of the terms, 0 for terms that are 0.
        """
        factors = self.scale, 1 / self.deviation
        square = np.square(self.deviation)
        sizes = greatest_product(self.gradient, *factors)
        yield sizes, _signed(sizes, self.gradient * self.scale)
        for mean in self._sums():
            sizes = greatest_product(mean / self._count, *factors)
            yield sizes, _signed(sizes, -mean * self.scale, mean)
        for sums in self._products():
            share = sums / self._count
            sizes = greatest_product(np.ones(()), self._centred, share, 1 / square, *factors)
            yield sizes, _signed(sizes, -self._centred * np.sign(sums) * self.scale, sums)

    @property
    def _count(self) -> float:
        return self.gradient.size / self.scale.size

    @property
    def _largest(self) -> float:
        return float(np.finfo(self.dtype).max)

    @property
    def _infinite_deviation(self) -> Array:
        infinite: Array = np.square(self.deviation) > LARGEST_FLOAT32
        return infinite

    def _sums(self) -> Interval:
        """Return the sums of the negative and of the positive gradients, as they may be held."""
        return self._held(sides_of_sums(self.gradient, self.over))

    def _products(self, inverse: Array | None = None) -> Interval:
        """Return the sums of the negative and of the positive `g * (x - mean)` likewise.

        The gradient may also be multiplied by x and by the mean before they are subtracted.

        Args:
            inverse: by what products are multiplied, first or last; None for nothing.
        """
        inverse = np.ones(()) if inverse is None else inverse
        centred = self._centred
        beyond = (np.abs(centred) > LARGEST_FLOAT32) & np.isfinite(centred)
        products = [np.where(beyond, ANY_RESULT * np.sign(self.gradient * centred), 0.0)]
        for factor in (self.values, -self.mean):
            product = self.gradient * factor
            products.append(_signed(greatest_product(factor, self.gradient, inverse), product))
        sides = [sides_of_sums(product, self.over) for product in products]
        least, greatest = (sum(ends, start=np.zeros(())) for ends in zip(*sides, strict=True))
        return self._held((least, greatest))

    @property
    def _centred(self) -> Array:
        centred: Array = self.values - self.mean
        return centred

    def _held(self, sides: Interval) -> Interval:
        """Return sums, those that overflow the type of the outputs as ANY_RESULT; infinity stays.

        Beside an infinite term, no other one is infinite.
        """
        least, greatest = (
            np.where(
                (np.abs(side) > self._largest) & np.isfinite(side),
                np.copysign(ANY_RESULT, side),
                side,
            )
            for side in sides
        )
        return least, greatest


def _signed(sizes: Array, signs: Array, held: Array | None = None) -> Array:
    """Return sizes with the signs of other numbers, 0 for those that are 0.

    Args:
        held: a sum in the product; where it is beyond every number, so is the product.
    """
    if held is not None:
        sizes = np.where(np.abs(held) >= ANY_RESULT, np.abs(held), sizes)
    return np.where(signs == 0, 0.0, np.copysign(sizes, signs))
