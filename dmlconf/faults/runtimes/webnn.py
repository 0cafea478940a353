"""Formulas of wrong results of WebNN in Chromium, with LiteRT and XNNPACK."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.faults.runtimes.webnn_steps import Flaw, with_flaw
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.windows.sliding import sums, windows
from dmlconf.tensors.datatypes import Array

__all__ = [
    "averages_of_nan",
    "averages_that_count_padding",
    "casts_of_constants_as_0",
    "exponentials_up_to_88",
    "factors_of_0",
    "factors_of_0_for_subnormal_ones",
    "greatest_of_infinities_as_0",
    "halves_away_from_zero",
    "interpolations_with_the_next_element",
    "logarithms_up_to_88",
    "no_powers_beside_a_negative_exponent",
    "no_quotients_beside_a_zero_divisor",
    "powers_of_subnormal_numbers",
    "powers_up_to_the_greatest_number",
    "products_up_to_the_greatest_number",
    "roots_of_large_numbers",
    "roots_scaled_to_whole_windows",
    "sigmoids_without_subnormal_steps",
    "softplus_up_to_88",
    "transpositions_of_constants_left_out",
    "updates_added_to_0",
    "zero_minus_numbers",
    "zeros_without_sign_beyond_six_dimensions",
]

_MEANS: Final = (
    "MEAN_VARIANCE_NORMALIZATION",
    "MEAN_VARIANCE_NORMALIZATION1",
    "MEAN_VARIANCE_NORMALIZATION2",
)
_FUSED: Final = ("BATCH_NORMALIZATION", "CONVOLUTION", "ELEMENT_WISE_ADD1", "GEMM", *_MEANS)
"""Operators with FusedActivation that WebNN can express."""
_POOLS: Final = ("LP_POOLING", "LP_POOLING1")
_SOFTMAX: Final = ("ACTIVATION_LOG_SOFTMAX", "ACTIVATION_LOG_SOFTMAX1", "ACTIVATION_SOFTMAX1")


@of_operators(*_SOFTMAX, "ELEMENT_WISE_EXP", "GEMM", "REDUCE")
def exponentials_up_to_88(case: Case) -> Computed | None:
    """Return a case's outputs if exp(x) is infinite for x > 88.376.

    exp(x) is 0 for NaN, and where it would be subnormal.
    """
    return with_flaw(case, Flaw.EXPONENTIAL)


@of_operators(*_SOFTMAX, "ELEMENT_WISE_LOG", "GEMM", "REDUCE")
def logarithms_up_to_88(case: Case) -> Computed | None:
    """Return a case's outputs if logarithms are at most 88.376, and 88.782 for NaN.

    Logarithms of subnormal numbers are negative infinity.
    """
    return with_flaw(case, Flaw.LOGARITHM)


_SMALL_BELOW: Final = -74.0
"""All x for which `sigmoids_without_subnormal_steps` gives a wrong e^x are below this number.

The greatest of them in FLOAT32 is -74.16675.
"""


@of_operators("ACTIVATION_SIGMOID", "ACTIVATION_SWISH")
def sigmoids_without_subnormal_steps(case: Case) -> Computed | None:
    """Return outputs of a sigmoid or swish if some small e^x become powers of 2.

    e^x is 2^n (1 + t + ...), where n is the integer nearest to x / ln 2, and t is x - n ln 2. Where
    2^n t is subnormal, e^x becomes 2^n.
    """
    tensor, right = case.inputs()["InputTensor"], evaluate(case)["OutputTensor"]
    if tensor.dtype != np.float32:
        return None
    x = tensor.astype(np.float64) * case.desc.get("SigmoidInputScale", 1.0)
    with np.errstate(all="ignore"):
        exponent = np.rint(x / np.log(2))
        power = np.exp2(exponent)
        smallest_term = power * np.abs(x - exponent * np.log(2))
        lost = (x < _SMALL_BELOW) & (smallest_term < np.finfo(np.float32).tiny)
        wrong = power.astype(np.float32)
        if case.operator_name == "ACTIVATION_SWISH":
            wrong = wrong * tensor
    return Computed({"OutputTensor": np.where(lost, wrong, right)})


@of_operators(*_FUSED, "ACTIVATION_PARAMETRIC_SOFTPLUS", "ACTIVATION_SOFTPLUS")
def softplus_up_to_88(case: Case) -> Computed | None:
    """Return a case's outputs if softplus is at most 88.376, and 0 for NaN."""
    return with_flaw(case, Flaw.SOFTPLUS)


@of_operators(
    *_MEANS, *_POOLS, "BATCH_NORMALIZATION", "ELEMENT_WISE_SQRT", "LP_NORMALIZATION", "REDUCE"
)
def roots_of_large_numbers(case: Case) -> Computed | None:
    """Return a case's outputs if roots above 2^63 are multiplied by 1.5, and infinity gives NaN."""
    return with_flaw(case, Flaw.ROOT)


@of_operators("CONVOLUTION", "GEMM")
def products_up_to_the_greatest_number(case: Case) -> Computed | None:
    """Return outputs if infinite sums of products become finite, and NaN the greatest number.

    Sums stay right if the filter or the second matrix is a constant. NaN stays NaN in convolutions
    with several groups of several channels.
    """
    return with_flaw(case, Flaw.PRODUCTS)


@of_operators("GEMM")
def factors_of_0(case: Case) -> Computed | None:
    """Return GEMM's outputs if an Alpha or a Beta of 0 leaves out its term, even if it is NaN."""
    return with_flaw(case, Flaw.FACTORS)


def factors_of_0_for_subnormal_ones(case: Case) -> Computed | None:
    """Return a case's outputs if a subnormal Scale is 0: infinity times 1e-40 becomes NaN."""
    by = case.desc.get("ScaleBias")
    if by is None or not 0 < abs(by["Scale"]) < np.finfo(np.float32).tiny:
        return None
    return Computed(evaluate(replace(case, desc={**case.desc, "ScaleBias": {**by, "Scale": 0.0}})))


@of_operators(*_POOLS)
def roots_scaled_to_whole_windows(case: Case) -> Computed | None:
    """Return LP_POOLING's outputs if windows with padding are scaled up to whole windows.

    A window of 3 with the elements 1 and 2 gives sqrt((1 + 4) * 3 / 2), not sqrt(1 + 4).
    """
    return with_flaw(case, Flaw.WINDOWS)


@of_operators("AVERAGE_POOLING", "AVERAGE_POOLING1")
def averages_of_nan(case: Case) -> Computed | None:
    """Return AVERAGE_POOLING's outputs with negative infinity for averages that are NaN."""
    right = evaluate(case)["OutputTensor"]
    return Computed({"OutputTensor": np.where(np.isnan(right), right.dtype.type(-np.inf), right)})


@of_operators("AVERAGE_POOLING", "AVERAGE_POOLING1")
def averages_that_count_padding(case: Case) -> Computed | None:
    """Return AVERAGE_POOLING's outputs if padding counts: 7 / 3 for 3 and 4 in a window of 3."""
    if case.desc["IncludePadding"]:
        return None
    other = replace(case, desc={**case.desc, "IncludePadding": True})
    return Computed(evaluate(other), around=other)


@of_operators("DEPTH_TO_SPACE", "DEPTH_TO_SPACE1", "SPACE_TO_DEPTH", "SPACE_TO_DEPTH1")
def transpositions_of_constants_left_out(case: Case) -> Computed | None:
    """Return the outputs of DEPTH_TO_SPACE and SPACE_TO_DEPTH if constants are only reshaped."""
    if not case.desc["InputTensor"].Owned:
        return None
    sizes = case.desc["OutputTensor"].Sizes
    return Computed({"OutputTensor": case.inputs()["InputTensor"].reshape(sizes)})


@of_operators("CAST")
def casts_of_constants_as_0(case: Case) -> Computed | None:
    """Return CAST's outputs if a FLOAT16 constant is cast to zeros in FLOAT32."""
    desc = case.desc
    types = desc["InputTensor"].DataType, desc["OutputTensor"].DataType
    if not desc["InputTensor"].Owned or types != ("FLOAT16", "FLOAT32"):
        return None
    return Computed({"OutputTensor": np.zeros(desc["OutputTensor"].Sizes, np.float32)})


@of_operators("ELEMENT_WISE_NEGATE")
def zero_minus_numbers(case: Case) -> Computed | None:
    """Return ELEMENT_WISE_NEGATE's outputs as 0 - x: 0 for 0, -0 and subnormal numbers."""
    tensor = case.inputs()["InputTensor"]
    if tensor.dtype.kind != "f":
        return None
    small = np.abs(tensor) < np.finfo(tensor.dtype).tiny
    zero = tensor.dtype.type(0)
    return Computed({"OutputTensor": np.where(small, zero, zero - tensor)})


@of_operators("MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2")
def greatest_of_infinities_as_0(case: Case) -> Computed | None:
    """Return MAX_POOLING's outputs with padding if windows with NaN or only -infinity give 0."""
    desc, right = case.desc, evaluate(case)
    if not any((*desc["StartPadding"], *desc["EndPadding"])):
        return None
    greatest = right["OutputTensor"]
    if greatest.dtype.kind != "f":
        return None
    lowest = greatest <= np.finfo(greatest.dtype).min  # DirectML gives the lowest number for -inf.
    tensor = case.inputs()["InputTensor"]
    sizes = desc["Strides"], desc["WindowSize"], desc["StartPadding"], desc.get("Dilations")
    with_nan = sums(np.isnan(tensor), windows(tensor.shape, greatest.shape, *sizes)) > 0
    zero = greatest.dtype.type(0)
    return Computed({**right, "OutputTensor": np.where(lowest | with_nan, zero, greatest)})


@of_operators("ELEMENT_WISE_CONSTANT_POW")
def powers_up_to_the_greatest_number(case: Case) -> Computed | None:
    """Return ELEMENT_WISE_CONSTANT_POW's outputs if infinite powers become finite in FLOAT32.

    FLOAT16 outputs are right: the greatest FLOAT32 number becomes infinity in FLOAT16.
    """
    right = evaluate(case)["OutputTensor"]
    limits = np.finfo(np.float32)
    with np.errstate(over="ignore"):
        finite = np.clip(right.astype(np.float32), limits.min, limits.max).astype(right.dtype)
    return Computed({"OutputTensor": finite})


@of_operators("ELEMENT_WISE_CONSTANT_POW", "ELEMENT_WISE_POW")
def powers_of_subnormal_numbers(case: Case) -> Computed | None:
    """Return powers if subnormal bases count as 2^-150 or -2^-150."""
    inputs = case.inputs()
    base, exponent = inputs["InputTensor"], inputs.get("ExponentTensor", case.desc.get("Exponent"))
    if base.dtype != np.float32 or case.desc["ScaleBias"] is not None:
        return None
    small = (np.abs(base) < np.finfo(np.float32).tiny) & (base != 0)
    with np.errstate(all="ignore"):
        wide = base.astype(np.float64)
        taken = np.where(small, np.copysign(2.0**-150, wide), wide)
        power = np.power(taken, np.asarray(exponent, np.float64)).astype(np.float32)
    right = evaluate(case)["OutputTensor"]
    return Computed({"OutputTensor": np.where(small, power, right)})


@of_operators("ELEMENT_WISE_DIVIDE")
def no_quotients_beside_a_zero_divisor(case: Case) -> Computed | None:
    """Return ELEMENT_WISE_DIVIDE's outputs for INT32 if one zero divisor makes all quotients 0."""
    divisor = case.inputs()["BTensor"]
    if divisor.dtype != np.int32 or divisor.all():
        return None
    return Computed({"OutputTensor": np.zeros_like(divisor)})


@of_operators("ELEMENT_WISE_POW")
def no_powers_beside_a_negative_exponent(case: Case) -> Computed | None:
    """Return ELEMENT_WISE_POW's outputs for INT32 if a negative exponent makes all powers 0."""
    inputs = case.inputs()
    base, exponent = inputs["InputTensor"], inputs["ExponentTensor"]
    if base.dtype != np.int32 or exponent.dtype != np.int32 or not (exponent < 0).any():
        return None
    return Computed({"OutputTensor": np.zeros_like(base)})


@of_operators("ELEMENT_WISE_ROUND")
def zeros_without_sign_beyond_six_dimensions(case: Case) -> Computed | None:
    """Return ELEMENT_WISE_ROUND's outputs for more than 6 dimensions: -0.3 becomes 0, not -0."""
    right = evaluate(case)["OutputTensor"]
    return None if right.ndim <= 6 else Computed({"OutputTensor": right + right.dtype.type(0)})


@of_operators("SCATTER_ND")
def updates_added_to_0(case: Case) -> Computed | None:
    """Return SCATTER_ND's outputs if updates with the same indices are added up, starting at 0.

    Updates of -0, and those that are subnormal in FLOAT32, become 0. None if an index is out of
    range.
    """
    desc, inputs = case.desc, case.inputs()
    tensor, indices, updates = (inputs[f"{name}Tensor"] for name in ("Input", "Indices", "Updates"))
    sizes = tensor.shape[tensor.ndim - desc["InputDimensionCount"] :]
    tuples = indices.reshape(-1, indices.shape[-1]).astype(np.int64)
    limits = np.array(sizes[: tuples.shape[1]])
    if not ((tuples >= -limits) & (tuples < limits)).all():
        return None
    if updates.dtype.kind == "f":
        small = np.abs(updates.astype(np.float32)) < np.finfo(np.float32).tiny
        updates = np.where(small, updates.dtype.type(0), updates)
    total, touched = np.zeros(sizes, tensor.dtype), np.zeros(sizes, bool)
    at = tuple(tuples.T)
    with np.errstate(all="ignore"):
        np.add.at(total, at, updates.reshape(len(tuples), *sizes[tuples.shape[1] :]))
    touched[at] = True
    return Computed(
        {"OutputTensor": np.where(touched, total, tensor.reshape(sizes)).reshape(tensor.shape)}
    )


@of_operators("ELEMENT_WISE_QUANTIZE_LINEAR")
def halves_away_from_zero(case: Case) -> Computed | None:
    """Return the outputs of ELEMENT_WISE_QUANTIZE_LINEAR if halves are rounded away from zero.

    -48.5 with the zero point 100 becomes 51, not 52.
    """
    inputs, right = case.inputs(), evaluate(case)["OutputTensor"]
    zero_point = inputs.get("ZeroPointTensor", np.zeros(1, right.dtype)).astype(np.float64)
    limits = np.iinfo(right.dtype)
    with np.errstate(all="ignore"):
        quotient = inputs["InputTensor"] / inputs["ScaleTensor"]
        whole = np.copysign(np.floor(np.abs(quotient) + 0.5), quotient) + zero_point
        half = np.abs(quotient) % 1 == 0.5
        rounded = np.where(half, np.clip(whole, limits.min, limits.max), right)
        return Computed({"OutputTensor": rounded.astype(right.dtype)})


@of_operators("RESAMPLE", "RESAMPLE1", "RESAMPLE2", "RESAMPLE3", "UPSAMPLE_2D")
def interpolations_with_the_next_element(case: Case) -> Computed | None:
    """Return RESAMPLE's outputs if whole coordinates are interpolated too.

    At an element a with the next element b, the result is a + (b - a) * 0, which is NaN if b is
    infinite. None unless the mode is LINEAR, and the first two of four axes keep their sizes.
    """
    if case.desc["InterpolationMode"] != "LINEAR":
        return None
    tensor, sizes = case.inputs()["InputTensor"], case.desc["OutputTensor"].Sizes
    if tensor.ndim != 4 or tensor.shape[:2] != sizes[:2]:
        return None
    result = tensor.astype(np.float32)
    with np.errstate(all="ignore"):
        for axis in (3, 2):
            result = _interpolated(result, axis, sizes[axis])
        return Computed({"OutputTensor": result.astype(tensor.dtype)})


def _interpolated(tensor: Array, axis: int, size: int) -> Array:
    before = tensor.shape[axis]
    at = np.clip((np.arange(size) + 0.5) * before / size - 0.5, 0, before - 1)
    first = np.floor(at).astype(np.int64)
    shape = tuple(size if each == axis else 1 for each in range(tensor.ndim))
    share = (at - first).astype(np.float32).reshape(shape)
    one = np.take(tensor, first, axis)
    other = np.take(tensor, np.minimum(first + 1, before - 1), axis)
    result: Array = one + (other - one) * share
    return result
