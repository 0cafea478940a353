"""Make cases out of tests of other projects (ONNX, WebNN), with the outputs that these state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import About, Case, ExpectedOutputs, Location, Provenance
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "UNSUPPORTED_SIZES",
    "NoCaseError",
    "along_axes",
    "by_channel",
    "data_type",
    "elements_of",
    "stated_case",
    "tensor_desc",
    "tensor_of",
    "with_rank",
]

UNSUPPORTED_SIZES: Final = "tensors of more than eight dimensions, or without elements"

_MOST_DIMENSIONS: Final = 8
"""DirectML's `DML_TENSOR_DIMENSION_COUNT_MAX1`."""

_TYPES: Final = {each.dtype: each for each in DataType if each.bits >= 8}


class NoCaseError(Exception):
    """A test does not become a case; `operator` has no case at all, or is empty."""

    def __init__(self, message: str, operator: str = "") -> None:
        super().__init__(message)
        self.operator = operator


def stated_case(
    origin: str,
    name: str,
    operator: str,
    inputs: Mapping[str, Array | None],
    outputs: Mapping[str, Array],
    fields: Mapping[str, Any],
    types: Mapping[str, DataType] = MappingProxyType({}),
    owned: Collection[str] = (),
) -> Case:
    """Return a case of one of DirectML's operators; fields without a value are absent.

    `origin`, the project of the test, becomes a tag. `types` are the data types of tensors with 4
    bits for an element. `owned` inputs get OWNED_BY_DML.

    Raises:
        NoCaseError: DirectML lacks such tensors, or must refuse the desc.
    """
    data = {field: tensor_of(each) for field, each in inputs.items() if each is not None}
    expected = {field: tensor_of(each) for field, each in outputs.items()}
    descs = {
        field: TensorDesc(
            types.get(field, data_type(each)),
            each.shape,
            Flags=("OWNED_BY_DML",) if field in owned else (),
        )
        for field, each in {**data, **expected}.items()
    }
    case = Case(
        identifier=f"{origin}/{name}",
        operator_name=operator,
        desc={
            each.name: descs.get(each.name, fields.get(each.name))
            for each in catalogue.operator(operator).fields
        },
        data=data,
        expectation=ExpectedOutputs(expected, Provenance.STATED),
        tags=(origin,),
        about=About(Location(Path(name), 1), origin),
    )
    violations = case.violations()
    if violations:
        raise NoCaseError(f"DirectML refuses it: {violations[0]}")
    return case


def tensor_of(array: Array) -> Array:
    """Return an array as DirectML has it: BOOL is UINT8, and a scalar has one dimension."""
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    if array.dtype not in _TYPES:
        raise NoCaseError("a data type that DirectML lacks")
    if array.ndim > _MOST_DIMENSIONS or not array.size:
        raise NoCaseError(UNSUPPORTED_SIZES)
    return np.ascontiguousarray(array.reshape(array.shape or (1,)))


def tensor_desc(array: Array) -> TensorDesc:
    return TensorDesc(data_type(array), array.shape)


def data_type(array: Array) -> DataType:
    return _TYPES[array.dtype]


def with_rank(array: Array, rank: int) -> Array:
    """Return the array with `rank` dimensions; sizes of 1 are added in front."""
    return array.reshape(*(1,) * (rank - array.ndim), *array.shape)


def along_axes(output: Array, sizes: Sequence[int], axes: Collection[int]) -> Array:
    """Return a reduction's output with sizes of 1 for its axes; `sizes` are those of the input."""
    return output.reshape([1 if axis in axes else size for axis, size in enumerate(sizes)])


def elements_of(field: str, arrays: Iterable[Array]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return tensors by name, such as `InputTensors[0]`, and their fields of the desc."""
    tensors = [*map(tensor_of, arrays)]
    count = field.removesuffix("Tensors") + "Count"
    descs = {count: len(tensors), field: tuple(map(tensor_desc, tensors))}
    return {f"{field}[{n}]": each for n, each in enumerate(tensors)}, descs


def by_channel(values: Array, rank: int) -> Array:
    """Return values of channels as a tensor of `rank` dimensions, such as 1x3x1x1."""
    return values.reshape(1, -1, *(1,) * (rank - 2))
