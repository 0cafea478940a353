"""Operators that generate constants, sequences, diagonals and random numbers."""

from __future__ import annotations

import math

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.attributes import converted
from dmlconf.tensors.datatypes import Array

__all__ = [
    "diagonal_matrix1",
    "fill_value_constant",
    "fill_value_sequence",
    "random_generator",
    "sequence_of",
    "with_diagonals",
]


def diagonal_matrix1(
    InputTensor: Array | None,
    OutputTensor: TensorDesc,
    ValueDataType: str,
    Value: float,
    DiagonalFillBegin: int,
    DiagonalFillEnd: int,
) -> Array:
    """[InputTensor {D0, ..., H, W}] -> OutputTensor {D0, ..., H, W}; FLOAT64 to FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the input, or zeros, with Value on the diagonals from DiagonalFillBegin to before
    DiagonalFillEnd. Diagonal 0 is the main one, and 1 is to its right. If begin is greater than
    end, Value is on each diagonal d with `d < end` or `d >= begin`.

    Source: the page of DML_DIAGONAL_MATRIX1_OPERATOR_DESC; the conversion was measured.
    """
    value = converted(Value, ValueDataType, OutputTensor.DataType.dtype)
    return with_diagonals(InputTensor, OutputTensor, value, DiagonalFillBegin, DiagonalFillEnd)


def with_diagonals(
    tensor: Array | None, output: TensorDesc, value: Array, begin: int, end: int
) -> Array:
    """Return the tensor, or zeros, with a value on the diagonals that `diagonal_matrix1` fills."""
    sizes = output.Sizes
    height, width = (1, *sizes)[-2:]
    diagonal = np.arange(width) - np.arange(height)[:, np.newaxis]
    if begin <= end:
        filled = (diagonal >= begin) & (diagonal < end)
    else:
        filled = (diagonal >= begin) | (diagonal < end)
    source = np.zeros(sizes, output.DataType.dtype) if tensor is None else tensor
    return np.where(filled, value, source)


def fill_value_constant(OutputTensor: TensorDesc, ValueDataType: str, Value: float) -> Array:
    """-> OutputTensor {D0, ...}; FLOAT64 to FLOAT16, INT64 to INT8, UINT64 to UINT8

    Return a tensor whose elements are all Value.

    Source: the page of DML_FILL_VALUE_CONSTANT_OPERATOR_DESC.
    """
    return np.full(OutputTensor.Sizes, converted(Value, ValueDataType, OutputTensor.DataType.dtype))


def fill_value_sequence(
    OutputTensor: TensorDesc, ValueDataType: str, ValueStart: float, ValueDelta: float
) -> Array:
    """-> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to INT8, UINT64 to UINT8

    Return `ValueStart + i * ValueDelta` for element i, counted from 0 in row-major order; integers
    wrap around.

    Source: the page of DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC; the formula and wrapping were
    measured.
    """
    dtype = OutputTensor.DataType.dtype
    count = math.prod(OutputTensor.Sizes)
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return sequence_of(OutputTensor, ValueStart, ValueDelta).astype(dtype)
    mask = (1 << 64) - 1
    start, delta = (np.uint64(int(value) & mask) for value in (ValueStart, ValueDelta))
    with np.errstate(over="ignore"):
        values = start + np.arange(count, dtype=np.uint64) * delta
    return values.astype(f"u{dtype.itemsize}").view(dtype).reshape(OutputTensor.Sizes)


def sequence_of(output: TensorDesc, start: float, delta: float) -> Array:
    """Return `start + i * delta`, FLOAT64, after rounding start and delta to the output's type."""
    dtype = output.DataType.dtype
    first, step = (np.array(value, dtype).astype(np.float64) for value in (start, delta))
    indices = np.arange(math.prod(output.Sizes), dtype=np.float64).reshape(output.Sizes)
    return first + indices * step


def random_generator(
    InputStateTensor: Array,
    OutputTensor: TensorDesc,
    OutputStateTensor: TensorDesc | None,
    Type: str,
) -> tuple[Array, ...]:
    """InputStateTensor {1, ..., 6} -> OutputTensor {D0, ...}, [OutputStateTensor {1, ..., 6}];
    UINT32

    Return pseudo-random UINT32 numbers by Philox 4x32-10 and, if the desc has OutputStateTensor,
    the state after them.

    The state is a 128-bit counter, least significant word first, and a 64-bit key. Each value of
    the counter gives four numbers; after 9 numbers the counter is greater by 3, modulo 2^128.

    Source: the page of DML_RANDOM_GENERATOR_OPERATOR_DESC; Salmon, Moraes, Dror and Shaw,
    "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """
    state = [int(word) for word in InputStateTensor.ravel()]
    count = math.prod(OutputTensor.Sizes)
    blocks = -(-count // 4)
    counter = sum(word << 32 * index for index, word in enumerate(state[:4]))
    words = _philox(_counters(counter, blocks), state[4], state[5])
    numbers = words.astype(np.uint32).T.reshape(-1)[:count].reshape(OutputTensor.Sizes)
    if OutputStateTensor is None:
        return (numbers,)
    following = (counter + blocks) & (1 << 128) - 1
    after = [following >> 32 * index & 0xFFFF_FFFF for index in range(4)] + state[4:]
    return numbers, np.array(after, np.uint32).reshape(InputStateTensor.shape)


def _counters(first: int, count: int) -> Array:
    """Return {4, count}: the 32-bit words of `count` successive counters, lowest first, UINT64."""
    low_word = first & (1 << 64) - 1
    low = np.uint64(low_word) + np.arange(count, dtype=np.uint64)
    carried = low < np.uint64(low_word)
    high = np.uint64(first >> 64 & (1 << 64) - 1) + carried.astype(np.uint64)
    mask, shift = np.uint64(0xFFFF_FFFF), np.uint64(32)
    return np.stack([low & mask, low >> shift, high & mask, high >> shift])


def _philox(counters: Array, key0: int, key1: int) -> Array:
    """Return {4, count}: the random words for `count` counters, by ten rounds of Philox."""
    mask, shift = np.uint64(0xFFFF_FFFF), np.uint64(32)
    a, b, c, d = counters
    for _ in range(10):
        first, second = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (
            (second >> shift) ^ b ^ np.uint64(key0),
            second & mask,
            (first >> shift) ^ d ^ np.uint64(key1),
            first & mask,
        )
        key0, key1 = key0 + 0x9E3779B9 & 0xFFFF_FFFF, key1 + 0xBB67AE85 & 0xFFFF_FFFF
    return np.stack([a, b, c, d])
