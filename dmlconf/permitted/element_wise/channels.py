"""Permitted errors of VALUE_SCALE_2D."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import STEP, rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.element_wise.channels import scaled_terms
from dmlconf.tensors.datatypes import Array

__all__ = [
    "value_scale_2d_interval",
]


def value_scale_2d_interval(
    InputTensor: Array, OutputTensor: TensorDesc, Scale: float, Bias: Sequence[float]
) -> Interval:
    """Return the interval of `x * Scale + Bias`; FLOAT32 rounds product and sum up or down.

    Source: Direct3D 11.3 functional specification: addition and multiplication.
    """
    product, bias = scaled_terms(InputTensor, Scale, Bias)
    with np.errstate(all="ignore"):
        exact = product + bias
        return rounded_interval(exact, np.abs(product) * STEP, OutputTensor.DataType.dtype)
