"""Operators on the bits of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_bit_and",
    "element_wise_bit_count",
    "element_wise_bit_not",
    "element_wise_bit_or",
    "element_wise_bit_shift_left",
    "element_wise_bit_shift_right",
    "element_wise_bit_xor",
]


def element_wise_bit_and(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT64 to FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the bits that are 1 in both `a` and `b`.

    Source: the page of DML_ELEMENT_WISE_BIT_AND_OPERATOR_DESC.
    """
    return (_bits(ATensor) & _bits(BTensor)).view(ATensor.dtype)


def element_wise_bit_or(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT64 to FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the bits that are 1 in `a` or `b`.

    Source: the page of DML_ELEMENT_WISE_BIT_OR_OPERATOR_DESC.
    """
    return (_bits(ATensor) | _bits(BTensor)).view(ATensor.dtype)


def element_wise_bit_xor(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT64 to FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the bits in which `a` and `b` differ.

    Source: the page of DML_ELEMENT_WISE_BIT_XOR_OPERATOR_DESC.
    """
    return (_bits(ATensor) ^ _bits(BTensor)).view(ATensor.dtype)


def element_wise_bit_not(InputTensor: Array, OutputTensor: TensorDesc) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT64 to FLOAT16, INT64 to INT8, UINT64 to
    UINT8

    Return each element with all bits inverted.

    Source: the page of DML_ELEMENT_WISE_BIT_NOT_OPERATOR_DESC.
    """
    return (~_bits(InputTensor)).view(InputTensor.dtype)


def element_wise_bit_count(InputTensor: Array, OutputTensor: TensorDesc) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; UINT32, UINT8; InputTensor: FLOAT64 to
    FLOAT16, INT64 to INT8, UINT64 to UINT8

    Return how many bits of each element are 1.

    Source: the page of DML_ELEMENT_WISE_BIT_COUNT_OPERATOR_DESC.
    """
    bits = _bits(InputTensor)
    for width in (1, 2, 4, 8, 16, 32):
        if width >= 8 * bits.itemsize:
            break
        # Neighbouring counts are added: first of 1 bit each, then of 2 bits, of 4, ...
        mask = bits.dtype.type(2 ** (8 * bits.itemsize) // (2**width + 1))
        bits = (bits & mask) + (bits >> bits.dtype.type(width) & mask)
    return bits.astype(OutputTensor.DataType.dtype)


def element_wise_bit_shift_left(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; UINT64 to UINT8

    Return the bits of `a` moved by `b` toward the highest bit.

    Only the lowest 5 bits of `b` count, for UINT64 the lowest 6: a UINT8 shifted by 8 is 0, and by
    32 it is unchanged.

    Source: the page of DML_ELEMENT_WISE_BIT_SHIFT_LEFT_OPERATOR_DESC; which bits count was
    measured.
    """
    value, shift = _operands(ATensor, BTensor)
    return (value << shift).astype(ATensor.dtype)


def element_wise_bit_shift_right(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; UINT64 to UINT8

    Return the bits of `a` moved by `b` toward the lowest bit.

    Only the lowest 5 bits of `b` count, for UINT64 the lowest 6.

    Source: the page of DML_ELEMENT_WISE_BIT_SHIFT_RIGHT_OPERATOR_DESC; which bits count was
    measured.
    """
    value, shift = _operands(ATensor, BTensor)
    return (value >> shift).astype(ATensor.dtype)


def _bits(tensor: Array) -> Array:
    return np.ascontiguousarray(tensor).view(f"u{tensor.dtype.itemsize}")


def _operands(value: Array, shift: Array) -> tuple[Array, Array]:
    """Return the operands as UINT32, or UINT64 for 64 bits; the shift without its ignored bits."""
    word: Any = np.uint64 if value.dtype.itemsize == 8 else np.uint32
    return value.astype(word), shift.astype(word) & word(8 * np.dtype(word).itemsize - 1)
