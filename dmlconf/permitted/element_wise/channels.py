"""Permitted errors of VALUE_SCALE_2D."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.element_wise.channels import scaled_terms
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32

__all__ = [
    "value_scale_2d_interval",
]


def value_scale_2d_interval(
    InputTensor: Array, OutputTensor: TensorDesc, Scale: float, Bias: Sequence[float]
) -> Interval:
    """Return the interval of `x * Scale + Bias`; FLOAT32 rounds product and sum up or down.

    The product may overflow before Bias is added.

    Source: Direct3D 11.3 functional specification: addition and multiplication.
    """
    product, bias = scaled_terms(InputTensor, Scale, Bias)
    with np.errstate(all="ignore"):
        ends = rounded_interval(product + bias, np.abs(product) * STEP, OutputTensor.DataType.dtype)
        overflows = np.isfinite(product) & (np.abs(product) > LARGEST_FLOAT32)
        if not overflows.any():
            return ends
        # Measured: -4 * -1e38 - 1e38 is infinite. The sum is NaN if the product overflows to the
        # infinity opposite to an infinite Bias.
        opposite = overflows & np.isinf(bias) & (np.sign(product) != np.sign(bias))
        infinity = np.copysign(np.inf, product)
        with_infinity = (
            np.where(overflows, infinity, ends[0]),
            np.where(overflows, infinity, ends[1]),
        )
        dtype = ends[0].dtype
        least = np.fmin(ends[0], with_infinity[0]).astype(dtype)
        greatest = np.fmax(ends[1], with_infinity[1]).astype(dtype)
        return anything_where(opposite, (least, greatest))
