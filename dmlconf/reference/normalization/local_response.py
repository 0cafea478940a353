"""Normalisation of elements by the squares in a window around each, and its gradient."""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.reference.numbers.error_scale import ErrorScale
from dmlconf.reference.numbers.floats import single
from dmlconf.reference.numbers.rounding import ANY_RESULT, greatest_product
from dmlconf.tensors.datatypes import Array

__all__ = [
    "local_response_normalization",
    "local_response_normalization_error_scale",
    "local_response_normalization_grad",
    "local_response_normalization_grad_error_scale",
]

_CHANNELS: Final = (1,)
_IMAGE: Final = (2, 3)


def local_response_normalization(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    CrossChannel: bool,
    LocalSize: int,
    Alpha: float,
    Beta: float,
    Bias: float,
) -> Array:
    """InputTensor {N, C, H, W} -> OutputTensor {N, C, H, W}; FLOAT32, FLOAT16

    Return `x / (Bias + Alpha / LocalSize * sum(x ** 2)) ** Beta`.

    The sum is that of a window of LocalSize elements: of channels if CrossChannel, else both of
    rows and of columns. It goes from `(LocalSize - 1) // 2` elements before to `LocalSize // 2`
    after, as far as there are elements. Alpha is divided by LocalSize in either case. A negative
    number has no power.

    Source: the page of DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC; the window and what negative
    numbers give were measured.
    """

    def normalized(tensor: Array) -> Array:
        values = tensor.astype(np.float64)
        base = _base(values, CrossChannel, LocalSize, Alpha, Bias)
        values /= _power(base, Beta)
        return values

    dtype, together = OutputTensor.DataType.dtype, _axes(CrossChannel)
    with np.errstate(all="ignore"):
        return in_slices(normalized, InputTensor, dtype=dtype, together=together)


def local_response_normalization_error_scale(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    CrossChannel: bool,
    LocalSize: int,
    Alpha: float,
    Beta: float,
    Bias: float,
) -> Array:
    """Return the size of each result, times what the sum and the power may lose.

    Derived in docs/bounds.md, Local response normalisation.
    """
    with np.errstate(all="ignore"):
        values = np.abs(InputTensor, dtype=np.float64)
        base = _base(values, CrossChannel, LocalSize, Alpha, Bias)
        terms = _base(values, CrossChannel, LocalSize, abs(Alpha), abs(Bias))
        power = np.power(base, single(Beta))
        values /= power
        error_scale: Array = values * _condition(base, terms, abs(single(Beta)))
        beyond = _beyond(InputTensor, base, CrossChannel, LocalSize, Alpha, Beta)
        beyond |= _unpowered(base, terms, Beta)
        beyond |= np.isfinite(base) & (power > np.finfo(np.float32).max)
    return np.where(beyond, ANY_RESULT, error_scale)


def local_response_normalization_grad(
    InputTensor: Array,
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    CrossChannel: bool,
    LocalSize: int,
    Alpha: float,
    Beta: float,
    Bias: float,
) -> Array:
    """InputTensor {N, C, H, W}, InputGradientTensor {N, C, H, W} ->
    OutputGradientTensor {N, C, H, W}; FLOAT32, FLOAT16

    Return a gradient of LOCAL_RESPONSE_NORMALIZATION for its input.

    It is, with `n` for the base of the power and a sum over the window,
    `gradient / n ** Beta - 2 * Alpha * Beta / LocalSize * x * sum(gradient * x / n ** (Beta + 1))`.
    The true gradient has the mirrored window, which is another one where LocalSize is even. Both
    terms of an element's own gradient are one product, so that an infinite one is no NaN.

    Source: the page of DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC has no formula; it was
    measured.
    """
    factor = 2 * single(Alpha) * single(Beta) / LocalSize

    def gradients(tensor: Array, slopes: Array) -> Array:
        values, gradient = tensor.astype(np.float64), slopes.astype(np.float64)
        base = _base(values, CrossChannel, LocalSize, Alpha, Bias)
        power = _power(base, Beta)
        own: Array = gradient * (1 / power - factor * np.square(values) / (base * power))
        others = _sums_of_others(gradient * values / (base * power), CrossChannel, LocalSize)
        own -= factor * values * others
        return own

    tensors, together = (InputTensor, InputGradientTensor), _axes(CrossChannel)
    dtype = OutputGradientTensor.DataType.dtype
    with np.errstate(all="ignore"):
        return in_slices(gradients, *tensors, dtype=dtype, together=together)


def local_response_normalization_grad_error_scale(
    InputTensor: Array,
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    CrossChannel: bool,
    LocalSize: int,
    Alpha: float,
    Beta: float,
    Bias: float,
) -> ErrorScale:
    """Return the sum of the terms' sizes, times what the inner sums and powers may lose.

    Measured: FLOAT16 holds squares, powers and sums between two steps, so that these overflow, and
    become subnormal. Where one overflows, any result is right.

    Derived in docs/bounds.md, Local response normalisation.
    """
    dtype = OutputGradientTensor.DataType.dtype
    info = np.finfo(dtype)
    is_half = dtype == np.float16
    smallest = info.smallest_subnormal if is_half else info.tiny
    underflow = float(smallest) / float(info.eps)
    exponent = abs(single(Beta))
    with np.errstate(all="ignore"):
        values = np.abs(InputTensor, dtype=np.float64)
        gradient = np.abs(InputGradientTensor, dtype=np.float64)
        base = _base(values, CrossChannel, LocalSize, Alpha, Bias)
        terms = (
            _base(values, CrossChannel, LocalSize, abs(Alpha), abs(Bias)) + abs(Alpha) * underflow
        )
        unpowered = _unpowered(base, terms, Beta)
        base = np.abs(base)
        power = np.power(base, -single(Beta) - 1)

        def sizes(condition: Array, least: float) -> tuple[Array, Array]:
            """Return what the terms lose together, and the sums of products in them."""
            factor = power * condition + least
            sums = _window_sums(gradient * values * factor, CrossChannel, LocalSize) + least
            second = 2 * abs(single(Alpha) * single(Beta)) / LocalSize * values * sums
            return second + gradient * base * factor, sums

        error_scale, sums = sizes(
            _condition(base, terms, exponent + 1), 0.0 if is_half else underflow
        )
        stored = None
        if is_half:
            # The base, the power and its products.
            stored, sums = sizes(2 + (exponent + 1) * terms / base, underflow)
        beyond = (power > info.max) | (base > info.max) | (sums > info.max)
        beyond |= _window_sums(np.square(values), CrossChannel, LocalSize) > info.max
        beyond |= _beyond(InputTensor, base, CrossChannel, LocalSize, Alpha, Beta)
        beyond |= unpowered
        beyond = _window_sums(beyond.astype(np.float64), CrossChannel, LocalSize) > 0
        constants = np.asarray(2 * single(Alpha)), np.asarray(single(Beta))
        beyond |= greatest_product(*constants, values, sums) > np.finfo(np.float32).max
    return ErrorScale(error_scale, stored).open_where(beyond)


def _power(base: Array, exponent: float) -> Array:
    """Return a power made of a logarithm, which negative numbers do not have, or 1 for 0.

    Measured.
    """
    power: Array = np.power(base, single(exponent))
    return power if single(exponent) == 0 else np.where(base < 0, np.nan, power)


def _unpowered(base: Array, terms: Array, exponent: float) -> Array:
    """Tell where a base may be negative or not, or has powers only as products of itself."""
    near = 8 * float(np.finfo(np.float32).eps) * terms
    return (base < near) & ((base > -near) | (single(exponent) % 1 == 0))


def _beyond(
    tensor: Array, base: Array, cross_channel: bool, local_size: int, alpha: float, beta: float
) -> Array:
    """Return where FLOAT32 does not hold what is computed on the way, so that any result is right.

    The sum of squares may overflow, and squares that are subnormal may be lost. A power of zero is
    made of an infinite logarithm, and with the exponent 0 it is no number; so it is for infinity.
    """
    info = np.finfo(np.float32)
    squares = np.square(tensor, dtype=np.float64)
    sums = _window_sums(squares, cross_channel, local_size)
    beyond = np.isfinite(sums) & (sums > float(info.max))
    underflow = local_size * local_size * float(info.tiny) * max(abs(single(alpha)), 1.0)
    subnormal = _window_sums((squares > 0).astype(np.float64), cross_channel, local_size) > 0
    beyond |= subnormal & (underflow > np.abs(base) * float(info.eps))
    if single(beta) <= 0:
        beyond |= (base == 0) | ~np.isfinite(base)
    return beyond


def _base(values: Array, cross_channel: bool, local_size: int, alpha: float, bias: float) -> Array:
    """Return the base of the power, with all parameters as the FLOAT32 that DirectML takes."""
    base = _window_sums(np.square(values), cross_channel, local_size)
    base *= single(alpha) / local_size
    base += single(bias)
    return base


def _window_sums(values: Array, cross_channel: bool, local_size: int) -> Array:
    """Return for each element the sum of the window around it."""
    for axis in _axes(cross_channel):
        values = values + _neighbours(values, axis, local_size)
    return values


def _sums_of_others(values: Array, cross_channel: bool, local_size: int) -> Array:
    """Return for each element the sum of the window around it, without the element itself."""
    sums = np.zeros_like(values)
    for axis in _axes(cross_channel):
        neighbours = _neighbours(values, axis, local_size)
        sums = sums + neighbours
        values = values + neighbours
    return sums


def _neighbours(values: Array, axis: int, local_size: int) -> Array:
    """Return for each element the sum of a window along an axis, without the element itself."""
    count = values.shape[axis]
    before, after = min((local_size - 1) // 2, count - 1), min(local_size // 2, count - 1)
    room = [(0, 0)] * values.ndim
    room[axis] = (before, after)
    padded = np.pad(values, room)
    sums = np.zeros_like(values)
    for place in range(before + after + 1):
        if place != before:
            sums += padded[(slice(None),) * axis + (slice(place, place + count),)]
    return sums


def _axes(cross_channel: bool) -> tuple[int, ...]:
    """Return the axes along which there are windows."""
    return _CHANNELS if cross_channel else _IMAGE


def _condition(base: Array, terms: Array, exponent: float) -> Array:
    """Return how much a power magnifies the errors of its base, of a logarithm and of itself."""
    condition: Array = 1 + exponent * (terms / np.abs(base) + np.abs(np.log2(np.abs(base))))
    return condition
