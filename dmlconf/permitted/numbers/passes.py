"""Sums and averages that a kernel computes in passes, one for each group of adjacent axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dmlconf.permitted.numbers.half import toward_zero
from dmlconf.tensors.datatypes import Array

__all__ = ["in_passes", "passes_over"]

_Axes = tuple[int, ...]


def passes_over(axes: Sequence[int]) -> list[_Axes]:
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
    """Yield two functions that sum or average an array in passes, the second in reverse order.

    The result of each pass is truncated to FLOAT16. If all axes are adjacent, nothing is yielded.

    Measured on DirectML 1.8.0 and 1.9.1: for the axes 0 and 2, the first pass is over axis 0; for
    the axes 0, 1 and 3, it is over axis 3.

    Args:
        combined: sums or averages an array over some axes, and keeps these with a size of 1.
    """
    passes = passes_over(axes)
    if len(passes) < 2:
        return
    for order in (passes, passes[::-1]):

        def function(values: Array, order: Sequence[_Axes] = order) -> Array:
            for group in order:
                values = toward_zero(combined(values, group))
            return values

        yield function
