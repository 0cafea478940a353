"""Permitted results of FILL_VALUE_SEQUENCE and DIAGONAL_MATRIX besides the reference's outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.attributes import possible_conversions
from dmlconf.permitted.numbers.half import to_nearest
from dmlconf.permitted.numbers.rounding import STEP, rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.movement.generation import sequence_of, with_diagonals
from dmlconf.tensors.datatypes import Array

__all__ = [
    "diagonal_matrix1_candidates",
    "fill_value_sequence_candidates",
]


def diagonal_matrix1_candidates(
    InputTensor: Array | None,
    OutputTensor: TensorDesc,
    ValueDataType: str,
    Value: float,
    DiagonalFillBegin: int,
    DiagonalFillEnd: int,
) -> Sequence[Interval]:
    """Return one matrix for each number of the output's type that Value may become.

    There are several only if Value is a FLOAT32 number outside an integer type's range, or NaN.
    """
    diagonals = DiagonalFillBegin, DiagonalFillEnd
    outputs = (
        with_diagonals(InputTensor, OutputTensor, value, *diagonals)
        for value in possible_conversions(Value, ValueDataType, OutputTensor.DataType.dtype)
    )
    return [(output, output) for output in outputs]


def fill_value_sequence_candidates(
    OutputTensor: TensorDesc, ValueDataType: str, ValueStart: float, ValueDelta: float
) -> Sequence[Interval]:
    """Return the candidates of a floating-point sequence; product and sum are rounded up or down.

    Measured in graphs: DirectML 1.15.4 rounds the product to the nearest FLOAT16 number before it
    adds the start.

    Source: Direct3D 11.3 functional specification: addition and multiplication.
    """
    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        exact = sequence_of(OutputTensor, ValueStart, ValueDelta)
        start = np.array(ValueStart, dtype).astype(np.float64)
        product = exact - start
        step = STEP if dtype.itemsize < 8 else 2.0**-52
        candidates = [rounded_interval(exact, np.abs(product) * step, dtype)]
        if dtype == np.float16:
            rounded = (start + to_nearest(product)).astype(dtype)
            candidates.append((rounded, rounded))
    return candidates
