"""Normalisation by a mean and a variance that several elements share, and its gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.fused import fused, fused_magnitude
from dmlconf.reference.normalization.mean_variance import lost_in_variance, saturated
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.reference.numbers.magnitude import Magnitude
from dmlconf.reference.numbers.rounding import STEP, greatest_product, overflows
from dmlconf.tensors.datatypes import Array

__all__ = [
    "batch_normalization",
    "batch_normalization_grad",
    "batch_normalization_grad_magnitude",
    "batch_normalization_magnitude",
    "batch_normalization_training",
    "batch_normalization_training_grad",
    "batch_normalization_training_grad_magnitude",
    "batch_normalization_training_magnitude",
]


def batch_normalization(
    InputTensor: Array,
    MeanTensor: Array,
    VarianceTensor: Array,
    ScaleTensor: Array,
    BiasTensor: Array,
    OutputTensor: TensorDesc,
    Spatial: bool,
    Epsilon: float,
    FusedActivation: Mapping[str, Any] | None,
) -> Array:
    """Return `scale * (x - mean) / sqrt(variance + Epsilon) + bias`, activated.

    All tensors but the input are broadcast along dimensions of size 1. Spatial has no effect.

    Source: the page of DML_BATCH_NORMALIZATION_OPERATOR_DESC.
    """

    def normalized(tensor: Array, mean: Array, variance: Array, scale: Array, bias: Array) -> Array:
        values = wide(tensor) - wide(mean)
        values *= wide(scale) / _deviation(variance, Epsilon)
        values += wide(bias)
        return fused(values, FusedActivation)

    tensors = InputTensor, MeanTensor, VarianceTensor, ScaleTensor, BiasTensor
    with np.errstate(all="ignore"):
        return in_slices(normalized, *tensors, dtype=OutputTensor.DataType.dtype)


def batch_normalization_magnitude(
    InputTensor: Array,
    MeanTensor: Array,
    VarianceTensor: Array,
    ScaleTensor: Array,
    BiasTensor: Array,
    OutputTensor: TensorDesc,
    Spatial: bool,
    Epsilon: float,
    FusedActivation: Mapping[str, Any] | None,
) -> Magnitude:
    """Return what the steps add up: the input, the mean and the bias, each with its factor."""
    with np.errstate(all="ignore"):
        scale, deviation = wide(ScaleTensor), _deviation(VarianceTensor, Epsilon)
        factor = scale / deviation
        mean, bias = wide(MeanTensor), wide(BiasTensor)
        values = (wide(InputTensor) - mean) * factor + bias
        added = _size(InputTensor) + np.abs(mean)
        magnitude = Magnitude(added * np.abs(factor) + np.abs(bias))
        magnitude = magnitude.overflowing_where(
            overflows(greatest_product(added, scale, 1 / deviation))
        )
        # An infinite factor may be applied to the input and to the mean before their difference.
        magnitude = magnitude.overflowing_where(_unbounded(factor, deviation))
        dtype = OutputTensor.DataType.dtype
        return fused_magnitude(values, magnitude, FusedActivation, dtype)


def batch_normalization_training(
    InputTensor: Array,
    ScaleTensor: Array,
    BiasTensor: Array,
    FusedAddTensor: Array | None,
    OutputTensor: TensorDesc,
    OutputMeanTensor: TensorDesc,
    OutputVarianceTensor: TensorDesc,
    Epsilon: float,
    FusedActivation: Mapping[str, Any] | None,
) -> tuple[Array, Array, Array]:
    """Return the normalised input, activated, and its mean and variance.

    Mean and variance, that of a population, are taken along the dimensions in which the scale has
    size 1. The first output is `scale * (x - mean) / sqrt(variance + Epsilon) + bias + add`.

    Source: the page of DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC.
    """
    over = _shared(ScaleTensor)
    with np.errstate(all="ignore"):
        values = wide(InputTensor)
        mean = values.mean(over, keepdims=True)
        values -= mean
        variance = np.square(values).mean(over, keepdims=True)
        values *= wide(ScaleTensor) / _deviation(variance, Epsilon)
        values += wide(BiasTensor)
        if FusedAddTensor is not None:
            values += FusedAddTensor
        return (
            fused(values, FusedActivation).astype(OutputTensor.DataType.dtype),
            mean.astype(OutputMeanTensor.DataType.dtype),
            variance.astype(OutputVarianceTensor.DataType.dtype),
        )


def batch_normalization_training_magnitude(
    InputTensor: Array,
    ScaleTensor: Array,
    BiasTensor: Array,
    FusedAddTensor: Array | None,
    OutputTensor: TensorDesc,
    OutputMeanTensor: TensorDesc,
    OutputVarianceTensor: TensorDesc,
    Epsilon: float,
    FusedActivation: Mapping[str, Any] | None,
) -> tuple[Magnitude, Magnitude, Magnitude]:
    """Return what the steps add up on the way to each of the three outputs."""
    over = _shared(ScaleTensor)
    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        size = _size(InputTensor)
        mean_size = size.mean(over, keepdims=True)
        of_sum = overflows(_finite_sum(size, over))
        size += mean_size
        centred = wide(InputTensor)
        mean = centred.mean(over, keepdims=True)
        centred -= mean
        squares = np.square(centred)
        variance = squares.mean(over, keepdims=True)
        # The mean's own rounding moves every element, and is squared; FLOAT16 may hold it.
        of_mean = np.square(mean) * 2.0**-10
        lost = 8 * STEP * np.square(size)
        spread = (squares + 2 * np.abs(centred) * size + lost).mean(over, keepdims=True)
        deviation = _deviation(variance, Epsilon)
        quotient = np.abs(centred) / deviation
        # Measured: FLOAT16 holds the mean, the differences from it, their variance and its root.
        held = np.abs(mean) / deviation + 3 * quotient
        magnitude = Magnitude(size / deviation + 3 * quotient, held)
        magnitude += lost_in_variance(quotient, variance, Epsilon, dtype)
        magnitude = magnitude.scaled(ScaleTensor) + Magnitude(_size(BiasTensor))
        factor = wide(ScaleTensor) / deviation
        values = centred * factor + wide(BiasTensor)
        if FusedAddTensor is not None:
            magnitude = magnitude.holding(np.abs(values)) + Magnitude(2 * _size(FusedAddTensor))
            values += FusedAddTensor
        way = np.fmax(
            greatest_product(size, ScaleTensor, 1 / deviation), squares.sum(over, keepdims=True)
        )
        magnitude = magnitude.overflowing_where(overflows(way) | of_sum)
        # As in BATCH_NORMALIZATION.
        magnitude = magnitude.overflowing_where(_unbounded(factor, deviation))
        found = fused_magnitude(values, magnitude, FusedActivation, dtype)
        added = wide(BiasTensor) + (0.0 if FusedAddTensor is None else wide(FusedAddTensor))
        others = tuple(
            fused(quotient * wide(ScaleTensor) + added, FusedActivation).astype(dtype)
            for quotient in saturated(
                centred, variance, squares.sum(over, keepdims=True), Epsilon, dtype
            )
        )
        return (
            replace(found, others=others),
            Magnitude(mean_size, overflows=of_sum),
            Magnitude(spread, of_mean, overflows=of_sum),
        )


def batch_normalization_grad(
    InputTensor: Array,
    InputGradientTensor: Array,
    MeanTensor: Array,
    VarianceTensor: Array,
    ScaleTensor: Array,
    OutputGradientTensor: TensorDesc,
    OutputScaleGradientTensor: TensorDesc,
    OutputBiasGradientTensor: TensorDesc,
    Epsilon: float,
) -> tuple[Array, Array, Array]:
    """Return the gradients of BATCH_NORMALIZATION for its input, its scale and its bias.

    These are, with `d` for `sqrt(variance + Epsilon)`, `gradient * scale / d`, and the sums of
    `gradient * (x - mean) / d` and of the gradient along the dimensions in which the scale has
    size 1.

    Source: the page of DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC.
    """
    with np.errstate(all="ignore"):
        gradient = wide(InputGradientTensor)
        scale, bias = _parameter_gradients(
            gradient, wide(InputTensor) - wide(MeanTensor), _shared(ScaleTensor)
        )
        deviation = _deviation(VarianceTensor, Epsilon)
        gradient *= wide(ScaleTensor) / deviation
        return (
            gradient.astype(OutputGradientTensor.DataType.dtype),
            (scale / deviation).astype(OutputScaleGradientTensor.DataType.dtype),
            bias.astype(OutputBiasGradientTensor.DataType.dtype),
        )


def batch_normalization_grad_magnitude(
    InputTensor: Array,
    InputGradientTensor: Array,
    MeanTensor: Array,
    VarianceTensor: Array,
    ScaleTensor: Array,
    OutputGradientTensor: TensorDesc,
    OutputScaleGradientTensor: TensorDesc,
    OutputBiasGradientTensor: TensorDesc,
    Epsilon: float,
) -> tuple[Magnitude, Magnitude, Magnitude]:
    """Return the three gradients of absolute values.

    Measured: FLOAT16 holds sums before they are divided.
    """
    with np.errstate(all="ignore"):
        over = _shared(ScaleTensor)
        gradient, deviation = _size(InputGradientTensor), _deviation(VarianceTensor, Epsilon)
        scale, bias = _parameter_magnitudes(
            InputTensor, InputGradientTensor, MeanTensor, over, OutputBiasGradientTensor
        )
        way = greatest_product(gradient, ScaleTensor, 1 / deviation)
        gradient *= _size(ScaleTensor) / deviation
        magnitude = Magnitude(gradient, overflows=overflows(way))
        sums, _ = _parameter_gradients(
            wide(InputGradientTensor), wide(InputTensor) - wide(MeanTensor), over
        )
        return magnitude, _divided(scale, sums, deviation, OutputScaleGradientTensor), bias


def batch_normalization_training_grad(
    InputTensor: Array,
    InputGradientTensor: Array,
    MeanTensor: Array,
    VarianceTensor: Array,
    ScaleTensor: Array,
    OutputGradientTensor: TensorDesc,
    OutputScaleGradientTensor: TensorDesc,
    OutputBiasGradientTensor: TensorDesc,
    Epsilon: float,
) -> tuple[Array, Array, Array]:
    """Return the gradients of BATCH_NORMALIZATION_TRAINING for its input, scale and bias.

    The first is, with `g` for the gradient, `v` for `variance + Epsilon` and means along the
    dimensions in which the scale has size 1,
    `scale / sqrt(v) * (g - mean(g) - (x - Mean) * mean(g * (x - Mean)) / v)`. The others are those
    of BATCH_NORMALIZATION_GRAD.

    Source: the page of DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC. It takes the mean of
    the input where MeanTensor was measured to count.
    """
    over = _shared(ScaleTensor)
    with np.errstate(all="ignore"):
        gradient = wide(InputGradientTensor)
        centred = wide(InputTensor) - wide(MeanTensor)
        scale, bias = _parameter_gradients(gradient, centred, over)
        deviation = _deviation(VarianceTensor, Epsilon)
        count = _count(InputTensor, over)
        centred *= scale / count / np.square(deviation)
        gradient -= bias / count
        gradient -= centred
        gradient *= wide(ScaleTensor) / deviation
        return (
            gradient.astype(OutputGradientTensor.DataType.dtype),
            (scale / deviation).astype(OutputScaleGradientTensor.DataType.dtype),
            bias.astype(OutputBiasGradientTensor.DataType.dtype),
        )


def batch_normalization_training_grad_magnitude(
    InputTensor: Array,
    InputGradientTensor: Array,
    MeanTensor: Array,
    VarianceTensor: Array,
    ScaleTensor: Array,
    OutputGradientTensor: TensorDesc,
    OutputScaleGradientTensor: TensorDesc,
    OutputBiasGradientTensor: TensorDesc,
    Epsilon: float,
) -> tuple[Magnitude, Magnitude, Magnitude]:
    """Return the three gradients of absolute values, in which nothing cancels out.

    Measured: FLOAT16 holds the sums, the means, the terms and their differences.
    """
    over = _shared(ScaleTensor)
    with np.errstate(all="ignore"):
        gradient = _size(InputGradientTensor)
        centred = _size(InputTensor) + _size(MeanTensor)
        scale, bias = _parameter_magnitudes(
            InputTensor, InputGradientTensor, MeanTensor, over, OutputBiasGradientTensor
        )
        deviation = _deviation(VarianceTensor, Epsilon)
        count = _count(InputTensor, over)
        square = np.square(deviation)
        way = greatest_product(centred, scale.sums / count, 1 / square)
        change = (wide(InputTensor) - wide(MeanTensor)) / count / square
        mean = bias.scaled(1 / count)
        terms = Magnitude(gradient) + mean + scale.scaled(change)
        sums, total = _parameter_gradients(
            wide(InputGradientTensor), wide(InputTensor) - wide(MeanTensor), over
        )
        difference = wide(InputGradientTensor) - total / count
        held = np.abs(total) / count + 2 * np.abs(sums * change) + np.abs(difference)
        gradient += mean.sums + centred * scale.sums / count / square
        way = np.fmax(way, greatest_product(gradient, ScaleTensor, 1 / deviation))
        factor = _size(ScaleTensor) / deviation
        magnitude = replace(terms.holding(held), sums=gradient).scaled(factor)
        magnitude = magnitude.overflowing_where(_unbounded(factor, deviation))
        magnitude = magnitude.overflowing_where(overflows(way))
        other = difference - _saturated(sums, OutputScaleGradientTensor) * change
        other *= wide(ScaleTensor) / deviation
        return (
            replace(magnitude, others=(other.astype(OutputGradientTensor.DataType.dtype),)),
            _divided(scale, sums, deviation, OutputScaleGradientTensor),
            bias,
        )


def _parameter_magnitudes(
    tensor: Array, gradient: Array, mean: Array, over: tuple[int, ...], output: TensorDesc
) -> tuple[Magnitude, Magnitude]:
    """Return the magnitudes of the sums of `gradient * (x - mean)` and of the gradient.

    They are held in the type of the outputs. Measured: along dimensions that do not lie side by
    side, FLOAT16 holds the sums along some of them as well.
    """
    slopes, sizes = wide(gradient), _size(gradient)
    products = slopes * (wide(tensor) - wide(mean))
    scale, bias = _parameter_gradients(sizes, _size(tensor) + _size(mean), over)
    held = np.abs(products.sum(over, keepdims=True)) + _partial(products, over)
    of_scale = _held(Magnitude(scale), held, output)
    of_bias = Magnitude(bias, _partial(slopes, over))
    return of_scale, of_bias.overflowing_where(
        overflows(_finite_sum(sizes, over), output.DataType.dtype)
    )


def _partial(terms: Array, over: tuple[int, ...]) -> Array:
    """Return the sizes of the sums along some dimensions, where not all lie side by side."""
    counted = [axis for axis in over if terms.shape[axis] > 1]
    between = range(counted[0], counted[-1]) if counted else ()
    kept = [axis for axis in between if axis not in over and terms.shape[axis] > 1]
    total: Array = np.zeros_like(terms.sum(over, keepdims=True))
    for last in kept[-1:]:
        inner = tuple(axis for axis in counted if axis > last)
        outer = tuple(axis for axis in counted if axis < last)
        for first, second in ((inner, outer), (outer, inner)):
            sums = np.abs(terms.sum(first, keepdims=True)).sum(second, keepdims=True)
            total = np.fmax(total, sums)
    return total


def _parameter_gradients(
    gradient: Array, centred: Array, over: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return the sums of `gradient * centred` and of the gradient."""
    return (gradient * centred).sum(over, keepdims=True), gradient.sum(over, keepdims=True)


def _held(magnitude: Magnitude, sizes: Array, output: TensorDesc) -> Magnitude:
    """Return the magnitude of a sum that is held in the output's type before it is used.

    What is subnormal in FLOAT16 has fewer digits there.
    """
    info = np.finfo(output.DataType.dtype)
    if output.DataType.dtype == np.float16:
        least = float(info.smallest_subnormal) / float(info.eps)
        magnitude = magnitude.holding(np.maximum(sizes, np.where(magnitude.sums > 0, least, 0.0)))
    return magnitude.overflowing_where(magnitude.sums > info.max)


def _divided(held: Magnitude, sums: Array, deviation: Array, output: TensorDesc) -> Magnitude:
    """Return a magnitude over the deviation; dividing does not undo overflow."""
    other = _saturated(sums, output) / deviation
    return replace(held.scaled(1 / deviation), others=(other.astype(output.DataType.dtype),))


def _saturated(sums: Array, output: TensorDesc) -> Array:
    """Return sums that are held in an output's type as its largest number where they are beyond."""
    largest = float(np.finfo(output.DataType.dtype).max)
    return np.where(np.isfinite(sums), np.clip(sums, -largest, largest), sums)


def _finite_sum(sizes: Array, over: tuple[int, ...]) -> Array:
    """Return the sum of what is finite: that it overflows may tell beside an infinity."""
    total: Array = sizes.sum(over, keepdims=True, where=np.isfinite(sizes))
    return total


def _unbounded(factor: Array, deviation: Array) -> Array:
    """Tell where a factor is infinite, or may be since the root of a subnormal number is lost."""
    lost = np.square(deviation) < float(np.finfo(np.float32).tiny)
    return np.isinf(factor) | (lost & (np.abs(factor) > 0))


def _shared(parameter: Array) -> tuple[int, ...]:
    """Return the dimensions along which all elements share a parameter."""
    return tuple(axis for axis, size in enumerate(parameter.shape) if size == 1)


def _count(tensor: Array, over: tuple[int, ...]) -> int:
    return math.prod(tensor.shape[axis] for axis in over)


def _deviation(variance: Array, epsilon: float) -> Array:
    root: Array = np.sqrt(wide(variance) + single(epsilon))
    return root


def _size(tensor: Array) -> Array:
    size: Array = np.abs(tensor, dtype=np.float64)
    return size
