"""Sizes and strides: where the elements of a tensor lie in its buffer.

Sizes and strides count elements. Source: DML_BUFFER_TENSOR_DESC and the page
"Using strides to express padding and memory layout".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "LAYOUTS",
    "as_stored",
    "element_offsets",
    "is_packed",
    "layout_class",
    "minimum_buffer_bytes",
    "overlaps",
    "packed_strides",
]

Strides = tuple[int, ...]


def packed_strides(sizes: Sequence[int]) -> Strides:
    """Return the strides of a tensor with contiguous elements, the last dimension fastest."""
    strides = [1] * len(sizes)
    for dimension in range(len(sizes) - 1, 0, -1):
        strides[dimension - 1] = strides[dimension] * sizes[dimension]
    return tuple(strides)


def is_packed(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether elements are packed; strides of dimensions of size 1 do not matter.

    If the numbers of sizes and strides differ, the last ones of the longer sequence do not count.
    """
    return all(
        size == 1 or stride == packed
        for size, stride, packed in zip(sizes, strides, packed_strides(sizes), strict=False)
    )


def _padded(sizes: Sequence[int]) -> Strides:
    """Leave room for 3 more elements in a row, and for 1 more slice in other dimensions."""
    padded = [size + 1 for size in sizes[:-1]] + [size + 3 for size in sizes[-1:]]
    return packed_strides(padded)


def _transposed(sizes: Sequence[int]) -> Strides:
    """Let the first dimension vary fastest, then the second, and so on."""
    return packed_strides(sizes[::-1])[::-1]


def _channels_last(sizes: Sequence[int]) -> Strides:
    """Let dimension 1 vary fastest, as in NHWC; a tensor of one or two dimensions is packed."""
    if len(sizes) < 3:
        return packed_strides(sizes)
    order = (0, *range(2, len(sizes)), 1)
    strides = dict(zip(order, packed_strides([sizes[at] for at in order]), strict=True))
    return tuple(strides[at] for at in range(len(sizes)))


def _broadcast(sizes: Sequence[int]) -> Strides:
    """Repeat one slice along the first dimension larger than 1, by a stride of 0."""
    repeated = next((i for i, size in enumerate(sizes) if size > 1), None)
    stored = [1 if i == repeated else size for i, size in enumerate(sizes)]
    strides = packed_strides(stored)
    return tuple(0 if i == repeated else stride for i, stride in enumerate(strides))


LAYOUTS: Final[dict[str, Callable[[Sequence[int]], Strides | None]]] = {
    "implicit": lambda sizes: None,
    "packed": packed_strides,
    "padded": _padded,
    "transposed": _transposed,
    "channels-last": _channels_last,
    "broadcast": _broadcast,
}
"""Functions from sizes to strides, by the layout's name; None is a null pointer."""


@lru_cache(maxsize=65_536)
def layout_class(sizes: tuple[int, ...], strides: tuple[int, ...] | None) -> str:
    """Return the layout of a tensor: packed, padded, transposed, channels-last or broadcast.

    Dimensions of size 0 or 1 do not count. A tensor without strides, or with more or fewer strides
    than sizes, is packed. Otherwise a stride of 0 means broadcast, and strides that never increase
    mean padded, even if elements overlap. A tensor of no other layout is transposed.
    """
    if strides is None or len(strides) != len(sizes):
        return "packed"
    kept = [(n, s) for n, s in zip(sizes, strides, strict=True) if n > 1]
    own = [stride for _, stride in kept]
    if own == list(packed_strides([size for size, _ in kept])):
        return "packed"
    if 0 in own:
        return "broadcast"
    if own == sorted(own, reverse=True):
        return "padded"
    last = LAYOUTS["channels-last"](sizes)
    if last and [s for n, s in zip(sizes, last, strict=True) if n > 1] == own:
        return "channels-last"
    return "transposed"


def _last_offset(sizes: Sequence[int], strides: Sequence[int]) -> int:
    return sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def minimum_buffer_bytes(
    data_type: DataType, sizes: Sequence[int], strides: Sequence[int] | None
) -> int:
    """Return the minimum TotalTensorSizeInBytes: up to the last element, in multiples of 4 bytes.

    With strides, no size may be 0.

    Source: the page of DML_BUFFER_TENSOR_DESC (DMLCalcBufferTensorSize).
    """
    elements = math.prod(sizes) if strides is None else _last_offset(sizes, strides) + 1
    return -(-elements * data_type.bits // 32) * 4


def element_offsets(sizes: Sequence[int], strides: Sequence[int]) -> Array:
    """Return the offset of every element in its buffer, in elements, shaped like the tensor."""
    offsets = np.zeros((), np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        offsets = np.add.outer(offsets, np.arange(size, dtype=np.int64) * stride)
    return offsets


def overlaps(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether any two elements have the same offset in the buffer."""
    if 0 in sizes:
        return False
    ordered = sorted(
        (stride, size) for size, stride in zip(sizes, strides, strict=True) if size > 1
    )
    reach = 0
    for stride, size in ordered:
        if stride <= reach:
            break
        reach += (size - 1) * stride
    else:
        return False
    if math.prod(sizes) > _last_offset(sizes, strides) + 1:
        return True
    offsets = element_offsets(sizes, strides).ravel()
    return len(np.unique(offsets)) < len(offsets)


def as_stored(values: Array, strides: Sequence[int] | None) -> Array:
    """Return the values as read back after they were written with these strides.

    Elements that share an offset all get the value of the last of them in row-major order.
    """
    if strides is None or not overlaps(values.shape, strides):
        return values
    last = values[tuple(slice(-1, None) if stride == 0 else slice(None) for stride in strides)]
    if not overlaps(last.shape, strides):
        return np.broadcast_to(last, values.shape).copy()
    offsets = element_offsets(values.shape, strides)
    buffer = np.zeros(int(offsets.max()) + 1, values.dtype)
    buffer[offsets] = values
    stored: Array = buffer[offsets]
    return stored
