"""Permitted errors of AVERAGE_POOLING, its gradient and LP_POOLING."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.accuracy import EXP2_ERROR, LOG2_ERROR
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.numbers.rounding import (
    STEP,
    anything_where,
    finite_or_zero,
    finite_sizes,
    overflows,
    rounded_interval,
)
from dmlconf.permitted.numbers.terms import values_repeat
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.windows.pooling import (
    AveragePooling1Desc,
    LpPooling1Desc,
    average_pooling_grad,
    window_means,
    window_norms,
)
from dmlconf.reference.windows.sliding import elements, sums
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "average_pooling1_error_scale",
    "average_pooling_grad_error_scale",
    "lp_pooling1_candidates",
]


@of_fields(AveragePooling1Desc)
def average_pooling1_error_scale(desc: AveragePooling1Desc) -> ErrorScale:
    """Return the error scale: the means of absolute values.

    Derived in docs/bounds.md, Averages.
    """
    with np.errstate(all="ignore"):
        mean = window_means(desc, np.abs(desc.InputTensor))
        # If finite elements overflow to one infinity, their sum with the opposite one is NaN.
        terms = prod(desc.WindowSize)
        finite = window_means(desc, finite_sizes(desc.InputTensor))
        beyond = overflows(finite * terms) & ~np.isnan(mean)
        images = desc.InputTensor.reshape(-1, prod(desc.InputTensor.shape[2:]))
        scale = ErrorScale(mean, overflows=beyond, terms_repeat=values_repeat(images, 1))
        if not overflows(finite * terms, desc.InputTensor.dtype).any():
            return scale
        of_finite = window_means(desc, finite_or_zero(desc.InputTensor)), finite
        return scale.signed(window_means(desc, wide(desc.InputTensor)), terms, of_finite)


def average_pooling_grad_error_scale(
    InputGradientTensor: Array, OutputGradientTensor: TensorDesc, **attributes: Any
) -> Array:
    """Return the error scale: the gradient of absolute values.

    Derived in docs/bounds.md, Sums.
    """
    absolute = np.abs(InputGradientTensor)
    return average_pooling_grad(absolute, _wide(OutputGradientTensor), **attributes)


@of_fields(LpPooling1Desc)
def lp_pooling1_candidates(desc: LpPooling1Desc) -> Sequence[Interval]:
    """Return the candidates of (sum of |x|^P)^(1 / P), with x^y as exp2(y * log2(x)).

    A subnormal power may count as 0. If the sum may overflow FLOAT32, infinity is a candidate.

    With a P of 0, some devices compute NaN: 0 * log2(0), 0 * log2(infinity), and infinity * log2(1)
    for the root of 1. So any value is right if the window contains 0, infinity or NaN, or only one
    element.

    Source: Direct3D 11.3 functional specification, 22.10 (exp, log).
    """
    over, P = desc.windows(), desc.P
    if P == 0:
        special = sums(~(np.isfinite(desc.InputTensor) & (desc.InputTensor != 0)), over) > 0
        exact = window_norms(desc)
        return [anything_where(special | (elements(over) == 1), (exact, exact))]
    single = np.finfo(np.float32)
    with np.errstate(all="ignore"):
        bases = np.abs(desc.InputTensor.astype(np.float64))
        powers = bases**P
        error = powers * _power_error(bases, P)
        error = np.where(powers < single.tiny, powers, error)
        total = sums(powers, over)
        reach = sums(error, over) + total * (prod(desc.WindowSize) * STEP)
        root = total ** (1 / P)
        least, most = np.maximum(total - reach, 0) ** (1 / P), (total + reach) ** (1 / P)
        reach = np.maximum(root - least, most - root) + most * _power_error(total, 1 / P)
        lowest, highest = rounded_interval(root, reach, desc.OutputTensor.DataType.dtype)
        lowest = np.maximum(lowest, 0)
        infinite_sum = (total * (1 + EXP2_ERROR) > single.max) & np.isfinite(root)
        if not infinite_sum.any():
            return [(lowest, highest)]
        infinity = lowest.dtype.type(np.inf)
        infinite = (
            np.where(infinite_sum, infinity, lowest),
            np.where(infinite_sum, infinity, highest),
        )
    return [(lowest, highest), infinite]


def _power_error(base: Array, exponent: float) -> Array:
    """Return the relative error of exp2(exponent * log2(base)); 0 for 0, infinity and NaN."""
    logarithm = np.abs(np.log2(base))
    inner = exponent * (LOG2_ERROR * np.maximum(logarithm, 1) + STEP * logarithm)
    return np.where(np.isfinite(logarithm), np.log(2) * inner + EXP2_ERROR, 0)


def _wide(tensor: TensorDesc) -> TensorDesc:
    return TensorDesc(DataType.FLOAT64, tensor.Sizes)
