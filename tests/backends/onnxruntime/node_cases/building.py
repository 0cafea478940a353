"""Build cases of DirectML's operators from the arrays of ONNX's node tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array
from tests.backends.onnxruntime.node_cases.node_tests import NodeTest
from tests.backends.stated_cases import stated_case

__all__ = ["Conversion", "case_of"]

Conversion = Callable[[NodeTest], Case]


def case_of(
    test: NodeTest,
    operator: str,
    inputs: Mapping[str, Array | None] | None = None,
    outputs: Mapping[str, Array] | None = None,
    **fields: Any,
) -> Case:
    """Return a case of one of DirectML's operators, with tensors by field.

    By default, the test's first input is InputTensor, and its first output is OutputTensor.
    """
    inputs = {"InputTensor": test.input(0)} if inputs is None else inputs
    outputs = {"OutputTensor": test.outputs[0]} if outputs is None else outputs
    return stated_case("onnx", test.name, operator, inputs, outputs, fields)
