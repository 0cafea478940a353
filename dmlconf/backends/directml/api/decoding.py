"""Read descs from the structures that an application gives DirectML: the inverse of `structs`."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from dmlconf.backends.directml.api.structs import (
    DML_BUFFER_TENSOR_DESC,
    DML_OPERATOR_DESC,
    DML_SCALAR_UNION,
    DML_TENSOR_DESC,
    DML_TENSOR_TYPE_BUFFER,
    UINT,
    attribute_type,
    is_pointer,
    operator_structure,
)
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.loader import enumeration, operator, operator_names
from dmlconf.catalogue.model import AttributeKind, Field, Operator
from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.layout import minimum_buffer_bytes
from dmlconf.tensors.scalar import scalar_value

__all__ = ["UnknownDescError", "decoded_desc", "operator_of_type", "shortest"]

_MOST_DIMENSIONS: Final = 64
_MOST_ITEMS: Final = 1 << 16
"""Larger counts are taken for garbage; DirectML permits 8 dimensions."""


class UnknownDescError(ValueError):
    """A structure cannot be read as a desc or a graph."""


@cache
def _types() -> Mapping[int, str]:
    return {operator(name).type_value: name for name in operator_names()}


def operator_of_type(number: int) -> Operator:
    """Return the operator that has this number in `DML_OPERATOR_TYPE`.

    Raises:
        UnknownDescError: the catalogue has no such operator.
    """
    name = _types().get(number)
    if name is None:
        raise UnknownDescError(f"the catalogue has no operator of DML_OPERATOR_TYPE {number}")
    return operator(name)


def decoded_desc(address: int) -> tuple[Operator, Desc]:
    """Return the operator and the desc at the address of a `DML_OPERATOR_DESC`.

    `shortest` converts FLOAT32 attributes. TotalTensorSizeInBytes is left out if the data type,
    Sizes and Strides imply it.

    Raises:
        UnknownDescError: the operator or a part of its desc cannot be read.
    """
    native = DML_OPERATOR_DESC.from_address(address)
    entry = operator_of_type(native.Type)
    if not native.Desc:
        raise UnknownDescError(f"{entry.name} has no desc")
    members = operator_structure(entry).from_address(native.Desc)
    desc: dict[str, Any] = {}
    for field in entry.fields:
        try:
            desc[field.name] = _member(field, members)
        except UnknownDescError as error:
            raise UnknownDescError(f"{entry.name}.{field.name}: {error}") from error
    for field in entry.fields:
        if field.type_field is not None:
            desc[field.name] = _scalar(desc[field.name], desc[field.type_field])
    return entry, desc


def _member(field: Field, members: ctypes.Structure) -> Any:
    value = getattr(members, field.name)
    count = None if field.count is None else int(getattr(members, field.count))
    if field.is_tensor:
        if not value:
            return () if count == 0 else None
        if count is None:
            return _tensor(value)
        return tuple(_tensor(address) for address in _addresses(DML_TENSOR_DESC, value, count))
    if not is_pointer(field):
        return _attribute(field, value)
    if not value:
        return () if count == 0 else None
    kind = attribute_type(field)
    if count is None:
        return _at(field, kind, value)
    return tuple(_at(field, kind, address) for address in _addresses(kind, value, count))


def _addresses(kind: Any, start: int, count: int) -> list[int]:
    if count > _MOST_ITEMS:
        raise UnknownDescError(f"an array of {count:,} items")
    return [start + index * ctypes.sizeof(kind) for index in range(count)]


def _at(field: Field, kind: Any, address: int) -> Any:
    value = kind.from_address(address)
    return _attribute(field, getattr(value, "value", value))


def _tensor(address: int) -> TensorDesc:
    outer = DML_TENSOR_DESC.from_address(address)
    if outer.Type != DML_TENSOR_TYPE_BUFFER or not outer.Desc:
        raise UnknownDescError(f"a tensor of DML_TENSOR_TYPE {outer.Type}")
    buffer = DML_BUFFER_TENSOR_DESC.from_address(outer.Desc)
    count = int(buffer.DimensionCount)
    if count > _MOST_DIMENSIONS or not buffer.Sizes:
        raise UnknownDescError(f"a tensor of {count} dimensions")
    sizes = tuple((UINT * count).from_address(buffer.Sizes))
    strides = tuple((UINT * count).from_address(buffer.Strides)) if buffer.Strides else None
    data_type = _constant("DML_TENSOR_DATA_TYPE", buffer.DataType)
    if data_type == "UNKNOWN":
        raise UnknownDescError("a tensor of the data type UNKNOWN")
    total = int(buffer.TotalTensorSizeInBytes)
    implied = 0 if 0 in sizes else minimum_buffer_bytes(DataType(data_type), sizes, strides)
    return TensorDesc(
        DataType(data_type),
        sizes,
        strides,
        _flags(buffer.Flags),
        None if total == implied else total,
        int(buffer.GuaranteedBaseOffsetAlignment),
    )


def _flags(number: int) -> tuple[str, ...]:
    known = enumeration("DML_TENSOR_FLAGS").values
    names = tuple(name for name, value in known.items() if value and number & value)
    if sum(known[name] for name in names) != number:
        raise UnknownDescError(f"DML_TENSOR_FLAGS {number:#x}")
    return names


@cache
def _names(kind: str) -> Mapping[int, str]:
    return {number: name for name, number in enumeration(kind).values.items()}


def _constant(kind: str, number: int) -> str:
    name = _names(kind).get(number)
    if name is None:
        raise UnknownDescError(f"{kind} has no constant {number}")
    return name


def _attribute(field: Field, value: Any) -> Any:
    kind = field.attribute_kind
    if kind is AttributeKind.ENUM:
        return _constant(field.base_type, value)
    if kind is AttributeKind.BOOL:
        return bool(value) if value in (0, 1) else value
    if kind is AttributeKind.FLOAT:
        return shortest(value)
    if kind is AttributeKind.SIZE_2D:
        return {"Width": value.Width, "Height": value.Height}
    if kind is AttributeKind.SCALE_BIAS:
        return {"Scale": shortest(value.Scale), "Bias": shortest(value.Bias)}
    if kind is AttributeKind.OPERATOR:
        nested, desc = decoded_desc(ctypes.addressof(value))
        return {"operator": nested.name, **desc}
    return value


def _scalar(value: DML_SCALAR_UNION, type_name: str) -> Any:
    if type_name == "UNKNOWN":
        return 0
    number = scalar_value(bytes(value), DataType(type_name))
    return shortest(number) if type_name == DataType.FLOAT32 else number


def shortest(value: float) -> float:
    """Return the number with the fewest decimal digits that rounds to the same FLOAT32 number.

    For example, 0.1 for the FLOAT32 number 0.10000000149. Infinities and NaN stay.
    """
    return float(str(np.float32(value))) if math.isfinite(value) else float(value)
