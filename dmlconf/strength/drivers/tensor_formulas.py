"""Effects of driver defects: wrong formulas of normalizations, softmax and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.strength.drivers.computation import Arrays, Computation, Effect, Settings
from dmlconf.strength.drivers.effects import ranked
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["TENSOR_FORMULAS"]

_Statistics = Callable[[Array, tuple[int, ...]], tuple[Array, Array]]
"""Returns the mean and the variance along some axes; they broadcast to the tensor's sizes."""


def _axes(right: Computation) -> tuple[int, ...]:
    desc = right.desc
    rank = desc["InputTensor"].DimensionCount
    if "Axes" in desc:
        return tuple(dict.fromkeys(desc["Axes"]))
    if "CrossChannel" in desc:
        return tuple(range(1 if desc["CrossChannel"] else 2, rank))
    return (rank - 1,)


def _normalized(
    right: Computation,
    statistics: _Statistics,
    axes: tuple[int, ...],
    *,
    epsilon_inside: bool = True,
) -> Arrays | None:
    desc, source = right.desc, right.inputs["InputTensor"]
    if desc.get("FusedActivation") is not None:
        return None
    shape, epsilon = source.shape, desc["Epsilon"]
    with np.errstate(all="ignore"):
        mean, variance = statistics(source, axes)
        centred = source.astype(np.float64)
        if desc.get("UseMean", True):
            centred = centred - mean
        if desc.get("NormalizeVariance", desc.get("UseVariance", True)):
            deviation = np.sqrt(variance + (epsilon if epsilon_inside else 0))
            centred = centred / (deviation if epsilon_inside else deviation + epsilon)
        for name, combine in (("ScaleTensor", np.multiply), ("BiasTensor", np.add)):
            array = right.inputs.get(name)
            if array is not None:
                centred = combine(centred, np.broadcast_to(array, shape).astype(np.float64))
        return {"OutputTensor": centred.astype(right.outputs["OutputTensor"].dtype)}


def _normalization(statistics: _Statistics) -> Effect:
    return lambda right, settings: _normalized(right, statistics, _axes(right))


def _exact_statistics(source: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    x = source.astype(np.float64)
    return x.mean(axes, keepdims=True), x.var(axes, keepdims=True)


def _each_alone(source: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    return source.astype(np.float64), np.zeros(source.shape)


def _variance_in_float16(source: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    mean, variance = _exact_statistics(source, axes)
    return mean, variance.astype(np.float16).astype(np.float64)


def _mean_in_float16(source: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Compute the mean by adding up elements one after the other in FLOAT16."""
    count = int(np.prod([source.shape[axis] for axis in axes]))
    moved = np.moveaxis(source, axes, range(-len(axes), 0))
    rows = moved.reshape(*moved.shape[: moved.ndim - len(axes)], -1).astype(np.float16)
    total = np.zeros(rows.shape[:-1], np.float16)
    for i in range(rows.shape[-1]):
        total = (total + rows[..., i]).astype(np.float16)
    mean = (total / np.float16(count)).astype(np.float64)
    mean = np.expand_dims(mean, axes)
    x = source.astype(np.float64)
    return mean, ((x - mean) ** 2).mean(axes, keepdims=True)


def _square_sum_in_float16(source: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Return an infinite mean of squares where their sum overflows FLOAT16."""
    x = source.astype(np.float64)
    mean = np.square(x).mean(axes, keepdims=True)
    count = source.size // mean.size
    return np.zeros(()), np.where(mean * count > np.finfo(np.float16).max, np.inf, mean)


def _unbiased(source: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    mean, variance = _exact_statistics(source, axes)
    count = int(np.prod([source.shape[axis] for axis in axes]))
    return mean, variance * (count / max(count - 1, 1))


def _from_mean_of_squares(source: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    x = source.astype(np.float32)
    mean = x.mean(axes, keepdims=True, dtype=np.float32)
    squares = np.square(x).mean(axes, keepdims=True, dtype=np.float32)
    return mean.astype(np.float64), np.maximum(squares - mean * mean, 0).astype(np.float64)


def _statistics_of_first(right: Computation, settings: Settings) -> Arrays | None:
    def statistics(source: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
        moved = np.moveaxis(source, axes, range(-len(axes), 0)).astype(np.float64)
        rows = moved.reshape(*moved.shape[: moved.ndim - len(axes)], -1)
        rows = rows[..., : settings["elements"]]
        return tuple(np.expand_dims(f(-1), axes) for f in (rows.mean, rows.var))  # type: ignore[return-value] # There are two.

    return _normalized(right, statistics, _axes(right))


def _first_axis_not_reduced(right: Computation, settings: Settings) -> Arrays | None:
    axes = tuple(axis for axis in _axes(right) if axis)
    return _normalized(right, _exact_statistics if axes else _each_alone, axes)


def _epsilon_outside_root(right: Computation, settings: Settings) -> Arrays | None:
    if "VarianceTensor" in right.inputs:
        variance = right.inputs["VarianceTensor"].astype(np.float64)
        epsilon = right.desc["Epsilon"]
        with np.errstate(all="ignore"):
            other = (np.sqrt(variance) + epsilon) ** 2 - epsilon
        other = np.where(np.isfinite(other), other, variance)
        return right.again({"VarianceTensor": other.astype(right.inputs["VarianceTensor"].dtype)})
    return _normalized(right, _exact_statistics, _axes(right), epsilon_inside=False)


def _unbiased_output_variance(right: Computation, settings: Settings) -> Arrays | None:
    variance = right.outputs["OutputVarianceTensor"]
    count = right.inputs["InputTensor"].size // max(variance.size, 1)
    if count < 2:
        return None
    return {"OutputVarianceTensor": (variance * (count / (count - 1))).astype(variance.dtype)}


def _training_squares_in_float16(right: Computation, settings: Settings) -> Arrays | None:
    """Return infinite variances and the bias as output where sums of squares overflow FLOAT16."""
    source, variance = right.inputs["InputTensor"], right.outputs["OutputVarianceTensor"]
    axes = tuple(axis for axis, size in enumerate(variance.shape) if size == 1)
    x = source.astype(np.float64)
    squares = np.square(x - x.mean(axes, keepdims=True)).sum(axes, keepdims=True)
    overflow = squares > float(np.finfo(np.float16).max)
    outputs = {"OutputVarianceTensor": np.where(overflow, variance.dtype.type(np.inf), variance)}
    if right.desc.get("FusedActivation") is None and "FusedAddTensor" not in right.inputs:
        output = right.outputs["OutputTensor"]
        bias = np.broadcast_to(right.inputs["BiasTensor"], output.shape)
        outputs["OutputTensor"] = np.where(overflow, bias, output).astype(output.dtype)
    return outputs


def _softmax(
    right: Computation, precision: Any, elements: int | None = None, *, shifted: bool = True
) -> Arrays | None:
    source, axes = right.inputs["InputTensor"], _axes(right)
    with np.errstate(all="ignore"):
        x = source.astype(precision)
        if shifted:
            x = x - x.max(axes, keepdims=True)
        powers = np.exp(x)
        counted = powers
        if elements is not None:
            if len(axes) > 1:
                return None
            counted = np.take(powers, range(min(elements, powers.shape[axes[0]])), axes[0])
        total = counted.sum(axes, keepdims=True, dtype=precision)
        shares = powers / total
        if "LOG" in right.case.operator_name:
            shares = x - np.log(total) if shifted else np.log(shares)
        return {"OutputTensor": shares.astype(right.outputs["OutputTensor"].dtype)}


def _hardmax_of_all_equal(right: Computation, settings: Settings) -> Arrays | None:
    source = right.inputs["InputTensor"]
    maxima = source == source.max(_axes(right), keepdims=True)
    return {"OutputTensor": maxima.astype(right.outputs["OutputTensor"].dtype)}


def _log_sum_exp(right: Computation, settings: Settings) -> Arrays | None:
    source, output = right.inputs["InputTensor"], right.outputs["OutputTensor"]
    with np.errstate(all="ignore"):
        result = np.log(np.exp(source).sum(_axes(right), keepdims=True, dtype=source.dtype))
    return {"OutputTensor": result.reshape(output.shape).astype(output.dtype)}


def _squares_in_float16(right: Computation, settings: Settings) -> Arrays | None:
    output = right.outputs["OutputTensor"]
    square = output.astype(np.float64) ** 2
    result = np.where(square > 65504, np.inf, np.where(square < 2.0**-25, 0, output))
    return {"OutputTensor": np.where(np.isnan(output), output, result).astype(output.dtype)}


def _full_sequences(right: Computation, settings: Settings) -> Arrays | None:
    lengths, source = right.inputs["SequenceLengthsTensor"], right.inputs["InputTensor"]
    steps = source.shape[right.desc["Axis"]] if "Axis" in right.desc else source.shape[-3]
    return right.again({"SequenceLengthsTensor": np.full_like(lengths, steps)})


def _alpha_on_everything(right: Computation, settings: Settings) -> Arrays | None:
    return right.again(desc={"Beta": right.desc["Alpha"] * right.desc["Beta"]})


def _activation_before_bias(right: Computation, settings: Settings) -> Arrays | None:
    """Add the bias after the fused activation."""
    activated = right.again(desc={"CTensor": None})
    if activated is None:
        return None
    product = activated["OutputTensor"]
    with np.errstate(all="ignore"):
        total = product + right.inputs["CTensor"] * np.float64(right.desc["Beta"])
        return {"OutputTensor": np.asarray(total.astype(product.dtype))}


def _mask_open(right: Computation, settings: Settings) -> Arrays | None:
    mask = right.inputs["MaskTensor"]
    if right.desc["MaskType"] == "BOOLEAN":
        return right.again({"MaskTensor": np.ones_like(mask)})
    if right.desc["MaskType"] == "KEY_SEQUENCE_LENGTH":
        return right.again({"MaskTensor": np.full_like(mask, 1 << 20)})
    return None


def _padded_with_zeros(right: Computation, settings: Settings) -> Arrays | None:
    """Recompute the output for an input that has zeros as padding."""
    desc, source = right.desc, right.inputs["InputTensor"]
    start, end = desc["StartPadding"], desc["EndPadding"]
    if max((*start, *end)) == 0:
        return None
    border = [(0, 0)] * (source.ndim - len(start)) + list(zip(start, end, strict=True))
    padded = np.pad(source, border)
    tensor: TensorDesc = replace(desc["InputTensor"], Sizes=padded.shape, Strides=None)
    nothing = (0,) * len(start)
    result = right.again(
        {"InputTensor": padded},
        {"InputTensor": tensor, "StartPadding": nothing, "EndPadding": nothing},
    )
    return result and {"OutputTensor": result["OutputTensor"]}


def _indices_within_channel(right: Computation, settings: Settings) -> Arrays | None:
    indices = right.outputs["OutputIndicesTensor"]
    spatial = int(np.prod(right.inputs["InputTensor"].shape[2:]))
    result = indices % indices.dtype.type(spatial)
    return None if (result == indices).all() else {"OutputIndicesTensor": result}


def _gradient_to_first_and_last(right: Computation, settings: Settings) -> Arrays | None:
    """Give the gradient to the last of equal elements as well as to the first."""
    name, first = next(iter(right.outputs.items()))
    source = right.inputs["InputTensor"]
    if source.size > 1 << 23 or np.isnan(source).any():
        return None
    tensor: TensorDesc = replace(right.desc["InputTensor"], DataType=DataType.FLOAT32)
    ranks = ranked(source, last_is_greater=True)
    outputs = right.again({"InputTensor": ranks}, {"InputTensor": tensor})
    if outputs is None:
        return None
    last = outputs[name]
    return {name: np.where(last == first, first, first + last).astype(first.dtype)}


def _scatter_adds(right: Computation, settings: Settings) -> Arrays | None:
    source, output = right.inputs["InputTensor"], right.outputs["OutputTensor"]
    with np.errstate(all="ignore"):
        return {"OutputTensor": np.where(output != source, output + source, output)}


def _last_update_lost(right: Computation, settings: Settings) -> Arrays | None:
    updates = right.inputs["UpdatesTensor"].copy()
    last = updates.ravel()[-1:]
    updates.flat[-1] = 0 if last[0] != 0 else 1
    other = right.again({"UpdatesTensor": updates})
    if other is None:
        return None
    output = right.outputs["OutputTensor"]
    touched = other["OutputTensor"] != output
    return {"OutputTensor": np.where(touched, right.inputs["InputTensor"], output)}


def _elements_repeated(right: Computation, settings: Settings) -> Arrays | None:
    array = right.inputs["InputTensor"]
    for axis, times in enumerate(right.desc["Repeats"]):
        array = np.repeat(array, times, axis)
    return {"OutputTensor": array}


TENSOR_FORMULAS: Final[Mapping[str, Effect]] = {
    "activation_before_bias": _activation_before_bias,
    "alpha_on_everything": _alpha_on_everything,
    "elements_repeated": _elements_repeated,
    "epsilon_outside_root": _epsilon_outside_root,
    "first_axis_not_reduced": _first_axis_not_reduced,
    "full_sequences": _full_sequences,
    "gradient_to_first_and_last": _gradient_to_first_and_last,
    "hardmax_of_all_equal": _hardmax_of_all_equal,
    "indices_within_channel": _indices_within_channel,
    "last_update_lost": _last_update_lost,
    "log_sum_exp_naive": _log_sum_exp,
    "mask_open": _mask_open,
    "maximum_with_zero_padding": _padded_with_zeros,
    "mean_in_float16": _normalization(_mean_in_float16),
    "padding_without_zero_point": _padded_with_zeros,
    "scatter_adds": _scatter_adds,
    "softmax_in_float16": lambda right, _: _softmax(right, np.float16),
    "softmax_of_first": lambda right, settings: _softmax(right, np.float64, settings["elements"]),
    "softmax_without_maximum": lambda right, _: _softmax(
        right, right.outputs["OutputTensor"].dtype, shifted=False
    ),
    "squares_in_float16": _squares_in_float16,
    "square_sum_in_float16": _normalization(_square_sum_in_float16),
    "statistics_of_first": _statistics_of_first,
    "training_squares_in_float16": _training_squares_in_float16,
    "unbiased_output_variance": _unbiased_output_variance,
    "unbiased_variance": _normalization(_unbiased),
    "variance_about_mean": _normalization(_exact_statistics),
    "variance_in_float16": _normalization(_variance_in_float16),
    "variance_of_squares": _normalization(_from_mean_of_squares),
}
