"""Matrix products and convolutions of centred bytes, exact although they are computed in FLOAT32.

Centred bytes are 8-bit integers minus their zero point. A FLOAT32 sum of their products is exact up
to 2^24, which 114 products never exceed, and takes half the time of a FLOAT64 sum. Longer sums are
divided into parts, which are added up in FLOAT64.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np

from dmlconf.reference.windows.convolution import FilterGeometry, forward
from dmlconf.tensors.datatypes import Array

__all__ = ["exact_convolution", "exact_product"]

_LARGEST: Final = 255 + 128
"""The largest magnitude of the difference of two 8-bit numbers: 255 - (-128)."""

_TERMS: Final = 2**24 // _LARGEST**2
"""The most products whose sum is at most 2^24."""


def exact_product(a: Array, b: Array) -> Array:
    """Return the product of matrices of centred bytes, {..., M, K} x {..., K, N}, FLOAT64."""
    a, b = a.astype(np.float32), b.astype(np.float32)
    first, *others = _parts(a.shape[-1], _TERMS)
    sums: Array = np.matmul(a[..., first], b[..., first, :]).astype(np.float64)
    for part in others:
        sums += np.matmul(a[..., part], b[..., part, :])
    return sums


def exact_convolution(
    values: Array, filter_: Array, sizes: tuple[int, ...], window: FilterGeometry
) -> Array:
    """Return what `forward` returns for centred bytes, FLOAT64.

    This is faster than `forward` for a filter of up to 114 spatial elements.
    """
    channels, in_kernel = filter_.shape[1], prod(filter_.shape[2:])
    if in_kernel > _TERMS:
        return forward(values, filter_, sizes, window)
    batches, _, *spatial = values.shape
    grouped = values.astype(np.float32).reshape(batches, window.groups, channels, *spatial)
    weights = filter_.astype(np.float32)
    sums = np.zeros(sizes)
    for part in _parts(channels, _TERMS // in_kernel):
        of_part = grouped[:, :, part].reshape(batches, -1, *spatial)
        sums += forward(of_part, weights[:, part], sizes, window)
    return sums


def _parts(count: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, count, size))
