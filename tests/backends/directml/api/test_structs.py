"""`NativeDesc` writes descs as ctypes structures with the fields and sizes of DirectML.h.

The tested code is in `dmlconf/backends/directml/api/structs.py`.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import replace
from typing import Any

import pytest

from dmlconf.backends.directml.api.structs import (
    DML_BUFFER_TENSOR_DESC,
    DML_OPERATOR_DESC,
    DML_SCALAR_UNION,
    DML_SCALE_BIAS,
    DML_SIZE_2D,
    DML_TENSOR_DESC,
    NativeDesc,
    data_type_value,
    operator_structure,
)
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.catalogue.model import Field, FieldKind, Operator
from dmlconf.tensors.datatypes import DataType
from tests.each import for_each

PACKED_FLOATS = TensorDesc(DataType.FLOAT32, (2, 3))


def attribute(name: str, c_type: str, **more: Any) -> Field:
    return Field(name, FieldKind.ATTRIBUTE, c_type, **more)


def invented_operator(*fields: Field) -> Operator:
    return replace(operator("TILE"), struct="DML_INVENTED_DESC", fields=fields)


def structure_in_memory(native: NativeDesc, entry: Operator) -> Any:
    structure: Any = operator_structure(entry).from_address(native.structure.Desc)
    structure.kept = native  # Keeps alive the desc that owns the memory.
    return structure


def tensor_at(address: int) -> Any:
    """Return the DML_BUFFER_TENSOR_DESC to which a DML_TENSOR_DESC in memory points."""
    tensor = DML_TENSOR_DESC.from_address(address)
    assert tensor.Type == 1  # DML_TENSOR_TYPE_BUFFER, the only one.
    return DML_BUFFER_TENSOR_DESC.from_address(tensor.Desc)


def numbers(address: int, count: int, kind: Any = ctypes.c_uint32) -> list[Any]:
    return list((kind * count).from_address(address))


@for_each(operator_names())
def test_a_structure_has_the_fields_of_the_catalogue_in_order(name: str) -> None:
    entry = operator(name)
    actual = operator_structure(entry)
    assert actual.__name__ == entry.struct
    assert [name for name, *_ in actual._fields_] == [field.name for field in entry.fields]
    offsets = [getattr(actual, field.name).offset for field in entry.fields]
    assert offsets == sorted(set(offsets))


@pytest.mark.parametrize(
    ("name", "size"),
    # Pointers have 8 bytes and numbers 4; the end is padded to a multiple of 8.
    [("GATHER", 32), ("SCATTER_ELEMENTS", 40), ("TILE", 32), ("ARGMIN", 40), ("JOIN", 32)],
)
def test_operator_structure_has_its_size_in_c(name: str, size: int) -> None:
    assert ctypes.sizeof(operator_structure(operator(name))) == size


def test_tensor_desc_fields_and_implied_size_are_written() -> None:
    strided = TensorDesc(
        DataType.INT8,
        Sizes=(2, 3),
        Strides=(4, 1),
        Flags=("OWNED_BY_DML",),
        DeclaredTensorSizeInBytes=64,
        GuaranteedBaseOffsetAlignment=32,
    )
    entry = operator("TILE")
    desc = {
        "InputTensor": strided,
        "OutputTensor": PACKED_FLOATS,
        "RepeatsCount": 2,
        "Repeats": (1, 5),
    }
    actual = NativeDesc(entry, desc)
    assert actual.structure.Type == entry.type_value
    tile = structure_in_memory(actual, entry)
    tensor = tensor_at(tile.InputTensor)
    # In DirectML.h, INT8 is 8 and OWNED_BY_DML is 1.
    assert (tensor.DataType, tensor.Flags, tensor.DimensionCount) == (8, 1, 2)
    assert numbers(tensor.Sizes, 2) == [2, 3]
    assert numbers(tensor.Strides, 2) == [4, 1]
    assert (tensor.TotalTensorSizeInBytes, tensor.GuaranteedBaseOffsetAlignment) == (64, 32)
    assert tensor_at(tile.OutputTensor).Strides is None
    assert tensor_at(tile.OutputTensor).TotalTensorSizeInBytes == 2 * 3 * 4
    assert tile.RepeatsCount == 2
    assert numbers(tile.Repeats, 2) == [1, 5]


def test_arrays_of_tensors_are_written() -> None:
    entry = operator("JOIN")
    inputs = tuple(TensorDesc(DataType.FLOAT16, (i,)) for i in range(1, 4))
    join = structure_in_memory(
        NativeDesc(entry, {"InputCount": 3, "InputTensors": inputs, "OutputTensor": PACKED_FLOATS}),
        entry,
    )
    step = ctypes.sizeof(DML_TENSOR_DESC)
    sizes = [numbers(tensor_at(join.InputTensors + i * step).Sizes, 1) for i in range(3)]
    assert sizes == [[1], [2], [3]]
    assert join.InputCount == 3


def test_absent_tensors_and_arrays_are_written_as_null_pointers() -> None:
    entry = operator("TILE")
    tile = structure_in_memory(
        NativeDesc(entry, {"OutputTensor": PACKED_FLOATS, "RepeatsCount": 3}), entry
    )
    assert (tile.InputTensor, tile.Repeats, tile.RepeatsCount) == (None, None, 3)


def test_an_empty_array_is_not_written_as_a_null_pointer() -> None:
    entry = operator("TILE")
    assert structure_in_memory(NativeDesc(entry, {"Repeats": ()}), entry).Repeats


def test_enum_is_written_from_a_name_or_number() -> None:
    entry = operator("ARGMIN")
    named = structure_in_memory(NativeDesc(entry, {"AxisDirection": "DECREASING"}), entry)
    unnamed = structure_in_memory(NativeDesc(entry, {"AxisDirection": 0xFFFFFFFF}), entry)
    assert (named.AxisDirection, unnamed.AxisDirection) == (1, -1)  # ctypes reads a signed number.


def test_numbers_and_structures_of_attributes_are_written() -> None:
    entry = invented_operator(
        attribute("Alpha", "FLOAT"),
        attribute("Offset", "INT"),
        attribute("Flag", "BOOL"),
        attribute("Window", "DML_SIZE_2D"),
        attribute("ScaleBias", "const DML_SCALE_BIAS*"),
        attribute("Count", "UINT"),
        attribute("Scales", "const FLOAT*", count="Count"),
    )
    desc = {
        "Alpha": 0.5,
        "Offset": -3,
        "Flag": True,
        "Window": {"Width": 4, "Height": 5},
        "ScaleBias": {"Scale": 2.0, "Bias": -1.0},
        "Count": 2,
        "Scales": (0.25, 8),
    }
    actual = NativeDesc(entry, desc)
    structure = structure_in_memory(actual, entry)
    assert (structure.Alpha, structure.Offset, structure.Flag, structure.Count) == (0.5, -3, 1, 2)
    assert (structure.Window.Width, structure.Window.Height) == (4, 5)
    scale_bias = DML_SCALE_BIAS.from_address(structure.ScaleBias)
    assert (scale_bias.Scale, scale_bias.Bias) == (2.0, -1.0)
    assert numbers(structure.Scales, 2, ctypes.c_float) == [0.25, 8.0]


@pytest.mark.parametrize(
    ("data_type", "value", "content"),
    [
        ("FLOAT32", 1.5, struct.pack("<f", 1.5)),
        ("FLOAT16", -2.0, struct.pack("<e", -2)),
        ("FLOAT64", 0.1, struct.pack("<d", 0.1)),
        ("INT8", -1, b"\xff"),
        ("UINT8", 200, b"\xc8"),
        ("UINT64", 2**64 - 1, b"\xff" * 8),
        ("INT4", -8, b"\xf8"),  # As one signed byte.
        ("UINT16", 258, b"\x02\x01"),
    ],
)
def test_scalar_union_has_the_bytes_of_its_data_type(
    data_type: str, value: float, content: bytes
) -> None:
    entry = invented_operator(
        attribute("ValueDataType", "DML_TENSOR_DATA_TYPE"),
        attribute("Value", "DML_SCALAR_UNION", type_field="ValueDataType"),
    )
    structure = structure_in_memory(
        NativeDesc(entry, {"ValueDataType": data_type, "Value": value}), entry
    )
    assert bytes(structure.Value.Bytes) == content.ljust(8, b"\0")
    assert structure.ValueDataType == data_type_value(DataType(data_type))


def test_nested_operators_are_written() -> None:
    entry = invented_operator(
        attribute("FusedActivation", "const DML_OPERATOR_DESC*", optional=True),
        attribute("Count", "UINT"),
        attribute("Activations", "const DML_OPERATOR_DESC*", count="Count"),
    )
    tile = {"operator": "TILE", "RepeatsCount": 9}
    desc = {"FusedActivation": tile, "Count": 2, "Activations": (tile, {"operator": "GATHER"})}
    structure = structure_in_memory(NativeDesc(entry, desc), entry)
    nested = DML_OPERATOR_DESC.from_address(structure.FusedActivation)
    assert nested.Type == operator("TILE").type_value
    assert operator_structure(operator("TILE")).from_address(nested.Desc).RepeatsCount == 9
    array = (DML_OPERATOR_DESC * 2).from_address(structure.Activations)
    assert [each.Type for each in array] == [operator(n).type_value for n in ("TILE", "GATHER")]


def test_common_structures_have_their_sizes_in_c() -> None:
    sizes = {
        DML_TENSOR_DESC: 16,
        DML_BUFFER_TENSOR_DESC: 48,
        DML_OPERATOR_DESC: 16,
        DML_SCALE_BIAS: 8,
        DML_SIZE_2D: 8,
        DML_SCALAR_UNION: 8,
    }
    assert {kind: ctypes.sizeof(kind) for kind in sizes} == sizes


def test_data_types_have_the_numbers_1_to_13() -> None:
    values = {data_type_value(data_type) for data_type in DataType}
    assert values == set(range(1, 14))
