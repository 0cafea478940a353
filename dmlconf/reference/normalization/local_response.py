"""Local response normalisation, by the sum of squares in a window, and its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.reference.numbers.floats import single
from dmlconf.reference.numbers.half import Store
from dmlconf.tensors.datatypes import Array

__all__ = [
    "AnyLocalResponseDesc",
    "LocalResponseDesc",
    "LocalResponseGradDesc",
    "local_response_gradients",
    "local_response_normalization",
    "local_response_normalization_grad",
    "power_base",
    "window_sums",
]

_CHANNELS: Final = (1,)
_IMAGE: Final = (2, 3)
"""The axes of a window, of {N, C, H, W}: channels with CrossChannel, else rows and columns."""


@dataclass(frozen=True, slots=True)
class LocalResponseDesc:
    """The fields of DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC."""

    InputTensor: Array
    OutputTensor: TensorDesc
    CrossChannel: bool
    LocalSize: int
    Alpha: float
    Beta: float
    Bias: float


@dataclass(frozen=True, slots=True)
class LocalResponseGradDesc:
    """The fields of DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC."""

    InputTensor: Array
    InputGradientTensor: Array
    OutputGradientTensor: TensorDesc
    CrossChannel: bool
    LocalSize: int
    Alpha: float
    Beta: float
    Bias: float


AnyLocalResponseDesc = LocalResponseDesc | LocalResponseGradDesc


@of_fields(LocalResponseDesc)
def local_response_normalization(desc: LocalResponseDesc) -> Array:
    """InputTensor {N, C, H, W} -> OutputTensor {N, C, H, W}; FLOAT32, FLOAT16

    Return `x / (Bias + Alpha / LocalSize * sum(x ** 2)) ** Beta`.

    The sum is over a window around x: LocalSize channels if CrossChannel, else LocalSize rows and
    LocalSize columns. Along an axis the window goes from `(LocalSize - 1) // 2` elements before x
    to `LocalSize // 2` after it, within the tensor. The power of a negative number is NaN, unless
    Beta is 0.

    Source: the page of DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC; the window and what negative
    numbers give were measured.
    """

    def normalized(tensor: Array) -> Array:
        values = tensor.astype(np.float64)
        base = power_base(desc, values)
        values /= _power(base, desc.Beta)
        return values

    dtype, together = desc.OutputTensor.DataType.dtype, _axes(desc)
    with np.errstate(all="ignore"):
        return in_slices(normalized, desc.InputTensor, dtype=dtype, together=together)


@of_fields(LocalResponseGradDesc)
def local_response_normalization_grad(desc: LocalResponseGradDesc) -> Array:
    """InputTensor {N, C, H, W}, InputGradientTensor {N, C, H, W} ->
    OutputGradientTensor {N, C, H, W}; FLOAT32, FLOAT16

    Return a gradient of LOCAL_RESPONSE_NORMALIZATION for its input.

    With `g` for InputGradientTensor, `n` for `Bias + Alpha / LocalSize * sum(x ** 2)` and sums over
    the window of LOCAL_RESPONSE_NORMALIZATION:

        factor = 2 * Alpha * Beta / LocalSize
        g / n ** Beta - factor * x * sum(g * x / n ** (Beta + 1))

    The true gradient would sum over the mirrored window, which differs if LocalSize is even. An
    element's own g is multiplied only once, by the difference of its factors in both terms, so that
    an infinite g does not give infinity minus infinity.

    Source: the page of DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC has no formula; this one
    was found by measurements.
    """
    return local_response_gradients(desc, desc.OutputGradientTensor.DataType.dtype)


def local_response_gradients(
    desc: LocalResponseGradDesc,
    dtype: np.dtype[Any],
    store: Store | None = None,
    *,
    whole_powers: bool = False,
) -> Array:
    """Return the result of `local_response_normalization_grad` in a data type.

    Args:
        store: rounds squares, sums of squares and the base to FLOAT16; None rounds nothing.
        whole_powers: whether a whole power of a negative number is a number, and not NaN.
    """
    factor = 2 * single(desc.Alpha) * single(desc.Beta) / desc.LocalSize

    def gradients(tensor: Array, slopes: Array) -> Array:
        values, gradient = tensor.astype(np.float64), slopes.astype(np.float64)
        base = power_base(desc, values, store)
        whole = whole_powers and single(desc.Beta) % 1 == 0
        power = np.power(base, single(desc.Beta)) if whole else _power(base, desc.Beta)
        own: Array = gradient * (1 / power - factor * np.square(values) / (base * power))
        own -= factor * values * _sums_of_others(desc, gradient * values / (base * power))
        return own

    tensors, together = (desc.InputTensor, desc.InputGradientTensor), _axes(desc)
    with np.errstate(all="ignore"):
        return in_slices(gradients, *tensors, dtype=dtype, together=together)


def _power(base: Array, exponent: float) -> Array:
    """Return `base ** exponent`; NaN if the exponent is NaN, even for the base 1.

    Measured: NaN for a negative base, but 1 for the exponent 0.
    """
    power: Array = np.power(base, single(exponent))
    if single(exponent) == 0:
        return power
    return np.where((base < 0) | np.isnan(exponent), np.nan, power)


def power_base(desc: AnyLocalResponseDesc, values: Array, store: Store | None = None) -> Array:
    """Return `Bias + Alpha / LocalSize * sum(x ** 2)` for each element x.

    Args:
        store: see `local_response_gradients`.
    """
    held: Store = store or (lambda numbers: numbers)
    base = held(window_sums(desc, held(np.square(values))))
    base = base * (single(desc.Alpha) / desc.LocalSize)
    base += single(desc.Bias)
    return held(base)


def window_sums(desc: AnyLocalResponseDesc, values: Array) -> Array:
    """Return for each element the sum of the values in the window around it."""
    for axis in _axes(desc):
        values = values + _neighbours(values, axis, desc.LocalSize)
    return values


def _sums_of_others(desc: AnyLocalResponseDesc, values: Array) -> Array:
    """Return for each element the sum of the other values in the window around it."""
    sums = np.zeros_like(values)
    for axis in _axes(desc):
        neighbours = _neighbours(values, axis, desc.LocalSize)
        sums = sums + neighbours
        values = values + neighbours
    return sums


def _neighbours(values: Array, axis: int, local_size: int) -> Array:
    """Return for each element the sum of the other values in its window along one axis."""
    count = values.shape[axis]
    before, after = min((local_size - 1) // 2, count - 1), min(local_size // 2, count - 1)
    padding = [(0, 0)] * values.ndim
    padding[axis] = (before, after)
    padded = np.pad(values, padding)
    sums = np.zeros_like(values)
    for step in range(before + after + 1):
        if step != before:
            sums += padded[(slice(None),) * axis + (slice(step, step + count),)]
    return sums


def _axes(desc: AnyLocalResponseDesc) -> tuple[int, ...]:
    return _CHANNELS if desc.CrossChannel else _IMAGE
