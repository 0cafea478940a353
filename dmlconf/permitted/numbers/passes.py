"""Sums and averages along several axes that a kernel computes one group of axes after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dmlconf.permitted.numbers.half import toward_zero
from dmlconf.tensors.datatypes import Array

__all__ = ["in_passes"]

_Axes = tuple[int, ...]


def _passes_over(axes: Sequence[int]) -> list[_Axes]:
    """Return the groups of adjacent axes: (0, 1) and (3,) for the axes 0, 1 and 3."""
    passes: list[_Axes] = []
    for axis in sorted(set(axes)):
        if passes and passes[-1][-1] == axis - 1:
            passes[-1] += (axis,)
        else:
            passes.append((axis,))
    return passes


def in_passes(
    axes: Sequence[int], combined: Callable[[Array, _Axes], Array]
) -> Iterator[Callable[[Array], Array]]:
    """Yield functions that sum or average in several passes, in either order; none for one pass.

    Measured: DirectML 1.8.0 and 1.9.1 truncate what each pass gives to FLOAT16. Their first pass is
    over 0 for the dimensions 0 and 2, but over 3 for 0, 1 and 3.

    Args:
        axes: the axes.
        combined: sums or averages over some axes, which stay with one element each.
    """
    passes = _passes_over(axes)
    if len(passes) < 2:
        return
    for order in (passes, passes[::-1]):

        def function(values: Array, order: Sequence[_Axes] = order) -> Array:
            for group in order:
                values = toward_zero(combined(values, group))
            return values

        yield function
