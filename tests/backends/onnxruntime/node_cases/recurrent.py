"""Convert ONNX's node tests of recurrent layers into cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array
from tests.backends.onnxruntime.node_cases.building import Conversion, case_of
from tests.backends.onnxruntime.node_cases.node_tests import NodeTest
from tests.backends.stated_cases import NoCaseError, with_rank
from tests.backends.stated_descs import recurrent_fields

__all__ = ["CONVERSIONS"]

_ACTIVATIONS: Final = {
    "RNN": ("ACTIVATION_TANH",),
    "GRU": ("ACTIVATION_SIGMOID", "ACTIVATION_TANH"),
    "LSTM": ("ACTIVATION_SIGMOID", "ACTIVATION_TANH", "ACTIVATION_TANH"),
}
_INPUTS: Final = ("Weight", "Recurrence", "Bias", "", "HiddenInit", "CellMemInit", "Peephole")
"""DirectML's names of ONNX's second and further inputs; ONNX's `sequence_lens` has none."""


def _recurrent(test: NodeTest) -> Case:
    if test.attributes.get("layout"):
        raise NoCaseError("batches before steps")
    if test.attributes["direction"] != "forward" or test.attributes.get("clip"):
        raise NoCaseError("a direction or a clip")
    if len(test.outputs) > 1 or test.outputs[0].ndim != 3:
        raise NoCaseError("several outputs")
    fields = recurrent_fields(
        test.operation,
        _ACTIVATIONS[test.operation],
        "FORWARD",
        linear_before_reset=bool(test.attributes.get("linear_before_reset")),
    )
    outputs = {"OutputSingleTensor": test.outputs[0][np.newaxis]}
    return case_of(test, test.operation, _inputs(test), outputs, **fields)


def _inputs(test: NodeTest) -> dict[str, Array | None]:
    inputs: dict[str, Array | None] = {"InputTensor": test.input(0)[np.newaxis]}
    for index, name in enumerate(_INPUTS, 1):
        array = test.optional(index)
        if array is not None and name:
            inputs[f"{name}Tensor"] = with_rank(array, 4)
    return inputs


CONVERSIONS: Final[Mapping[str, Conversion]] = dict.fromkeys(_ACTIVATIONS, _recurrent)
