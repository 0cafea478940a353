"""Formulas of quantized outputs that ONNX Runtime's providers round or clamp in another way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.reference.evaluation import arguments, evaluate
from dmlconf.reference.quantization.arithmetic import QuantizedLinearDesc, sum_quotient
from dmlconf.reference.quantization.linear import by_element
from dmlconf.reference.quantization.quotients import single_quotient
from dmlconf.reference.quantization.windows import (
    QuantizedLinearAveragePoolingDesc,
    by_channel,
    mean_quotient,
)
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "greatest_for_least_of_negative_scales",
    "halves_rounded_up",
    "quantized_products_by_ratios",
    "quantized_sums_by_ratios",
    "unsigned_without_zero_points",
    "zero_point_before_rounding",
]

_BEYOND_INT32: Final = 2.0**31
"""The least positive integer that INT32 lacks."""


@of_operators("ELEMENT_WISE_QUANTIZED_LINEAR_ADD")
def quantized_sums_by_ratios(case: Case) -> Computed | None:
    """Return a quantized sum as MLAS computes it.

    MLAS is ONNX Runtime's library of CPU kernels. With the ratios p = AScale / OutputScale and q =
    BScale / OutputScale it computes

        (OutputZeroPoint - (p AZeroPoint + q BZeroPoint)) + p A + q B

    in FLOAT32, perhaps with fused multiply-adds. The result becomes an INT32, or the lowest INT32
    if it is out of range: 2e9 gives 255 as UINT8, and 3e9 gives 0. None if a scale has several
    elements.
    """
    desc = QuantizedLinearDesc(**arguments(case.entry, case, case.inputs()))
    if max(desc.AScaleTensor.size, desc.BScaleTensor.size, desc.OutputScaleTensor.size) > 1:
        return None
    limits, scale = np.iinfo(desc.OutputTensor.DataType.dtype), desc.OutputScaleTensor
    a, b = desc.ATensor.astype(np.float32), desc.BTensor.astype(np.float32)
    zeros = desc.AZeroPointTensor, desc.BZeroPointTensor, desc.OutputZeroPointTensor
    a_zero, b_zero, zero = (
        np.float32(0) if each is None else each.astype(np.float32) for each in zeros
    )

    def total(add: Callable[[Array, Array, Array], Array]) -> Computed:
        with np.errstate(all="ignore"):
            p, q = desc.AScaleTensor / scale, desc.BScaleTensor / scale
            quotient = add(b, q, add(a, p, zero - (p * a_zero + q * b_zero)))
            held = np.abs(quotient) < _BEYOND_INT32
            whole = np.where(held, np.rint(np.where(held, quotient, 0)), -_BEYOND_INT32)
        clamped = np.clip(whole, limits.min, limits.max)
        return Computed({"OutputTensor": clamped.astype(limits.dtype)})

    return replace(total(_added_at_once), others=lambda: iter([total(_added)]))


def _added(x: Array, factor: Array, to: Array) -> Array:
    total: Array = to + x * factor
    return total


def _added_at_once(x: Array, factor: Array, to: Array) -> Array:
    """Return `to + x * factor`, nearly always as a fused multiply-add gives it."""
    double = to.astype(np.float64) + x.astype(np.float64) * factor
    single: Array = double.astype(np.float32)
    return single


@of_operators("QUANTIZED_LINEAR_MATRIX_MULTIPLY")
def quantized_products_by_ratios(case: Case) -> Computed | None:
    """Return a quantized matrix product as MLAS computes it.

    The sums are multiplied by AScale * BScale / OutputScale in FLOAT32. If that ratio is infinite,
    a sum of 0 gives NaN, which becomes the least integer.
    """
    desc = QuantizedLinearDesc(**arguments(case.entry, case, case.inputs()))
    limits = np.iinfo(desc.OutputTensor.DataType.dtype)
    zero = 0 if desc.OutputZeroPointTensor is None else desc.OutputZeroPointTensor.astype(np.int64)
    a, b = desc.centred()
    with np.errstate(all="ignore"):
        ratio = desc.AScaleTensor * desc.BScaleTensor / desc.OutputScaleTensor
        quotient = (a @ b).astype(np.float32) * ratio
        held = np.fmax(np.fmin(quotient, limits.max - zero), limits.min - zero)
        least = np.where(np.isnan(quotient), limits.min - zero, held)
    whole = np.clip(np.rint(least) + zero, limits.min, limits.max)
    return Computed({"OutputTensor": whole.astype(limits.dtype).reshape(desc.OutputTensor.Sizes)})


@of_operators(
    *("ELEMENT_WISE_QUANTIZED_LINEAR_ADD", "ELEMENT_WISE_QUANTIZE_LINEAR", "QUANTIZE"),
    "QUANTIZED_LINEAR_AVERAGE_POOLING",
)
def zero_point_before_rounding(case: Case) -> Computed | None:
    """Return the outputs of a quantized operator that adds the zero point before it rounds.

    2.5 with the zero point 1 becomes round(3.5) = 4, not round(2.5) + 1 = 3. The sum may be rounded
    to FLOAT32 first.
    """
    quotient, zero_point = _QUOTIENTS[case.operator_name](case)
    if zero_point is None:
        return None
    limits, right = np.iinfo(zero_point.dtype), evaluate(case)["OutputTensor"]
    finite = np.isfinite(quotient)
    total = np.where(finite, quotient, 0).astype(np.float64) + zero_point

    def rounded(total: Array) -> Computed:
        whole = np.clip(np.rint(total), limits.min, limits.max).astype(zero_point.dtype)
        return Computed({"OutputTensor": np.where(finite, whole, right)})

    return replace(rounded(total), others=lambda: iter([rounded(total.astype(np.float32))]))


@of_operators("ELEMENT_WISE_QUANTIZE_LINEAR", "QUANTIZE")
def greatest_for_least_of_negative_scales(case: Case) -> Computed | None:
    """Return quantized elements if a negative scale turns the least integer into the greatest.

    With the scale -1 and the zero point 0, 5 becomes 255 as UINT8, not 0. Some models compare
    before they round, and also turn 0.1 into 255.
    """
    scale, zero_point = _scales_and_zero_points(case)
    quotient = single_quotient(case.input("InputTensor"), scale)
    right = evaluate(case)["OutputTensor"]
    limits = np.iinfo(right.dtype)
    zero = 0 if zero_point is None else zero_point

    def greatest_for(numbers: Array) -> Computed:
        with np.errstate(invalid="ignore"):
            below = (numbers + zero < limits.min) & (scale < 0)
        return Computed({"OutputTensor": np.where(below, right.dtype.type(limits.max), right)})

    return replace(greatest_for(np.rint(quotient)), others=lambda: iter([greatest_for(quotient)]))


@of_operators("DYNAMIC_QUANTIZE_LINEAR")
def halves_rounded_up(case: Case) -> Computed | None:
    """Return DYNAMIC_QUANTIZE_LINEAR's outputs with halves rounded up: 2.5 becomes 3."""
    right = evaluate(case)
    scale, zero_point = right["OutputScaleTensor"], right["OutputZeroPointTensor"]
    with np.errstate(all="ignore"):
        quotient = case.input("InputTensor") / scale.reshape(-1)[0]
    if not np.isfinite(quotient).all():
        return None
    tensor = right["OutputTensor"]
    limits = np.iinfo(tensor.dtype)
    whole = np.floor(quotient + np.float32(0.5)) + zero_point.reshape(-1)[0]
    rounded = np.clip(whole, limits.min, limits.max).astype(tensor.dtype)
    return Computed({**right, "OutputTensor": rounded})


@of_operators("ELEMENT_WISE_QUANTIZE_LINEAR", "QUANTIZE")
def unsigned_without_zero_points(case: Case) -> Computed | None:
    """Return INT8 elements if a model without a zero point quantizes as UINT8.

    -9 becomes 0, and 200 becomes -56, the INT8 number with the bits of 200.
    """
    quotient, zero_point = _single_quotient(case)
    if zero_point is not None or case.desc["OutputTensor"].DataType != DataType.INT8:
        return None
    with np.errstate(invalid="ignore"):
        unsigned = np.clip(np.rint(quotient), 0, 255).astype(np.uint8)
    return Computed({"OutputTensor": unsigned.view(np.int8)})


def _scales_and_zero_points(case: Case) -> tuple[Array, Array | None]:
    """Return the scale of each element, and its zero point or, without zero points, None."""
    inputs = case.inputs()
    tensor = inputs.pop("InputTensor")
    scale, zero_point = by_element(list(inputs.values()), tensor.shape, 0)
    return scale, zero_point if len(inputs) > 1 else None


def _single_quotient(case: Case) -> tuple[Array, Array | None]:
    scale, zero_point = _scales_and_zero_points(case)
    return single_quotient(case.input("InputTensor"), scale), zero_point


def _quantized_sum(case: Case) -> tuple[Array, Array | None]:
    desc = QuantizedLinearDesc(**arguments(case.entry, case, case.inputs()))
    return sum_quotient(desc), desc.OutputZeroPointTensor


def _quantized_mean(case: Case) -> tuple[Array, Array | None]:
    desc = QuantizedLinearAveragePoolingDesc(**arguments(case.entry, case, case.inputs()))
    return mean_quotient(desc), by_channel(desc.OutputZeroPointTensor, desc.InputTensor.ndim)


_QUOTIENTS: Final = {
    "ELEMENT_WISE_QUANTIZE_LINEAR": _single_quotient,
    "ELEMENT_WISE_QUANTIZED_LINEAR_ADD": _quantized_sum,
    "QUANTIZE": _single_quotient,
    "QUANTIZED_LINEAR_AVERAGE_POOLING": _quantized_mean,
}
"""Functions that return the quotients and the zero points, by operator."""
