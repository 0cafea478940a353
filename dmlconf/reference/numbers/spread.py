"""How far values are likely to be off that are computed in many steps, such as recurrent ones.

Bounds that add up the worst of every rounding grow with each step by the sum of absolute weights,
however little of an error the gates let through. A spread follows errors as they move: to first
order, with the signs and slopes at the values themselves. Errors of different roundings are
independent and add up by their squares; one error that reaches a value by several ways adds up with
its signs.

Source: JCGM 100:2008 (Guide to the expression of uncertainty in measurement), 5.1 and 5.2, for the
propagation of independent and of correlated errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dmlconf.precision.accumulation import places
from dmlconf.tensors.datatypes import Array

__all__ = ["ROUNDING", "Spread", "independent"]

ROUNDING: Final = 4.0
"""How much a single rounding of FLOAT32 counts, in half places: twice one toward zero."""

_STORE: Final = 2.0
"""How much a store counts beside its bias, in places: 7 standard deviations of one over a root of
12."""

_BIAS: Final = 0.5
"""The mean error of a store toward zero, in places."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The likely errors of values, in any unit.

    Attributes:
        own: the error of each value alone, independent of all others; sizes of the values.
        shared: what each value is off for each of several independent errors, with its sign; sizes
            {errors, ...}.
        bias: what each value is off, with its sign, if stores are toward zero; sizes {2, ...}: for
            those that were measured, and for those that only some kernels make.
    """

    own: Array
    shared: Array
    bias: Array

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Spread:
        """Return the spread of values that are exact."""
        return cls(np.zeros(shape), np.zeros((0, *shape)), np.zeros((2, *shape)))

    def __getitem__(self, index: Any) -> Spread:
        of_shared = (slice(None), *(index if isinstance(index, tuple) else (index,)))
        return Spread(self.own[index], self.shared[of_shared], self.bias[of_shared])

    def __add__(self, other: Spread) -> Spread:
        """Return the spread of a sum, without what the addition itself may err."""
        first, second = _aligned(self.shared, other.shared)
        return Spread(np.hypot(self.own, other.own), first + second, self.bias + other.bias)

    @property
    def deviation(self) -> Array:
        """The likely error beside the bias."""
        deviation: Array = np.sqrt(np.square(self.own) + np.square(self.shared).sum(0))
        return deviation

    @property
    def limit(self) -> Array:
        """The likely error, of stores toward zero and of others."""
        limit: Array = self.mean + self.deviation
        return limit

    @property
    def mean(self) -> Array:
        """The size of the bias, whether or not kernels make the stores that only some make."""
        mean: Array = np.abs(self.bias).sum(0)
        return mean

    def scaled(self, factor: Array | float) -> Spread:
        """Return the spread of the product with a factor."""
        return Spread(self.own * np.abs(factor), self.shared * factor, self.bias * factor)

    def widened(self, errors: Array) -> Spread:
        """Return the spread with one more independent error of each value."""
        return replace(self, own=np.hypot(self.own, errors))

    def stored(self, values: Array, measured: bool) -> Spread:
        """Return the spread of values that FLOAT16 holds.

        Args:
            values: the values.
            measured: whether DirectML was measured to do so; else only some kernels may.
        """
        place = places(values)
        bias = self.bias.copy()
        bias[0 if measured else 1] -= _BIAS * place * np.sign(values)
        return replace(self.widened(_STORE * place), bias=bias)

    def times(self, matrix: Array, values: Array) -> Spread:
        """Return the spread of the values {..., n} times {n, m}, without its own roundings."""
        shared = _present(np.concatenate([self.shared, _each_alone(self.own, values)]))
        sums = Spread.none((*self.own.shape[:-1], matrix.shape[1]))
        return replace(sums, shared=shared @ matrix, bias=self.bias @ matrix)

    def where(self, chosen: Array, other: Spread) -> Spread:
        """Return this where chosen, else the other."""
        first, second = _aligned(self.shared, other.shared)
        return Spread(
            np.where(chosen, self.own, other.own),
            np.where(chosen, first, second),
            np.where(chosen, self.bias, other.bias),
        )

    def settled(self) -> Spread:
        """Return the spread of values that no other is computed from."""
        return Spread(self.deviation, np.zeros((0, *self.own.shape)), self.bias)

    @staticmethod
    def stacked(parts: Sequence[Spread], axis: int = 0) -> Spread:
        """Return settled spreads along a new axis."""
        own = np.stack([part.own for part in parts], axis)
        bias = np.stack([part.bias for part in parts], axis + 1)
        return replace(Spread.none(own.shape), own=own, bias=bias)


def independent(parts: Sequence[Spread], values: Sequence[Array]) -> tuple[Spread, ...]:
    """Return the same spreads with as many shared errors as there are values, and none of its own.

    Args:
        parts: of the parts of a state, sizes {batch, n} each, with the same shared errors.
        values: of the parts.
    """
    widths = [part.own.shape[-1] for part in parts]
    own = _each_alone(np.concatenate([part.own for part in parts], -1), np.concatenate(values, -1))
    shared = [part.shared for part in parts]
    most = max(map(len, shared))
    shared = [np.pad(errors, [(0, most - len(errors)), (0, 0), (0, 0)]) for errors in shared]
    errors = _present(np.concatenate([np.concatenate(shared, -1), own]))
    if most and len(errors) > sum(widths):
        # The factor R has the same products of columns, which is all that a spread tells.
        _, factor = np.linalg.qr(np.moveaxis(errors, 0, 1))
        errors = np.moveaxis(factor, 1, 0)
    ends = np.cumsum(widths)
    return tuple(
        replace(part, own=np.zeros_like(part.own), shared=errors[..., end - width : end])
        for part, width, end in zip(parts, widths, ends, strict=True)
    )


def _present(errors: Array) -> Array:
    """Return the errors that are not zero everywhere; FLOAT32 has no stores, for one."""
    present: Array = errors[errors.any(axis=tuple(range(1, errors.ndim)))]
    return present


def _each_alone(own: Array, values: Array) -> Array:
    """Return errors {errors, ..., n}: one for each of the values {..., n} of a row.

    Equal values may come of equal operations, which err alike, as where nodes have equal weights.
    So there is one more error for all that are equal in every row.
    """
    width = own.shape[-1]
    rows = values.reshape(-1, width).astype(np.float32)
    _, kinds, counts = np.unique(rows, axis=1, return_inverse=True, return_counts=True)
    alike = kinds.reshape(1, -1) == np.flatnonzero(counts > 1)[:, np.newaxis]
    sources = np.concatenate([np.eye(width, dtype=bool), alike])
    alone: Array = np.where(sources.reshape(-1, *[1] * (own.ndim - 1), width), own, 0.0)
    return alone


def _aligned(first: Array, second: Array) -> tuple[Array, Array]:
    """Return shared errors with zeros for those that only the other has."""
    most = max(len(first), len(second))
    aligned = []
    for errors in (first, second):
        rest = [(0, most - len(errors)), *[(0, 0)] * (errors.ndim - 1)]
        aligned.append(np.pad(errors, rest) if len(errors) < most else errors)
    return aligned[0], aligned[1]
