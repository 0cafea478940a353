"""Workloads of normalisations and recurrent layers, as networks have them, for timing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from benchmarks.workloads import SQUARE, Workload, desc, random_tensor
from dmlconf.tensors.datatypes import Array

__all__ = ["layers"]

STEPS, HIDDEN = 32, 128

RECURRENT: Final[Mapping[str, tuple[int, list[str], dict[str, Any]]]] = {
    "LSTM": (
        4,
        ["SIGMOID", "TANH", "TANH"],
        {"ClipThreshold": 0.0, "UseClipThreshold": False, "CoupleInputForget": False},
    ),
    "GRU": (3, ["SIGMOID", "TANH"], {"LinearBeforeReset": False}),
    "RNN": (1, ["TANH"], {}),
}
"""Number of gates, activations, and specific fields of each operator."""


def layers() -> Iterator[Workload]:
    """Yield every workload; its arrays are generated on demand."""
    yield from _normalizations(random_tensor(1, 64, 112, 112, low=-1))
    for operator in RECURRENT:
        yield _recurrent(operator)


def _normalizations(image: Array) -> Iterator[Workload]:
    family = "normalization"
    scale, bias, mean, variance = (random_tensor(64, seed=seed) for seed in range(4))
    shaped = {
        f"{name}Tensor": values.reshape(1, 64, 1, 1)
        for name, values in zip(
            ("Scale", "Bias", "Mean", "Variance"), (scale, bias, mean, variance), strict=True
        )
    }
    tensors = {"InputTensor": image, "OutputTensor": desc(*image.shape)}
    common = {**tensors, "Epsilon": 1e-5}
    batch = {**common, **shaped, "Spatial": True}
    name = "BATCH_NORMALIZATION"
    feeds = [image, scale, bias, mean, variance]
    yield Workload(family, name, name, batch, "BatchNormalization", feeds)
    fields = {**common, "Axes": [2, 3], "NormalizeVariance": True}
    fields |= {name: shaped[name] for name in ("ScaleTensor", "BiasTensor")}
    name = "MEAN_VARIANCE_NORMALIZATION1"
    feeds = [image, scale, bias]
    yield Workload(family, name, name, fields, "InstanceNormalization", feeds)
    name = "LOCAL_RESPONSE_NORMALIZATION"
    response = {"CrossChannel": True, "LocalSize": 5, "Alpha": 1e-4, "Beta": 0.75, "Bias": 1.0}
    sizes = {"size": 5, "alpha": 1e-4, "beta": 0.75, "bias": 1.0}
    yield Workload(family, name, name, {**tensors, **response}, "LRN", [image], sizes)
    square = random_tensor(*SQUARE)
    name = "LP_NORMALIZATION"
    for order in (1, 2):
        norm = {
            "InputTensor": square,
            "OutputTensor": desc(*SQUARE),
            "Axis": 1,
            "Epsilon": 0.0,
            "P": order,
        }
        attributes = {"axis": 1, "p": order}
        yield Workload(
            family, f"{name}, P {order}", name, norm, "LpNormalization", [square], attributes
        )


def _recurrent(operator: str) -> Workload:
    gates, activations, fields = RECURRENT[operator]
    x = random_tensor(STEPS, 1, HIDDEN, low=-1)
    weight, recurrence = (
        random_tensor(1, gates * HIDDEN, HIDDEN, seed=seed, low=-0.1, high=0.1) for seed in (2, 3)
    )
    fields = {
        "InputTensor": x[np.newaxis],
        "WeightTensor": weight[np.newaxis],
        "RecurrenceTensor": recurrence[np.newaxis],
        "OutputSequenceTensor": desc(STEPS, 1, 1, HIDDEN),
        "ActivationDescs": [{"operator": f"ACTIVATION_{name}"} for name in activations],
        "Direction": "FORWARD",
        **fields,
    }
    name = f"{operator} of {HIDDEN} hidden nodes, {STEPS} steps"
    feeds, attributes = [x, weight, recurrence], {"hidden_size": HIDDEN}
    return Workload("recurrent networks", name, operator, fields, operator, feeds, attributes)
