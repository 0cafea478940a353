"""Permitted results of sums and products of quantized tensors besides the reference's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale, quantum_of, store_sizes
from dmlconf.permitted.numbers.rounding import (
    STEP,
    greatest_product,
    overflows,
    underflow_error,
)
from dmlconf.permitted.quantization.overflows import Factor, nan_of_overflows, overflowing_sides
from dmlconf.permitted.quantization.quotients import is_power_of_two, quantized_candidates
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.quantization.arithmetic import (
    MatrixMultiplyIntegerToFloatDesc,
    QuantizedLinearDesc,
    centred,
)
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT16, LARGEST_FLOAT32

__all__ = [
    "element_wise_quantized_linear_add_candidates",
    "matrix_multiply_integer_to_float_error_scale",
    "quantized_linear_matrix_multiply_candidates",
    "quantized_sum_candidates",
]

EXACT: Final = 2.0**24
"""FLOAT32 holds every integer up to this absolute value."""

_LONGEST_FACTOR: Final = 255.0
"""The greatest difference between an integer of 8 bits and a zero point of its type."""

_LARGEST: Final = 2.0**31 - 256
"""Above this, a number plus a zero point may overflow the 32-bit integers of DirectML 1.15.4."""


@of_fields(QuantizedLinearDesc)
def element_wise_quantized_linear_add_candidates(desc: QuantizedLinearDesc) -> Sequence[Interval]:
    """Return the candidates of the sum; each operation may round toward zero or to nearest.

    If `is_power_of_two` for all scales, and FLOAT32 holds the sum, nothing is rounded. Any result
    is right if a scale is 0, or if |a| + |b| of dequantized a and b is finite, but beyond FLOAT32.

    Source: Direct3D 11.3 functional specification: products, sums and the reciprocal of the scale
    may be off by one ULP.
    """
    double = np.dtype(np.float64)
    scales = desc.AScaleTensor, desc.BScaleTensor, desc.OutputScaleTensor
    with np.errstate(all="ignore"):
        a, b = desc.dequantized(double)
        error_scale = np.abs(a) + np.abs(b)
        quotient = (a + b) / desc.OutputScaleTensor
        error = error_scale / np.abs(desc.OutputScaleTensor) * (4 * STEP)
        step = np.minimum(np.abs(desc.AScaleTensor), np.abs(desc.BScaleTensor))
        exact = error_scale <= wide(step) * EXACT
        for scale in scales:
            exact &= is_power_of_two(scale)
        error[exact] = 0
        undefined = np.isfinite(error_scale) & (error_scale > np.finfo(np.float32).max)
    for scale in scales:
        undefined |= scale == 0
    zero_points = desc.OutputZeroPointTensor, desc.OutputZeroPointTensor
    return quantized_candidates(
        (quotient, error),
        zero_points,
        desc.OutputTensor.DataType,
        undefined,
        desc.OutputScaleTensor,
    )


@of_fields(MatrixMultiplyIntegerToFloatDesc)
def matrix_multiply_integer_to_float_error_scale(
    desc: MatrixMultiplyIntegerToFloatDesc,
) -> ErrorScale:
    """Return the error scale: the sums of the absolute values of products (`_magnitudes`) and bias.

    A kernel may store the dequantized numbers in the type of the scales. If a number overflows
    there, the result may be infinite or NaN. Measured on DirectML 1.15.4: numbers and sums beyond
    65504 become 65504. Numbers are limited after scaling or, those without a zero point, both
    before and after.

    Derived in docs/bounds.md, Sums.
    """
    a = _magnitudes(desc.ATensor, desc.AZeroPointTensor)
    b = _magnitudes(desc.BTensor, desc.BZeroPointTensor)
    a_scale, b_scale = wide(desc.AScaleTensor), wide(desc.BScaleTensor)
    first, second = np.abs(a_scale), np.abs(b_scale)
    dtype = desc.OutputTensor.DataType.dtype
    largest = float(np.finfo(dtype).max)
    with np.errstate(all="ignore"):
        integers = a @ b
        # The product of the scales may be subnormal although the result is not.
        sums = integers * first * second + underflow_error(first, second) * integers / STEP
        beyond = np.isfinite(sums) & (sums > LARGEST_FLOAT32)
        # If the product with one scale is infinite and the other scale is 0, the result is NaN.
        beyond |= integers * np.maximum(first, second) > LARGEST_FLOAT32
        beyond |= _beyond(a, first, largest).any(-1, keepdims=True)
        beyond |= _beyond(b, second, largest).any(-2, keepdims=True)
        bias = 0.0 if desc.BiasTensor is None else wide(desc.BiasTensor)
        quantum = quantum_of(desc.AScaleTensor, desc.BScaleTensor)
        if desc.BiasTensor is not None:
            quantum = min(quantum, quantum_of(desc.BiasTensor))
        error_scale = ErrorScale(sums + np.abs(bias), quantum=quantum)
        if dtype == np.float16:
            left, right = desc.centred()
            products = (left @ right) * a_scale * b_scale
            squares = (np.square(left) @ np.square(right)) * np.square(first * second)
            # Each factor may be stored before and after it is scaled, if that rounds it.
            sides = np.zeros(())
            for side in (left, left * a_scale):
                sides = sides + _rounded(side).any(-1, keepdims=True)
            for side in (right, right * b_scale):
                sides = sides + _rounded(side).any(-2, keepdims=True)
            held = np.fmin(sums, np.abs(products) + 2 * np.sqrt(squares))
            deviation = np.fmin(sides * held, np.sqrt(sides * (squares + sides * products**2)))
            error_scale = error_scale.in_slices(products, squares, a.shape[-1])
            error_scale = error_scale.holding(sides * held, deviation)
            if desc.BiasTensor is not None:
                exact = sums <= quantum * EXACT
                error_scale = error_scale.holding(store_sizes(products, exact))
            others: list[Array] = []
            if beyond.any():
                others += (
                    _saturated(left, a_scale, first=of_a) @ _saturated(right, b_scale, first=of_b)
                    for of_a, of_b in product((True, False), repeat=2)
                )
            if desc.BiasTensor is not None:
                limited = (each.clip(-largest, largest) for each in (products, *others))
                others = [other + bias for other in (*limited, *others)]
            error_scale = error_scale.with_others(others, dtype)
        if beyond.any() or overflows(error_scale.sums, dtype).any():
            left, right = desc.centred()
            factors = Factor.of(left, a, a_scale, dtype), Factor.of(right, b, b_scale, dtype)
            by_sign = overflowing_sides(*factors, np.asarray(bias))
            error_scale = replace(error_scale, by_sign=by_sign)
            nan = nan_of_overflows(*factors)
            right = (left @ right) * a_scale * b_scale + bias
            if nan.any():
                error_scale = error_scale.with_others([np.where(nan, np.nan, right)], dtype)
            beyond &= ~np.isnan(right)
    return error_scale.overflowing_where(beyond)


@of_fields(QuantizedLinearDesc)
def quantized_linear_matrix_multiply_candidates(desc: QuantizedLinearDesc) -> Sequence[Interval]:
    """Return the candidates of the products, as `quantized_sum_candidates` does for sums."""
    a, b = desc.centred()
    scales = desc.AScaleTensor, desc.BScaleTensor, desc.OutputScaleTensor
    sums, error_scale = a @ b, np.abs(a) @ np.abs(b)
    return quantized_sum_candidates(
        sums, error_scale, a.shape[-1], scales, desc.OutputZeroPointTensor, desc.OutputTensor
    )


def quantized_sum_candidates(
    sums: Array,
    error_scale: Array,
    products: int,
    scales: tuple[Array, Array, Array],
    zero_point: Array | None,
    output: TensorDesc,
) -> Sequence[Interval]:
    """Return the candidates of `quantized_sum`; each operation may round toward zero or to nearest.

    A device may scale each factor, or only the sum. If `is_power_of_two` for all scales, and
    FLOAT32 holds the sums, nothing is rounded. Any result is right in these cases:

    - a scale is 0 or NaN, or the scale of a factor is infinite
    - the scaled sum of the terms' sizes exceeds the largest FLOAT32 number, or a scaled factor may
    - the sum of the terms' sizes, or the quotient plus a zero point, may exceed 32-bit integers

    A kernel may combine the scales first, which may overflow, as 3.4e38 / 0.18 does. Measured: with
    the scales 3.4e38 and 1.18e-38 of the factors and 0.18 of the output, DirectML 1.12.1 gives 127
    for a sum of 1. A sum of 0 gives the zero point.

    Args:
        sums: the sums of products (a - zero point) * (b - zero point), plus a bias if any.
        error_scale: the sums of the sizes of these terms.
        products: how many terms each sum has at most.
        scales: those of both factors and of the output.
    """
    with np.errstate(all="ignore"):
        first, second, last = map(wide, scales)
        terms = error_scale * np.abs(first * second)
        quotient = sums * first * second / last
        error = terms / np.abs(last) * ((products + 4) * STEP)
        exact = is_power_of_two(first) & is_power_of_two(second) & is_power_of_two(last)
        error = np.where(exact & (error_scale <= EXACT), 0.0, error)
        # The product of the scales of both factors may be subnormal although the result is not.
        error += underflow_error(first, second) * error_scale / np.abs(last)
        overflow = ~(terms <= np.finfo(np.float32).max) | ~(np.abs(quotient) < _LARGEST)
        overflow |= error_scale > _LARGEST
        longest = np.fmin(error_scale, _LONGEST_FACTOR)
        overflow |= longest * np.fmax(np.abs(first), np.abs(second)) > LARGEST_FLOAT32
        partial = greatest_product(np.fmax(longest, 1.0), first, second, 1 / last)
        undefined = overflow | (first * second == 0) | (last == 0)
    candidates = quantized_candidates(
        (quotient, error),
        (zero_point, zero_point),
        output.DataType,
        undefined,
        last,
        (partial > LARGEST_FLOAT32) & (sums != 0),
    )
    # Scales may have more dimensions than the matrices.
    return [(low.reshape(output.Sizes), high.reshape(output.Sizes)) for low, high in candidates]


def _rounded(values: Array) -> Array:
    """Return which values FLOAT16 does not hold."""
    rounded: Array = np.isfinite(values) & (values.astype(np.float16) != values)
    return rounded


def _beyond(sizes: Array, scale: Array, largest: float) -> Array:
    """Return which numbers overflow a type, before or after they are scaled."""
    return sizes * np.maximum(scale, 1.0) > largest


def _saturated(numbers: Array, scale: Array, *, first: bool) -> Array:
    """Return scaled numbers, limited to FLOAT16's range, if `first` also before they are scaled."""
    largest = LARGEST_FLOAT16
    held = np.clip(numbers, -largest, largest) if first else numbers
    scaled: Array = np.clip(held * scale, -largest, largest)
    return scaled


def _magnitudes(values: Array, zero_point: Array | None) -> Array:
    """Return the sizes of integers less their zero points, FLOAT64.

    For 32-bit integers, return the sum of both sizes, since FLOAT32 may round both first.
    """
    if values.dtype.itemsize < 4 or zero_point is None:
        return np.abs(centred(values, zero_point))
    return np.abs(wide(values)) + np.abs(wide(zero_point))
