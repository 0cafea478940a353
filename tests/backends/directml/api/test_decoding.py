"""Descs in DirectML's native structures are read back unchanged; unknown values are reported.

The tested code is in `dmlconf/backends/directml/api/decoding.py` and
`dmlconf/backends/directml/api/structs.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from dmlconf.backends.directml.api.decoding import UnknownDescError, decoded_desc
from dmlconf.backends.directml.api.structs import (
    DML_BUFFER_TENSOR_DESC,
    DML_OPERATOR_DESC,
    DML_TENSOR_DESC,
    NativeDesc,
)
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.catalogue.model import AttributeKind, Field, Operator
from dmlconf.fuzzing.operators import operator_case
from dmlconf.resources import cases_directory
from dmlconf.tensors.datatypes import DataType
from tests.each import for_each

TENSOR = TensorDesc(
    DataType.FLOAT32,
    Sizes=(2, 3),
    Strides=(4, 1),
    Flags=("OWNED_BY_DML",),
    DeclaredTensorSizeInBytes=64,
    GuaranteedBaseOffsetAlignment=256,
)


def comparable_value(value: Any) -> Any:
    """Return a value with numbers rounded to FLOAT32 and flags without an order."""
    if isinstance(value, TensorDesc):
        layout = value.DataType, value.Sizes, value.Strides, frozenset(value.Flags)
        return (*layout, value.TotalTensorSizeInBytes, value.GuaranteedBaseOffsetAlignment)
    if isinstance(value, Mapping):
        return {key: comparable_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(map(comparable_value, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "nan" if value != value else float(np.float32(value))
    return value


def comparable_desc(desc: Desc) -> dict[str, Any]:
    return {name: comparable_value(value) for name, value in desc.items()}


def is_enum(field: Field) -> bool:
    return not field.is_tensor and field.attribute_kind is AttributeKind.ENUM


def read_back(entry: Operator, desc: Desc) -> Desc:
    """Write a desc as native structures, and return what is read from these."""
    native = NativeDesc(entry, desc)
    known, decoded = decoded_desc(ctypes.addressof(native.structure))
    assert known is entry
    return decoded


def test_a_tensor_desc_is_read_back_with_all_its_fields() -> None:
    desc = {"InputTensor": TENSOR, "OutputTensor": TENSOR}
    assert read_back(operator("ACTIVATION_IDENTITY"), desc) == desc


def test_implied_total_size_is_not_read_back() -> None:
    implied = TensorDesc(DataType.FLOAT32, (2, 3), DeclaredTensorSizeInBytes=2 * 3 * 4)
    decoded = read_back(operator("ACTIVATION_IDENTITY"), {"InputTensor": implied})
    assert decoded["InputTensor"] == TensorDesc(DataType.FLOAT32, (2, 3))
    assert decoded["OutputTensor"] is None


@pytest.mark.slow
@for_each(operator_names())
def test_a_desc_of_every_operator_is_read_back(name: str) -> None:
    entry = operator(name)
    case = build(operator_case(name, seed=37, number=0))
    decoded = read_back(entry, case.desc)
    assert comparable_desc(decoded) == comparable_desc(case.desc)
    assert comparable_desc(read_back(entry, decoded)) == comparable_desc(decoded)


@pytest.mark.whole
@for_each(operator_names())
def test_first_case_of_each_template_is_read_back(
    name: str,
) -> None:
    entry = operator(name)
    seen = set()
    for planned in load_suite([cases_directory()], operators=[name]).plan():
        if planned.template in seen or planned.template.operator_name != name:
            continue
        seen.add(planned.template)
        case = build(planned)
        if any(isinstance(case.desc.get(f.name), int) for f in entry.fields if is_enum(f)):
            # The enum is given as a number for which DirectML.h has no constant.
            with pytest.raises(UnknownDescError, match="has no constant"):
                read_back(entry, case.desc)
            continue
        # A scalar of the data type UNKNOWN is read back as 0.
        unread = {f.name for f in entry.fields if case.desc.get(f.type_field or "") == "UNKNOWN"}
        # In an unsigned field, -1 is read back as 2^32 - 1.
        unread |= {f.name for f in entry.fields if f.wraps}
        expected, actual = comparable_desc(case.desc), comparable_desc(read_back(entry, case.desc))
        assert {k: v for k, v in actual.items() if k not in unread} == {
            k: v for k, v in expected.items() if k not in unread
        }
    assert seen


@pytest.mark.parametrize(("written", "read"), [(0.1, 0.1), (1 / 3, 0.33333334), (-2e38, -2e38)])
def test_floats_are_read_back_with_the_fewest_digits(written: float, read: float) -> None:
    desc = {"InputTensor": TENSOR, "OutputTensor": TENSOR, "Alpha": written}
    assert read_back(operator("ACTIVATION_ELU"), desc)["Alpha"] == read


def test_an_unknown_operator_is_reported() -> None:
    native = DML_OPERATOR_DESC(9999, None)
    with pytest.raises(UnknownDescError, match="no operator of DML_OPERATOR_TYPE 9999"):
        decoded_desc(ctypes.addressof(native))


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("DataType", 77, r"ACTIVATION_IDENTITY.InputTensor: DML_TENSOR_DATA_TYPE has no .* 77"),
        ("DataType", 0, "InputTensor: a tensor of the data type UNKNOWN"),
        ("Flags", 0x40, "DML_TENSOR_FLAGS 0x40"),
        ("DimensionCount", 1 << 30, "a tensor of 1073741824 dimensions"),
    ],
)
def test_invalid_values_of_tensor_descs_are_reported(member: str, value: int, message: str) -> None:
    entry = operator("ACTIVATION_IDENTITY")
    native = NativeDesc(entry, {"InputTensor": TENSOR, "OutputTensor": TENSOR})
    tensor = DML_TENSOR_DESC.from_address(
        ctypes.c_void_p.from_address(native.structure.Desc).value or 0
    )
    setattr(DML_BUFFER_TENSOR_DESC.from_address(tensor.Desc), member, value)
    with pytest.raises(UnknownDescError, match=message):
        decoded_desc(ctypes.addressof(native.structure))
