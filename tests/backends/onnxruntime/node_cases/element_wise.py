"""Convert ONNX's node tests of element-wise functions and activations into cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array
from tests.backends.onnxruntime.node_cases.building import Conversion, case_of
from tests.backends.onnxruntime.node_cases.node_tests import NodeTest
from tests.backends.stated_cases import NoCaseError, data_type

__all__ = ["CONVERSIONS"]

_ELEMENT_WISE: Final = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf"),
    *("Exp", "Floor", "Identity", "Log", "Round", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh"),
)
_ACTIVATION: Final = ("Celu", "Elu", "Relu", "Shrink", "Sigmoid", "Softplus", "Softsign", "Swish")
_UNARY: Final = {
    **{name: f"ELEMENT_WISE_{name.upper()}" for name in _ELEMENT_WISE},
    **{name: f"ACTIVATION_{name.upper()}" for name in _ACTIVATION},
    "BitwiseNot": "ELEMENT_WISE_BIT_NOT",
    "Cast": "CAST",
    "HardSigmoid": "ACTIVATION_HARD_SIGMOID",
    "HardSwish": "ACTIVATION_HARD_SWISH",
    "IsNaN": "ELEMENT_WISE_IS_NAN",
    "LeakyRelu": "ACTIVATION_LEAKY_RELU",
    "Neg": "ELEMENT_WISE_NEGATE",
    "Not": "ELEMENT_WISE_LOGICAL_NOT",
    "Reciprocal": "ELEMENT_WISE_RECIP",
    "Selu": "ACTIVATION_SCALED_ELU",
    "ThresholdedRelu": "ACTIVATION_THRESHOLDED_RELU",
}
_FIELDS_OF_UNARY: Final[Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]]] = {
    "Round": lambda a: {"RoundingMode": "HALVES_TO_NEAREST_EVEN"},
    "Softplus": lambda a: {"Steepness": 1.0},
    "Swish": lambda a: {"SigmoidInputScale": a["alpha"]},
    "HardSwish": lambda a: {"Alpha": 1 / 6, "Beta": 0.5},
    "Celu": lambda a: {"Alpha": a["alpha"]},
    "Elu": lambda a: {"Alpha": a["alpha"]},
    "LeakyRelu": lambda a: {"Alpha": a["alpha"]},
    "ThresholdedRelu": lambda a: {"Alpha": a["alpha"]},
    "HardSigmoid": lambda a: {"Alpha": a["alpha"], "Beta": a["beta"]},
    "Selu": lambda a: {"Alpha": a["alpha"], "Gamma": a["gamma"]},
    "Shrink": lambda a: {"Bias": a["bias"], "Threshold": a["lambd"]},
}
_BINARY: Final = {
    "Add": "ELEMENT_WISE_ADD1",
    "And": "ELEMENT_WISE_LOGICAL_AND",
    "BitwiseAnd": "ELEMENT_WISE_BIT_AND",
    "BitwiseOr": "ELEMENT_WISE_BIT_OR",
    "BitwiseXor": "ELEMENT_WISE_BIT_XOR",
    "Div": "ELEMENT_WISE_DIVIDE",
    "Equal": "ELEMENT_WISE_LOGICAL_EQUALS",
    "Greater": "ELEMENT_WISE_LOGICAL_GREATER_THAN",
    "GreaterOrEqual": "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL",
    "Less": "ELEMENT_WISE_LOGICAL_LESS_THAN",
    "LessOrEqual": "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL",
    "Max": "ELEMENT_WISE_MAX",
    "Mean": "ELEMENT_WISE_MEAN",
    "Min": "ELEMENT_WISE_MIN",
    "Mul": "ELEMENT_WISE_MULTIPLY",
    "Or": "ELEMENT_WISE_LOGICAL_OR",
    "Sub": "ELEMENT_WISE_SUBTRACT",
    "Sum": "ELEMENT_WISE_ADD",
    "Xor": "ELEMENT_WISE_LOGICAL_XOR",
}


def _unary(test: NodeTest) -> Case:
    fields_of = _FIELDS_OF_UNARY.get(test.operation)
    fields = fields_of(test.attributes) if fields_of is not None else {}
    return case_of(test, _UNARY[test.operation], **fields)


def _gelu(test: NodeTest) -> Case:
    if test.attributes["approximate"] != "none":
        raise NoCaseError("an approximation that DirectML lacks")
    return case_of(test, "ACTIVATION_GELU")


def _is_infinity(test: NodeTest) -> Case:
    signs = test.attributes["detect_negative"], test.attributes["detect_positive"]
    mode = {(1, 1): "EITHER", (0, 1): "POSITIVE", (1, 0): "NEGATIVE"}[signs]
    return case_of(test, "ELEMENT_WISE_IS_INFINITY", InfinityMode=mode)


def _operands(test: NodeTest, *names: str) -> dict[str, Array]:
    """Return the inputs by these names, each with the output's sizes."""
    if len(test.inputs) != len(names):
        raise NoCaseError("other than two operands")
    sizes = test.outputs[0].shape
    return {name: np.broadcast_to(test.input(n), sizes) for n, name in enumerate(names)}


def _binary(test: NodeTest) -> Case:
    return case_of(test, _BINARY[test.operation], _operands(test, "ATensor", "BTensor"))


def _shift(test: NodeTest) -> Case:
    operator = f"ELEMENT_WISE_BIT_SHIFT_{test.attributes['direction']}"
    return case_of(test, operator, _operands(test, "ATensor", "BTensor"))


def _mod(test: NodeTest) -> Case:
    kind = "TRUNCATE" if test.attributes["fmod"] else "FLOOR"
    return case_of(test, f"ELEMENT_WISE_MODULUS_{kind}", _operands(test, "ATensor", "BTensor"))


def _pow(test: NodeTest) -> Case:
    return case_of(test, "ELEMENT_WISE_POW", _operands(test, "InputTensor", "ExponentTensor"))


def _prelu(test: NodeTest) -> Case:
    operands = _operands(test, "InputTensor", "SlopeTensor")
    return case_of(test, "ACTIVATION_PARAMETERIZED_RELU", operands)


def _where(test: NodeTest) -> Case:
    operands = _operands(test, "ConditionTensor", "ATensor", "BTensor")
    return case_of(test, "ELEMENT_WISE_IF", operands)


def _clip(test: NodeTest) -> Case:
    tensor = test.input(0)
    limits = np.finfo(tensor.dtype) if tensor.dtype.kind == "f" else np.iinfo(tensor.dtype)
    low, high = test.optional(1), test.optional(2)
    return case_of(
        test,
        "ELEMENT_WISE_CLIP1",
        MinMaxDataType=data_type(tensor),
        Min=float(limits.min) if low is None else low.item(),
        Max=float(limits.max) if high is None else high.item(),
    )


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    **dict.fromkeys(_UNARY, _unary),
    **dict.fromkeys(_BINARY, _binary),
    "BitShift": _shift,
    "Clip": _clip,
    "Gelu": _gelu,
    "IsInf": _is_infinity,
    "Mod": _mod,
    "PRelu": _prelu,
    "Pow": _pow,
    "Where": _where,
}
