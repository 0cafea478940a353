"""Operators that scale elements by what their neighbours along some axes have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.fused import fused, fused_error_scale
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.reference.numbers.error_scale import ErrorScale, quantum_of, store_sizes
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.reference.numbers.rounding import greatest_product, overflows
from dmlconf.tensors.datatypes import Array

__all__ = [
    "exact_mean",
    "lp_normalization",
    "lp_normalization_error_scale",
    "mean_variance_normalization2",
    "mean_variance_normalization2_error_scale",
    "saturated",
    "variance_loss",
]


def mean_variance_normalization2(
    InputTensor: Array,
    ScaleTensor: Array | None,
    BiasTensor: Array | None,
    OutputTensor: TensorDesc,
    Axes: Sequence[int],
    UseMean: bool,
    UseVariance: bool,
    Epsilon: float,
    FusedActivation: Mapping[str, Any] | None,
) -> Array:
    """InputTensor {D0, D1, ...}, [ScaleTensor {1 or D0, 1 or D1, ...}],
    [BiasTensor {1 or D0, 1 or D1, ...}] -> OutputTensor {D0, D1, ...}; FLOAT32, FLOAT16

    Return `scale * (x - mean) / sqrt(variance + Epsilon) + bias`, activated.

    Without UseMean the mean counts as 0: the variance is then the mean of the squares. Without
    UseVariance nothing is divided. Scale and bias are broadcast along dimensions of size 1.

    Source: the page of DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC has only the names; the
    operator was measured.
    """
    over = tuple(sorted(set(Axes)))

    def normalized(tensor: Array, scale: Array | None, bias: Array | None) -> Array:
        values = tensor.astype(np.float64)
        if UseMean:
            values -= values.mean(over, keepdims=True)
        factor: Array | float = 1.0 if scale is None else scale.astype(np.float64)
        if UseVariance:
            variance = np.square(values).mean(over, keepdims=True)
            factor = factor / np.sqrt(variance + single(Epsilon))
        values *= factor
        if bias is not None:
            values += bias.astype(np.float64)
        return fused(values, FusedActivation)

    tensors = InputTensor, ScaleTensor, BiasTensor
    with np.errstate(all="ignore"):
        return in_slices(normalized, *tensors, dtype=OutputTensor.DataType.dtype, together=over)


def mean_variance_normalization2_error_scale(
    InputTensor: Array,
    ScaleTensor: Array | None,
    BiasTensor: Array | None,
    OutputTensor: TensorDesc,
    Axes: Sequence[int],
    UseMean: bool,
    UseVariance: bool,
    Epsilon: float,
    FusedActivation: Mapping[str, Any] | None,
) -> ErrorScale:
    """Return what each step of the normalisation adds up: the input, its mean, and the bias.

    Derived in docs/bounds.md, Normalisation.
    """
    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        values = InputTensor.astype(np.float64)
        over = tuple(sorted(set(Axes)))
        terms = np.abs(values)
        added = terms.sum(over, keepdims=True, where=np.isfinite(terms))
        if UseMean:
            terms = terms + terms.mean(over, keepdims=True)
            mean = values.mean(over, keepdims=True)
            values -= mean
        scale = np.ones(1) if ScaleTensor is None else np.abs(ScaleTensor)
        way = greatest_product(terms, scale.astype(np.float64))
        # Measured: FLOAT16 holds the mean, the differences from it, and what they are scaled to.
        held, exact = np.zeros(1), np.ones(1, bool)
        if UseMean:
            exact = exact_mean(InputTensor, mean, added)
            held = store_sizes(mean, exact)
            exact = exact & (held == 0)
        held = held + store_sizes(values, exact)
        cancellation = ErrorScale(np.zeros(1))
        others = []
        if UseVariance:
            squares = np.square(values)
            variance = squares.mean(over, keepdims=True)
            way = np.fmax(way, squares.sum(over, keepdims=True))
            if UseMean and all(InputTensor.shape[axis] == 1 for axis in over):
                # Measured: the element itself takes the place of its variance.
                root = np.sqrt(InputTensor.astype(np.float64) + single(Epsilon))
                others.append(values / root)
            divisor = np.sqrt(variance + single(Epsilon))
            centred = values
            values, terms, held = values / divisor, terms / divisor, held / divisor
            way = greatest_product(way, 1 / divisor)
            cancellation = variance_loss(np.abs(values), variance, Epsilon, dtype)
            others += saturated(centred, variance, squares.sum(over, keepdims=True), Epsilon, dtype)
            # The variance, of which the root takes half, the root, and what is scaled.
            root = store_sizes(divisor) + 0.5 * store_sizes(variance) / divisor
            held = held + np.abs(values) * root / divisor
            if ScaleTensor is not None or BiasTensor is not None:
                held = held + store_sizes(values)
        # The root, the quotient and its product with the scale.
        steps = 2 if ScaleTensor is None else 3
        terms = terms + steps * np.abs(values)
        error_scale = (ErrorScale(terms, held) + cancellation).scaled(scale)
        if BiasTensor is not None:
            error_scale = error_scale.holding(store_sizes(_scaled(values, ScaleTensor, None)))
            error_scale += ErrorScale(np.abs(wide(BiasTensor)))
        error_scale = error_scale.overflowing_where(overflows(added) | overflows(way))
        values = _scaled(values, ScaleTensor, BiasTensor)
        fused_scale = fused_error_scale(values, error_scale, FusedActivation, dtype)
        return replace(
            fused_scale,
            others=tuple(
                fused(_scaled(other, ScaleTensor, BiasTensor), FusedActivation).astype(dtype)
                for other in others
            ),
        )


def lp_normalization(
    InputTensor: Array, OutputTensor: TensorDesc, Axis: int, Epsilon: float, P: int
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return `x / sqrt(norm ** 2 + Epsilon)`.

    The norm is that of the elements along the axis: with P of 1 the sum of their absolute values,
    with 2 the root of the sum of their squares.

    Source: the page of DML_LP_NORMALIZATION_OPERATOR_DESC has no formula; it was measured.
    """

    def normalized(tensor: Array) -> Array:
        values = tensor.astype(np.float64)
        values /= np.sqrt(_squared_norm(values, Axis, P) + single(Epsilon))
        return values

    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        return in_slices(normalized, InputTensor, dtype=dtype, together=(Axis,))


def lp_normalization_error_scale(
    InputTensor: Array, OutputTensor: TensorDesc, Axis: int, Epsilon: float, P: int
) -> ErrorScale:
    """Return the size of each result, and what FLOAT16 loses of the norm.

    Derived in docs/bounds.md, Lp normalisation.
    """
    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        values = InputTensor.astype(np.float64)
        square = _squared_norm(values, Axis, P)
        size = np.abs(values) / np.sqrt(square + single(Epsilon))
        # FLOAT16 holds the norm and its square, and each may be truncated.
        root = np.sqrt(square + single(Epsilon))
        of_square = store_sizes(square) / np.square(root) / 2
        share = of_square + store_sizes(root) / root
        if P == 1:
            norm = np.sqrt(square)
            share = share + store_sizes(norm) * norm / np.square(root)
        held = size * share * _cancellation(square, Epsilon)
        error_scale = ErrorScale(size, held) + variance_loss(size, square, Epsilon, dtype)
        others = saturated(values, square, square, Epsilon, dtype)
        if P == 1:
            norm = np.minimum(np.sqrt(square), float(np.finfo(dtype).max))
            others += saturated(values, np.square(norm), square, Epsilon, dtype)
        return replace(error_scale, others=tuple(other.astype(dtype) for other in others))


def _squared_norm(values: Array, axis: int, order: int) -> Array:
    if order == 1:
        values = np.abs(values).sum(axis, keepdims=True)
    square: Array = np.square(values).sum(axis, keepdims=True)
    return square


def _cancellation(variance: Array, epsilon: float) -> Array:
    """Return how much larger a relative error of the variance is once epsilon is added.

    It is 1 unless epsilon is negative.
    """
    sizes = np.abs(variance) + abs(single(epsilon))
    return sizes / np.abs(variance + single(epsilon)) if epsilon < 0 else np.ones_like(sizes)


def saturated(
    centred: Array, variance: Array, squares: Array, epsilon: float, dtype: np.dtype[Any]
) -> list[Array]:
    """Return what elements are divided to where the variance's type does not hold it, FLOAT64.

    It may be infinite, and the quotient 0, or the type's largest number where it is truncated.

    Args:
        centred: what is divided.
        variance: the squares of the divisors, without epsilon.
        squares: the sums on the way to the variance, in FLOAT32.
        epsilon: the operator's.
        dtype: the type in which the variance is held.
    """
    right = np.sqrt(variance + single(epsilon))
    largest = np.sqrt(np.minimum(variance, float(np.finfo(dtype).max)) + single(epsilon))
    overflowed = overflows(squares) | overflows(variance, dtype)
    return [centred / largest, np.where(overflowed, 0.0, centred / right)]


def exact_mean(tensor: Array, mean: Array, added: Array) -> Array:
    """Tell which means are the same however they are computed.

    The sum must be exact in any order, and dividing it as well: by a power of two, or of 0.

    Args:
        tensor: the elements.
        mean: their means, with dimensions of size 1 where elements share one, FLOAT64.
        added: the sums of the sizes of the elements.
    """
    count = tensor.size // mean.size
    exact: Array = added <= quantum_of(tensor) * 2.0**24
    exact &= (mean == 0) | (count & (count - 1) == 0)
    return exact


def variance_loss(size: Array, variance: Array, epsilon: float, dtype: np.dtype[Any]) -> ErrorScale:
    """Return the error scale of what is lost where the data type holds the variance.

    Measured: FLOAT16 does so too between two steps. The variance may overflow there, and become
    subnormal or zero.

    Args:
        size: the size of each element that was divided by the variance's root.
        variance: what was added to epsilon.
        epsilon: the operator's.
        dtype: the output's data type.
    """
    info = np.finfo(dtype)
    step = info.smallest_subnormal if dtype == np.float16 else info.tiny
    share = np.where(variance > 0, float(step), 0.0)
    share = share / (variance + single(epsilon))
    loss: Array = np.where(share > 0, size * share / float(info.eps), 0.0)
    error_scale = ErrorScale(loss)
    if dtype == np.float16:
        error_scale = ErrorScale(np.zeros_like(loss), loss)
    return error_scale.overflowing_where(variance > float(info.max)).open_where(share > 0.5)


def _scaled(values: Array, scale: Array | None, bias: Array | None) -> Array:
    if scale is not None:
        values = values * scale.astype(np.float64)
    return values if bias is None else values + bias.astype(np.float64)
