"""Samples of large arrays: a digest of all elements, and some elements that a seed chooses.

Recordings keep samples of large outputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = [
    "Sample",
    "elements_digest",
    "has_digest",
    "little_endian",
    "require_sample",
    "sample_indices",
    "sample_of",
    "with_one_nan",
]

_NUMBERS: Final = 4
"""64-bit numbers in a SHA-256 digest."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The digest of an array and some of its elements.

    Attributes:
        dtype: of the whole array.
        shape: of the whole array.
        digest: what `elements_digest` returns.
        indices: the indices of `values` in row-major order, INT64, ascending.
        values: the chosen elements, flat.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    digest: str
    indices: Array
    values: Array


def sample_of(array: Array, seed: str, count: int) -> Sample:
    """Return a sample of `count` elements that `sample_indices` chooses.

    Raises:
        ValueError: `count` is less than 2 or more than `array.size`.
    """
    indices = sample_indices(array.size, seed, count)
    values = np.ascontiguousarray(array).ravel()[indices]
    return Sample(array.dtype, array.shape, elements_digest(array), indices, values)


def require_sample(size: int, count: int) -> None:
    """Raise a ValueError unless `count` is from 2 to `size`."""
    if not 2 <= count <= size:
        raise ValueError(f"no sample of {count} elements can be taken from {size}")


def sample_indices(size: int, seed: str, count: int) -> Array:
    """Return `count` distinct indices, INT64, ascending: the first, the last, and others.

    `seed` chooses the others, the same on every platform and with every version of NumPy.

    Raises:
        ValueError: `count` is less than 2 or more than `size`.
    """
    require_sample(size, count)
    indices = {0: None, size - 1: None}  # A dictionary keeps their order.
    for blocks in _blocks(seed, -(-count // _NUMBERS)):
        indices.update(dict.fromkeys((blocks % np.uint64(size)).tolist()))
        if len(indices) >= count:
            break
    return np.array(sorted(list(indices)[:count]), np.int64)


def _blocks(seed: str, count: int) -> Iterator[Array]:
    """Yield arrays of `4 * count` pseudo-random UINT64 numbers of a seed, without end."""
    for first in itertools.count(0, count):
        numbers = (f"{seed}/{block}".encode() for block in range(first, first + count))
        yield np.frombuffer(b"".join(sha256(number).digest() for number in numbers), "<u8")


def elements_digest(array: Array) -> str:
    """Return the SHA-256 of all elements, in hexadecimal, the same on all processors.

    The bits of NaNs do not count: those of invalid operations have the sign bit on x86, not on ARM.
    """
    return sha256(little_endian(with_one_nan(array))).hexdigest()


def has_digest(array: Array, digest: str) -> bool:
    """Return whether a digest is that of these elements.

    Digests of older versions of dmlconf, in which the bits of NaNs count, are accepted.
    """
    known = elements_digest(array)
    return digest == known or digest == sha256(little_endian(array)).hexdigest()


def with_one_nan(array: Array) -> Array:
    """Return the array with NumPy's own NaN, 0x7FC00000 in FLOAT32, in place of every NaN."""
    if array.dtype.kind != "f":
        return array
    undefined = np.isnan(array)
    return np.where(undefined, array.dtype.type(np.nan), array) if undefined.any() else array


def little_endian(array: Array) -> bytes:
    """Return the elements in row-major order, each with the least significant byte first."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
