"""What ONNX Runtime's OpenVINO provider computes instead of the right outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.reference.evaluation import evaluate

__all__ = [
    "default_for_attributes_of_0",
    "integers_in_float32",
    "saturating_integers",
]


@of_operators("ACTIVATION_HARD_SIGMOID")
def default_for_attributes_of_0(case: Case) -> Computed | None:
    """Return what ACTIVATION_HARD_SIGMOID gives if 0 stands for ONNX's default, 0.2 or 0.5."""
    alpha, beta = case.desc["Alpha"] or 0.2, case.desc["Beta"] or 0.5
    other = replace(case, desc={**case.desc, "Alpha": alpha, "Beta": beta})
    return Computed(evaluate(other), around=other)


@of_operators("ACTIVATION_RELU")
def integers_in_float32(case: Case) -> Computed | None:
    """Return what ACTIVATION_RELU gives of INT32 by way of FLOAT32: 16777216 of 16777217."""
    tensor = case.inputs()["InputTensor"]
    if tensor.dtype != np.int32:
        return None
    real = np.maximum(tensor.astype(np.float32), 0).astype(np.float64)
    beyond = real > np.iinfo(np.int32).max
    return Computed(
        {"OutputTensor": np.where(beyond, np.iinfo(np.int32).min, real).astype(np.int32)}
    )


@of_operators("ELEMENT_WISE_ADD", "ELEMENT_WISE_MULTIPLY")
def saturating_integers(case: Case) -> Computed | None:
    """Return sums and products of INT8 and UINT8 that saturate: 127 for 100 times 2."""
    inputs = case.inputs()
    a, b = inputs["ATensor"], inputs["BTensor"]
    if a.dtype not in (np.int8, np.uint8):
        return None
    combine = np.add if case.operator_name == "ELEMENT_WISE_ADD" else np.multiply
    limits = np.iinfo(a.dtype)
    exact = combine(a.astype(np.int32), b.astype(np.int32))
    return Computed({"OutputTensor": np.clip(exact, limits.min, limits.max).astype(a.dtype)})
