"""Convert WebNN's tests of element-wise functions and activations into cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from tests.backends.stated_cases import data_type
from tests.backends.webnn.wpt_cases.building import Conversion, case_of, operands
from tests.backends.webnn.wpt_cases.wpt_tests import WptTest

__all__ = ["CONVERSIONS"]

_ELEMENT_WISE: Final = (
    *("abs", "ceil", "cos", "erf", "exp", "floor", "identity", "log", "sign", "sin", "sqrt"),
    "tan",
)
_UNARY: Final = {
    **{name: f"ELEMENT_WISE_{name.upper()}" for name in _ELEMENT_WISE},
    "cast": "CAST",
    "elu": "ACTIVATION_ELU",
    "gelu": "ACTIVATION_GELU",
    "hardSigmoid": "ACTIVATION_HARD_SIGMOID",
    "hardSwish": "ACTIVATION_HARD_SWISH",
    "isNaN": "ELEMENT_WISE_IS_NAN",
    "isInfinite": "ELEMENT_WISE_IS_INFINITY",
    "leakyRelu": "ACTIVATION_LEAKY_RELU",
    "linear": "ACTIVATION_LINEAR",
    "logicalNot": "ELEMENT_WISE_LOGICAL_NOT",
    "neg": "ELEMENT_WISE_NEGATE",
    "reciprocal": "ELEMENT_WISE_RECIP",
    "relu": "ACTIVATION_RELU",
    "roundEven": "ELEMENT_WISE_ROUND",
    "sigmoid": "ACTIVATION_SIGMOID",
    "softplus": "ACTIVATION_SOFTPLUS",
    "softsign": "ACTIVATION_SOFTSIGN",
    "tanh": "ACTIVATION_TANH",
}
_FIELDS_OF_UNARY: Final[Mapping[str, Callable[[WptTest], Mapping[str, Any]]]] = {
    "elu": lambda t: {"Alpha": t.number("alpha", 1)},
    "hardSigmoid": lambda t: {"Alpha": t.number("alpha", 0.2), "Beta": t.number("beta", 0.5)},
    "hardSwish": lambda t: {"Alpha": 1 / 6, "Beta": 0.5},
    "isInfinite": lambda t: {"InfinityMode": "EITHER"},
    "leakyRelu": lambda t: {"Alpha": t.number("alpha", 0.01)},
    "linear": lambda t: {"Alpha": t.number("alpha", 1), "Beta": t.number("beta", 0)},
    "roundEven": lambda t: {"RoundingMode": "HALVES_TO_NEAREST_EVEN"},
    "softplus": lambda t: {"Steepness": 1.0},
}
_BINARY: Final = {
    "add": "ELEMENT_WISE_ADD",
    "div": "ELEMENT_WISE_DIVIDE",
    "equal": "ELEMENT_WISE_LOGICAL_EQUALS",
    "greater": "ELEMENT_WISE_LOGICAL_GREATER_THAN",
    "greaterOrEqual": "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL",
    "lesser": "ELEMENT_WISE_LOGICAL_LESS_THAN",
    "lesserOrEqual": "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL",
    "max": "ELEMENT_WISE_MAX",
    "min": "ELEMENT_WISE_MIN",
    "mul": "ELEMENT_WISE_MULTIPLY",
    "sub": "ELEMENT_WISE_SUBTRACT",
}
_LOGICAL: Final = {
    "logicalAnd": "ELEMENT_WISE_LOGICAL_AND",
    "logicalOr": "ELEMENT_WISE_LOGICAL_OR",
    "logicalXor": "ELEMENT_WISE_LOGICAL_XOR",
}


def _unary(test: WptTest) -> Case:
    fields_of = _FIELDS_OF_UNARY.get(test.operation)
    fields = fields_of(test) if fields_of is not None else {}
    return case_of(test, _UNARY[test.operation], **fields)


def _binary(test: WptTest) -> Case:
    operator = {**_BINARY, **_LOGICAL}[test.operation]
    return case_of(test, operator, operands(test, ATensor="a", BTensor="b"))


def _pow(test: WptTest) -> Case:
    inputs = operands(test, InputTensor="a", ExponentTensor="b")
    return case_of(test, "ELEMENT_WISE_POW", inputs)


def _prelu(test: WptTest) -> Case:
    inputs = operands(test, InputTensor="input", SlopeTensor="slope")
    return case_of(test, "ACTIVATION_PARAMETERIZED_RELU", inputs)


def _where(test: WptTest) -> Case:
    names = {"ConditionTensor": "condition", "ATensor": "trueValue", "BTensor": "falseValue"}
    return case_of(test, "ELEMENT_WISE_IF", operands(test, **names))


def _clamp(test: WptTest) -> Case:
    tensor = test.input("input")
    low, high = -np.inf, np.inf
    if tensor.dtype.kind != "f":
        low, high = np.iinfo(tensor.dtype).min, np.iinfo(tensor.dtype).max
    return case_of(
        test,
        "ELEMENT_WISE_CLIP1",
        MinMaxDataType=data_type(tensor),
        Min=test.arguments.get("minValue", low),
        Max=test.arguments.get("maxValue", high),
    )


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    **dict.fromkeys(_UNARY, _unary),
    **dict.fromkeys([*_BINARY, *_LOGICAL], _binary),
    "clamp": _clamp,
    "pow": _pow,
    "prelu": _prelu,
    "where": _where,
}
