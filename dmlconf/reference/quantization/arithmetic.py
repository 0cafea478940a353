"""Element-wise sums and matrix products of quantized numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.quantization.exact_sums import exact_product
from dmlconf.reference.quantization.quotients import quantized
from dmlconf.tensors.datatypes import Array

__all__ = [
    "MatrixMultiplyIntegerToFloatDesc",
    "QuantizedLinearDesc",
    "QuantizedPair",
    "centred",
    "element_wise_quantized_linear_add",
    "matrix_multiply_integer",
    "matrix_multiply_integer_to_float",
    "quantized_linear_matrix_multiply",
    "quantized_sum",
    "sum_quotient",
]


@dataclass(frozen=True, slots=True)
class QuantizedPair:
    """The fields that `QuantizedLinearDesc` and `MatrixMultiplyIntegerToFloatDesc` share."""

    ATensor: Array
    AScaleTensor: Array
    AZeroPointTensor: Array | None
    BTensor: Array
    BScaleTensor: Array
    BZeroPointTensor: Array | None

    def centred(self) -> tuple[Array, Array]:
        """Return A and B minus their zero points, FLOAT64."""
        b = centred(self.BTensor, self.BZeroPointTensor)
        return centred(self.ATensor, self.AZeroPointTensor), b

    def dequantized(self, dtype: np.dtype[np.floating]) -> tuple[Array, Array]:
        """Return `(A - zero point) * scale` and the same of B, computed in `dtype`."""
        b = _dequantized(self.BTensor, self.BScaleTensor, self.BZeroPointTensor, dtype)
        return _dequantized(self.ATensor, self.AScaleTensor, self.AZeroPointTensor, dtype), b


@dataclass(frozen=True, slots=True)
class QuantizedLinearDesc(QuantizedPair):
    """The fields of ELEMENT_WISE_QUANTIZED_LINEAR_ADD and QUANTIZED_LINEAR_MATRIX_MULTIPLY."""

    OutputScaleTensor: Array
    OutputZeroPointTensor: Array | None
    OutputTensor: TensorDesc


@of_fields(QuantizedLinearDesc)
def element_wise_quantized_linear_add(desc: QuantizedLinearDesc) -> Array:
    """ATensor {D0, ...}, AScaleTensor {1, ...}, [AZeroPointTensor {1, ...}], BTensor {D0, ...},
    BScaleTensor {1, ...}, [BZeroPointTensor {1, ...}], OutputScaleTensor {1, ...},
    [OutputZeroPointTensor {1, ...}] -> OutputTensor {D0, ...}; INT8, UINT8; AScaleTensor,
    BScaleTensor, OutputScaleTensor: FLOAT32

    Return the quantized sum of two dequantized tensors, computed in FLOAT32.

        a = (A - AZeroPoint) AScale
        b = (B - BZeroPoint) BScale
        clamp(round((a + b) / OutputScale) + OutputZeroPoint)

    Absent zero points are 0. Halves are rounded to even, and a NaN quotient becomes the least
    number of the output's type.

    Source: the page of DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD_OPERATOR_DESC; halves and NaN were
    measured.
    """
    return quantized(sum_quotient(desc), desc.OutputZeroPointTensor, desc.OutputTensor.DataType)


def sum_quotient(desc: QuantizedLinearDesc) -> Array:
    """Return the sum of two dequantized tensors, divided by the output's scale, FLOAT32."""
    with np.errstate(all="ignore"):
        a, b = desc.dequantized(np.dtype(np.float32))
        quotient: Array = (a + b) / desc.OutputScaleTensor
    return quotient


def matrix_multiply_integer(
    ATensor: Array,
    AZeroPointTensor: Array | None,
    BTensor: Array,
    BZeroPointTensor: Array | None,
    OutputTensor: TensorDesc,
) -> Array:
    """ATensor {B, ..., M, K}, [AZeroPointTensor {1, ..., 1 or M, 1}], BTensor {B, ..., K, N},
    [BZeroPointTensor {1, ..., 1 or N}] -> OutputTensor {B, ..., M, N}; INT32; ATensor,
    AZeroPointTensor, BTensor, BZeroPointTensor: INT8, UINT8

    Return `(A - AZeroPoint) x (B - BZeroPoint)`; sums wrap around at 32 bits. An absent zero point
    is 0.

    Source: the page of DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC; that sums wrap was measured.
    """
    a, b = centred(ATensor, AZeroPointTensor), centred(BTensor, BZeroPointTensor)
    sums = exact_product(a, b)
    return sums.astype(np.int64).astype(np.int32)


@dataclass(frozen=True, slots=True)
class MatrixMultiplyIntegerToFloatDesc(QuantizedPair):
    """The fields of DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC."""

    BiasTensor: Array | None
    OutputTensor: TensorDesc


@of_fields(MatrixMultiplyIntegerToFloatDesc)
def matrix_multiply_integer_to_float(desc: MatrixMultiplyIntegerToFloatDesc) -> Array:
    """ATensor {B, ..., M, K}, AScaleTensor {1, ..., 1 or M, 1},
    [AZeroPointTensor {1, ..., 1 or M, 1}], BTensor {B, ..., K, N}, BScaleTensor {1, ..., 1 or N},
    [BZeroPointTensor {1, ..., 1 or N}], [BiasTensor {B, ..., M, N}] -> OutputTensor {B, ..., M, N};
    FLOAT32, FLOAT16; ATensor, AZeroPointTensor, BTensor, BZeroPointTensor: INT32 to INT8, UINT32 to
    UINT8

    Return the product of two dequantized matrices plus a bias.

        ((A - AZeroPoint) x (B - BZeroPoint)) AScale BScale + Bias

    An absent zero point is 0.

    Source: the page of DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC.
    """
    with np.errstate(all="ignore"):
        a, b = desc.centred()
        sums = (a @ b) * wide(desc.AScaleTensor) * wide(desc.BScaleTensor)
        if desc.BiasTensor is not None:
            sums = sums + desc.BiasTensor
        return sums.astype(desc.OutputTensor.DataType.dtype)


@of_fields(QuantizedLinearDesc)
def quantized_linear_matrix_multiply(desc: QuantizedLinearDesc) -> Array:
    """ATensor {B, ..., M, K}, AScaleTensor {1, ..., 1 or M, 1},
    [AZeroPointTensor {1, ..., 1 or M, 1}], BTensor {B, ..., K, N}, BScaleTensor {1, ..., 1 or N},
    [BZeroPointTensor {1, ..., 1 or N}], OutputScaleTensor {1, ..., 1 or M, 1},
    [OutputZeroPointTensor {1, ..., 1 or M, 1}] -> OutputTensor {B, ..., M, N}; INT8, UINT8;
    AScaleTensor, BScaleTensor, OutputScaleTensor: FLOAT32

    Return the quantized product of two dequantized matrices.

        product = ((A - AZeroPoint) x (B - BZeroPoint)) AScale BScale
        clamp(round(product / OutputScale) + OutputZeroPoint)

    An absent zero point is 0. Halves are rounded to even, and a NaN quotient becomes
    OutputZeroPoint.

    Source: the page of DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC; halves and NaN were
    measured.
    """
    a, b = desc.centred()
    scales = desc.AScaleTensor, desc.BScaleTensor, desc.OutputScaleTensor
    return quantized_sum(exact_product(a, b), scales, desc.OutputZeroPointTensor, desc.OutputTensor)


def quantized_sum(
    sums: Array,
    scales: tuple[Array, Array, Array],
    zero_point: Array | None,
    output: TensorDesc,
) -> Array:
    """Return `sums * first * second / last`, quantized.

    The quotient is computed in FLOAT64 and rounded to FLOAT32. Measured: a NaN quotient becomes the
    zero point.

    Args:
        scales: `first` and `second`, the scales of the factors, and `last`, that of the output.
    """
    with np.errstate(all="ignore"):
        first, second, last = map(wide, scales)
        quotient = (sums * first * second / last).astype(np.float32)
    quotient[np.isnan(quotient)] = 0
    return quantized(quotient, zero_point, output.DataType)


def centred(values: Array, zero_point: Array | None) -> Array:
    """Return `values - zero_point`, FLOAT64; an absent zero point is 0."""
    numbers = wide(values)
    return numbers if zero_point is None else numbers - zero_point


def _dequantized(
    values: Array, scale: Array, zero_point: Array | None, dtype: np.dtype[np.floating]
) -> Array:
    numbers = values.astype(dtype)
    if zero_point is not None:
        numbers -= zero_point
    numbers *= scale
    return numbers
