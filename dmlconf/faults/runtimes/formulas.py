"""The formulas for other runtimes than DirectML, by the names that findings and targets use."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Final

from dmlconf.faults.computed import Formula
from dmlconf.faults.runtimes import (
    onnxruntime,
    onnxruntime_quantization,
    openvino,
    openvino_activations,
    openvino_graphs,
    openvino_integers,
    recurrent_layers,
    specifications,
    specified_activations,
    webnn,
)

__all__ = ["RUNTIME_FORMULAS"]


def _of(module: ModuleType) -> Mapping[str, Formula]:
    return {name: getattr(module, name) for name in module.__all__}


RUNTIME_FORMULAS: Final[Mapping[str, Formula]] = {
    **_of(onnxruntime),
    **_of(onnxruntime_quantization),
    **_of(openvino),
    **_of(openvino_activations),
    **_of(openvino_graphs),
    **_of(openvino_integers),
    "softplus_of_infinite_powers": recurrent_layers.softplus_of_infinite_powers,
    **_of(specifications),
    **_of(specified_activations),
    **_of(webnn),
}
