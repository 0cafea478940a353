"""Build desc structures of operators, such as `DML_GATHER_OPERATOR_DESC`, from the catalogue."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.loader import enumeration
from dmlconf.catalogue.loader import operator as catalogue_operator
from dmlconf.catalogue.model import AttributeKind, Field, Operator
from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.scalar import scalar_bytes

__all__ = [
    "DML_BUFFER_TENSOR_DESC",
    "DML_OPERATOR_DESC",
    "DML_SCALAR_UNION",
    "DML_SCALE_BIAS",
    "DML_SIZE_2D",
    "DML_TENSOR_DESC",
    "DML_TENSOR_TYPE_BUFFER",
    "NativeDesc",
    "attribute_type",
    "data_type_value",
    "is_pointer",
    "operator_structure",
]

UINT: Final = ctypes.c_uint32
POINTER: Final = ctypes.c_void_p

DML_TENSOR_TYPE_BUFFER: Final = 1


class DML_BUFFER_TENSOR_DESC(ctypes.Structure):
    """A tensor that lies in a buffer."""

    _fields_ = (
        ("DataType", UINT),
        ("Flags", UINT),
        ("DimensionCount", UINT),
        ("Sizes", POINTER),
        ("Strides", POINTER),
        ("TotalTensorSizeInBytes", ctypes.c_uint64),
        ("GuaranteedBaseOffsetAlignment", UINT),
    )


class DML_TENSOR_DESC(ctypes.Structure):
    """A tensor of any type."""

    _fields_ = (("Type", UINT), ("Desc", POINTER))


class DML_OPERATOR_DESC(ctypes.Structure):
    """An operator of any type."""

    _fields_ = (("Type", UINT), ("Desc", POINTER))


class DML_SCALE_BIAS(ctypes.Structure):
    """`Scale` and `Bias` of the function `x * Scale + Bias`."""

    _fields_ = (("Scale", ctypes.c_float), ("Bias", ctypes.c_float))


class DML_SIZE_2D(ctypes.Structure):
    """A width and a height."""

    _fields_ = (("Width", UINT), ("Height", UINT))


class DML_SCALAR_UNION(ctypes.Union):
    """A number of the data type that another field of the desc names."""

    _fields_ = (
        ("Bytes", ctypes.c_uint8 * 8),
        ("Int8", ctypes.c_int8),
        ("UInt8", ctypes.c_uint8),
        ("Int16", ctypes.c_int16),
        ("UInt16", ctypes.c_uint16),
        ("Int32", ctypes.c_int32),
        ("UInt32", ctypes.c_uint32),
        ("Int64", ctypes.c_int64),
        ("UInt64", ctypes.c_uint64),
        ("Float32", ctypes.c_float),
        ("Float64", ctypes.c_double),
    )


_C_TYPES: Final[Mapping[AttributeKind, Any]] = {
    AttributeKind.UINT: UINT,
    AttributeKind.INT: ctypes.c_int32,
    AttributeKind.FLOAT: ctypes.c_float,
    AttributeKind.BOOL: ctypes.c_int32,
    AttributeKind.ENUM: ctypes.c_int32,
    AttributeKind.SCALAR_UNION: DML_SCALAR_UNION,
    AttributeKind.SIZE_2D: DML_SIZE_2D,
    AttributeKind.SCALE_BIAS: DML_SCALE_BIAS,
    AttributeKind.OPERATOR: DML_OPERATOR_DESC,
}


def is_pointer(field: Field) -> bool:
    """Return whether a field of a desc is a pointer."""
    return field.is_tensor or field.is_array or field.c_type.endswith("*")


def attribute_type(field: Field) -> Any:
    """Return the C type of an attribute; for a pointer, the C type of what it points to."""
    return _C_TYPES[field.attribute_kind]


def _member_type(field: Field) -> Any:
    return POINTER if is_pointer(field) else attribute_type(field)


@cache
def operator_structure(operator: Operator) -> type[ctypes.Structure]:
    """Return the type of the operator's desc structure."""
    members = tuple((field.name, _member_type(field)) for field in operator.fields)
    return type(operator.struct, (ctypes.Structure,), {"_fields_": members})


@cache
def data_type_value(data_type: DataType) -> int:
    """Return the number of a data type in `DML_TENSOR_DATA_TYPE`."""
    return enumeration("DML_TENSOR_DATA_TYPE").values[data_type]


class NativeDesc:
    """A `DML_OPERATOR_DESC` in memory, with everything that it points to.

    Attributes:
        structure: the argument of CreateOperator; valid as long as this object lives.
    """

    def __init__(self, operator: Operator, desc: Desc) -> None:
        """Build the desc; a field that the desc lacks is zero.

        Raises:
            KeyError: a constant or a tensor flag is unknown, or an attribute that is given is
                incomplete, such as a union without its data type.
            UnknownOperatorError: the catalogue lacks a nested operator.
            OverflowError, ValueError: as in `scalar_bytes`, for a number of a union.
        """
        self._references: list[Any] = []
        self.structure = self._operator(operator, desc)

    def _keep(self, value: Any) -> int:
        self._references.append(value)
        return ctypes.addressof(value)

    def _operator(self, operator: Operator, desc: Desc) -> DML_OPERATOR_DESC:
        members = operator_structure(operator)()
        for field in operator.fields:
            value = self._member(field, desc.get(field.name), desc)
            if value is not None:
                setattr(members, field.name, value)
        return DML_OPERATOR_DESC(operator.type_value, self._keep(members))

    def _member(self, field: Field, value: Any, desc: Desc) -> Any:
        """Return a number, a structure, an address, or None for zero."""
        if value is None:
            return None
        if field.is_tensor:
            tensors = value if field.is_array else (value,)
            return self._array(DML_TENSOR_DESC, map(self._tensor, tensors))
        if not is_pointer(field):
            return self._attribute(field, value, desc)
        items = value if isinstance(value, Sequence) else (value,)
        kind = attribute_type(field)
        return self._array(kind, (self._attribute(field, item, desc) for item in items))

    def _array(self, kind: Any, items: Iterable[Any]) -> int:
        values = tuple(items)
        # An empty array gets the address of one zero item, since a null pointer means no array.
        return self._keep((kind * max(len(values), 1))(*values))

    def _tensor(self, tensor: TensorDesc) -> DML_TENSOR_DESC:
        flags = enumeration("DML_TENSOR_FLAGS").values
        strides = tensor.Strides
        buffer = DML_BUFFER_TENSOR_DESC(
            data_type_value(tensor.DataType),
            sum(flags[name] for name in tensor.Flags),
            tensor.DimensionCount,
            self._array(UINT, tensor.Sizes),
            None if strides is None else self._array(UINT, strides),
            tensor.TotalTensorSizeInBytes,
            tensor.GuaranteedBaseOffsetAlignment,
        )
        return DML_TENSOR_DESC(DML_TENSOR_TYPE_BUFFER, self._keep(buffer))

    def _attribute(self, field: Field, value: Any, desc: Desc) -> Any:
        kind = field.attribute_kind
        if kind is AttributeKind.ENUM:
            numbers = enumeration(field.base_type).values
            return numbers[value] if isinstance(value, str) else ctypes.c_int32(value).value
        if kind is AttributeKind.SCALAR_UNION:
            return _scalar(value, desc[field.type_field or ""])
        if kind is AttributeKind.SIZE_2D:
            return DML_SIZE_2D(value["Width"], value["Height"])
        if kind is AttributeKind.SCALE_BIAS:
            return DML_SCALE_BIAS(value["Scale"], value["Bias"])
        if kind is AttributeKind.OPERATOR:
            nested = {name: item for name, item in value.items() if name != "operator"}
            return self._operator(catalogue_operator(value["operator"]), nested)
        return value


def _scalar(value: float, type_name: str | int) -> DML_SCALAR_UNION:
    return DML_SCALAR_UNION.from_buffer_copy(scalar_bytes(value, type_name))
