"""Classes of data that `schemas/questions.yaml` asks for.

The class `ends_of_half_precision` has the parts "2048" and "65504". A suite covers the first if an
input has an element of magnitude 2048.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["DATA_CLASSES", "DataClass"]

_WORDS: Final = (7, 8, 15, 16, 31, 32, 53, 63, 64)
"""Bits of integers, with and without the sign, and of FLOAT64's significand (53)."""


@dataclass(frozen=True, slots=True)
class DataClass:
    """A class of data.

    Attributes:
        parts: returns the names of the parts for a data type.
        parts_in: returns the names of the parts that the data of one input has.
    """

    parts: Callable[[DataType], tuple[str, ...]]
    parts_in: Callable[[Array], frozenset[str]]


def _ends(data_type: DataType) -> tuple[str, ...]:
    """Return the parts for the numbers 2^n - 1 and 2^n that a data type holds.

    INT8 has `below 2^7` (127). UINT8 also has `from 2^7` (128) and `below 2^8` (255).
    """
    return tuple(
        f"{side} 2^{bits}"
        for bits in _WORDS
        for side, number in (("below", 2**bits - 1), ("from", 2**bits))
        if number <= int(data_type.maximum)
    )


def _ends_in(array: Array) -> frozenset[str]:
    values = {int(value) for value in np.unique(array)}
    parts = set()
    for bits in _WORDS:
        if 2**bits - 1 in values:
            parts.add(f"below 2^{bits}")
        if values & {2**bits, 2**bits + 1}:
            parts.add(f"from 2^{bits}")
    return frozenset(parts)


_LOW: Final = "equal high words, and low words that differ in bit 31"
_ORDER: Final = "low words in another order than the numbers"


def _words_in(array: Array) -> frozenset[str]:
    values = np.unique(array)
    high, low = (values >> values.dtype.type(32)).tolist(), (values.astype(np.uint64) & 0xFFFFFFFF)
    by_high: dict[int, set[bool]] = {}
    for word, rest in zip(high, low.tolist(), strict=True):
        by_high.setdefault(word, set()).add(rest >= 1 << 31)
    parts = {_LOW} if any(len(sides) == 2 for sides in by_high.values()) else set()
    if (np.diff(low.astype(np.int64)) < 0).any():
        parts.add(_ORDER)
    return frozenset(parts)


def _half_precision_ends_in(array: Array) -> frozenset[str]:
    sizes = np.abs(array)
    return frozenset(
        name for name, number in (("2048", 2048), ("65504", 65504)) if (sizes == number).any()
    )


_BEFORE: Final = "NaN before the extreme"
_AFTER: Final = "NaN after the extreme"


def _nan_beside_extremes(array: Array) -> frozenset[str]:
    flat = array.ravel()
    nan = np.flatnonzero(np.isnan(flat))
    if not len(nan) or len(nan) == len(flat):
        return frozenset()
    ends = int(np.nanargmax(flat)), int(np.nanargmin(flat))
    parts = {_BEFORE} if nan[0] < min(ends) else set()
    return frozenset(parts | ({_AFTER} if nan[-1] > max(ends) else set()))


DATA_CLASSES: Final[Mapping[str, DataClass]] = {
    "ends_of_words": DataClass(_ends, _ends_in),
    "words_of_64_bits": DataClass(lambda data_type: (_LOW, _ORDER), _words_in),
    "ends_of_half_precision": DataClass(
        lambda data_type: ("2048", "65504"), _half_precision_ends_in
    ),
    "nan_around_the_extreme": DataClass(lambda data_type: (_BEFORE, _AFTER), _nan_beside_extremes),
}
"""The classes by the names that `schemas/questions.yaml` uses."""
