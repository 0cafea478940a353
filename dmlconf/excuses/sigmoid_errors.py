"""Find the elements of an output that errors of a runtime's sigmoids may explain.

ONNX Runtime's sigmoid is off by up to 2.4e-7, even where the right value is 1e-8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import activation_of
from dmlconf.faults.runtimes.recurrent_layers import layer_results
from dmlconf.graphs.model import Node
from dmlconf.reference.activation.fused import Activation
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.graph_evaluation import evaluate_nodes, graph_outputs
from dmlconf.reference.recurrent.values import EXACT, ExactArithmetic, Values
from dmlconf.tensors.datatypes import Array

__all__ = ["near_sigmoids"]

_SIGMOID: Final = "ACTIVATION_SIGMOID"
_SIGMOIDS: Final = frozenset({_SIGMOID, "ACTIVATION_SWISH"})
_LAYERS: Final = frozenset({"GRU", "LSTM", "RNN"})

_SAMPLES: Final = 8
"""How many times a graph or a layer is evaluated with sigmoids whose errors have random signs."""


def near_sigmoids(
    case: Case, inputs: Mapping[str, Array], right: Array, actual: Array, absolute: float
) -> Array:
    """Elements of a sigmoid or of x * sigmoid(a * x), also fused, that a sigmoid's error explains.

    The error is `absolute` for a sigmoid, and |x| * `absolute` for x * sigmoid(a * x). In a graph
    or a recurrent layer, the error is 4 times the element's largest error in `_SAMPLES`
    evaluations with sigmoids that are off by `absolute`. One ULP is added to each error.
    """
    if right.dtype.kind != "f":
        return np.zeros(right.shape, bool)
    if case.nodes or case.operator_name in _LAYERS:
        return _behind_sigmoids(case, right, actual, absolute)
    activation, before = activation_of(case)
    if before is None or activation not in _SIGMOIDS:
        return np.zeros(right.shape, bool)
    with np.errstate(all="ignore"):
        number = np.abs(before.astype(np.float64))
        if activation == _SIGMOID:
            number = np.ones_like(number)
        return _within(right, actual, absolute * number)


def _within(right: Array, actual: Array, error: Array) -> Array:
    limit = error + np.spacing(np.abs(right)).astype(np.float64)
    within: Array = np.abs(actual.astype(np.float64) - right.astype(np.float64)) <= limit
    return within


def _behind_sigmoids(case: Case, right: Array, actual: Array, absolute: float) -> Array:
    """Return a mask of elements of a graph or a layer that errors of sigmoids may explain."""
    if not _has_sigmoid(case):
        return np.zeros(right.shape, bool)
    same = (name for name, each in evaluate(case).items() if each.tobytes() == right.tobytes())
    output = next(same, None)
    if output is None:
        return np.zeros(right.shape, bool)
    of = _graph_samples if case.nodes else _layer_samples
    with np.errstate(all="ignore"):
        furthest = np.zeros(right.shape)
        for exact, sample in of(case, absolute):
            furthest = np.fmax(furthest, np.abs(sample[output] - exact[output]))
        return _within(right, actual, 4 * furthest) & (furthest > 0)


def _has_sigmoid(case: Case) -> bool:
    descs = [node.desc for node in case.nodes if isinstance(node, Node)] or [case.desc]
    operators = {node.operator_name for node in case.nodes if isinstance(node, Node)}
    for desc in descs:
        fused = [desc.get("FusedActivation"), *(desc.get("ActivationDescs") or ())]
        operators |= {each["operator"] for each in fused if each is not None}
    return bool(_SIGMOIDS & operators)


_Pair = tuple[Mapping[str, Array], Mapping[str, Array]]
"""The outputs with exact sigmoids, and those with errors, FLOAT64."""


def _graph_samples(case: Case, absolute: float) -> Iterator[_Pair]:
    random = np.random.default_rng(0)
    in_layer = _SigmoidsOff(absolute, random)

    def off(node: Case) -> Mapping[str, Array]:
        computed = evaluate(node)
        if node.operator_name in _LAYERS and _has_sigmoid(node):
            return {
                name: values.astype(computed[name].dtype)
                for name, values in layer_results(node, in_layer).items()
            }
        activation, before = activation_of(node)
        if before is None or activation not in _SIGMOIDS:
            return computed
        values = computed["OutputTensor"]
        error = absolute * random.choice((-1.0, 1.0), values.shape)
        if activation == "ACTIVATION_SWISH":
            error *= before
        return {"OutputTensor": (values + error).astype(values.dtype)}

    exact = _wide(evaluate(case))
    for _ in range(_SAMPLES):
        yield exact, _wide(graph_outputs(case.graph, evaluate_nodes(case, off).outputs))


def _wide(outputs: Mapping[str, Array]) -> Mapping[str, Array]:
    return {name: array.astype(np.float64) for name, array in outputs.items()}


def _layer_samples(case: Case, absolute: float) -> Iterator[_Pair]:
    exact, off = layer_results(case, EXACT), _SigmoidsOff(absolute, np.random.default_rng(0))
    for _ in range(_SAMPLES):
        yield exact, layer_results(case, off)


@dataclass(frozen=True, slots=True)
class _SigmoidsOff(ExactArithmetic):
    """Computes the equations of a layer with sigmoids that are off by `absolute`."""

    absolute: float
    random: np.random.Generator

    def activated(self, sums: Values, activation: Activation) -> Values:
        values = activation.formula(sums.value)
        if activation.desc["operator"] == _SIGMOID:
            values = values + self.absolute * self.random.choice((-1.0, 1.0), values.shape)
        return Values(values)
