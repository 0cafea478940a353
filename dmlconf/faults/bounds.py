"""Faults of CLIP and CLIP_GRAD: wrong bounds, or integers compared in another order.

The module `signed_low_words` says which order, and uses `clipped` and `passed_gradient`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["clipped", "infinity_as_the_least_integer", "passed_gradient"]

_FLOATS = {"FLOAT64", "FLOAT32", "FLOAT16"}

_KernelBound = Callable[[str, Array], Array]
"""Takes the name of a bound (`Min` or `Max`) and the right bound; returns the kernel's bound."""


def clipped(case: Case, key: Callable[[Array], Array]) -> Array:
    """Return the integers that CLIP gives with another order of numbers.

    Args:
        key: the kernel compares key(a) and key(b) instead of a and b; `key` is its own inverse.
    """
    tensor = case.desc["InputTensor"].DataType
    scaled = evaluate(_clip1(case, int(tensor.minimum), int(tensor.maximum)))["OutputTensor"]
    low, high = (_bound(case, name) for name in ("Min", "Max"))
    return key(np.maximum(key(low), np.minimum(key(scaled), key(high))))


def passed_gradient(case: Case, kernel_bound: _KernelBound, key: Callable[[Array], Array]) -> Array:
    """Return the gradient of integers that CLIP_GRAD gives with other bounds or another order.

    Args:
        kernel_bound: returns the kernel's bounds.
        key: as in `clipped`.
    """
    inputs, desc = case.inputs(), case.desc
    clip = {
        "InputTensor": desc["InputTensor"],
        "OutputTensor": desc["OutputGradientTensor"],
        "ScaleBias": None,
        "MinMaxDataType": desc.get("MinMaxDataType", "FLOAT32"),
        "Min": desc["Min"],
        "Max": desc["Max"],
    }
    clipping = replace(case, operator_name="ELEMENT_WISE_CLIP1", desc=clip).with_data(inputs)
    low, high = (key(kernel_bound(name, _bound(clipping, name))) for name in ("Min", "Max"))
    element, gradient = key(inputs["InputTensor"]), inputs["InputGradientTensor"]
    return np.where((element > low) & (element < high), gradient, gradient.dtype.type(0))


def _clip1(case: Case, low: int, high: int) -> Case:
    """Return a CLIP1 of the same integers with other bounds, in the integers' own type."""
    own_type = {"Min": low, "Max": high, "MinMaxDataType": str(case.desc["InputTensor"].DataType)}
    return replace(case, operator_name="ELEMENT_WISE_CLIP1", desc={**case.desc, **own_type})


def _bound(case: Case, name: str) -> Array:
    """Return a bound in the tensor's type: the result of clipping to this bound on both sides."""
    bound = case.desc[name]
    return evaluate(replace(case, desc={**case.desc, "Min": bound, "Max": bound}))["OutputTensor"]


def infinity_as_the_least_integer(case: Case) -> Computed | None:
    """Return the integers of CLIP or CLIP_GRAD if a bound above the greatest integer overflows.

    The bound becomes 2^63 in UINT64, 0 in shorter unsigned types, and the least number in signed
    types. The fault concerns floating-point bounds as wide as the integers, and FLOAT32 bounds of
    64-bit integers. FLOAT32 rounds the bound 2147483647 to 2147483648, so it overflows in INT32.
    None for other bounds.
    """
    tensor = case.desc["InputTensor"].DataType
    held_as = case.desc.get("MinMaxDataType", "FLOAT32")
    if tensor.is_float or held_as not in _FLOATS:
        return None
    bits = DataType[held_as].bits
    if not (bits == tensor.bits or (tensor.bits == 64 and bits == 32)):
        return None
    with np.errstate(over="ignore"):
        bounds = {name: np.array(case.desc[name], held_as.lower()) for name in ("Min", "Max")}
    above = {name for name, bound in bounds.items() if float(bound) > int(tensor.maximum)}
    if not above:
        return None
    overflow = 1 << 63 if tensor is DataType.UINT64 else int(tensor.minimum)

    def kernel_bound(name: str, bound: Array) -> Array:
        return np.full_like(bound, overflow) if name in above else bound

    def in_order(values: Array) -> Array:
        return values

    if "OutputGradientTensor" in case.desc:
        return Computed({"OutputGradientTensor": passed_gradient(case, kernel_bound, in_order)})
    low, high = (int(kernel_bound(name, _bound(case, name)).flat[0]) for name in ("Min", "Max"))
    bounded = _clip1(case, low, high)
    return Computed(evaluate(bounded), around=bounded)
