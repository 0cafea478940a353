"""Formulas of wrong results of ONNX Runtime's CPU provider.

The formulas of quantized outputs are in `onnxruntime_quantization`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, activation_of, of_operators
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.regions.outputs import LOWEST, greatest_of_parts
from dmlconf.tensors.datatypes import Array

__all__ = [
    "c_left_out_where_beta_is_0",
    "columns_by_dilated_windows",
    "integer_powers_in_float64",
    "integer_reductions_in_float64",
    "parts_bounded_in_float32",
    "running_sums_of_squares",
    "scale_of_1_for_zeros",
    "scaled_elus_by_products_of_attributes",
    "sums_with_0_left_out",
    "zero_points_subtracted_in_32_bits",
    "zeros_without_sign",
]

_INT32: Final = np.iinfo(np.int32)
_COMBINED: Final[Mapping[str, np.ufunc]] = {
    "SUM": np.add,
    "SUM_SQUARE": np.add,
    "L1": np.add,
    "MULTIPLY": np.multiply,
}


@of_operators(
    *("DIAGONAL_MATRIX", "DIAGONAL_MATRIX1", "ELEMENT_WISE_CLIP_GRAD", "ELEMENT_WISE_CLIP_GRAD1"),
    *("ELEMENT_WISE_IF", "ELEMENT_WISE_NEGATE", "ELEMENT_WISE_ROUND"),
)
def zeros_without_sign(case: Case) -> Computed | None:
    """Return the right outputs plus 0, so that -0 becomes 0."""
    right = evaluate(case)
    real = {name: array for name, array in right.items() if array.dtype.kind == "f"}
    return Computed(
        {**right, **{name: array + array.dtype.type(0) for name, array in real.items()}}
    )


@of_operators("FOLD")
def columns_by_dilated_windows(case: Case) -> Computed | None:
    """Return FOLD's outputs if the elements of a column are numbered over the dilated window.

    For each channel, a column has one element for each window element. With windows {2, 2, 2} and
    Dilations {2, 2, 2}, they are numbered as in windows {3, 3, 3}. Element 3 then has the index (0,
    1, 0) in the window, not (0, 1, 1). Elements beyond the output are left out. None for two
    spatial dimensions.
    """
    desc = case.desc
    rank = desc["DimensionCount"]
    if rank == 2:
        return None
    dilations, strides, start = desc["Dilations"], desc["Strides"], desc["StartPadding"]
    sizes = desc["OutputTensor"].Sizes
    batches, channels, image = sizes[0], sizes[1], sizes[2:]
    dilated = [(n - 1) * step + 1 for n, step in zip(desc["WindowSizes"], dilations, strict=True)]
    counts = [
        (size + before + behind - window) // stride + 1
        for size, before, behind, window, stride in zip(
            image, start, desc["EndPadding"], dilated, strides, strict=True
        )
    ]
    columns = case.inputs()["InputTensor"].reshape(batches, -1, *counts)
    folded = np.zeros(
        (batches, channels * prod(image)), np.promote_types(columns.dtype, np.float32)
    )
    for column in range(columns.shape[1]):
        within = np.unravel_index(column % prod(dilated), dilated)
        first = column // prod(dilated) * prod(image)
        for at in product(*map(range, counts)):
            pixel = [
                n * stride - before + k * dilation
                for n, stride, before, k, dilation in zip(
                    at, strides, start, within, dilations, strict=True
                )
            ]
            if all(0 <= n < size for n, size in zip(pixel, image, strict=True)):
                index = first + np.ravel_multi_index(pixel, image)
                folded[:, index] += columns[:, column].reshape(batches, -1)[
                    :, np.ravel_multi_index(at, counts)
                ]
    return Computed({"OutputTensor": folded.astype(columns.dtype).reshape(sizes)})


@of_operators("DYNAMIC_QUANTIZE_LINEAR")
def scale_of_1_for_zeros(case: Case) -> Computed | None:
    """Return DYNAMIC_QUANTIZE_LINEAR's outputs for an input of zeros: the scale is 1, not 0."""
    if case.inputs()["InputTensor"].any():
        return None
    right = evaluate(case)
    scale = right["OutputScaleTensor"]
    return Computed({**right, "OutputScaleTensor": np.ones_like(scale)})


@of_operators("ELEMENT_WISE_DEQUANTIZE_LINEAR")
def zero_points_subtracted_in_32_bits(case: Case) -> Computed | None:
    """Return ELEMENT_WISE_DEQUANTIZE_LINEAR's outputs if differences of INT32 wrap around."""
    inputs = case.inputs()
    tensor, zero_point = inputs["InputTensor"], inputs.get("ZeroPointTensor")
    if tensor.dtype != np.int32 or zero_point is None:
        return None
    with np.errstate(over="ignore"):
        difference = tensor - zero_point
        real = difference.astype(np.float32) * inputs["ScaleTensor"]
    return Computed({"OutputTensor": real.astype(inputs["ScaleTensor"].dtype)})


@of_operators("ELEMENT_WISE_POW")
def integer_powers_in_float64(case: Case) -> Computed | None:
    """Return INT32 powers if ELEMENT_WISE_POW gives the lowest INT32 for powers beyond INT32."""
    inputs = case.inputs()
    base, exponent = inputs["InputTensor"], inputs["ExponentTensor"]
    if base.dtype != np.int32 or exponent.dtype != np.int32:
        return None
    with np.errstate(all="ignore"):
        power = np.power(base.astype(np.float64), exponent.astype(np.float64))
    held = (power > _INT32.min - 1.0) & (power < _INT32.max + 1.0)
    return Computed({"OutputTensor": np.where(held, power, _INT32.min).astype(np.int32)})


@of_operators("GEMM")
def c_left_out_where_beta_is_0(case: Case) -> Computed | None:
    """Return GEMM's outputs if a Beta of 0 leaves out C, so that NaN and infinity in C are lost."""
    if case.desc["Beta"] != 0 or case.desc["CTensor"] is None:
        return None
    data = {name: each for name, each in case.data.items() if name != "CTensor"}
    without = replace(case, desc={**case.desc, "CTensor": None}, data=data)
    return Computed(evaluate(without), around=without)


@of_operators("REDUCE")
def integer_reductions_in_float64(case: Case) -> Computed | None:
    """Return REDUCE's outputs if sums and products of INT32 and INT64 are computed in FLOAT64.

    Results beyond the type are clamped: 2147483647 + 1 is 2147483647 in INT32.
    """
    desc, tensor = case.desc, case.inputs()["InputTensor"]
    if desc["Function"] not in _COMBINED or tensor.dtype not in (np.int32, np.int64):
        return None
    numbers = tensor.astype(np.float64)
    if desc["Function"] == "L1":
        numbers = np.abs(numbers)
    if desc["Function"] == "SUM_SQUARE":
        numbers = np.square(numbers)
    with np.errstate(over="ignore"):
        reduced = _COMBINED[desc["Function"]].reduce(
            numbers, axis=tuple(desc["Axes"]), keepdims=True
        )
    limits = np.iinfo(tensor.dtype)
    held = (reduced >= limits.min) & (reduced < float(limits.max))
    nearest = np.where(reduced < 0, limits.min, limits.max)
    whole = np.where(held, np.where(held, reduced, 0).astype(tensor.dtype), nearest)
    output = desc["OutputTensor"]
    return Computed({"OutputTensor": whole.astype(output.DataType.dtype).reshape(output.Sizes)})


@of_operators("LOCAL_RESPONSE_NORMALIZATION")
def running_sums_of_squares(case: Case) -> Computed | None:
    """Return the outputs of LOCAL_RESPONSE_NORMALIZATION with a running sum in FLOAT32.

    The sum starts with Bias; squares are multiplied by Alpha / LocalSize. Each channel adds the
    square that enters the window, and subtracts the one that leaves it. Digits that a large square
    rounds away stay lost: for the channels [1e10, 2, -3] with LocalSize 3, the last sum is 0. An
    infinite square leaves NaN. None without CrossChannel.
    """
    desc, tensor = case.desc, case.inputs()["InputTensor"]
    if not desc["CrossChannel"]:
        return None
    size, channels = desc["LocalSize"], tensor.shape[1]
    before, share = (size - 1) // 2, np.float32(desc["Alpha"]) / np.float32(size)
    numbers = tensor.astype(np.float32)
    bases = np.empty_like(numbers)
    with np.errstate(all="ignore"):
        window = [(0, 0)] * tensor.ndim
        window[1] = (before, size - 1 - before)
        squares = share * np.pad(np.square(numbers), window)
        base = np.full_like(numbers[:, 0], desc["Bias"])
        for channel in range(size):
            base = base + squares[:, channel]
        bases[:, 0] = base
        for channel in range(1, channels):
            base = base + squares[:, channel + size - 1] - squares[:, channel - 1]
            bases[:, channel] = base
        normalized = numbers * np.power(bases, np.float32(-desc["Beta"]))
        return Computed({"OutputTensor": normalized.astype(tensor.dtype)})


@of_operators("ELEMENT_WISE_RECIP")
def sums_with_0_left_out(case: Case) -> Computed | None:
    """Return ELEMENT_WISE_RECIP's outputs if a Bias of 0 is not added: -infinity for -0."""
    scale = case.desc["ScaleBias"]
    if scale is None or scale["Bias"] != 0:
        return None
    tensor = case.inputs()["InputTensor"]
    with np.errstate(over="ignore"):
        scaled = tensor * tensor.dtype.type(scale["Scale"])
    without = replace(case, desc={**case.desc, "ScaleBias": None}, data={"InputTensor": scaled})
    return Computed(evaluate(without), around=without)


@of_operators("ROI_POOLING")
def parts_bounded_in_float32(case: Case) -> Computed | None:
    """Return ROI_POOLING's outputs if the bounds of parts are FLOAT32 numbers.

    Part i of a region begins at floor(i * (extent / parts)), not at floor((i * extent) / parts). Of
    7,525 columns in 8,209 parts, part 8,185 begins at 7,503, not at 7,502.
    """
    desc, inputs = case.desc, case.inputs()
    regions = inputs["InputTensor"], inputs["ROITensor"], desc["SpatialScale"], desc["PooledSize"]
    pooled = greatest_of_parts(*regions, LOWEST, _parts_in_float32)
    dtype = desc["OutputTensor"].DataType.dtype
    return Computed({"OutputTensor": np.maximum(pooled, np.finfo(dtype).min).astype(dtype)})


def _parts_in_float32(first: Array, last: Array, parts: int, size: int) -> tuple[Array, Array]:
    """Return the first index and the number of elements of each part of each region."""
    extent = np.maximum(last - first + 1, 1)[:, np.newaxis].astype(np.float32)
    width, part = extent / np.float32(parts), np.arange(parts + 1).astype(np.float32)
    begin = np.floor(part[:-1] * width).astype(np.int64) + first[:, np.newaxis]
    end = np.ceil(part[1:] * width).astype(np.int64) + first[:, np.newaxis]
    begin, end = np.clip(begin, 0, size), np.clip(end, 0, size)
    return begin, np.maximum(end - begin, 0)


def scaled_elus_by_products_of_attributes(case: Case) -> Computed | None:
    """Return a scaled ELU, alone or fused, as `(Gamma * Alpha) * (exp(x) - 1)` for x <= 0.

    If Gamma * Alpha is infinite, -0.1 becomes an infinity, and 0 becomes NaN. None if it is finite,
    or if there is no scaled ELU of floating-point numbers.
    """
    name, before = activation_of(case)
    if name != "ACTIVATION_SCALED_ELU" or before is None or before.dtype.kind != "f":
        return None
    attributes = case.desc.get("FusedActivation") or case.desc
    with np.errstate(all="ignore"):
        factor = np.float32(attributes["Alpha"]) * np.float32(attributes["Gamma"])
        scaled = factor * (np.exp(before.astype(np.float32)) - np.float32(1))
    if np.isfinite(factor):
        return None
    right = evaluate(case)["OutputTensor"]
    return Computed({"OutputTensor": np.where(before <= 0, scaled.astype(right.dtype), right)})
