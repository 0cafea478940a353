"""Formulas of wrong results of ONNX Runtime's OpenVINO provider: activations and EXP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, activation_of, of_operators
from dmlconf.reference.evaluation import evaluate

__all__ = [
    "default_for_attributes_of_0",
    "exponentials_beyond_2_to_127_5",
    "infinite_gelu_as_nan",
    "products_of_0_and_infinity",
    "thresholds_of_infinities_as_nan",
]

_DEFAULTS: Final[Mapping[str, Mapping[str, float]]] = {
    "ACTIVATION_HARD_SIGMOID": {"Alpha": 0.2, "Beta": 0.5},
    "ACTIVATION_HARD_SWISH": {"Alpha": 0.2, "Beta": 0.5},
    "ACTIVATION_SCALED_ELU": {"Alpha": 1.6732632423543772, "Gamma": 1.0507009873554805},
}
"""ONNX's default attributes of HardSigmoid, for HARD_SIGMOID and HARD_SWISH, and of Selu."""


@of_operators(*_DEFAULTS)
def default_for_attributes_of_0(case: Case) -> Computed | None:
    """Return an activation's output if ONNX's defaults replace attributes of 0.

    Attributes of ACTIVATION_HARD_SIGMOID are rounded to the input's data type first: in FLOAT16, an
    Alpha of 1e-9 becomes 0, and then 0.2.
    """
    defaults = _DEFAULTS[case.operator_name]
    stated = {name: case.desc[name] for name in defaults}
    if case.operator_name == "ACTIVATION_HARD_SIGMOID":
        dtype = case.desc["InputTensor"].DataType.dtype
        stated = {name: float(dtype.type(number)) for name, number in stated.items()}
    other = {name: stated[name] or default for name, default in defaults.items()}
    changed = replace(case, desc={**case.desc, **other})
    return Computed(evaluate(changed), around=changed)


@of_operators("ELEMENT_WISE_EXP")
def exponentials_beyond_2_to_127_5(case: Case) -> Computed | None:
    """Return ELEMENT_WISE_EXP's output with infinity from 2^127.5 on, and for NaN."""
    tensor, by = case.inputs()["InputTensor"].astype(np.float32), case.desc["ScaleBias"]
    if by is not None:
        with np.errstate(invalid="ignore"):
            tensor = tensor * np.float32(by["Scale"]) + np.float32(by["Bias"])
    right = evaluate(case)["OutputTensor"]
    beyond = ~(tensor < 127.5 * log(2))
    return Computed({"OutputTensor": np.where(beyond, right.dtype.type(np.inf), right)})


def infinite_gelu_as_nan(case: Case) -> Computed | None:
    """Return ACTIVATION_GELU's output, alone or fused, if positive infinity gives NaN."""
    activation, before = activation_of(case)
    if activation != "ACTIVATION_GELU" or before is None:
        return None
    right = evaluate(case)["OutputTensor"]
    nan = right.dtype.type(np.nan)
    return Computed({"OutputTensor": np.where(np.isposinf(before), nan, right)})


def thresholds_of_infinities_as_nan(case: Case) -> Computed | None:
    """Return the outputs of activations that multiply by 0 or 1 where they should choose.

    0 times infinity is NaN: ACTIVATION_THRESHOLDED_RELU is NaN for -infinity, ACTIVATION_SHRINK for
    both infinities, and both for NaN.
    """
    activation, before = activation_of(case)
    if before is None or before.dtype.kind != "f":
        return None
    kept = np.isfinite(before)
    if activation == "ACTIVATION_THRESHOLDED_RELU":
        kept |= np.isposinf(before)
    elif activation != "ACTIVATION_SHRINK":
        return None
    right = evaluate(case)["OutputTensor"]
    return Computed({"OutputTensor": np.where(kept, right, right.dtype.type(np.nan))})


@of_operators("ACTIVATION_ELU")
def products_of_0_and_infinity(case: Case) -> Computed | None:
    """Return ACTIVATION_ELU's output if 0 gives NaN: an infinite Alpha times 0 is NaN."""
    if np.isfinite(case.desc["Alpha"]):
        return None
    tensor, right = case.inputs()["InputTensor"], evaluate(case)["OutputTensor"]
    return Computed({"OutputTensor": np.where(tensor == 0, right.dtype.type(np.nan), right)})
