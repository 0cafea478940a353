"""Coordinates between the elements of a tensor, and reading the tensor there, axis by axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.datatypes import Array

__all__ = [
    "ROUNDING",
    "Coordinates",
    "along",
    "coordinates",
    "elements_at",
    "in_leading_blocks",
    "index_within",
    "interpolated",
    "nearest",
    "neighbours",
]

ROUNDING: Final[Mapping[str, Callable[[Array], Array]]] = {
    "HALF_UP": lambda values: np.floor(values + 0.5),
    "INCREASING": np.ceil,
    "DECREASING": np.floor,
}
"""How a coordinate becomes an index, by RoundingDirection.

HALF_UP, which DirectML does not have, is how RESAMPLE_GRAD rounds, and RESAMPLE1 for floating-point
tensors.
"""

_BLOCK: Final = 1 << 16
"""About how many elements are computed at once."""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The coordinates along an axis at which the elements of an output are read.

    Attributes:
        values: the coordinates, FLOAT64; the first element has coordinate 0.
        scale, input_offset, output_offset: the FLOAT32 numbers from which they were computed.
    """

    values: Array
    scale: float = 1.0
    input_offset: float = 0.0
    output_offset: float = 0.0

    def is_whole(self, size: int) -> bool:
        """Return whether the coordinates are 0 to size - 1, so that the axis does not change."""
        return len(self.values) == size and bool((self.values == np.arange(size)).all())


@np.errstate(invalid="ignore")
def coordinates(count: int, scale: float, input_offset: float, output_offset: float) -> Coordinates:
    """Return `(i - output_offset) / scale - input_offset` for i from 0 to count - 1."""
    scale, shift, offset = map(single, (scale, output_offset, input_offset))
    values = (np.arange(count, dtype=np.float64) - shift) / scale - offset
    return Coordinates(values, scale, offset, shift)


def nearest(values: Array, size: int, rounding: str) -> Array:
    """Return the index of the element at each coordinate; beyond an end, the outermost index.

    Args:
        rounding: a key of `ROUNDING`.
    """
    return index_within(ROUNDING[rounding](values), size)


def index_within(values: Array, size: int) -> Array:
    """Return whole numbers as indices, limited to the axis; 0 for NaN."""
    limited = np.clip(values, 0, size - 1)
    indices: Array = np.where(np.isnan(limited), 0, limited).astype(np.intp)
    return indices


def elements_at(tensor: Array, indices: Sequence[Array]) -> Array:
    """Return a copy of the elements at indices along each axis."""
    growth = [len(to) / size for to, size in zip(indices, tensor.shape, strict=True)]

    def cost(axis: int) -> tuple[float, int]:
        """Return a sort key by which axes that shrink come first and axes that grow come last."""
        return growth[axis], axis if growth[axis] < 1 else -axis

    taken = tensor
    for axis in sorted(range(tensor.ndim), key=cost):
        if not np.array_equal(indices[axis], np.arange(tensor.shape[axis])):
            taken = taken.take(indices[axis], axis)
    return taken.copy() if taken is tensor else taken


def neighbours(values: Array, size: int) -> tuple[Array, Array, Array]:
    """Return the index at or before each coordinate, the next index, and the weight of the latter.

    Indices beyond an end become the outermost index. Coordinate 1.25 gives 1, 2 and 0.25.
    """
    before = np.floor(values)
    return index_within(before, size), index_within(before + 1, size), values - before


def interpolated(tensor: Array, axis: int, at: Coordinates) -> Array:
    """Return a FLOAT64 tensor interpolated along an axis: `first + weight * (second - first)`."""
    if at.is_whole(tensor.shape[axis]):
        return tensor
    first, second, weight = neighbours(at.values, tensor.shape[axis])
    lower = tensor.take(first, axis)
    result = tensor.take(second, axis)
    result -= lower
    result *= along(weight, axis, tensor.ndim)
    result += lower
    return result


def in_leading_blocks(
    function: Callable[[Array], Array], tensor: Array, leading: int, output: TensorDesc
) -> Array:
    """Apply a function to a tensor in blocks that stay in the processor's cache.

    The result has the sizes and the type of `output`.

    Args:
        function: takes FLOAT64 tensors in which one axis stands for all axes before `leading`.
        leading: the first axis that the function may change.
    """
    whole = tensor.reshape(-1, *tensor.shape[leading:])
    result = np.empty((len(whole), *output.Sizes[leading:]), output.DataType.dtype)
    at_once = max(1, _BLOCK * len(whole) // max(whole.size, result.size))
    for start in range(0, len(whole), at_once):
        block = slice(start, start + at_once)
        result[block] = function(whole[block].astype(np.float64))
    return result.reshape(output.Sizes)


def along(values: Array, axis: int, rank: int) -> Array:
    """Return a vector in a shape that broadcasts along `axis` of a tensor of this rank."""
    return values.reshape([-1 if other == axis else 1 for other in range(rank)])
