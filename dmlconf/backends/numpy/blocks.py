"""Functions of single elements, computed block by block.

FLOAT64 temporaries of a whole tensor do not fit the processor's cache, and each of them costs more
than what is computed with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["in_blocks"]

_BLOCK: Final = 1 << 14
"""Elements that are computed at once."""


def in_blocks(function: Callable[..., Array], *tensors: Array, dtype: np.dtype[Any]) -> Array:
    """Return what a function makes of each element, or of those at the same place.

    Args:
        function: of flat arrays of one length, which returns another one of that length.
        tensors: one or more, of the same sizes.
        dtype: the results' type, which the function's results must have, or fit.
    """
    first = tensors[0]
    if first.size <= _BLOCK:
        return function(*tensors).astype(dtype, copy=False)
    flat = [tensor.reshape(-1) for tensor in tensors]
    result = np.empty(first.size, dtype)
    for start in range(0, first.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        result[block] = function(*(tensor[block] for tensor in flat))
    return result.reshape(first.shape)
