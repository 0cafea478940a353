"""Functions that the tables' formulas call to compute an attribute from the desc."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.expressions import Namespace
from dmlconf.reference.element_wise.clipping import bound_of, threshold_of
from dmlconf.reference.numbers.attributes import converted
from dmlconf.tensors.datatypes import Array
from dmlconf.translation.recurrent import RECURRENT_VALUES

__all__ = ["VALUES", "bound_as_taken"]


def bound_as_taken(names: Namespace, value: float) -> Array:
    """Return a bound in a tensor's data type, without dimensions, as DirectML takes it.

    Args:
        names: the fields of a desc with a Min and a Max.
        value: the desc's Min or Max.
    """
    tensor = names["InputTensor"]
    if "MinMaxDataType" in names:
        bound = bound_of(value, tensor, names["MinMaxDataType"])
    else:
        bound = threshold_of(tensor, value)
    with np.errstate(over="ignore"):
        return np.array(bound, tensor.DataType.dtype)


def _bound_value(names: Namespace, value: float) -> int | float:
    """`bound_value(Max)`: a bound as DirectML takes it."""
    number: int | float = bound_as_taken(names, value).item()
    return number


def _padding_value(names: Namespace) -> int | float:
    """`padding_value()`: PaddingValue as DirectML takes it, such as 44 for 300 in UINT8."""
    dtype = names["InputTensor"].DataType.dtype
    number: int | float = converted(
        names["PaddingValue"], names.get("PaddingValueDataType", "FLOAT32"), dtype
    ).item()
    return number


VALUES: Final[Mapping[str, Callable[..., Any]]] = {
    **RECURRENT_VALUES,
    "bound_value": _bound_value,
    "padding_value": _padding_value,
}
"""The functions by name; they take the desc's fields, then the arguments of the call."""
