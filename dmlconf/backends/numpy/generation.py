"""Operators that make tensors of given values."""

from __future__ import annotations

import math

import numpy as np

from dmlconf.backends.numpy.rounding import STEP, rounded_interval
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = [
    "diagonal_matrix",
    "diagonal_matrix1",
    "fill_value_constant",
    "fill_value_sequence",
    "fill_value_sequence_interval",
]


def diagonal_matrix(OutputTensor: TensorDesc, Offset: int, Value: float) -> Array:
    """Return matrices with the value where the column is the row plus the offset, zeros elsewhere.

    A value for integers is truncated.

    Source: the page of DML_DIAGONAL_MATRIX_OPERATOR_DESC.
    """
    dtype = OutputTensor.DataType.dtype
    value = Value if dtype.kind == "f" or not math.isfinite(Value) else math.trunc(Value)
    return diagonal_matrix1(None, OutputTensor, "", value, Offset, Offset + 1)


def diagonal_matrix1(
    InputTensor: Array | None,
    OutputTensor: TensorDesc,
    ValueDataType: str,
    Value: float,
    DiagonalFillBegin: int,
    DiagonalFillEnd: int,
) -> Array:
    """Return the input, or zeros, with the value along the diagonals from begin up to end.

    Where begin is greater than end, the value is along all other diagonals.

    Source: the page of DML_DIAGONAL_MATRIX1_OPERATOR_DESC.
    """
    dtype = OutputTensor.DataType.dtype
    sizes = OutputTensor.Sizes
    height, width = (1, *sizes)[-2:]
    diagonal = np.arange(width) - np.arange(height)[:, np.newaxis]
    if DiagonalFillBegin <= DiagonalFillEnd:
        filled = (diagonal >= DiagonalFillBegin) & (diagonal < DiagonalFillEnd)
    else:
        filled = (diagonal >= DiagonalFillBegin) | (diagonal < DiagonalFillEnd)
    source = np.zeros(sizes, dtype) if InputTensor is None else InputTensor
    with np.errstate(over="ignore"):
        return np.where(filled, np.array(Value).astype(dtype), source)


def fill_value_constant(OutputTensor: TensorDesc, ValueDataType: str, Value: float) -> Array:
    """Return a tensor of one value.

    Source: the page of DML_FILL_VALUE_CONSTANT_OPERATOR_DESC.
    """
    with np.errstate(over="ignore"):
        value = np.array(Value).astype(OutputTensor.DataType.dtype)
    return np.full(OutputTensor.Sizes, value)


def fill_value_sequence(
    OutputTensor: TensorDesc, ValueDataType: str, ValueStart: float, ValueDelta: float
) -> Array:
    """Return `start + i * delta` for the i-th element; integers wrap around.

    Source: the page of DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC; that it multiplies instead of adding
    up, and wraps around, was measured.
    """
    dtype = OutputTensor.DataType.dtype
    count = math.prod(OutputTensor.Sizes)
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return _sequence(OutputTensor, ValueStart, ValueDelta).astype(dtype)
    mask = (1 << 64) - 1
    start, delta = (np.uint64(int(value) & mask) for value in (ValueStart, ValueDelta))
    with np.errstate(over="ignore"):
        values = start + np.arange(count, dtype=np.uint64) * delta
    return values.astype(f"u{dtype.itemsize}").view(dtype).reshape(OutputTensor.Sizes)


def fill_value_sequence_interval(
    OutputTensor: TensorDesc, ValueDataType: str, ValueStart: float, ValueDelta: float
) -> tuple[Array, Array]:
    """Return the sequence with product and sum rounded in FLOAT32 either way.

    Source: Direct3D 11.3 functional specification: addition and multiplication.
    """
    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        exact = _sequence(OutputTensor, ValueStart, ValueDelta)
        product = np.abs(exact - np.array(ValueStart, dtype).astype(np.float64))
        step = STEP if dtype.itemsize < 8 else 2.0**-52
        low, high = rounded_interval(exact, product * step, dtype)
    return low, high


def _sequence(output: TensorDesc, start: float, delta: float) -> Array:
    dtype = output.DataType.dtype
    first, step = (np.array(value, dtype).astype(np.float64) for value in (start, delta))
    places = np.arange(math.prod(output.Sizes), dtype=np.float64).reshape(output.Sizes)
    return first + places * step
