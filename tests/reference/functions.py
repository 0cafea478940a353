"""Find the functions of an operator, and make inputs for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

import numpy as np
from hypothesis import strategies as st

from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.permitted.functions import Part, permitted_function
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "ATTENTION_TENSORS",
    "WITH_OWN_FUNCTIONS",
    "divisors",
    "drawn_pair",
    "elements",
    "function_of",
    "integers",
    "uniform",
]

WITH_OWN_FUNCTIONS: Final = [
    name for name in operator_names() if operator(name).specialises is None
]
"""Operators that are no special cases of others."""

ATTENTION_TENSORS: Final = (
    "QueryTensor",
    "KeyTensor",
    "ValueTensor",
    "StackedQueryKeyTensor",
    "StackedKeyValueTensor",
    "StackedQueryKeyValueTensor",
    "BiasTensor",
    "MaskTensor",
    "RelativePositionBiasTensor",
    "PastKeyTensor",
    "PastValueTensor",
    "PastSequenceLengthsTensor",
    "OutputPresentKeyTensor",
    "OutputPresentValueTensor",
)
"""The optional tensors of MULTIHEAD_ATTENTION1."""


@cache  # Making a strategy takes long.
def integers(data_type: DataType) -> st.SearchStrategy[int]:
    """Return a strategy for integers of a data type, often near its greatest."""
    least, greatest = int(data_type.minimum), int(data_type.maximum)
    return (
        st.integers(least, greatest) | st.integers(greatest - 99, greatest) | st.integers(least, 9)
    )


@cache
def divisors(data_type: DataType, least: int, greatest: int) -> st.SearchStrategy[int]:
    """Return a strategy for integers of a data type but 0, often between two bounds."""
    return (integers(data_type) | st.integers(least, greatest)).filter(bool)


def drawn_pair(
    data: st.DataObject, data_type: DataType, seconds: st.SearchStrategy[int]
) -> tuple[int, int]:
    """Draw an integer of a data type, and a second one from a strategy."""
    return data.draw(integers(data_type), data_type), data.draw(seconds, data_type)


def elements(random: np.random.Generator, data_type: DataType, *sizes: int) -> Array:
    """Return a tensor of random integers of a data type."""
    low, high = int(data_type.minimum), int(data_type.maximum)
    return random.integers(low, high, sizes, endpoint=True).astype(data_type.dtype)


def uniform(seed: int, sizes: tuple[int, ...]) -> Array:
    """Return a FLOAT32 tensor of random numbers from -2 to 3."""
    return np.random.default_rng(seed).uniform(-2, 3, sizes).astype(np.float32)


def function_of(name: str, part: str = "") -> Callable[..., Any]:
    """Return an operator's reference function, or its function of a `part`."""
    return permitted_function(name, cast(Part, part)) if part else reference_function(name)
