"""Means, sums and deviations of normalisations, if intermediates may be stored in FLOAT16.

Derived in docs/bounds.md, What FLOAT16 holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dmlconf.permitted.numbers.half import STORES
from dmlconf.permitted.numbers.span import Span
from dmlconf.reference.numbers.floats import single
from dmlconf.reference.numbers.half import Store
from dmlconf.tensors.datatypes import Array

__all__ = ["Statistics", "means_of", "parts_of", "sums_of"]

_Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Statistics:
    """The variance of elements and their differences from the mean.

    Attributes:
        differences: the spans of the differences from the mean, which may be stored in FLOAT16; one
            for each way in which a kernel may store the mean.
        variance: the span of variances that follow from any of the differences, before a store.
    """

    differences: tuple[Span, ...]
    variance: Span

    @classmethod
    def of(cls, values: Array, over: _Axes, exact: Array | None) -> Statistics:
        """Return the statistics of elements.

        All elements that share a mean share its error, which hardly changes their variance: an
        error of 0.01 adds 0.0001. So each number that may be stored as the mean has its own
        differences.

        Args:
            exact: which means are the same however they are computed; None if none is subtracted.
        """
        if exact is None:
            own = Span.of(values)
            return cls((own,), _spread([own], over))
        means = [group[0].or_any(group[1:]) for group in means_of(values, over, exact)]
        differences = [
            (Span.of(values) - mean).rounded(exact & (mean is means[0])).held() for mean in means
        ]
        return cls(tuple(differences), _spread(differences, over))

    def inverse_roots(self, epsilon: float) -> Iterator[Span]:
        """Yield spans of the reciprocals of the deviations, one for each way to store the variance.

        A kernel may also store the root or its reciprocal in FLOAT16.
        """
        one = Span.of(np.ones(1))
        for variance in self.variance.stores():
            root = (variance + single(epsilon)).rounded().map(np.sqrt).rounded()
            yield (one / root.held()).or_any([(one / root).held()]).rounded()


def parts_of(over: _Axes, shape: tuple[int, ...]) -> Iterator[tuple[_Axes, _Axes]]:
    """Yield both ways to reduce dimensions in two steps; nothing if all are adjacent.

    For the dimensions 0 and 2, these are (2,) before (0,) and (0,) before (2,). Dimensions of size
    1 do not count. Measured: the first step of a sum of gradients is stored in FLOAT16.
    """
    counted = [axis for axis in over if shape[axis] > 1]
    between = range(counted[0], counted[-1]) if counted else ()
    axes = [axis for axis in between if axis not in over and shape[axis] > 1]
    for last in axes[-1:]:
        inner = tuple(axis for axis in counted if axis > last)
        outer = tuple(axis for axis in counted if axis < last)
        yield inner, outer
        yield outer, inner


def means_of(
    values: Array, over: _Axes, exact: Array, *, of_held_sums: bool = False
) -> Iterator[list[Span]]:
    """Yield the means that a kernel may use, a list for each way to compute and store them.

    The first list has the mean in FLOAT32; the others come from stores in FLOAT16.

    Args:
        exact: which means are the same however they are computed.
        of_held_sums: whether a kernel may also store in FLOAT16 the sum before it is divided, or
            means along some dimensions before it averages them.
    """
    own = _mean(Span.of(values), over, exact)
    yield [own]
    stored: list[Span] = [own]
    for each in (mean for store in STORES for mean in _both_ends(own, store)):
        if not any(_same(each, before) for before in stored):
            stored.append(each)
            yield [each]
    if of_held_sums:
        count = values.size // own.least.size
        yield from ([each / count for each in _both_ends(own * count, s)] for s in STORES)
        for first, second in parts_of(over, values.shape):
            part = _mean(Span.of(values), first, exact)
            of_parts = [
                _mean(each, second, False) for store in STORES for each in _both_ends(part, store)
            ]
            held = [
                each / factor
                for mean in of_parts
                for factor in (1, count)
                for store in STORES
                for each in _both_ends(mean * factor, store)
            ]
            yield of_parts + held


def sums_of(terms: Array, sizes: Array, over: _Axes, exact: Array | bool) -> Span:
    """Return sums, which a kernel may compute in two steps, the first stored in FLOAT16.

    Args:
        sizes: the magnitudes of the terms, to whose sum the error is proportional.
        exact: which sums are the same in every order of adding.
    """
    whole = terms.sum(over, keepdims=True)
    size = sizes.sum(over, keepdims=True)
    count = terms.size // whole.size
    total = Span.sums(whole, size, count, exact)
    for first, second in parts_of(over, terms.shape):
        part = terms.sum(first, keepdims=True)
        held = Span.sums(part, sizes.sum(first, keepdims=True), count, exact).held()
        least, greatest = (end.sum(second, keepdims=True) for end in held.ends)
        added = Span.sums(least, size, count).or_any([Span.sums(greatest, size, count)])
        total = total.or_any([added])
    return total


def _mean(values: Span, over: _Axes, exact: Array | bool) -> Span:
    means = []
    for end in values.ends:
        mean, sizes = (part.mean(over, keepdims=True) for part in (end, np.abs(end)))
        count = end.size // mean.size
        means.append(Span.sums(mean, sizes, count, exact).rounded(exact))
    return means[0].or_any(means[1:])


def _both_ends(span: Span, store: Store) -> list[Span]:
    """Return the ends of a span after a store in FLOAT16, or one of them if they are equal."""
    least, greatest = (store(end) for end in span.ends)
    numbers = [least] if np.array_equal(least, greatest) else [least, greatest]
    return [Span.of(number) for number in numbers]


def _same(first: Span, second: Span) -> bool:
    pairs = zip(first.ends, second.ends, strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def _spread(differences: Sequence[Span], over: _Axes) -> Span:
    first, *others = (_mean(each.square(), over, False) for each in differences)
    return first.or_any(others)
