"""Permitted results of comparisons: hardware may take subnormal FLOAT32 numbers for zero.

Whether 1e-40 equals 0 is then either true or false.

Source: Direct3D 11.3 functional specification, 3.1.3.1 (subnormal numbers).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.element_wise.logic import (
    element_wise_logical_equals,
    element_wise_logical_greater_than,
    element_wise_logical_greater_than_or_equal,
    element_wise_logical_less_than,
    element_wise_logical_less_than_or_equal,
)
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LEAST_NORMAL_FLOAT32

__all__ = [
    "element_wise_logical_equals_interval",
    "element_wise_logical_greater_than_interval",
    "element_wise_logical_greater_than_or_equal_interval",
    "element_wise_logical_less_than_interval",
    "element_wise_logical_less_than_or_equal_interval",
]


def _interval(comparison: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    """Return the `..._interval` function of a comparison with FLOAT32 operands flushed or not."""

    def function(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> tuple[Array, Array]:
        unflushed = comparison(ATensor, BTensor, OutputTensor)
        if ATensor.dtype != np.float32:
            return unflushed, unflushed
        flushed = comparison(_flushed(ATensor), _flushed(BTensor), OutputTensor)
        return np.minimum(unflushed, flushed), np.maximum(unflushed, flushed)

    function.__name__ = f"{comparison.__name__}_interval"
    function.__doc__ = f"""Return the interval of `{comparison.__name__}`.

    The ends differ where flushing subnormal operands to zero changes the result.

    Source: Direct3D 11.3 functional specification, 3.1.3.1 (subnormal numbers).
    """
    return function


def _flushed(tensor: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(tensor) < LEAST_NORMAL_FLOAT32, np.float32(0), tensor)


element_wise_logical_equals_interval = _interval(element_wise_logical_equals)

element_wise_logical_greater_than_interval = _interval(element_wise_logical_greater_than)

element_wise_logical_greater_than_or_equal_interval = _interval(
    element_wise_logical_greater_than_or_equal
)

element_wise_logical_less_than_interval = _interval(element_wise_logical_less_than)

element_wise_logical_less_than_or_equal_interval = _interval(
    element_wise_logical_less_than_or_equal
)
