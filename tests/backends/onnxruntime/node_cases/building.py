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
"""A function that makes a case of a node test, and raises NoCaseError if DirectML has none."""


def case_of(
    test: NodeTest,
    operator: str,
    inputs: Mapping[str, Array | None] | None = None,
    outputs: Mapping[str, Array] | None = None,
    **fields: Any,
) -> Case:
    """Return a case of an operator.

    Args:
        test: the test.
        operator: the operator of DirectML.
        inputs: the inputs, by field; None for the test's first input as InputTensor.
        outputs: the outputs, by field; None for the test's first output as OutputTensor.
        fields: the desc's other fields; those that are not named are absent.

    Raises:
        NoCaseError: DirectML lacks such tensors, or must refuse the desc.
    """
    inputs = {"InputTensor": test.input(0)} if inputs is None else inputs
    outputs = {"OutputTensor": test.outputs[0]} if outputs is None else outputs
    return stated_case("onnx", test.name, operator, inputs, outputs, fields)
