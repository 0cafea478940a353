"""Find the elements of an output that a deviation or a finding concerns.

Each function of `ELEMENTS` takes the case, its inputs with ScaleBias applied, the right output,
the actual one, and the arguments of the deviation. It returns a mask of the output's sizes. Its
docstring says where the mask is True.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.excuses.sigmoid_errors import near_sigmoids
from dmlconf.faults.computed import activation_of
from dmlconf.precision.ulp import ulp_distance
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array

__all__ = ["ELEMENTS"]


def _near(
    case: Case,
    inputs: Mapping[str, Array],
    right: Array,
    actual: Array,
    relative: float,
    absolute: float,
) -> Array:
    """Finite elements whose error is at most `absolute` plus `relative` times the element's size.

    An output of integers has none.
    """
    if right.dtype.kind != "f":
        return np.zeros(right.shape, bool)
    with np.errstate(invalid="ignore"):
        exact = right.astype(np.float64)
        within: Array = np.abs(actual - exact) <= absolute + relative * np.abs(exact)
    return within & np.isfinite(right) & np.isfinite(actual)


def _ulp(
    case: Case,
    inputs: Mapping[str, Array],
    right: Array,
    actual: Array,
    float32: float,
    float16: float,
) -> Array:
    """Elements off by at most `float32` ULP or, in FLOAT16, `float16` ULP; and NaN in both outputs.

    An output of integers has none.
    """
    if right.dtype.kind != "f":
        return np.zeros(right.shape, bool)
    limit = float16 if right.dtype == np.float16 else float32
    with np.errstate(invalid="ignore"):
        within: Array = ulp_distance(actual, right) <= limit
    return within


def _nan_before_activation(
    case: Case, inputs: Mapping[str, Array], right: Array, actual: Array
) -> Array:
    """Elements that are NaN before or after an activation; none without an activation."""
    before = activation_of(case)[1]
    if before is None:
        return np.zeros(right.shape, bool)
    nan: Array = np.isnan(before) | np.isnan(right)
    return nan


def _all(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """All elements, for findings whose scope lists cases."""
    return np.ones(right.shape, bool)


def _nan(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Elements where an input is NaN; all elements if an input of other sizes has NaN."""
    return _reached(inputs, right, np.isnan)


def _nan_anywhere(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """All elements if any input has NaN."""
    found = any(a.dtype.kind == "f" and bool(np.isnan(a).any()) for a in inputs.values())
    return np.full(right.shape, found)


def _nan_along_axes(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Elements of ARGMAX and ARGMIN where NaN is among the compared elements."""
    nan = np.isnan(inputs["InputTensor"]).any(axis=tuple(case.desc["Axes"]), keepdims=True)
    return np.broadcast_to(nan, right.shape)


def _not_a_number(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Elements that are NaN in the right output or in the actual one."""
    if right.dtype.kind != "f":
        return np.zeros(right.shape, bool)
    nan: Array = np.isnan(right) | np.isnan(actual)
    return nan


def _infinite(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Elements where an input is infinite; all elements if an input of other sizes has infinity."""
    return _reached(inputs, right, np.isinf)


def _reached(inputs: Mapping[str, Array], right: Array, special: Callable[[Array], Array]) -> Array:
    reached = np.zeros(right.shape, bool)
    for array in inputs.values():
        if array.dtype.kind != "f":
            continue
        if array.shape == right.shape:
            reached |= special(array)
        elif special(array).any():
            reached[...] = True
    return reached


def _special(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Elements that `_nan` or `_infinite` finds."""
    return _reached(inputs, right, lambda array: ~np.isfinite(array))


def _signed_zero(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Elements that are 0 in both outputs, whatever their signs."""
    zeros: Array = (right == 0) & (actual == 0)
    return zeros


def _subnormal(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Elements that are subnormal or 0; the actual one may also be the smallest normal number."""
    if right.dtype.kind != "f":
        return np.zeros(right.shape, bool)
    tiny = np.finfo(right.dtype).tiny
    small: Array = (np.abs(right) < tiny) & (np.abs(actual) <= tiny)
    return small


def _out_of_range(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Integers at whose index a float input is NaN or, truncated, beyond the output's type."""
    out = np.zeros(right.shape, bool)
    if right.dtype.kind not in "iu":
        return out
    limits = np.iinfo(right.dtype)
    for array in inputs.values():
        if array.dtype.kind == "f" and array.shape == right.shape:
            whole = np.trunc(array.astype(np.float64))
            out |= ~((whole >= limits.min) & (whole < float(limits.max) + 1))
    return out


def _zero(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Elements at whose index an input of the output's sizes is 0."""
    zero = np.zeros(right.shape, bool)
    for array in inputs.values():
        if array.shape == right.shape:
            zero |= array == 0
    return zero


def _quotient_by_zero(
    case: Case, inputs: Mapping[str, Array], right: Array, actual: Array
) -> Array:
    """Quotients and remainders of integers divided by 0."""
    divisor = inputs["BTensor"]
    zero: Array = (divisor == 0) & (divisor.dtype.kind in "iu")
    return zero


def _power_of_zero(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Powers of 0 whose exponent is 0 or negative."""
    base = inputs["InputTensor"]
    exponent = inputs.get("ExponentTensor", case.desc.get("Exponent"))
    zero: Array = (base == 0) & (np.asarray(exponent) <= 0)
    return zero


def _power_out_of_range(
    case: Case, inputs: Mapping[str, Array], right: Array, actual: Array
) -> Array:
    """Powers of integers that are NaN or, truncated, beyond the output's type: (-8) ^ 0.5."""
    out = np.zeros(right.shape, bool)
    exponent = inputs["ExponentTensor"]
    if right.dtype.kind not in "iu" or exponent.dtype.kind != "f":
        return out
    limits = np.iinfo(right.dtype)
    with np.errstate(all="ignore"):
        power = np.trunc(np.power(inputs["InputTensor"].astype(np.float64), exponent))
    return ~((power >= limits.min) & (power < float(limits.max) + 1))


def _lowest_integer(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Elements at whose index an input has the lowest number of a signed integer type."""
    lowest = np.zeros(right.shape, bool)
    for array in inputs.values():
        if array.dtype.kind == "i" and array.shape == right.shape:
            lowest |= array == np.iinfo(array.dtype).min
    return lowest


def _empty_sequence(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Elements of sequences whose length is 0."""
    empty = np.zeros(right.shape, bool)
    lengths = inputs.get("SequenceLengthsTensor")
    if lengths is not None:
        empty[:, :, lengths.reshape(-1) == 0] = True
    return empty


def _halfway_region(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Outputs of regions with a scaled coordinate halfway between two integers: 10 * 0.25."""
    corners = inputs["ROITensor"].reshape(-1, 5)[:, 1:].astype(np.float64)
    halfway = np.abs(corners * case.desc["SpatialScale"]) % 1 == 0.5
    shape = (-1,) + (1,) * (right.ndim - 1)
    found: Array = np.broadcast_to(halfway.any(axis=1).reshape(shape), right.shape)
    return found


def _next_integer(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Integers that differ by 1 from the right integer: 16 for 17."""
    if right.dtype.kind not in "iu":
        return np.zeros(right.shape, bool)
    low, high = np.minimum(right, actual), np.maximum(right, actual)
    next_one: Array = high - low == 1
    return next_one


def _index_of_equal(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Indices of TOP_K that occur once along the axis, and whose elements equal the right ones."""
    tensor, axis = inputs["InputTensor"], case.desc["Axis"]
    if not np.array_equal(right, evaluate(case)["OutputIndexTensor"]):
        return np.zeros(right.shape, bool)  # This output has no indices.
    within = actual < tensor.shape[axis]
    taken = np.where(within, actual, right).astype(np.int64)
    found = np.take_along_axis(tensor, taken, axis)
    equal = found == np.take_along_axis(tensor, right.astype(np.int64), axis)
    order = np.argsort(taken, axis=axis, kind="stable")
    ranked = np.take_along_axis(taken, order, axis)
    same = np.diff(ranked, axis=axis) == 0
    beside = [(1, 0) if each == axis else (0, 0) for each in range(taken.ndim)]
    before = [(0, 1) if each == axis else (0, 0) for each in range(taken.ndim)]
    twice = np.zeros(taken.shape, bool)
    np.put_along_axis(twice, order, np.pad(same, beside) | np.pad(same, before), axis)
    mask: Array = within & equal & ~twice
    return mask


def _wide_shift(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Results of shifts by at least the number of bits of the type: of UINT8 by 8."""
    wide: Array = inputs["BTensor"].astype(np.uint64) >= 8 * right.dtype.itemsize
    return wide


def _large_angle(
    case: Case, inputs: Mapping[str, Array], right: Array, actual: Array, beyond: float
) -> Array:
    """Elements whose input, with ScaleBias applied, is finite and of a size above `beyond`."""
    angle = inputs["InputTensor"]
    large: Array = np.isfinite(angle) & (np.abs(angle) > beyond)
    return large


def _nan_quotient(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Elements whose input divided by the scale is NaN: NaN / 2, infinity / infinity.

    Subnormal operands may count as 0, so that 0 / 1e-45 is NaN.
    """
    scale = inputs["ScaleTensor" if "ScaleTensor" in inputs else "QuantizationTensors[0]"]
    for axis, size in enumerate(right.shape):
        scale = np.repeat(scale, size // scale.shape[axis], axis)
    with np.errstate(all="ignore"):
        undefined: Array = np.isnan(inputs["InputTensor"] / scale)
        undefined |= np.isnan(_flushed(inputs["InputTensor"]) / _flushed(scale))
    return undefined


def _flushed(array: Array) -> Array:
    """Return an array with zeros of the same sign for subnormal numbers."""
    if array.dtype.kind != "f":
        return array
    return np.where(np.abs(array) < np.finfo(array.dtype).tiny, array * 0, array)


def _gathered_beyond(case: Case, inputs: Mapping[str, Array], right: Array, actual: Array) -> Array:
    """Elements that a gather operator takes by an index beyond the axis: 4 or -5 of 4 rows."""
    tensor, indices, desc = inputs["InputTensor"], inputs["IndicesTensor"], case.desc
    wide = indices.astype(object) if indices.dtype == np.uint64 else indices.astype(np.int64)
    if "Axis" not in desc:
        tensor = tensor.reshape(tensor.shape[tensor.ndim - desc["InputDimensionCount"] :])
        first = desc.get("BatchDimensionCount", 0)
        sizes = np.array(tensor.shape[first : first + indices.shape[-1]])
        beyond = np.asarray((wide < -sizes) | (wide >= sizes), bool).any(axis=-1)
        apart = right.reshape(beyond.size, -1)
        return np.broadcast_to(beyond.reshape(-1, 1), apart.shape).reshape(right.shape)
    axis, size = desc["Axis"], tensor.shape[desc["Axis"]]
    beyond = np.asarray((wide < -size) | (wide >= size), bool)
    if beyond.shape == right.shape and "IndexDimensions" not in desc:
        return beyond
    kept = beyond.shape[beyond.ndim - desc["IndexDimensions"] :]
    whole = (*tensor.shape[:axis], *kept, *tensor.shape[axis + 1 :])
    if prod(whole) != right.size or prod(kept) != beyond.size:
        return np.zeros(right.shape, bool)  # Neither ONNX nor WebNN has a counterpart.
    rows = beyond.reshape((*kept, *(1,) * (tensor.ndim - axis - 1)))
    return np.broadcast_to(rows, whole).reshape(right.shape)


ELEMENTS: Final[Mapping[str, Callable[..., Array]]] = {
    "all": _all,
    "near": _near,
    "ulp": _ulp,
    "error of a sigmoid": near_sigmoids,
    "nan": _nan,
    "nan along the axes": _nan_along_axes,
    "nan anywhere": _nan_anywhere,
    "nan before activation": _nan_before_activation,
    "not a number": _not_a_number,
    "infinite": _infinite,
    "signed zero": _signed_zero,
    "subnormal": _subnormal,
    "out of range": _out_of_range,
    "special": _special,
    "zero": _zero,
    "quotient by zero": _quotient_by_zero,
    "power of zero": _power_of_zero,
    "power out of range": _power_out_of_range,
    "lowest integer": _lowest_integer,
    "empty sequence": _empty_sequence,
    "halfway region": _halfway_region,
    "next integer": _next_integer,
    "index of an equal number": _index_of_equal,
    "wide shift": _wide_shift,
    "large angle": _large_angle,
    "quotient that is not a number": _nan_quotient,
    "gathered beyond the axis": _gathered_beyond,
}
"""The functions, by the names that `schemas/targets/*.yaml` and `schemas/findings/*.yaml` use."""
