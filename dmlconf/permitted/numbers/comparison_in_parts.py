"""Whether kernels find the maximum or minimum of a row in parts, where NaN may hide numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

__all__ = ["compared_in_parts"]

_LONGEST_WHOLE: Final = 512
"""The most elements along an axis that are not compared in parts.

Measured on ten releases of DirectML: in a row of 514 elements, a NaN at index 513 hides the number
at index 1, so a part has both.
"""


def compared_in_parts(sizes: Sequence[int], axes: Sequence[int]) -> bool:
    """Return whether rows of a tensor are compared in parts.

    A row has the elements along the axes, of which a maximum or minimum is taken. It is compared in
    parts if it has more than 512 elements, or if two or more of the axes have sizes above 1. A
    comparison with NaN is false, so a NaN may hide the numbers of its part.
    """
    along = [sizes[axis] for axis in set(axes)]
    return math.prod(along) > _LONGEST_WHOLE or sum(size > 1 for size in along) > 1
