"""Operators that treat all elements of a channel in the same way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.reference.numbers.rounding import STEP, rounded_interval
from dmlconf.tensors.datatypes import Array

__all__ = ["value_scale_2d", "value_scale_2d_interval"]


def value_scale_2d(
    InputTensor: Array, OutputTensor: TensorDesc, Scale: float, Bias: Sequence[float]
) -> Array:
    """InputTensor {N, C, H, W} -> OutputTensor {N, C, H, W}; FLOAT32, FLOAT16

    Return `x * Scale + Bias[channel]`; Scale and Bias are FLOAT32 numbers.

    Source: the page of DML_VALUE_SCALE_2D_OPERATOR_DESC.
    """
    product, bias = _terms(InputTensor, Scale, Bias)
    with np.errstate(all="ignore"):
        result: Array = (product + bias).astype(OutputTensor.DataType.dtype)
    return result


def value_scale_2d_interval(
    InputTensor: Array, OutputTensor: TensorDesc, Scale: float, Bias: Sequence[float]
) -> tuple[Array, Array]:
    """Return the same with product and sum rounded in FLOAT32 either way.

    Source: Direct3D 11.3 functional specification: addition and multiplication.
    """
    product, bias = _terms(InputTensor, Scale, Bias)
    with np.errstate(all="ignore"):
        exact = product + bias
        return rounded_interval(exact, np.abs(product) * STEP, OutputTensor.DataType.dtype)


def _terms(tensor: Array, scale: float, bias: Sequence[float]) -> tuple[Array, Array]:
    with np.errstate(all="ignore"):
        product = wide(tensor) * single(scale)
    return product, np.array(bias, np.float32).astype(np.float64).reshape(1, -1, 1, 1)
