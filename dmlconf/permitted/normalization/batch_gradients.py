"""Permitted errors of BATCH_NORMALIZATION_GRAD and BATCH_NORMALIZATION_TRAINING_GRAD."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.normalization.gradient_overflows import OverflowingGradients
from dmlconf.permitted.normalization.gradient_spans import GradientInputs
from dmlconf.permitted.normalization.mean_variance import exact_mean
from dmlconf.permitted.normalization.parameters import unbounded, variance_overflows
from dmlconf.permitted.normalization.spans import parts_of
from dmlconf.permitted.numbers.error_scale import ErrorScale, quantum_of, store_sizes
from dmlconf.permitted.numbers.rounding import (
    STEP,
    finite_sum,
    greatest_product,
    overflows,
    sizes_of,
    underflow_error,
)
from dmlconf.permitted.numbers.terms import steps_beside_sum, terms_vary
from dmlconf.reference.fields import of_fields
from dmlconf.reference.normalization.batch_gradients import (
    BatchNormalizationGradDesc,
    elements_over,
    parameter_gradients,
)
from dmlconf.reference.normalization.parameters import deviation_of, shared_dimensions
from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LEAST_NORMAL_FLOAT32

__all__ = [
    "batch_normalization_grad_error_scale",
    "batch_normalization_training_grad_error_scale",
]


@of_fields(BatchNormalizationGradDesc)
def batch_normalization_grad_error_scale(
    desc: BatchNormalizationGradDesc,
) -> tuple[ErrorScale, ErrorScale, ErrorScale]:
    """Return the error scales of the gradients for the input, the scale and the bias.

    They are the gradients' formulas with absolute values. Measured: kernels with FLOAT16 outputs
    store the sum for the scale in FLOAT16 before they divide it by the deviation.

    Derived in docs/bounds.md, Gradients of normalisation.
    """
    with np.errstate(all="ignore"):
        over = shared_dimensions(desc.ScaleTensor)
        gradient, deviation = (
            sizes_of(desc.InputGradientTensor),
            deviation_of(desc.VarianceTensor, desc.Epsilon),
        )
        scale, bias = _parameter_error_scales(desc)
        size = sizes_of(desc.ScaleTensor)
        # Measured: scale / deviation may come first, and overflow whatever the gradient is.
        largest = np.maximum(
            greatest_product(gradient, size, 1 / deviation), greatest_product(size, 1 / deviation)
        )
        vanishing = _vanishes(gradient * size, gradient / deviation, size / deviation)
        # A subnormal quotient has few digits. Measured: 1.4e-45 / 1.58 is 1.4e-45.
        fewer_digits = underflow_error(gradient, size, 1 / deviation) / STEP
        gradient *= size / deviation
        gradient += fewer_digits
        exact = wide(desc.InputGradientTensor) * (wide(desc.ScaleTensor) / deviation)
        right = exact.astype(desc.OutputGradientTensor.DataType.dtype)
        error_scale = ErrorScale(
            gradient,
            overflows=overflows(largest) | (vanishing & np.isinf(gradient)),
        )
        limits = _overflowing(desc, deviation)
        error_scale = limits.of_input(error_scale, vanishing & np.isinf(gradient))
        # A variance that overflows with Epsilon makes every gradient 0.
        zero = vanishing | variance_overflows(desc.VarianceTensor, desc.Epsilon)
        if zero.any():
            error_scale = error_scale.with_others([np.where(zero, 0, right)], right.dtype)
        centred = wide(desc.InputTensor) - wide(desc.MeanTensor)
        sums, _ = parameter_gradients(wide(desc.InputGradientTensor), centred, over)
        of_scale = _scale_gradient(desc, scale, sums, centred, deviation)
        if desc.OutputScaleGradientTensor.DataType.dtype == np.float16:
            inputs = _inputs(desc)
            of_scale = of_scale.spanned(inputs.of_scale())
        return error_scale, limits.of_scale(of_scale), limits.of_bias(bias)


def _overflowing(desc: BatchNormalizationGradDesc, deviation: Array) -> OverflowingGradients:
    return OverflowingGradients(
        gradient=wide(desc.InputGradientTensor),
        values=wide(desc.InputTensor),
        mean=wide(desc.MeanTensor),
        scale=wide(desc.ScaleTensor),
        deviation=deviation,
        over=shared_dimensions(desc.ScaleTensor),
        dtype=desc.OutputGradientTensor.DataType.dtype,
    )


def _vanishes(*intermediates: Array) -> Array:
    """Return for which elements one of the intermediates is subnormal, and may be flushed to 0.

    Source: Direct3D 11.3 functional specification, 3.1: subnormal results are flushed.
    """
    vanishing: Array = np.zeros((), bool)
    for size in intermediates:
        vanishing = vanishing | ((size > 0) & (size < LEAST_NORMAL_FLOAT32))
    return vanishing


@of_fields(BatchNormalizationGradDesc)
def batch_normalization_training_grad_error_scale(
    desc: BatchNormalizationGradDesc,
) -> tuple[ErrorScale, ErrorScale, ErrorScale]:
    """Return the error scales of the three gradients if mean and variance depend on the input.

    They are the formulas of the gradients for the input, the scale and the bias with absolute
    values. Kernels may store the sums, the means, the terms and the differences of terms in
    FLOAT16.

    Derived in docs/bounds.md, Gradients of normalisation.
    """
    over = shared_dimensions(desc.ScaleTensor)
    with np.errstate(all="ignore"):
        gradient = sizes_of(desc.InputGradientTensor)
        centred = sizes_of(desc.InputTensor) + sizes_of(desc.MeanTensor)
        scale, bias = _parameter_error_scales(desc)
        deviation = deviation_of(desc.VarianceTensor, desc.Epsilon)
        count = elements_over(desc.InputTensor, over)
        square = np.square(deviation)
        # A kernel may multiply by the scale and divide by the deviation before it adds up.
        factors = desc.ScaleTensor, 1 / deviation
        one = np.ones(())
        largest = greatest_product(one, centred, scale.sums / count, 1 / square, *factors)
        from_mean = wide(desc.InputTensor) - wide(desc.MeanTensor)
        change = from_mean / count / square
        mean = bias.scaled(1 / count)
        terms = ErrorScale(gradient) + mean + scale.scaled(change)
        sums, total = parameter_gradients(wide(desc.InputGradientTensor), from_mean, over)
        difference = wide(desc.InputGradientTensor) - total / count
        exact = exact_mean(desc.InputGradientTensor, total / count, bias.sums)
        held = store_sizes(total / count, exact)
        held = held + store_sizes(difference, exact & (held == 0))
        held = held + store_sizes(sums * change) + np.abs(sums * change)
        gradient += mean.sums + centred * scale.sums / count / square
        gradient += _underflow_of_terms(desc, difference, sums, count, deviation) / STEP
        largest = np.fmax(largest, greatest_product(gradient, desc.ScaleTensor, 1 / deviation))
        factor = sizes_of(desc.ScaleTensor) / deviation
        error_scale = replace(terms.holding(held), sums=gradient).scaled(factor)
        growth = factor * np.fmax(1.0, np.abs(change))
        error_scale = error_scale.growing(growth, (difference - sums * change) * factor)
        error_scale = error_scale.overflowing_where(unbounded(factor, deviation))
        error_scale = error_scale.overflowing_where(overflows(largest))
        # A kernel may take the sums as it stores them in the other outputs.
        dtype = desc.OutputGradientTensor.DataType.dtype
        of_products = _saturated(sums, desc.OutputScaleGradientTensor) * change
        others = [
            (wide(desc.InputGradientTensor) - of_gradients / count - of_products)
            * (wide(desc.ScaleTensor) / deviation)
            for of_gradients in (total, _saturated(total, desc.OutputBiasGradientTensor))
        ]
        limits = _overflowing(desc, deviation)
        exact_gradient = (difference - sums * change) * (wide(desc.ScaleTensor) / deviation)
        error_scale = limits.of_input_in_training(error_scale, exact_gradient, others)
        error_scale = error_scale.with_others(others, dtype)
        of_scale = _scale_gradient(desc, scale, sums, from_mean, deviation)
        if dtype == np.float16:
            inputs = _inputs(desc)
            of_scale = of_scale.spanned(inputs.of_scale())
            error_scale = error_scale.spanned(*inputs.of_input(exact))
        return error_scale, limits.of_scale(of_scale), limits.of_bias(bias)


def _underflow_of_terms(
    desc: BatchNormalizationGradDesc, difference: Array, sums: Array, count: int, deviation: Array
) -> Array:
    """Return the error that subnormal products cause in the terms before they are scaled."""
    centred = wide(desc.InputTensor) - wide(desc.MeanTensor)
    at_end = desc.ScaleTensor, 1 / deviation
    change = np.abs(centred) / count / np.square(deviation)
    products = underflow_error(desc.InputGradientTensor, centred)
    error = products.sum(shared_dimensions(desc.ScaleTensor), keepdims=True) * change
    share = np.asarray(1 / count)
    for factors in (difference,), (sums, centred, share, 1 / np.square(deviation)):
        whole = underflow_error(*factors, *at_end)
        factor = sizes_of(desc.ScaleTensor) / deviation
        error = error + np.where(whole > 0, whole / factor, 0.0)
    return np.where(np.isfinite(error), error, 0.0)


def _inputs(desc: BatchNormalizationGradDesc) -> GradientInputs:
    return GradientInputs(
        desc.InputTensor,
        desc.InputGradientTensor,
        desc.MeanTensor,
        desc.ScaleTensor,
        deviation_of(desc.VarianceTensor, desc.Epsilon),
        shared_dimensions(desc.ScaleTensor),
    )


def _parameter_error_scales(
    desc: BatchNormalizationGradDesc,
) -> tuple[ErrorScale, ErrorScale]:
    """Return the error scales of two sums: that of `gradient * (x - mean)` and that of `gradient`.

    The first is stored in the type of the outputs before it is used. Measured: if the dimensions
    are not adjacent, sums along some of them are stored in FLOAT16 as well.
    """
    tensor, gradient, mean = desc.InputTensor, desc.InputGradientTensor, desc.MeanTensor
    over, output = shared_dimensions(desc.ScaleTensor), desc.OutputBiasGradientTensor
    slopes, sizes = wide(gradient), sizes_of(gradient)
    products = slopes * (wide(tensor) - wide(mean))
    scale, bias = parameter_gradients(sizes, sizes_of(tensor) + sizes_of(mean), over)
    quantum = quantum_of(gradient)
    exact = scale <= quantum * min(quantum_of(tensor), quantum_of(mean)) * 2.0**24
    held = store_sizes(products.sum(over, keepdims=True), exact)
    sums = np.abs(products).sum(over, keepdims=True)
    sums = sums + steps_beside_sum(4 * scale + 8 * sums, elements_over(tensor, over))
    stored = held + _partial_sizes(products, over, exact)
    of_scale = _stored_before_use(ErrorScale(scale), stored, output)
    of_scale = replace(of_scale.at_most(sums), terms_vary=terms_vary(products, over))
    # A subnormal product has few digits.
    lost = underflow_error(gradient, wide(tensor) - wide(mean)).sum(over, keepdims=True)
    of_scale = replace(of_scale, sums=of_scale.sums + lost / STEP)
    partial = _partial_sizes(slopes, over, bias <= quantum * 2.0**24)
    of_bias = ErrorScale(bias, partial, quantum=quantum, terms_vary=terms_vary(gradient, over))
    return of_scale, of_bias.overflowing_where(
        overflows(finite_sum(sizes, over, keepdims=True), output.DataType.dtype)
    )


def _partial_sizes(terms: Array, over: tuple[int, ...], exact: Array) -> Array:
    """Return the sizes of partial sums stored in FLOAT16; 0 if the dimensions are adjacent."""
    total: Array = np.zeros_like(terms.sum(over, keepdims=True))
    for first, second in parts_of(over, terms.shape):
        sums = store_sizes(terms.sum(first, keepdims=True), exact).sum(second, keepdims=True)
        total = np.fmax(total, sums)
    return total


def _stored_before_use(error_scale: ErrorScale, sizes: Array, output: TensorDesc) -> ErrorScale:
    """Return the error scale of a sum that is stored in the type of `output` before it is used."""
    info = np.finfo(output.DataType.dtype)
    if output.DataType.dtype == np.float16:
        error_scale = error_scale.holding(np.where(error_scale.sums > 0, sizes, 0.0))
    return error_scale.overflowing_where(error_scale.sums > info.max)


def _scale_gradient(
    desc: BatchNormalizationGradDesc,
    held: ErrorScale,
    sums: Array,
    centred: Array,
    deviation: Array,
) -> ErrorScale:
    """Return the error scale of the gradient for the scale, the quotient of `sums` and `deviation`.

    `held` is the error scale of `sums`, and `centred` is `x - mean`.
    """
    output = desc.OutputScaleGradientTensor
    of_scale = _divided(held, sums, deviation, output)
    zero = variance_overflows(desc.VarianceTensor, desc.Epsilon)
    if zero.any():
        quotients = np.where(zero, 0.0, sums / deviation)
        of_scale = of_scale.with_others([quotients], output.DataType.dtype)
    # The difference x - mean may overflow before the gradient makes it small.
    beyond = overflows(greatest_product(np.abs(centred), 1 / deviation))
    if not beyond.any():
        return of_scale
    over = shared_dimensions(desc.ScaleTensor)
    return of_scale.overflowing_where(np.asarray(beyond.any(over, keepdims=True)))


def _divided(held: ErrorScale, sums: Array, deviation: Array, output: TensorDesc) -> ErrorScale:
    """Return the error scale of sums divided by the deviation.

    The quotients of `_saturated` sums are right too, as is NaN if a sum that is stored as 0 is
    divided by 0.
    """
    dtype = output.DataType.dtype
    other = _saturated(sums, output) / deviation
    info = np.finfo(dtype)
    least = info.smallest_subnormal if dtype == np.float16 else info.tiny
    other = np.where((deviation == 0) & (np.abs(sums) < least), np.nan, other)
    others = (other.astype(dtype),)
    scale = replace(held.scaled(1 / deviation), others=others, terms_vary=held.terms_vary)
    scale = scale.growing(1 / deviation, sums / deviation)
    beyond = overflows(held.sums)
    return scale.overflowing_where(beyond) if beyond.any() else scale


def _saturated(sums: Array, output: TensorDesc) -> Array:
    """Return the sums, limited to the largest number of an output's type; infinities stay."""
    largest = float(np.finfo(output.DataType.dtype).max)
    return np.where(np.isfinite(sums), np.clip(sums, -largest, largest), sums)
