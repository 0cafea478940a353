"""The activations of GRU, LSTM and RNN, as ONNX and WebNN name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dmlconf.expressions import Namespace
from dmlconf.translation.program import NotExpressibleError

__all__ = ["RECURRENT_VALUES"]

_ONNX: Final = {
    "ACTIVATION_RELU": ("Relu", ()),
    "ACTIVATION_TANH": ("Tanh", ()),
    "ACTIVATION_SIGMOID": ("Sigmoid", ()),
    "ACTIVATION_LINEAR": ("Affine", ("Alpha", "Beta")),
    "ACTIVATION_LEAKY_RELU": ("LeakyRelu", ("Alpha",)),
    "ACTIVATION_THRESHOLDED_RELU": ("ThresholdedRelu", ("Alpha",)),
    "ACTIVATION_SCALED_TANH": ("ScaledTanh", ("Alpha", "Beta")),
    "ACTIVATION_HARD_SIGMOID": ("HardSigmoid", ("Alpha", "Beta")),
    "ACTIVATION_ELU": ("Elu", ("Alpha",)),
    "ACTIVATION_SOFTSIGN": ("Softsign", ()),
}
"""ONNX's names of activations, with the fields that ONNX takes; `_onnx` adds Softplus."""

_WEBNN: Final = {
    "ACTIVATION_RELU": "relu",
    "ACTIVATION_TANH": "tanh",
    "ACTIVATION_SIGMOID": "sigmoid",
}


def _onnx(names: Namespace) -> list[tuple[str, Mapping[str, Any]]]:
    activations: list[tuple[str, Mapping[str, Any]]] = []
    for each in names["ActivationDescs"]:
        known = _ONNX.get(each["operator"])
        if each["operator"] == "ACTIVATION_SOFTPLUS" and each["Steepness"] == 1:
            known = ("Softplus", ())
        if known is None:
            raise NotExpressibleError(f"a recurrent operator with {each['operator']}")
        activations.append((known[0], {name: each[name] for name in known[1]}))
    return activations


def _activations(names: Namespace) -> tuple[str, ...]:
    return tuple(name for name, _ in _onnx(names))


def _alphas(names: Namespace) -> tuple[float, ...] | None:
    values = tuple(float(fields["Alpha"]) for _, fields in _onnx(names) if "Alpha" in fields)
    return values or None


def _betas(names: Namespace) -> tuple[float, ...] | None:
    values = tuple(float(fields["Beta"]) for _, fields in _onnx(names) if "Beta" in fields)
    return values or None


def _webnn(names: Namespace) -> tuple[str, ...]:
    activations = []
    for each in names["ActivationDescs"]:
        if each["operator"] not in _WEBNN:
            raise NotExpressibleError(f"a recurrent operator with {each['operator']}")
        activations.append(_WEBNN[each["operator"]])
    half = len(activations) // 2
    if names["Direction"] == "BIDIRECTIONAL" and activations[:half] != activations[half:]:
        raise NotExpressibleError("a recurrent operator with other activations backward")
    return tuple(activations[:half] if names["Direction"] == "BIDIRECTIONAL" else activations)


RECURRENT_VALUES: Final[Mapping[str, Callable[[Namespace], Any]]] = {
    "recurrent_activations": _activations,
    "recurrent_alphas": _alphas,
    "recurrent_betas": _betas,
    "webnn_activations": _webnn,
}
"""Functions that compute an attribute from the desc, by their names in formulas.

They raise `NotExpressibleError` if the target lacks an activation or, for WebNN, if the activations
of the two directions differ."""
