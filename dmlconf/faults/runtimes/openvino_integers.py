"""Formulas of wrong results of ONNX Runtime's OpenVINO provider for integers and remainders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.quantization.arithmetic import centred
from dmlconf.reference.quantization.exact_sums import exact_product
from dmlconf.reference.quantization.windows import (
    centred_filter,
    convolved,
    one_element,
    with_four_dimensions,
)
from dmlconf.tensors.datatypes import Array

__all__ = [
    "integers_in_float32",
    "integers_in_int32",
    "negative_integers_as_false",
    "powers_in_float32",
    "quotients_in_float32",
    "remainders_in_float32",
    "saturating_integers",
    "shifts_by_arithmetic",
    "sums_by_steps_in_float32",
    "sums_of_products_in_float32",
]


_REDUCED: Final[Mapping[str, np.ufunc]] = {
    "L1": np.add,
    "MAX": np.maximum,
    "MIN": np.minimum,
    "MULTIPLY": np.multiply,
    "SUM": np.add,
    "SUM_SQUARE": np.add,
}


_LOGICAL: Final = frozenset(f"ELEMENT_WISE_LOGICAL_{each}" for each in ("AND", "NOT", "OR", "XOR"))

_COMBINED: Final[Mapping[str, np.ufunc]] = {
    "ELEMENT_WISE_ADD": np.add,
    "ELEMENT_WISE_MULTIPLY": np.multiply,
    "ELEMENT_WISE_SUBTRACT": np.subtract,
}

_NEGATED: Final = {"ELEMENT_WISE_NEGATE": "InputTensor", "ELEMENT_WISE_SUBTRACT": "BTensor"}

_COMPARISONS: Final[Mapping[str, np.ufunc]] = {
    "ELEMENT_WISE_LOGICAL_EQUALS": np.equal,
    "ELEMENT_WISE_LOGICAL_GREATER_THAN": np.greater,
    "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL": np.greater_equal,
    "ELEMENT_WISE_LOGICAL_LESS_THAN": np.less,
    "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL": np.less_equal,
}


@of_operators(
    *("ACTIVATION_PARAMETERIZED_RELU", "ACTIVATION_RELU", "ACTIVATION_RELU_GRAD"),
    *("ELEMENT_WISE_CLIP", "ELEMENT_WISE_CLIP1", "ELEMENT_WISE_CLIP_GRAD"),
    *("ELEMENT_WISE_CLIP_GRAD1", "ELEMENT_WISE_LOGICAL_EQUALS"),
    *("ELEMENT_WISE_LOGICAL_GREATER_THAN", "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL"),
    *("ELEMENT_WISE_LOGICAL_LESS_THAN", "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL", "REDUCE"),
)
def integers_in_float32(case: Case) -> Computed | None:
    """Return the outputs if integers are computed in FLOAT32 from their low 32 bits, signed.

    16777217 becomes 16777216, UINT32 numbers from 2^31 on become negative, and results out of
    INT32's range become the lowest INT32.
    """
    desc, inputs = case.desc, case.inputs()
    if any(array.dtype.kind not in "iu" for array in inputs.values()):
        return None
    words = [array.astype(np.int32).astype(np.float32) for array in inputs.values()]
    with np.errstate(all="ignore"):
        match case.operator_name:
            case "ACTIVATION_RELU":
                real = np.maximum(words[0], np.float32(0))
            case "ACTIVATION_RELU_GRAD":
                real = np.where(words[0] > 0, words[1], np.float32(0))
            case "ACTIVATION_PARAMETERIZED_RELU":
                real = np.where(words[0] < 0, words[0] * words[1], words[0])
            case "ELEMENT_WISE_CLIP_GRAD" | "ELEMENT_WISE_CLIP_GRAD1":
                inside = (words[0] > np.float32(desc["Min"])) & (words[0] < np.float32(desc["Max"]))
                real = np.where(inside, words[1], np.float32(0))
            case name if name in _COMPARISONS:
                real = _COMPARISONS[name](words[0], words[1]).astype(np.float32)
            case "REDUCE":
                if desc["Function"] not in _REDUCED:
                    return None
                combine = _REDUCED[desc["Function"]]
                number = _addends(desc["Function"], inputs["InputTensor"])
                real = combine.reduce(number, axis=tuple(desc["Axes"]), keepdims=True)
            case _:
                least = 0 if desc["InputTensor"].DataType.dtype.kind == "u" else -np.inf
                # Seen: a Max of 2^63 or more counts as 0.
                most = 0 if float(desc["Max"]) >= 2.0**63 else desc["Max"]
                low, high = np.float32(max(desc["Min"], least)), np.float32(most)
                real = np.minimum(np.maximum(words[0], low), high)
    [(output, tensor)] = case.outputs().items()
    return Computed({output: _int32(real).astype(tensor.DataType.dtype)})


def _addends(function: str, tensor: Array) -> Array:
    """Return the numbers that REDUCE combines, FLOAT32; squares are computed in INT32."""
    words = tensor.astype(np.int32)
    if function == "SUM_SQUARE":
        return np.square(words).astype(np.float32)
    real = words.astype(np.float32)
    return np.abs(real) if function == "L1" else real


@of_operators("REDUCE")
def sums_by_steps_in_float32(case: Case) -> Computed | None:
    """Return sums of integers along several axes, with steps along the first axis.

    Each step adds the FLOAT32 sum along the other axes, and truncates the result to INT32. Sums out
    of range become the lowest INT32. Sums up to 4 ULP away are `others`, since the order of adding
    is unknown.
    """
    function, axes = case.desc["Function"], case.desc["Axes"]
    tensor = case.inputs()["InputTensor"]
    if tensor.dtype.kind not in "iu" or _REDUCED.get(function) is not np.add or len(axes) < 2:
        return None
    with np.errstate(all="ignore"):
        steps = np.sum(_addends(function, tensor), axis=tuple(axes[1:]), keepdims=True)
        real = np.zeros(case.desc["OutputTensor"].Sizes, np.float32)
        total = real.astype(np.int32)
        for step in range(tensor.shape[axes[0]]):
            real = total.astype(np.float32) + np.take(steps, [step], axis=axes[0])
            total = _int32(real)
    return _near(real, steps=4, dtype=tensor.dtype)


@of_operators("ELEMENT_WISE_POW")
def powers_in_float32(case: Case) -> Computed | None:
    """Return INT32 powers that are computed in FLOAT32, off by at most 1 ULP.

    Powers out of range become the lowest INT32. The exponents may have another integer type.
    """
    inputs = case.inputs()
    base, exponent = inputs["InputTensor"], inputs["ExponentTensor"]
    if base.dtype != np.int32 or exponent.dtype.kind not in "iu":
        return None
    with np.errstate(all="ignore"):
        power = np.power(base.astype(np.float64), exponent.astype(np.float64)).astype(np.float32)
    return _near(power, steps=1)


@of_operators("ELEMENT_WISE_DIVIDE")
def quotients_in_float32(case: Case) -> Computed | None:
    """Return quotients that are computed in FLOAT32 from integers' low 32 bits, signed.

    Quotients are truncated; those of 8-bit integers may be rounded to nearest. Quotients out of
    INT32's range become the lowest INT32.
    """
    inputs = case.inputs()
    a, b = inputs["ATensor"], inputs["BTensor"]
    if a.dtype.kind not in "iu":
        return None
    with np.errstate(all="ignore"):
        words = [each.astype(np.int32).astype(np.float32) for each in (a, b)]
        quotient = words[0] / words[1]
        truncated, rounded = (_int32(f(quotient)).astype(a.dtype) for f in (np.trunc, np.rint))
    nearest = Computed({"OutputTensor": rounded})
    others = (lambda: iter([nearest])) if a.dtype.itemsize == 1 else None
    return Computed({"OutputTensor": truncated}, others=others)


@of_operators("ELEMENT_WISE_MODULUS_FLOOR", "ELEMENT_WISE_MODULUS_TRUNCATE")
def remainders_in_float32(case: Case) -> Computed | None:
    """Return remainders as a - q * b, where q and each step are rounded to FLOAT32.

    Integers become their low 32 bits, signed; constants of the model become the nearest INT32. For
    floats, q is truncated, and MODULUS_FLOOR adds b to a remainder of another sign than b.
    """
    inputs = case.inputs()
    dtype = inputs["ATensor"].dtype
    is_integer = dtype.kind in "iu"
    is_floor = case.operator_name == "ELEMENT_WISE_MODULUS_FLOOR"
    a, b = (
        (
            _word(inputs[name], is_constant=case.desc[name].Owned) if is_integer else inputs[name]
        ).astype(np.float32)
        for name in ("ATensor", "BTensor")
    )
    with np.errstate(all="ignore"):
        whole = np.floor if is_floor and is_integer else np.trunc
        rest = a - whole(a / b) * b
        if is_integer:
            return Computed({"OutputTensor": _int32(rest).astype(dtype)})
        if is_floor:
            rest = np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
        return Computed({"OutputTensor": rest.astype(dtype)})


def integers_in_int32(case: Case) -> Computed | None:
    """Return an operator's outputs if INT64 and UINT32 are computed in INT32; None for a graph.

    Inputs become their low 32 bits, signed: 2^63 - 1 becomes -1. Constants of the model become the
    nearest INT32: 2^31 - 1. A constant that is subtracted or negated is negated before that.
    """
    if case.nodes:
        return None
    inputs, tensors = case.inputs(), case.graph.inputs
    wide = {name for name, array in inputs.items() if array.dtype in (np.int64, np.uint32)}
    if not wide:
        return None
    words = {
        name: _word(array, is_constant=tensors[name].Owned) if name in wide else array
        for name, array in inputs.items()
    }
    with np.errstate(all="ignore"):
        negated = _NEGATED.get(case.operator_name)
        if negated is not None and negated in wide and tensors[negated].Owned:
            words[negated] = -_word(-inputs[negated].astype(np.int64), is_constant=True)
        try:
            outputs = evaluate(case, words)
        except ValueError:
            return None  # MAX_POOLING of UINT32 takes no INT32.
    right = case.outputs()
    return Computed(
        {name: array.astype(right[name].DataType.dtype) for name, array in outputs.items()}
    )


def _word(array: Array, *, is_constant: bool) -> Array:
    limits = np.iinfo(np.int32)
    return (np.clip(array, limits.min, limits.max) if is_constant else array).astype(np.int32)


@of_operators("ELEMENT_WISE_BIT_SHIFT_LEFT", "ELEMENT_WISE_BIT_SHIFT_RIGHT")
def shifts_by_arithmetic(case: Case) -> Computed | None:
    """Return the outputs of shifts that multiply or divide by powers of 2.

    UINT8 products saturate: 200 << 1 is 255. UINT8 quotients are rounded: 7 >> 1 is 4. UINT32
    quotients go through INT32 and FLOAT32. None for other shifts.
    """
    inputs = case.inputs()
    a, b = inputs["ATensor"], inputs["BTensor"]
    power = np.exp2(b.astype(np.float64))
    if case.operator_name == "ELEMENT_WISE_BIT_SHIFT_LEFT":
        if a.dtype != np.uint8:
            return None
        return Computed({"OutputTensor": np.minimum(a * power, 255).astype(a.dtype)})
    if a.dtype == np.uint8:
        return Computed({"OutputTensor": np.rint(a / power).astype(a.dtype)})
    if a.dtype != np.uint32:
        return None
    real = a.astype(np.int32).astype(np.float32) / _int32(power).astype(np.float32)
    return Computed({"OutputTensor": _int32(np.trunc(real)).astype(a.dtype)})


@of_operators(*_LOGICAL)
def negative_integers_as_false(case: Case) -> Computed | None:
    """Return the outputs of logical operators if UINT32 numbers from 2^31 on are false."""
    inputs = case.inputs()
    true = {
        name: np.where(array < 2**31, array, array.dtype.type(0))
        for name, array in inputs.items()
        if array.dtype == np.uint32
    }
    return Computed(evaluate(case, {**inputs, **true})) if true else None


@of_operators("CONVOLUTION_INTEGER", "MATRIX_MULTIPLY_INTEGER")
def sums_of_products_in_float32(case: Case) -> Computed | None:
    """Return integer sums of products that are computed in FLOAT32, off by at most 2 ULP.

    Sums are clamped to FLOAT32 numbers in INT32's range: 2^31 becomes 2^31 - 128. The greatest sums
    may also become the lowest INT32.
    """
    desc, inputs = case.desc, case.inputs()
    if case.operator_name == "MATRIX_MULTIPLY_INTEGER":
        a = centred(inputs["ATensor"], inputs.get("AZeroPointTensor"))
        b = centred(inputs["BTensor"], inputs.get("BZeroPointTensor"))
        sums = exact_product(a, b)
    else:
        filter_ = centred_filter(inputs["FilterTensor"], inputs.get("FilterZeroPointTensor"))
        zero_point = one_element(inputs.get("InputZeroPointTensor"))
        values = centred(with_four_dimensions(inputs["InputTensor"]), zero_point)
        attributes = (desc[name] for name in ("Strides", "Dilations", "StartPadding", "GroupCount"))
        sums = convolved(values, filter_, desc["OutputTensor"], *attributes)
    held = np.clip(sums.astype(np.float32), np.float32(-(2.0**31)), np.float32(2.0**31 - 128))
    return _near(held.reshape(desc["OutputTensor"].Sizes), steps=2)


@of_operators("ELEMENT_WISE_ADD", "ELEMENT_WISE_MULTIPLY", "ELEMENT_WISE_SUBTRACT")
def saturating_integers(case: Case) -> Computed | None:
    """Return sums, differences and products of 8 bits that saturate: in INT8, 100 * 2 is 127."""
    inputs = case.inputs()
    a, b = inputs["ATensor"], inputs["BTensor"]
    if a.dtype not in (np.int8, np.uint8):
        return None
    combine = _COMBINED[case.operator_name]
    limits = np.iinfo(a.dtype)
    exact = combine(a.astype(np.int32), b.astype(np.int32))
    return Computed({"OutputTensor": np.clip(exact, limits.min, limits.max).astype(a.dtype)})


def _near(real: Array, *, steps: int, dtype: Any = np.int32) -> Computed:
    """Return FLOAT32 numbers as integers; `others` are the numbers up to `steps` ULP away.

    Numbers out of INT32's range become the lowest INT32.
    """

    def moved() -> Iterator[Computed]:
        for direction in (-np.inf, np.inf):
            moving = real
            for _ in range(steps):
                moving = np.nextafter(moving, np.float32(direction))
                yield Computed({"OutputTensor": _int32(moving).astype(dtype)})

    return Computed({"OutputTensor": _int32(real).astype(dtype)}, others=moved)


def _int32(real: Array) -> Array:
    """Return numbers truncated to INT32; NaN and numbers out of range become the lowest INT32."""
    wide = real.astype(np.float64)
    held = (wide > -(2.0**31) - 1) & (wide < 2.0**31)
    return np.where(held, wide, -(2.0**31)).astype(np.int32)
