"""Classes of data, such as `small`: the values of an operator's parameter `data`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import numpy as np

from dmlconf.cases.data_facts import MOST_ELEMENTS
from dmlconf.cases.model import Case, Fill
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.fills import fill

__all__ = [
    "LARGE",
    "REAL_CLASSES",
    "class_of",
    "data_class",
    "data_classes",
    "data_input",
]

_SMALL: Final = 2.0**-8
"""Finite real data with an element other than 0 is `small` if all magnitudes are below this."""

LARGE: Final[Mapping[DataType, float]] = {
    DataType.FLOAT16: 2.0**8,
    DataType.FLOAT32: 2.0**64,
    DataType.FLOAT64: 2.0**512,
    **{each: 2.0 ** (each.bits - 2) for each in DataType if not each.is_float},
}
"""Finite data with a magnitude of at least this number, whose square overflows, is `large`."""

REAL_CLASSES: Final = ("fractions", "special", "all -infinity")
"""The classes that only data of real numbers can have."""


def data_input(operator: Operator) -> str | None:
    """Return the first input whose elements are not indices or lengths (no `bounds`), or None."""
    inputs = (field for field in operator.of_kind(FieldKind.INPUT) if field.bounds is None)
    return next((field.name for field in inputs), None)


def data_classes(data_types: Sequence[DataType]) -> tuple[str, ...]:
    """Return the classes of data that inputs of these data types may have."""
    real = any(each.is_float for each in data_types)
    return ("whole", "small", "large", *(REAL_CLASSES if real else ()))


def data_class(case: Case) -> str | None:
    """Return the class of the data of `data_input`.

    None if the input is absent, or has unknown data, only zeros, or more than `MOST_ELEMENTS`
    elements. Of an array of tensors, the first one counts.
    """
    data_name = data_input(case.operator)
    inputs = tensors_of(case.operator, case.desc, FieldKind.INPUT)
    first = ((name, tensor) for name, field, tensor in inputs if field.name == data_name)
    name, tensor = next(first, ("", None))
    if tensor is None or tensor.ElementCount > MOST_ELEMENTS:
        return None
    with suppress(LookupError, ValueError, TypeError, OverflowError):
        return _of_data(case.data[name], tensor)
    return None


def _of_data(data: Array | Fill, tensor: TensorDesc) -> str | None:
    if isinstance(data, Fill):
        return _of_fill(data.name, tuple(data.arguments.items()), tensor)
    return class_of(data, tensor.DataType)


@lru_cache(maxsize=65_536)
def _of_fill(name: str, arguments: tuple[tuple[str, Any], ...], tensor: TensorDesc) -> str | None:
    array = fill(name, tensor.Sizes, tensor.DataType, dict(arguments))
    return class_of(array, tensor.DataType)


def class_of(array: Array, data_type: DataType) -> str | None:
    """Return the class of an array; None if it has only zeros, or no elements.

    Real data with NaN or infinities is `special`, or `all -infinity` if all elements are. Other
    data is `large` if a magnitude reaches `LARGE`, and `small` if all integers are from -1 to 1, or
    all real magnitudes below 2^-8. The rest is `whole`, or `fractions` if an element is no whole
    number.
    """
    if not array.size or not array.any():
        return None
    large = LARGE[data_type]
    if not data_type.is_float:
        least, most = int(array.min()), int(array.max())
        if max(most, -least) >= large:
            return "large"
        return "small" if least >= -1 and most <= 1 else "whole"
    finite = np.isfinite(array)
    if not finite.all():
        return "all -infinity" if (array == -np.inf).all() else "special"
    size = np.abs(array)
    if size.max() >= large:
        return "large"
    if size.max() < _SMALL:
        return "small"
    return "whole" if (size == np.rint(size)).all() else "fractions"
