"""Operators that copy, negate, round or classify each element, or return its magnitude or sign."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.element_wise.scale_bias import ScaleBias, is_identity, scaled_function, unary
from dmlconf.reference.numbers.blocks import in_blocks
from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_abs",
    "element_wise_ceil",
    "element_wise_floor",
    "element_wise_identity",
    "element_wise_is_infinity",
    "element_wise_is_nan",
    "element_wise_negate",
    "element_wise_round",
    "element_wise_sign",
    "magnitude_function",
    "unchanged",
]


def element_wise_identity(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT64 to FLOAT16, INT64 to INT8, UINT64 to
    UINT8

    Return the scaled elements; integers are scaled in FLOAT32, truncated and clamped.

    Source: the page of DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC; integers were measured.
    """
    if is_identity(ScaleBias):
        return InputTensor.copy()
    return scaled_function(unchanged, InputTensor, ScaleBias, OutputTensor)


def element_wise_abs(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to INT8

    Return the magnitude of the scaled elements.

    The least integer becomes the greatest one in 8 and 16 bits, and itself in 32 and 64 bits.
    Scaled integers of -2^31 or less become -2^31, which is then clamped to the type.

    Source: the page of DML_ELEMENT_WISE_ABS_OPERATOR_DESC; integers were measured.
    """
    if not is_identity(ScaleBias):
        return scaled_function(
            magnitude_function(InputTensor), InputTensor, ScaleBias, OutputTensor
        )
    if InputTensor.dtype.kind == "f":
        return np.abs(InputTensor)
    return np.where(InputTensor < 0, _negated(InputTensor), InputTensor)


def element_wise_negate(InputTensor: Array, OutputTensor: TensorDesc) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to INT8

    Return `-x` of each element x.

    The least integer becomes the greatest one in 8 and 16 bits, and itself in 32 and 64 bits.

    Source: the page of DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC; integers were measured.
    """
    if InputTensor.dtype.kind == "f":
        return np.negative(InputTensor)
    return _negated(InputTensor)


def element_wise_sign(InputTensor: Array, OutputTensor: TensorDesc) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to INT8, UINT64 to
    UINT8

    Return 1 for positive elements, -1 for negative ones, and 0 for zero and NaN.

    Source: the page of DML_ELEMENT_WISE_SIGN_OPERATOR_DESC; NaN was measured.
    """

    def sign(values: Array) -> Array:
        positive, negative = values > 0, values < 0
        output: Array = positive.view(np.int8) - negative.view(np.int8)
        return output

    with np.errstate(invalid="ignore"):
        return in_blocks(sign, InputTensor, dtype=OutputTensor.DataType.dtype)


element_wise_ceil = unary(
    "element_wise_ceil",
    np.ceil,
    "the least whole number that is not below x",
    rounds_once=True,
)

element_wise_floor = unary(
    "element_wise_floor",
    np.floor,
    "the greatest whole number that is not above x",
    rounds_once=True,
)


def element_wise_round(InputTensor: Array, OutputTensor: TensorDesc, RoundingMode: str) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return each element rounded to a whole number.

    TOWARD_ZERO truncates. TOWARD_INFINITY rounds to the nearest whole number, halves away from
    zero.

    Source: the pages of DML_ELEMENT_WISE_ROUND_OPERATOR_DESC and DML_ROUNDING_MODE.
    """
    values = wide(InputTensor)
    if RoundingMode == "HALVES_TO_NEAREST_EVEN":
        rounded = np.rint(values)
    elif RoundingMode == "TOWARD_ZERO":
        rounded = np.trunc(values)
    else:
        rounded = np.copysign(np.floor(np.abs(values) + 0.5), values)
    return rounded.astype(OutputTensor.DataType.dtype)


def element_wise_is_nan(InputTensor: Array, OutputTensor: TensorDesc) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; UINT32, UINT8; InputTensor: FLOAT32, FLOAT16

    Return 1 for NaN, else 0.

    Source: the page of DML_ELEMENT_WISE_IS_NAN_OPERATOR_DESC.
    """
    return np.isnan(InputTensor).astype(OutputTensor.DataType.dtype)


def element_wise_is_infinity(
    InputTensor: Array, OutputTensor: TensorDesc, InfinityMode: str
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; UINT8; InputTensor: FLOAT32, FLOAT16

    Return 1 for infinities of the sign that InfinityMode names, or of EITHER, else 0.

    Source: the page of DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC.
    """
    if InfinityMode == "EITHER":
        output = np.isinf(InputTensor)
    else:
        output = np.equal(InputTensor, np.inf if InfinityMode == "POSITIVE" else -np.inf)
    return output.astype(OutputTensor.DataType.dtype)


def magnitude_function(tensor: Array) -> Callable[[Array], Array]:
    """Return the function that gives the magnitudes of a tensor's scaled elements, FLOAT64.

    For integer tensors, it turns numbers of -2^31 or less into -2^31.
    """
    if tensor.dtype.kind == "f":
        return np.abs
    least = float(np.iinfo(np.int32).min)
    return lambda values: np.where(values <= least, least, np.abs(values))


def unchanged(values: Array) -> Array:
    """Return the values themselves."""
    return values


def _negated(tensor: Array) -> Array:
    with np.errstate(over="ignore"):
        negated: Array = -tensor
    if tensor.dtype.itemsize < 4:
        limits = np.iinfo(tensor.dtype)
        negated[tensor == limits.min] = limits.max
    return negated
