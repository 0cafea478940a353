"""Apply functions to the elements of tensors block by block.

FLOAT64 temporaries of a large tensor do not fit into the processor's cache, and moving them takes
longer than computing. A tensor of up to 32,768 elements is not divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["in_blocks", "in_slices"]

_BLOCK: Final = 1 << 15
"""Elements of a block: 256 KiB of FLOAT64."""


def in_blocks(function: Callable[..., Array], *tensors: Array, dtype: np.dtype[Any]) -> Array:
    """Apply a function to each element, or to the elements at the same index, block by block.

    Args:
        function: takes an array for each tensor, the whole tensor or some elements in one
            dimension, and returns an array of the same sizes.
        tensors: one or more, of the same sizes.
        dtype: the type to which the function's results are converted.
    """
    first = tensors[0]
    if first.size <= _BLOCK:
        return function(*tensors).astype(dtype, copy=False)
    flat = [_flat(tensor) for tensor in tensors]
    result = np.empty(first.size, dtype)
    for start in range(0, first.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        result[block] = function(*(tensor[block] for tensor in flat))
    return result.reshape(first.shape)


def _flat(tensor: Array) -> Array:
    """Return the elements in one dimension, without a copy if all strides are 0."""
    if any(tensor.strides):
        return tensor.reshape(-1)
    return np.broadcast_to(tensor[(0,) * tensor.ndim], tensor.size)


def in_slices(
    function: Callable[..., Array],
    *tensors: Array | None,
    dtype: np.dtype[Any],
    together: Sequence[int] = (),
) -> Array:
    """Apply a function to tensors, slice by slice along one of their axes.

    The axis is the first of a size above 1 that is not in `together`. Tensors without such an axis,
    and those of up to 32,768 elements, are one slice.

    Args:
        function: takes a slice of each tensor, or None for None. It returns a tensor with the sizes
            of the first tensor's slice, except perhaps along the axes `together`.
        tensors: the first one has the full sizes; each other one has size 1 along the axes in which
            it is broadcast, or is None.
        dtype: the type to which the function's results are converted.
        together: the axes along which the function needs all elements at once; negative ones count
            from the end.
    """
    first = tensors[0]
    assert first is not None
    whole = {axis % first.ndim for axis in together}
    axes = [axis for axis, size in enumerate(first.shape) if size > 1 and axis not in whole]
    if not axes or first.size <= _BLOCK:
        return function(*tensors).astype(dtype, copy=False)
    axis, result = axes[0], None
    step = max(1, _BLOCK * first.shape[axis] // first.size)
    for start in range(0, first.shape[axis], step):
        part = (slice(None),) * axis + (slice(start, start + step),)
        elements = function(
            *(
                tensor if tensor is None or tensor.shape[axis] == 1 else tensor[part]
                for tensor in tensors
            )
        )
        if result is None:
            sizes = list(elements.shape)
            sizes[axis] = first.shape[axis]
            result = np.empty(sizes, dtype)
        result[part] = elements
    assert result is not None
    return result
