"""Find the kinds of numbers in a case's inputs, such as NaN, for `Data` in conditions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case, ExpectedRejection, Fill
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.model import FieldKind
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.fills import fill

__all__ = ["DATA_WORDS", "data_words", "is_index", "words_of"]

DATA_WORDS: Final[Mapping[str, str]] = {
    "NAN": "NaN",
    "INFINITY": "an infinity",
    "NEGATIVE": "a number below 0",
    "NEGATIVE_INDEX": "an index below 0",
    "NEGATIVE_ZERO": "-0.0",
    "SUBNORMAL": "a subnormal number",
    "BEYOND_HALF": "a finite number beyond half of the largest one of its data type",
}
"""The words of `Data`, each with the number that an input then contains."""

MOST_ELEMENTS: Final = 1 << 16
"""Larger tensors are not examined: most belong to layers of networks, whose data are ordinary."""


def data_words(case: Case) -> tuple[str, ...]:
    """Return the words that apply to at least one input, in the order of `DATA_WORDS`.

    A case that expects a rejection has none. Inputs without data, and inputs of more than
    `MOST_ELEMENTS` elements, are skipped.
    """
    if isinstance(case.expectation, ExpectedRejection):
        return ()
    words: set[str] = set()
    for name, field, tensor in tensors_of(case.entry, case.desc, FieldKind.INPUT):
        if tensor.ElementCount <= MOST_ELEMENTS:
            index = is_index(field.name)
            with suppress(LookupError, ValueError, TypeError, OverflowError):
                words.update(_words(case.data[name], tensor, index=index))
    return tuple(word for word in DATA_WORDS if word in words)


def is_index(tensor: str) -> bool:
    """Return whether an operator's input of this name holds indices."""
    return "Indices" in tensor


def _words(data: Array | Fill, tensor: TensorDesc, *, index: bool) -> frozenset[str]:
    if isinstance(data, Fill):
        arguments = tuple(sorted(data.arguments.items()))
        return _words_of_fill(data.name, arguments, tensor.Sizes, tensor.DataType, index)
    return words_of(data, tensor.DataType, index=index)


@lru_cache(maxsize=8192)  # Cases of a matrix share their data.
def _words_of_fill(
    name: str,
    arguments: tuple[tuple[str, Any], ...],
    sizes: tuple[int, ...],
    data_type: DataType,
    index: bool,
) -> frozenset[str]:
    return words_of(fill(name, sizes, data_type, dict(arguments)), data_type, index=index)


def words_of(array: Array, data_type: DataType, *, index: bool = False) -> frozenset[str]:
    """Return the words of `DATA_WORDS` that apply to an array of any shape; none if it is empty.

    Args:
        data_type: the array's data type; NumPy has none for integers of 4 bits.
        index: whether the numbers are indices.
    """
    if not array.size:
        return frozenset()
    half = data_type.maximum / 2
    if not data_type.is_float:
        low, high = int(array.min()), int(array.max())
        words = {"NEGATIVE"} if low < 0 else set()
        words |= {"NEGATIVE_INDEX"} if low < 0 and index else set()
        words |= {"BEYOND_HALF"} if high > half or low < -half else set()
        return frozenset(words)
    size = np.abs(array)
    least, most = float(size.min()), float(size.max())
    if least >= np.finfo(array.dtype).tiny and most <= half:
        return frozenset({"NEGATIVE"} if (array < 0).any() else ())
    finite = np.isfinite(size)
    zero = size == 0
    holds = {
        "NAN": np.isnan(size),
        "INFINITY": np.isinf(size),
        "NEGATIVE": array < 0,
        "NEGATIVE_ZERO": zero & np.signbit(array),
        "SUBNORMAL": ~zero & (size < np.finfo(array.dtype).tiny),
        "BEYOND_HALF": finite & (size > half),
    }
    return frozenset(word for word, mask in holds.items() if mask.any())
