"""Permitted results of IDENTITY, ABS, SIGN, CEIL, FLOOR and ROUND besides the reference's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.element_wise.scale_bias import function_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.element_wise.scale_bias import ScaleBias, is_identity
from dmlconf.reference.element_wise.unary import (
    element_wise_round,
    element_wise_sign,
    magnitude_function,
    unchanged,
)
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_abs_interval",
    "element_wise_ceil_candidates",
    "element_wise_floor_candidates",
    "element_wise_identity_interval",
    "element_wise_round_candidates",
    "element_wise_sign_candidates",
]


def element_wise_identity_interval(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Interval:
    """Return the interval of IDENTITY: the scaled elements, rounded up or down."""
    return function_interval(unchanged, InputTensor, ScaleBias, OutputTensor)


def element_wise_abs_interval(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Interval:
    """Return the interval of ABS: the absolute values of scaled elements, rounded up or down."""
    magnitude = np.abs if is_identity(ScaleBias) else magnitude_function(InputTensor)
    return function_interval(magnitude, InputTensor, ScaleBias, OutputTensor, at_zero=(0.0,))


def element_wise_sign_candidates(
    InputTensor: Array, OutputTensor: TensorDesc
) -> Sequence[Interval]:
    """Return the candidates of SIGN: the sign and, for a subnormal FLOAT32 number, also 0."""
    sign = element_wise_sign(InputTensor, OutputTensor)
    if InputTensor.dtype != np.float32:
        return [(sign, sign)]
    with np.errstate(invalid="ignore"):
        subnormal = np.abs(InputTensor) < np.finfo(np.float32).tiny
    flushed = np.where(subnormal, sign.dtype.type(0), sign)
    return [(sign, sign), (flushed, flushed)]


def element_wise_ceil_candidates(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Sequence[Interval]:
    """Return the candidates of CEIL, for a scaled element that is rounded up or down."""
    ends = function_interval(np.ceil, InputTensor, ScaleBias, OutputTensor)
    return _whole_numbers(*ends)


def element_wise_floor_candidates(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Sequence[Interval]:
    """Return the candidates of FLOOR, for a scaled element that is rounded up or down."""
    ends = function_interval(np.floor, InputTensor, ScaleBias, OutputTensor)
    return _whole_numbers(*ends)


def element_wise_round_candidates(
    InputTensor: Array, OutputTensor: TensorDesc, RoundingMode: str
) -> Sequence[Interval]:
    """Return the candidates of ROUND.

    For TOWARD_INFINITY and FLOAT32, a kernel may add a half to the size and drop the fraction.
    FLOAT32 rounds the sum: 0.49999997 becomes 1, and 2^23 + 1 becomes 2^23 + 2.
    """
    right = element_wise_round(InputTensor, OutputTensor, RoundingMode)
    if RoundingMode != "TOWARD_INFINITY" or InputTensor.dtype != np.float32:
        return [(right, right)]
    with np.errstate(all="ignore"):
        magnitude = np.abs(InputTensor)
        added = np.copysign(np.floor(magnitude + np.float32(0.5)), InputTensor)
    return [(right, right), (added, added)]


def _whole_numbers(lowest: Array, highest: Array) -> list[Interval]:
    """Return the candidates: both ends, and all numbers between if they differ by more than 1."""
    with np.errstate(invalid="ignore"):
        apart = highest.astype(np.float64) - lowest > 1
    return [(lowest, np.where(apart, highest, lowest)), (highest, highest)]
