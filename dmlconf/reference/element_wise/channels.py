"""VALUE_SCALE_2D, which scales a tensor and adds a bias to each channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "scaled_terms",
    "value_scale_2d",
]


def value_scale_2d(
    InputTensor: Array, OutputTensor: TensorDesc, Scale: float, Bias: Sequence[float]
) -> Array:
    """InputTensor {N, C, H, W} -> OutputTensor {N, C, H, W}; FLOAT32, FLOAT16

    Return `x * Scale + Bias[channel]`; Scale and Bias are FLOAT32 numbers.

    Source: the page of DML_VALUE_SCALE_2D_OPERATOR_DESC.
    """
    product, bias = scaled_terms(InputTensor, Scale, Bias)
    with np.errstate(all="ignore"):
        result: Array = (product + bias).astype(OutputTensor.DataType.dtype)
    return result


def scaled_terms(tensor: Array, scale: float, bias: Sequence[float]) -> tuple[Array, Array]:
    """Return `x * scale` and the bias of each channel, sizes {1, C, 1, 1}; both FLOAT64."""
    with np.errstate(all="ignore"):
        product = wide(tensor) * single(scale)
    return product, np.array(bias, np.float32).astype(np.float64).reshape(1, -1, 1, 1)
