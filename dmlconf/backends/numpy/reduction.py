"""Operators that reduce some axes of a tensor to size 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = ["argmin"]


def argmin(
    InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int], AxisDirection: str
) -> Array:
    """Return where the smallest element along the axes is, as a row-major index over them.

    Among equal elements the direction INCREASING gives the first and DECREASING the last. A
    comparison with NaN is false: a NaN never takes the place of another element, and the first
    element of all keeps its place where it is NaN.

    Source: the page of DML_ARGMIN_OPERATOR_DESC; NaN was measured.
    """
    rows = _reduced_last(InputTensor, Axes)
    return _first_or_last(rows, np.min, np.inf, AxisDirection).astype(OutputTensor.DataType.dtype)


def _reduced_last(tensor: Array, axes: Sequence[int]) -> Array:
    """Return the tensor with the reduced axes, in ascending order, flattened into the last."""
    reduced = sorted(set(axes))
    kept = [axis for axis in range(tensor.ndim) if axis not in reduced]
    sizes = [tensor.shape[axis] for axis in kept]
    return tensor.transpose(*kept, *reduced).reshape(*sizes, -1)


def _first_or_last(
    rows: Array, extremum: Callable[..., Array], never: float, direction: str
) -> Array:
    """Return the place of each row's extremum, the first or the last of equal ones."""
    nan_first = None
    if rows.dtype.kind == "f":
        nan = np.isnan(rows)
        nan_first = nan[..., 0]
        rows = np.where(nan, rows.dtype.type(never), rows)
        candidates = (rows == extremum(rows, -1, keepdims=True)) & ~nan
        candidates[..., 0] |= nan.all(-1)
    else:
        candidates = rows == extremum(rows, -1, keepdims=True)
    if direction == "DECREASING":
        places = rows.shape[-1] - 1 - np.argmax(candidates[..., ::-1], -1)
    else:
        places = np.argmax(candidates, -1)
    return places if nan_first is None else np.where(nan_first, 0, places)
