"""Formulas of activations that another specification, such as ONNX, defines otherwise.

A formula with `of_operators` takes only activations alone; the others also take fused activations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, activation_of, of_operators
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "attributes_of_float16",
    "celu_as_written",
    "elu_as_written",
    "nan_before_clamping",
    "prelu_as_written",
    "selu_as_written",
    "shrink_of_negative_thresholds",
    "softplus_of_infinite_products",
    "thresholded_relu_as_written",
]


@of_operators("ACTIVATION_HARD_SIGMOID", "ACTIVATION_LEAKY_RELU")
def attributes_of_float16(case: Case) -> Computed | None:
    """Return a FLOAT16 activation's output if its attributes are rounded to FLOAT16."""
    tensor, desc = case.inputs()["InputTensor"], case.desc
    if tensor.dtype != np.float16:
        return None
    number = tensor.astype(np.float32)
    with np.errstate(all="ignore"):
        alpha = np.float32(np.float16(desc["Alpha"]))
        if case.operator_name == "ACTIVATION_LEAKY_RELU":
            real = np.where(number < 0, number * alpha, number)
        else:
            beta = np.float32(np.float16(desc["Beta"]))
            real = np.clip(number * alpha + beta, np.float32(0), np.float32(1))
        return Computed({"OutputTensor": real.astype(np.float16)})


def celu_as_written(case: Case) -> Computed | None:
    """Return NaN where `Alpha * (exp(x / Alpha) - 1)` is NaN, as for an Alpha of 0 and x = 2."""

    def product(x: Array, attributes: Mapping[str, float]) -> Array:
        alpha = np.float32(attributes["Alpha"])
        return alpha * (np.exp(x / alpha) - np.float32(1))

    return _nan_where(case, "ACTIVATION_CELU", product)


def elu_as_written(case: Case) -> Computed | None:
    """Return NaN where `Alpha * (exp(x) - 1)` is NaN for x < 0.

    An infinite Alpha gives NaN where exp(x) is 1 in FLOAT32, as for x = -1e-40.
    """

    def product(x: Array, attributes: Mapping[str, float]) -> Array:
        written = np.float32(attributes["Alpha"]) * (np.exp(x) - np.float32(1))
        return np.where(x < 0, written, x)

    return _nan_where(case, "ACTIVATION_ELU", product)


def _linear(x: Array, attributes: Mapping[str, float]) -> Array:
    total: Array = x * np.float32(attributes["Alpha"]) + np.float32(attributes["Beta"])
    return total


def selu_as_written(case: Case) -> Computed | None:
    """Return NaN where `Gamma * (x if x > 0 else Alpha * exp(x) - Alpha)` is NaN.

    With an infinite Alpha and x <= 0, the difference is infinity - infinity.
    """

    def scaled(x: Array, attributes: Mapping[str, float]) -> Array:
        alpha, gamma = np.float32(attributes["Alpha"]), np.float32(attributes["Gamma"])
        return gamma * np.where(x <= 0, alpha * np.exp(x) - alpha, x)

    return _nan_where(case, "ACTIVATION_SCALED_ELU", scaled)


def _nan_where(
    case: Case, activation: str, written: Callable[[Array, Mapping[str, float]], Array]
) -> Computed | None:
    """Return the right output, with NaN where `written` of the activation's input is NaN."""
    found, before = activation_of(case)
    if found != activation or before is None or before.dtype.kind != "f":
        return None
    right = evaluate(case)["OutputTensor"]
    with np.errstate(all="ignore"):
        expression = written(
            before.astype(np.float32), case.desc.get("FusedActivation") or case.desc
        )
    return Computed(
        {"OutputTensor": np.where(np.isnan(expression), right.dtype.type("nan"), right)}
    )


def nan_before_clamping(case: Case) -> Computed | None:
    """Return NaN where `Alpha * x + Beta` is NaN in FLOAT32, as for 0 * infinity."""
    name, _ = activation_of(case)
    if name not in ("ACTIVATION_HARD_SIGMOID", "ACTIVATION_HARD_SWISH"):
        return None
    return _nan_where(case, name, _linear)


@of_operators("ACTIVATION_PARAMETERIZED_RELU")
def prelu_as_written(case: Case) -> Computed | None:
    """Return NaN where `max(0, x) + slope * min(0, x)` is NaN, as for x = 1 and an infinite slope.

    The maximum or minimum of 0 and NaN is NaN.
    """
    inputs, right = case.inputs(), evaluate(case)["OutputTensor"]
    x, slope = inputs["InputTensor"], inputs["SlopeTensor"]
    if x.dtype.kind != "f":
        return None
    zero = x.dtype.type(0)
    with np.errstate(all="ignore"):
        written = np.maximum(zero, x) + slope * np.minimum(zero, x)
    return Computed({"OutputTensor": np.where(np.isnan(written), written, right)})


def shrink_of_negative_thresholds(case: Case) -> Computed | None:
    """Return ONNX's output of ACTIVATION_SHRINK if Threshold is negative.

    x < -Threshold gives x + Bias; any other x > Threshold gives x - Bias. NaN gives 0.
    """
    activation, before = activation_of(_with_float32_output(case))
    if activation != "ACTIVATION_SHRINK" or before is None or before.dtype.kind != "f":
        return None
    attributes = case.desc.get("FusedActivation") or case.desc
    threshold, bias = attributes["Threshold"], np.float32(attributes["Bias"])
    if not threshold < 0:
        return None
    numbers = before.astype(np.float32)
    below, above = numbers < -threshold, numbers > threshold
    shrunk = np.where(below, numbers + bias, np.where(above, numbers - bias, np.float32(0)))
    return Computed({"OutputTensor": shrunk.astype(case.desc["OutputTensor"].DataType.dtype)})


def thresholded_relu_as_written(case: Case) -> Computed | None:
    """Return x where x > Alpha, and 0 otherwise, also if x or Alpha is NaN."""
    activation, before = activation_of(_with_float32_output(case))
    if activation != "ACTIVATION_THRESHOLDED_RELU" or before is None:
        return None
    alpha = np.float32((case.desc.get("FusedActivation") or case.desc)["Alpha"])
    right = evaluate(case)["OutputTensor"]
    undefined = np.isnan(before) | np.isnan(alpha)
    return Computed({"OutputTensor": np.where(undefined, right.dtype.type(0), right)})


def _with_float32_output(case: Case) -> Case:
    """Return the case with an output of FLOAT32 in place of FLOAT16."""
    if (
        "OutputTensor" not in case.desc
        or case.desc["OutputTensor"].DataType is not DataType.FLOAT16
    ):
        return case
    output = replace(case.desc["OutputTensor"], DataType=DataType.FLOAT32)
    return replace(case, desc={**case.desc, "OutputTensor": output})


def softplus_of_infinite_products(case: Case) -> Computed | None:
    """Return a softplus with +infinity where x * Steepness or x * Beta overflows FLOAT32."""
    activation, before = activation_of(case)
    field = {"ACTIVATION_SOFTPLUS": "Steepness", "ACTIVATION_PARAMETRIC_SOFTPLUS": "Beta"}
    if activation not in field or before is None or before.dtype.kind != "f":
        return None
    factor = (case.desc.get("FusedActivation") or case.desc)[field[activation]]
    with np.errstate(over="ignore"):
        infinite = np.isposinf(before.astype(np.float32) * np.float32(factor))
    right = evaluate(case)["OutputTensor"]
    return Computed({"OutputTensor": np.where(infinite, right.dtype.type(np.inf), right)})
