"""Sums, differences, products, quotients, means and extremes of two tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.fused import fused
from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "computed",
    "element_wise_add1",
    "element_wise_difference_square",
    "element_wise_divide",
    "element_wise_max",
    "element_wise_mean",
    "element_wise_min",
    "element_wise_multiply",
    "element_wise_subtract",
]


def element_wise_add1(
    ATensor: Array,
    BTensor: Array,
    OutputTensor: TensorDesc,
    FusedActivation: Mapping[str, Any] | None,
) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return `a + b`, or `FusedActivation(a + b)`. Integers, which only ELEMENT_WISE_ADD takes, wrap
    around. The sum is rounded to the data type, and may overflow, before the activation.

    Source: the page of DML_ELEMENT_WISE_ADD1_OPERATOR_DESC; wrapping and overflow were measured.
    """
    total = computed(np.add, ATensor, BTensor)
    if FusedActivation is None:
        return total
    with np.errstate(all="ignore"):
        return fused(wide(total), FusedActivation).astype(np.float32).astype(total.dtype)


def element_wise_subtract(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return `a - b`; integers wrap around.

    Source: the page of DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC; wrapping was measured.
    """
    return computed(np.subtract, ATensor, BTensor)


def element_wise_multiply(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return `a * b`; integers wrap around.

    Source: the page of DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC; wrapping was measured.
    """
    return computed(np.multiply, ATensor, BTensor)


def element_wise_min(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the lesser of `a` and `b`; of NaN and a number, the number.

    Source: the page of DML_ELEMENT_WISE_MIN_OPERATOR_DESC; NaN was measured.
    """
    return computed(np.fmin, ATensor, BTensor)


def element_wise_max(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the greater of `a` and `b`; of NaN and a number, the number.

    Source: the page of DML_ELEMENT_WISE_MAX_OPERATOR_DESC; NaN was measured.
    """
    return computed(np.fmax, ATensor, BTensor)


def element_wise_mean(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT32,
    UINT32

    Return half of `a + b`, where the sum is computed in FLOAT32 and may overflow.

    Sums of integers wrap around, and their halves are truncated toward zero.

    Source: the page of DML_ELEMENT_WISE_MEAN_OPERATOR_DESC; overflow, wrapping and truncation were
    measured.
    """
    dtype = OutputTensor.DataType.dtype
    if dtype.kind != "f":
        return _truncated_quotient(computed(np.add, ATensor, BTensor), np.array(2, dtype))
    with np.errstate(all="ignore"):
        total = ATensor.astype(np.float32) + BTensor.astype(np.float32)
        half: Array = (total * np.float32(0.5)).astype(dtype)
    return half


def element_wise_difference_square(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT32,
    UINT32

    Return the square of `a - b`; integers wrap around.

    Source: the page of DML_ELEMENT_WISE_DIFFERENCE_SQUARE_OPERATOR_DESC; wrapping was measured.
    """
    dtype = OutputTensor.DataType.dtype
    if dtype.kind != "f":
        difference = computed(np.subtract, ATensor, BTensor)
        return computed(np.multiply, difference, difference)
    with np.errstate(all="ignore"):
        square: Array = np.square(wide(ATensor) - wide(BTensor)).astype(np.float32)
        return square.astype(dtype)


def element_wise_divide(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return `a / b`; quotients of integers are truncated toward zero.

    Unsigned integers divided by zero give the greatest number of their type, and INT64 gives 0.
    Other signed integers give 1 if they are negative, else -1. The lowest integer divided by -1
    gives itself.

    Source: the page of DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC; undefined quotients were measured.
    """
    if ATensor.dtype.kind == "f":
        return computed(np.divide, ATensor, BTensor)
    quotient = _truncated_quotient(ATensor, BTensor)
    by_zero = BTensor == 0
    if by_zero.any():
        quotient[by_zero] = _quotient_by_zero(ATensor[by_zero])
    return quotient


def computed(operation: np.ufunc, a: Array, b: Array) -> Array:
    """Return the result of a NumPy operation on two tensors of a type, in this type.

    FLOAT16 sums, differences, products and quotients, which NumPy computes in FLOAT32, are the
    exact ones rounded once.
    """
    with np.errstate(all="ignore"):
        result: Array = operation(a, b)
    return result


def _truncated_quotient(dividend: Array, divisor: Array) -> Array:
    """Return quotients of integers, truncated toward zero; quotients by zero are arbitrary."""
    with np.errstate(all="ignore"):
        if dividend.dtype.itemsize < 8:
            # FLOAT64 never rounds a quotient of integers of up to 32 bits to the next integer.
            quotient: Array = np.divide(dividend, divisor, dtype=np.float64).astype(np.int64)
            return quotient.astype(dividend.dtype)
        whole: Array = (dividend - np.fmod(dividend, divisor)) // divisor
    return whole


def _quotient_by_zero(dividend: Array) -> Array:
    if dividend.dtype.kind == "u":
        return np.full_like(dividend, np.iinfo(dividend.dtype).max)
    if dividend.dtype == np.int64:
        return np.zeros_like(dividend)
    return np.where(dividend < 0, 1, -1).astype(dividend.dtype)
