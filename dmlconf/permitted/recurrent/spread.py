"""The likely errors of values that are computed in many steps, as in recurrent layers.

Each step would multiply a worst-case bound by the sums of absolute weights. A spread propagates
errors linearly instead, with the signs and slopes at the values. Errors of different roundings are
independent, so their squares add up: 3 and 4 make 5. If one error reaches a value along several
paths, its parts add up with their signs: 3 and -2 make 1.

Source: JCGM 100:2008 (Guide to the expression of uncertainty in measurement), 5.1 and 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.fills import splitmix64

__all__ = ["ROUNDING", "Spread", "independent", "sources_of"]

ROUNDING: Final = 4.0
"""The error of a FLOAT32 rounding in a spread, in half ULPs: twice that of rounding toward zero."""


_MOST_EXACT: Final = 512
"""With up to this many values in all parts of a state, each value has an error of its own. n values
take n^3 operations a step."""

_MIXTURES: Final = 256
"""In a state of more values, so many mixtures replace the values' own errors. A mixture is the sum
of all errors, each with a random sign (`_mixed`)."""

_CHANCE: Final = 2.0
"""The factor by which mixtures are enlarged. Measured on an LSTM of 2 x 320 that enlarges errors
from step to step: with 2, no limit was smaller than with separate errors."""


@dataclass(frozen=True)
class Spread:
    """The likely errors of values, in any unit.

    Attributes:
        own: the error of each value alone, independent of all others; shaped like the values.
        shared: the change of each value by each of several independent errors, with its sign; sizes
            {errors, ...}. An index stands for the same error in all values of a step.
    """

    own: Array
    shared: Array

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Spread:
        """Return the spread of values that are exact."""
        return cls(np.zeros(shape), np.zeros((0, *shape)))

    def __getitem__(self, index: Any) -> Spread:
        of_shared = (slice(None), *(index if isinstance(index, tuple) else (index,)))
        return Spread(self.own[index], self.shared[of_shared])

    def __add__(self, other: Spread) -> Spread:
        """Return the spread of a sum, without the rounding of the addition itself."""
        own = np.hypot(self.own, other.own)
        # Adding 0.0 turns -0 into 0.
        if not len(other.shared):
            return Spread(own, self.shared + 0.0)
        if not len(self.shared):
            return Spread(own, other.shared + 0.0)
        first, second = _aligned(self.shared, other.shared)
        return Spread(own, first + second)

    @cached_property
    def limit(self) -> Array:
        """The likely error of each value: the root of the sum of all squares."""
        squares: Array = np.square(self.own)
        if len(self.shared):
            squares += np.add.reduce(np.square(self.shared), 0)
        return np.sqrt(squares)

    def scaled(self, factor: Array | float) -> Spread:
        """Return the spread of the product with a factor."""
        return Spread(self.own * np.abs(factor), self.shared * factor)

    def widened(self, errors: Array) -> Spread:
        """Return the spread with one more independent error of each value."""
        return Spread(np.hypot(self.own, errors), self.shared)

    def times(self, matrix: Array, sources: Array) -> Spread:
        """Return the spread of values {..., n} @ matrix {n, m}, without the product's roundings.

        Own errors other than 0 become shared ones, one for each of the `sources` (`sources_of`).
        """
        alone = _present(_each_alone(self.own, sources))
        shared = np.concatenate([self.shared, alone])
        # An error has the same index in all values of a step, so rows of 0 stay.
        product = np.zeros((*shared.shape[:-1], matrix.shape[1]))
        present = _nonzero(shared)
        rows = shared[present].reshape(-1, shared.shape[-1]) @ matrix
        product[present] = rows.reshape(-1, *product.shape[1:])
        return Spread(np.zeros(product.shape[1:]), product)

    def where(self, chosen: Array, other: Spread) -> Spread:
        """Return this spread where `chosen` is true, and the other elsewhere."""
        own = np.where(chosen, self.own, other.own)
        if not len(other.shared):
            return Spread(own, np.where(chosen, self.shared, 0.0))
        first, second = _aligned(self.shared, other.shared)
        return Spread(own, np.where(chosen, first, second))

    def common(self, sources: Array) -> Spread:
        """Return the spread with the values' own errors among the shared ones.

        There is one shared error for each of the `sources` (`sources_of`).
        """
        shared = np.concatenate([self.shared, _each_alone(self.own, sources)])
        return Spread(np.zeros_like(self.own), shared)

    def settled(self) -> Spread:
        """Return the spread of values from which no others are computed."""
        return Spread(self.limit, np.zeros((0, *self.own.shape)))

    @staticmethod
    def stacked(parts: Sequence[Spread], axis: int = 0) -> Spread:
        """Return one spread of several settled ones, along a new axis."""
        own = np.stack([part.own for part in parts], axis)
        return Spread(own, np.zeros((0, *own.shape)))


def independent(parts: Sequence[Spread], sources: Array, step: int = 0) -> tuple[Spread, ...]:
    """Return the spreads of a state's parts, with each value's own error as a shared one.

    With up to `_MOST_EXACT` values, limits change only for equal values, which get a further error
    (`sources_of`). In a wider state, own errors become mixtures (`_mixed`), and limits may change.

    Args:
        parts: the spreads of the parts of a state, such as hidden nodes and cell, sizes {batch, n}
            each.
        sources: what `sources_of` returns for the values of all parts side by side.
        step: chooses the signs of mixtures.
    """
    widths = [part.own.shape[-1] for part in parts]
    alone = np.concatenate([part.own for part in parts], -1)
    shared = [part.shared for part in parts]
    most = max(map(len, shared))
    known = np.concatenate([_lengthened(errors, most) for errors in shared], -1)
    wide = sum(widths) > _MOST_EXACT
    own = _mixed(alone, sources, step) if wide else _each_alone(alone, sources)
    if wide:
        first, second = _aligned(known, own)
        errors = first + second
    else:
        errors = _present(np.concatenate([known, own]))
    if not wide and most and len(errors) > sum(widths):
        # The factor R of a QR decomposition has fewer rows, and the same inner products of columns.
        factor: Any = np.linalg.qr(errors.transpose(1, 0, 2), mode="r")
        errors = factor.transpose(1, 0, 2)
    ends = np.cumsum(widths)
    return tuple(
        Spread(np.zeros_like(part.own), errors[..., end - width : end])
        for part, width, end in zip(parts, widths, ends, strict=True)
    )


def _mixed(own: Array, sources: Array, step: int) -> Array:
    """Return errors {_MIXTURES, ..., n}, each a mixture of all sources with random signs.

    If no value has an error, there are no mixtures. On average, the squares of a value's mixtures
    add up to _CHANCE^2 times those of its errors.

    Source: Hutchinson, "A Stochastic Estimator of the Trace of the Influence Matrix for Laplacian
    Smoothing Splines", 1989.
    """
    if not own.any():
        return np.zeros((0, *own.shape))
    bits = splitmix64(step, _MIXTURES * len(sources)) >> np.uint64(63)
    signs = (1.0 - 2.0 * bits.astype(np.float64)).reshape(_MIXTURES, len(sources))
    mixtures = signs @ sources.astype(np.float64)
    mixtures *= _CHANCE / math.sqrt(_MIXTURES)
    return mixtures.reshape(_MIXTURES, *[1] * (own.ndim - 1), own.shape[-1]) * own


def _present(errors: Array) -> Array:
    """Return the errors without those that are 0 for every value."""
    present: Array = errors[_nonzero(errors)]
    return present


def _nonzero(errors: Array) -> Array:
    present: Array = np.asarray(errors.any(axis=tuple(range(1, errors.ndim))))
    return present


def sources_of(values: Array) -> Array:
    """Return, for each independent error, which of the n values of a row it changes: {errors, n}.

    Each value has an error of its own. Values that are equal in FLOAT32 in every row may come from
    the same operations, so they share one more error.
    """
    width = values.shape[-1]
    rows = values.reshape(-1, width).astype(np.float32)
    alone = np.eye(width, dtype=bool)
    # Equal columns have equal first elements.
    first = np.sort(rows[:1].ravel())
    if not (first[1:] == first[:-1]).any():
        return alone
    _, kinds, counts = np.unique(rows, axis=1, return_inverse=True, return_counts=True)
    alike = kinds.reshape(1, -1) == np.flatnonzero(counts > 1)[:, np.newaxis]
    return np.concatenate([alone, alike])


def _each_alone(own: Array, sources: Array) -> Array:
    """Return own errors as shared ones {errors, ..., n}, one for each source."""
    alone: Array = np.where(sources.reshape(-1, *[1] * (own.ndim - 1), own.shape[-1]), own, 0.0)
    return alone


def _aligned(first: Array, second: Array) -> tuple[Array, Array]:
    """Return both arrays of shared errors, the shorter one with zeros for further errors."""
    most = max(len(first), len(second))
    return _lengthened(first, most), _lengthened(second, most)


def _lengthened(errors: Array, count: int) -> Array:
    if len(errors) == count:
        return errors
    lengthened = np.zeros((count, *errors.shape[1:]))
    lengthened[: len(errors)] = errors
    return lengthened
