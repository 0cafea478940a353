"""Normalisation of elements by the squares in a window around each, and its gradient."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dmlconf.backends.numpy.normalization import ANY_RESULT, single
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = [
    "local_response_normalization",
    "local_response_normalization_grad",
    "local_response_normalization_grad_magnitude",
    "local_response_normalization_magnitude",
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
    """Return `x / (Bias + Alpha / LocalSize * sum(x ** 2)) ** Beta`.

    The sum is that of a window of LocalSize elements: of channels if CrossChannel, else both of
    rows and of columns. It goes from `(LocalSize - 1) // 2` elements before to `LocalSize // 2`
    after, as far as there are elements. Alpha is divided by LocalSize in either case.

    Source: the page of DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC; the window was measured.
    """
    with np.errstate(all="ignore"):
        values = InputTensor.astype(np.float64)
        base = _base(values, CrossChannel, LocalSize, Alpha, Bias)
        values /= np.power(base, single(Beta))
        result: Array = values.astype(OutputTensor.DataType.dtype)
    return result


def local_response_normalization_magnitude(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    CrossChannel: bool,
    LocalSize: int,
    Alpha: float,
    Beta: float,
    Bias: float,
) -> Array:
    """Return the size of each result, times what the sum and the power may lose."""
    with np.errstate(all="ignore"):
        values = np.abs(InputTensor, dtype=np.float64)
        base = _base(values, CrossChannel, LocalSize, Alpha, Bias)
        terms = _base(values, CrossChannel, LocalSize, abs(Alpha), abs(Bias))
        values /= np.power(base, single(Beta))
        magnitude: Array = values * _condition(base, terms, abs(single(Beta)))
    return magnitude


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
    """Return a gradient of LOCAL_RESPONSE_NORMALIZATION for its input.

    It is, with `n` for the base of the power and a sum over the window,
    `gradient / n ** Beta - 2 * Alpha * Beta / LocalSize * x * sum(gradient * x / n ** (Beta + 1))`.
    The true gradient has the mirrored window, which is another one where LocalSize is even.

    Source: the page of DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC has no formula; it was
    measured.
    """
    with np.errstate(all="ignore"):
        values, gradient = InputTensor.astype(np.float64), InputGradientTensor.astype(np.float64)
        base = _base(values, CrossChannel, LocalSize, Alpha, Bias)
        gradient /= np.power(base, single(Beta))
        sums = _window_sums(gradient * values / base, CrossChannel, LocalSize)
        gradient -= 2 * single(Alpha) * single(Beta) / LocalSize * values * sums
        result: Array = gradient.astype(OutputGradientTensor.DataType.dtype)
    return result


def local_response_normalization_grad_magnitude(
    InputTensor: Array,
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    CrossChannel: bool,
    LocalSize: int,
    Alpha: float,
    Beta: float,
    Bias: float,
) -> Array:
    """Return the sum of the terms' sizes, times what the inner sums and powers may lose.

    Measured: FLOAT16 holds squares, powers and sums between two steps, so that these overflow, and
    become subnormal. Where one overflows, any result is right.
    """
    dtype = OutputGradientTensor.DataType.dtype
    info = np.finfo(dtype)
    lost = float(info.smallest_subnormal) / float(info.eps) if dtype == np.float16 else 0.0
    with np.errstate(all="ignore"):
        values = np.abs(InputTensor, dtype=np.float64)
        gradient = np.abs(InputGradientTensor, dtype=np.float64)
        base = np.abs(_base(values, CrossChannel, LocalSize, Alpha, Bias))
        terms = _base(values, CrossChannel, LocalSize, abs(Alpha), abs(Bias)) + abs(Alpha) * lost
        power = np.power(base, -single(Beta) - 1)
        factor = power * _condition(base, terms, abs(single(Beta)) + 1) + lost
        sums = _window_sums(gradient * values * factor, CrossChannel, LocalSize) + lost
        beyond = (power > info.max) | (base > info.max) | (sums > info.max)
        beyond |= _window_sums(np.square(values), CrossChannel, LocalSize) > info.max
        beyond = _window_sums(beyond.astype(np.float64), CrossChannel, LocalSize) > 0
        magnitude = 2 * abs(single(Alpha) * single(Beta)) / LocalSize * values * sums
        magnitude += gradient * base * factor
    return np.where(beyond, ANY_RESULT, magnitude)


def _base(values: Array, cross_channel: bool, local_size: int, alpha: float, bias: float) -> Array:
    """Return the base of the power, with all parameters as the FLOAT32 that DirectML takes."""
    base = _window_sums(np.square(values), cross_channel, local_size)
    base *= single(alpha) / local_size
    base += single(bias)
    return base


def _window_sums(values: Array, cross_channel: bool, local_size: int) -> Array:
    """Return for each element the sum of the window around it."""
    for axis in _CHANNELS if cross_channel else _IMAGE:
        most = values.shape[axis] - 1
        before, after = min((local_size - 1) // 2, most), min(local_size // 2, most)
        room = [(0, 0)] * values.ndim
        room[axis] = (before, after)
        windows = sliding_window_view(np.pad(values, room), before + after + 1, axis)
        values = windows.sum(-1)
    return values


def _condition(base: Array, terms: Array, exponent: float) -> Array:
    """Return how much a power magnifies the errors of its base, of a logarithm and of itself."""
    condition: Array = 1 + exponent * (terms / np.abs(base) + np.abs(np.log2(np.abs(base))))
    return condition
