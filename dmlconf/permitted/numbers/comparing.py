"""Which rows a kernel compares in parts, where a NaN may hide the rest of its part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

__all__ = ["compared_in_parts"]

_LONGEST_WHOLE: Final = 512
"""The most elements along an axis that are compared one after the other.

Measured on ten releases of DirectML: with 514 elements a NaN at index 513 hides element 1.
"""


def compared_in_parts(sizes: Sequence[int], axes: Sequence[int]) -> bool:
    """Return whether rows of a tensor are compared in parts.

    The first element of each part stays there if it is NaN, and which elements are a part
    depends on the kernel. So are rows of more than 512 elements, and those of several axes.

    Args:
        sizes: the tensor's.
        axes: those that a row extends over, in any order.
    """
    along = [sizes[axis] for axis in set(axes)]
    return math.prod(along) > _LONGEST_WHOLE or sum(size > 1 for size in along) > 1
