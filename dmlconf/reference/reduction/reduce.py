"""REDUCE, ARGMIN and ARGMAX, which reduce some axes of a tensor to size 1.

The functions here return arrays without the reduced axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.tensors.datatypes import Array

__all__ = [
    "argmax",
    "argmin",
    "reduce",
    "reduced_last",
    "sum_of_squares",
]


def argmin(
    InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int], AxisDirection: str
) -> Array:
    """InputTensor {D0, D1, ...} -> OutputTensor {1 or D0, 1 or D1, ...}; INT64, INT32, UINT64,
    UINT32; InputTensor: FLOAT32, FLOAT16, INT64 to INT8, UINT64 to UINT8

    Return the index of the smallest element along the axes, in row-major order over them.

    With two axes of the sizes 2 and 3, the element [1, 0] has the index 3. Among equal elements
    AxisDirection INCREASING gives the first and DECREASING the last. The index is 0 if the first
    element is NaN; other NaN are ignored.

    Source: the page of DML_ARGMIN_OPERATOR_DESC; NaN was measured.
    """
    rows = reduced_last(InputTensor, Axes)
    return _first_or_last(rows, np.argmin, np.inf, AxisDirection).astype(
        OutputTensor.DataType.dtype
    )


def argmax(
    InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int], AxisDirection: str
) -> Array:
    """InputTensor {D0, D1, ...} -> OutputTensor {1 or D0, 1 or D1, ...}; INT64, INT32, UINT64,
    UINT32; InputTensor: FLOAT32, FLOAT16, INT64 to INT8, UINT64 to UINT8

    Return the index of the largest element along the axes, as `argmin` does for the smallest.

    Source: the page of DML_ARGMAX_OPERATOR_DESC; NaN was measured.
    """
    rows = reduced_last(InputTensor, Axes)
    return _first_or_last(rows, np.argmax, -np.inf, AxisDirection).astype(
        OutputTensor.DataType.dtype
    )


def reduce(
    Function: str, InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int]
) -> Array:
    """InputTensor {D0, D1, ...} -> OutputTensor {1 or D0, 1 or D1, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the input with the axes reduced by the function.

    Integers wrap around. MIN and MAX ignore NaN; of NaN alone, MIN is infinity and MAX -infinity.
    ARGMIN and ARGMAX return what `argmin` and `argmax` return with INCREASING, as integers. With
    empty Axes each element is reduced alone: SUM_SQUARE of 3 is 9.

    Source: the page of DML_REDUCE_OPERATOR_DESC; NaN, wrapping and empty Axes were measured.
    """
    dtype = OutputTensor.DataType.dtype
    if Function in ("ARGMIN", "ARGMAX"):
        extremum = argmin if Function == "ARGMIN" else argmax
        return extremum(InputTensor, OutputTensor, Axes, "INCREASING")
    rows = reduced_last(InputTensor, Axes)
    with np.errstate(all="ignore"):
        wide = np.dtype(np.float64) if rows.dtype.kind == "f" else rows.dtype
        return _REDUCTIONS[Function](rows, wide).astype(dtype)


_REDUCTIONS: Final[Mapping[str, Callable[[Array, np.dtype[Any]], Array]]] = {
    "SUM": lambda rows, wide: rows.sum(-1, dtype=wide),
    "AVERAGE": lambda rows, wide: rows.mean(-1, dtype=wide),
    "L1": lambda rows, wide: np.abs(rows).sum(-1, dtype=wide),
    "L2": lambda rows, wide: np.sqrt(sum_of_squares(rows, wide)),
    "LOG_SUM": lambda rows, wide: np.log(rows.sum(-1, dtype=wide)),
    "LOG_SUM_EXP": lambda rows, wide: np.log(np.exp(rows.astype(wide)).sum(-1)),
    "SUM_SQUARE": lambda rows, wide: sum_of_squares(rows, wide),
    "MULTIPLY": lambda rows, wide: rows.prod(-1, dtype=wide),
    "MAX": lambda rows, wide: _extremum(np.fmax, rows, -np.inf),
    "MIN": lambda rows, wide: _extremum(np.fmin, rows, np.inf),
}
"""The functions by name: each reduces the last axis, and adds and multiplies in the type `wide`."""


def sum_of_squares(rows: Array, wide: np.dtype[Any]) -> Array:
    """Return the sum of the squares of each row, of the type `wide`."""

    def summed(part: Array) -> Array:
        values = part.astype(wide)
        sums: Array = np.einsum("...i,...i", values, values)
        return sums[..., np.newaxis]

    return in_slices(summed, rows, dtype=wide, together=(-1,))[..., 0]


def _extremum(choose: np.ufunc, rows: Array, empty: float) -> Array:
    """Return the extremum of each row; `empty` for a row of NaN alone."""
    extremum: Array = choose.reduce(rows, -1)
    return np.where(np.isnan(extremum), empty, extremum) if rows.dtype.kind == "f" else extremum


def reduced_last(tensor: Array, axes: Sequence[int]) -> Array:
    """Return the tensor with the reduced axes, in ascending order, as one last axis."""
    reduced = sorted(set(axes))
    outer = [axis for axis in range(tensor.ndim) if axis not in reduced]
    sizes = [tensor.shape[axis] for axis in outer]
    return tensor.transpose(*outer, *reduced).reshape(*sizes, -1)


def _first_or_last(rows: Array, find: Callable[..., Array], worst: float, direction: str) -> Array:
    """Return the index of each row's extremum, as `argmin` describes.

    Args:
        find: NumPy's argmin or argmax.
        worst: the number as which NaN counts: infinity for argmin, -infinity for argmax.
    """
    indices = _index(rows, find, direction)
    # NumPy gives NaN as the extremum of a row with NaN.
    if rows.dtype.kind != "f" or not np.isnan(_at(rows, indices)).any():
        return indices
    nan = np.isnan(rows)
    numbers = np.where(nan, rows.dtype.type(worst), rows)
    candidates = (numbers == _at(numbers, find(numbers, -1))) & ~nan
    return np.where(nan[..., 0], 0, _index(candidates, np.argmax, direction))


def _index(rows: Array, find: Callable[..., Array], direction: str) -> Array:
    if direction == "INCREASING":
        return find(rows, -1)
    from_end: Array = rows.shape[-1] - 1 - find(rows[..., ::-1], -1)
    return from_end


def _at(rows: Array, indices: Array) -> Array:
    return np.take_along_axis(rows, indices[..., np.newaxis], -1)
