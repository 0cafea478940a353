"""Quantized outputs of ONNX Runtime's providers that are rounded or bounded in another way."""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.quantization.arithmetic import centred
from dmlconf.reference.quantization.windows import by_channel
from dmlconf.reference.windows.sliding import elements, sums, windows
from dmlconf.tensors.datatypes import Array

__all__ = [
    "greatest_for_least_of_negative_scales",
    "infinite_sums_as_the_least_integer",
    "zero_point_before_rounding",
]


@of_operators("ELEMENT_WISE_QUANTIZED_LINEAR_ADD")
def infinite_sums_as_the_least_integer(case: Case) -> Computed | None:
    """Return what a quantized sum gives if an infinite one is the least integer."""
    right = evaluate(case)["OutputTensor"]
    least = np.iinfo(right.dtype).min
    infinite = np.isposinf(_quantized_sum(case)[0])
    return Computed({"OutputTensor": np.where(infinite, right.dtype.type(least), right)})


@of_operators(
    *("ELEMENT_WISE_QUANTIZED_LINEAR_ADD", "ELEMENT_WISE_QUANTIZE_LINEAR", "QUANTIZE"),
    "QUANTIZED_LINEAR_AVERAGE_POOLING",
)
def zero_point_before_rounding(case: Case) -> Computed | None:
    """Return what a quantized operator gives if it rounds after it adds the zero point.

    2.5 with the zero point 1 becomes round(3.5) = 4, not round(2.5) + 1 = 3, since halves are
    rounded to the even number.
    """
    quotient, zero_point = _QUOTIENTS[case.operator_name](case)
    if zero_point is None or not np.isfinite(quotient).all():
        return None
    limits = np.iinfo(zero_point.dtype)
    whole = np.clip(np.rint(quotient + zero_point), limits.min, limits.max)
    return Computed({"OutputTensor": whole.astype(zero_point.dtype)})


@of_operators("ELEMENT_WISE_QUANTIZE_LINEAR", "QUANTIZE")
def greatest_for_least_of_negative_scales(case: Case) -> Computed | None:
    """Return what is right but for integers below the least where the scale is negative.

    They are the greatest, not the least: 5 with the scale -1 and the zero point 0 is 255 as UINT8.
    """
    quotient, zero_point = _QUOTIENTS[case.operator_name](case)
    right = evaluate(case)["OutputTensor"]
    limits = np.iinfo(right.dtype)
    zero = 0 if zero_point is None else zero_point
    with np.errstate(invalid="ignore"):
        below = (np.rint(quotient) + zero < limits.min) & (_scales(case) < 0)
    return Computed({"OutputTensor": np.where(below, right.dtype.type(limits.max), right)})


def _scales(case: Case) -> Array:
    """Return the scale of each element that ELEMENT_WISE_QUANTIZE_LINEAR or QUANTIZE has."""
    inputs = case.inputs()
    scale = inputs.get("ScaleTensor", inputs.get("QuantizationTensors[0]"))
    assert scale is not None
    return _of_blocks(scale, inputs["InputTensor"].shape)


def _of_blocks(tensor: Array, sizes: tuple[int, ...]) -> Array:
    """Return a tensor whose elements each belong to a block, with one for each element."""
    for axis, size in enumerate(sizes):
        tensor = np.repeat(tensor, size // tensor.shape[axis], axis)
    return tensor


def _single_quotient(case: Case) -> tuple[Array, Array | None]:
    """Return the quotients of ELEMENT_WISE_QUANTIZE_LINEAR or QUANTIZE, and its zero points."""
    inputs = case.inputs()
    zero_point = inputs.get("ZeroPointTensor", inputs.get("QuantizationTensors[1]"))
    tensor = inputs["InputTensor"]
    with np.errstate(all="ignore"):
        quotient = tensor.astype(np.float32) / _scales(case).astype(np.float32)
    return quotient, None if zero_point is None else _of_blocks(zero_point, tensor.shape)


def _quantized_sum(case: Case) -> tuple[Array, Array | None]:
    """Return the quotients of ELEMENT_WISE_QUANTIZED_LINEAR_ADD, and its zero point."""
    inputs = case.inputs()
    total = np.zeros((), np.float32)
    with np.errstate(all="ignore"):
        for name in "AB":
            zero_point = inputs.get(f"{name}ZeroPointTensor", np.zeros((), np.int8))
            difference = inputs[f"{name}Tensor"].astype(np.float32) - zero_point.astype(np.float32)
            total = total + difference * inputs[f"{name}ScaleTensor"]
        quotient = total / inputs["OutputScaleTensor"]
    return quotient, inputs.get("OutputZeroPointTensor")


def _quantized_mean(case: Case) -> tuple[Array, Array | None]:
    """Return the quotients of QUANTIZED_LINEAR_AVERAGE_POOLING, and its zero points."""
    desc, inputs = case.desc, case.inputs()
    tensor, zero_point = inputs["InputTensor"], inputs.get("InputZeroPointTensor")
    spatial = (desc[name] for name in ("Strides", "WindowSize", "StartPadding", "Dilations"))
    over = windows(tensor.shape, desc["OutputTensor"].Sizes, *spatial)
    counted = prod(desc["WindowSize"]) if desc["IncludePadding"] else elements(over)
    scale, output_scale = inputs["InputScaleTensor"], inputs["OutputScaleTensor"]
    with np.errstate(all="ignore"):
        total = sums(centred(tensor, by_channel(zero_point, tensor.ndim)), over)
        mean = total * by_channel(scale, tensor.ndim) / counted
        quotient = (mean / by_channel(output_scale, tensor.ndim)).astype(np.float32)
    return quotient, by_channel(inputs.get("OutputZeroPointTensor"), tensor.ndim)


_QUOTIENTS: Final = {
    "ELEMENT_WISE_QUANTIZE_LINEAR": _single_quotient,
    "ELEMENT_WISE_QUANTIZED_LINEAR_ADD": _quantized_sum,
    "QUANTIZE": _single_quotient,
    "QUANTIZED_LINEAR_AVERAGE_POOLING": _quantized_mean,
}
"""What gives the numbers that are rounded, and the zero points that are added, by operator."""
