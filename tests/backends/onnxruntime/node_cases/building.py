"""Cases of DirectML's operators, built of the arrays of ONNX's node tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import About, Case, ExpectedOutputs, Location, Provenance
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array, DataType
from tests.backends.onnxruntime.node_cases.node_tests import NoCaseError, NodeTest

__all__ = [
    "NO_ELEMENTS",
    "Conversion",
    "by_channel",
    "case_of",
    "data_type",
    "tensor_desc",
    "tensor_of",
    "with_rank",
]

Conversion = Callable[[NodeTest], Case]
"""Makes a case of a node test.

Raises:
    NoCaseError: there is no such case.
"""

NO_ELEMENTS: Final = "tensors of more than eight dimensions, or without elements"

_MOST_DIMENSIONS: Final = 8
_TYPES: Final = {each.dtype: each for each in DataType if each.bits >= 8}


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
        NoCaseError: DirectML must refuse it.
    """
    inputs = {"InputTensor": test.input(0)} if inputs is None else inputs
    outputs = {"OutputTensor": test.outputs[0]} if outputs is None else outputs
    data = {name: tensor_of(each) for name, each in inputs.items() if each is not None}
    expected = {name: tensor_of(each) for name, each in outputs.items()}
    descs = {name: tensor_desc(each) for name, each in {**data, **expected}.items()}
    case = Case(
        identifier=f"onnx/{test.name}",
        operator_name=operator,
        desc={
            each.name: descs.get(each.name, fields.get(each.name))
            for each in catalogue.operator(operator).fields
        },
        data=data,
        expectation=ExpectedOutputs(expected, Provenance.STATED),
        tags=("onnx",),
        about=About(Location(Path(test.name), 1), "onnx"),
    )
    violations = case.violations()
    if violations:
        raise NoCaseError(f"DirectML refuses it: {violations[0]}")
    return case


def tensor_of(array: Array) -> Array:
    """Return an array as DirectML has it: BOOL is UINT8, and a scalar has one dimension.

    Raises:
        NoCaseError: DirectML has no such tensors.
    """
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    if array.dtype not in _TYPES:
        raise NoCaseError("a data type that DirectML lacks")
    if array.ndim > _MOST_DIMENSIONS or not array.size:
        raise NoCaseError(NO_ELEMENTS)
    return np.ascontiguousarray(array.reshape(array.shape or (1,)))


def tensor_desc(array: Array) -> TensorDesc:
    """Return the desc of a packed tensor."""
    return TensorDesc(data_type(array), array.shape)


def data_type(array: Array) -> DataType:
    """Return the data type of the elements."""
    return _TYPES[array.dtype]


def with_rank(array: Array, rank: int) -> Array:
    """Return the array with dimensions of 1 before its own."""
    return array.reshape(*(1,) * (rank - array.ndim), *array.shape)


def by_channel(values: Array, rank: int) -> Array:
    """Return one value for each channel as a tensor, whose second dimension has the channels."""
    return values.reshape(1, -1, *(1,) * (rank - 2))
