"""Outputs that keep their rule, yet look as if the operator had not run.

A rule that is wide for small values would pass an output of nothing but zeros, or one that is
still a copy of an input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.runner.verdict import ReasonKind
from dmlconf.tensors.datatypes import Array

__all__ = ["suspicions"]

_LEAST_ELEMENTS: Final = 8
"""Elements from which on such likeness is no chance."""


def suspicions(
    case: Case, name: str, actual: Array, expected: Array
) -> Iterator[tuple[ReasonKind, str]]:
    """Yield what is suspicious of an output that keeps its rule.

    Args:
        case: the case.
        name: the output tensor.
        actual: what the backend computed.
        expected: what is expected, of the same sizes and data type.
    """
    if actual.size < _LEAST_ELEMENTS:
        return
    if not actual.any() and _most(expected != 0):
        message = f"{name} is all zeros, where most of it must not be"
        yield ReasonKind.ALL_ZEROS, message
    if np.array_equal(actual, expected, equal_nan=True):
        return
    for source, array in case.inputs().items():
        if array.shape != actual.shape or array.dtype != actual.dtype:
            continue
        if np.array_equal(actual, array, equal_nan=True) and _most(expected != array):
            message = f"{name} is a copy of {source}, where most of it must not be"
            yield ReasonKind.INPUT_COPIED, message


def _most(elements: Array) -> bool:
    return bool(2 * np.count_nonzero(elements) > elements.size)
