"""Formulas of results that another specification, such as ONNX, defines otherwise than DirectML."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.reference.element_wise.clipping import bound_of
from dmlconf.reference.element_wise.scale_bias import is_identity, scaled
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "computed_output_padding",
    "greatest_of_crossed_bounds",
    "logarithms_of_sums_as_written",
    "maxima_of_nan",
    "nearest_interpolated_integers",
    "powers_of_zero_as_in_c",
    "ranges_of_nan",
    "scaled_integers_that_wrap_around",
    "scatters_by_clamped_indices",
]


def greatest_of_crossed_bounds(case: Case) -> Computed | None:
    """Return ONNX's output of a clip, alone or fused, if Min exceeds Max: Max everywhere."""
    desc = case.desc.get("FusedActivation") or case.desc
    name = desc["operator"] if desc is not case.desc else case.operator_name
    if name not in ("ELEMENT_WISE_CLIP", "ELEMENT_WISE_CLIP1"):
        return None
    output, data_type = case.desc["OutputTensor"], desc.get("MinMaxDataType", DataType.FLOAT32)
    least, greatest = (bound_of(desc[name], output, data_type) for name in ("Min", "Max"))
    if not least > greatest:
        return None
    return Computed({"OutputTensor": np.full(output.Sizes, greatest)})


_COMPARING: Final = (
    "ACTIVATION_CELU",
    "ACTIVATION_HARD_SIGMOID",
    "ACTIVATION_HARD_SWISH",
    "ACTIVATION_RELU",
    "ELEMENT_WISE_CLIP",
    "ELEMENT_WISE_CLIP1",
    "ELEMENT_WISE_MAX",
    "ELEMENT_WISE_MIN",
    "ELEMENT_WISE_THRESHOLD",
)
"""Operators that compute the greater or the lesser of two numbers for each element."""


@of_operators(*_COMPARING, "REDUCE")
def maxima_of_nan(case: Case) -> Computed | None:
    """Return the outputs if the maximum or minimum of NaN and a number is NaN."""
    nan = _nan_among_compared(case)
    if nan is None:
        return None
    right = evaluate(case)["OutputTensor"]
    return Computed({"OutputTensor": np.where(nan, right.dtype.type(np.nan), right)})


def _nan_among_compared(case: Case) -> Array | None:
    """Return which output elements are computed by comparing a NaN; None if there is none."""
    compared: list[Array] = []
    if case.operator_name in _COMPARING:
        compared = list(case.inputs().values())
    elif case.operator_name == "REDUCE" and case.desc["Function"] in ("MAX", "MIN"):
        line = case.inputs()["InputTensor"]
        compared = [np.maximum.reduce(line, axis=tuple(case.desc["Axes"]), keepdims=True)]
    masks = [np.isnan(each) for each in compared if each.dtype.kind == "f"]
    return np.logical_or.reduce(masks) if masks and any(map(np.any, masks)) else None


@of_operators("DYNAMIC_QUANTIZE_LINEAR")
def ranges_of_nan(case: Case) -> Computed | None:
    """Return NaN as the scale of an input with NaN.

    The quantized elements and the zero point may be any integers.
    """
    if not np.isnan(case.inputs()["InputTensor"]).any():
        return None
    outputs = {name: np.zeros_like(array) for name, array in evaluate(case).items()}
    outputs["OutputScaleTensor"] = np.full_like(outputs["OutputScaleTensor"], np.nan)
    integers = {
        name: np.ones(array.shape, bool)
        for name, array in outputs.items()
        if name != "OutputScaleTensor"
    }
    return Computed(outputs, unknown=integers)


@of_operators("CONVOLUTION")
def computed_output_padding(case: Case) -> Computed | None:
    """Return a backward convolution if EndPadding and OutputPadding cancel.

    An OutputPadding of 3 and an EndPadding of 1 give the same as 2 and 0.
    """
    desc = case.desc
    further, behind = desc["OutputPadding"], desc["EndPadding"]
    if desc["Direction"] != "BACKWARD" or not any(map(min, further, behind)):
        return None
    pairs = list(zip(further, behind, strict=True))
    changed = {
        "OutputPadding": tuple(max(0, more - end) for more, end in pairs),
        "EndPadding": tuple(max(0, end - more) for more, end in pairs),
    }
    other = replace(case, desc={**desc, **changed})
    return Computed(evaluate(other), around=other)


@of_operators("REDUCE")
def logarithms_of_sums_as_written(case: Case) -> Computed | None:
    """Return REDUCE's outputs if LOG_SUM_EXP is log(sum(exp(x))) in FLOAT32: -infinity for -512."""
    desc = case.desc
    if desc["Function"] != "LOG_SUM_EXP":
        return None
    tensor = case.inputs()["InputTensor"].astype(np.float32)
    with np.errstate(all="ignore"):
        logarithm = np.log(np.sum(np.exp(tensor), axis=tuple(desc["Axes"]), keepdims=True))
        return Computed({"OutputTensor": logarithm.astype(desc["OutputTensor"].DataType.dtype)})


@of_operators("RESAMPLE", "RESAMPLE1", "RESAMPLE2", "RESAMPLE3", "UPSAMPLE_2D")
def nearest_interpolated_integers(case: Case) -> Computed | None:
    """Return interpolated integers if they are rounded to nearest, halves to even or up."""
    tensor = case.inputs()["InputTensor"]
    if tensor.dtype.kind not in "iu" or case.desc["InterpolationMode"] != "LINEAR":
        return None
    output = replace(case.desc["OutputTensor"], DataType=DataType.FLOAT32)
    with_fraction = replace(case, desc={**case.desc, "OutputTensor": output})
    real = evaluate(with_fraction, {"InputTensor": tensor.astype(np.float32)})["OutputTensor"]
    up = Computed({"OutputTensor": np.floor(real + np.float32(0.5)).astype(tensor.dtype)})
    even = {"OutputTensor": np.rint(real).astype(tensor.dtype)}
    return Computed(even, others=lambda: iter([up]))


@of_operators("ELEMENT_WISE_CONSTANT_POW", "ELEMENT_WISE_POW")
def powers_of_zero_as_in_c(case: Case) -> Computed | None:
    """Return powers if 0^0 is 1 and 0^-1 is infinite, as in C; DirectML gives 0 for both."""
    inputs = case.inputs()
    base = scaled(inputs["InputTensor"], case.desc["ScaleBias"])
    exponent = np.asarray(inputs.get("ExponentTensor", case.desc.get("Exponent")))
    right = evaluate(case)["OutputTensor"]
    if right.dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        power = np.power(base.astype(np.float32), exponent.astype(np.float32)).astype(right.dtype)
    return Computed({"OutputTensor": np.where((base == 0) & (exponent <= 0), power, right)})


@of_operators("SCATTER_ND")
def scatters_by_clamped_indices(case: Case) -> Computed | None:
    """Return SCATTER_ND's outputs if indices are clamped: index 4 of 3 elements is the last."""
    indices = case.inputs()["IndicesTensor"]
    sizes = case.desc["InputTensor"].Sizes[-case.desc["InputDimensionCount"] :]
    greatest = np.array(sizes[: indices.shape[-1]], np.int64) - 1
    least = np.zeros_like(greatest) if indices.dtype.kind == "u" else -1 - greatest
    clamped = np.clip(indices, least.astype(indices.dtype), greatest.astype(indices.dtype))
    return Computed(evaluate(replace(case, data={**case.data, "IndicesTensor": clamped})))


@of_operators(
    *("ELEMENT_WISE_ABS", "ELEMENT_WISE_CLIP", "ELEMENT_WISE_CLIP1", "ELEMENT_WISE_IDENTITY"),
    *("ELEMENT_WISE_POW", "ELEMENT_WISE_THRESHOLD"),
)
def scaled_integers_that_wrap_around(case: Case) -> Computed | None:
    """Return the outputs if `x * Scale + Bias` wraps around in the integers' own type.

    In UINT32, 4294967295 * 2 + 3 becomes 1; DirectML gives 4294967295.
    """
    tensor, by = case.inputs()["InputTensor"], case.desc["ScaleBias"]
    if tensor.dtype.kind not in "iu" or is_identity(by):
        return None
    if by["Scale"] % 1 or by["Bias"] % 1:  # For infinity and NaN, the remainder is NaN.
        return None
    words = tensor.astype(np.uint64)
    with np.errstate(over="ignore"):
        product = words * np.uint64(int(by["Scale"]) % 2**64)
        wrapped = (product + np.uint64(int(by["Bias"]) % 2**64)).astype(tensor.dtype)
    without = replace(case, desc={**case.desc, "ScaleBias": None})
    return Computed(evaluate(without.with_data({**case.inputs(), "InputTensor": wrapped})))
