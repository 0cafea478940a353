"""Write descs, tensors and attributes as case files have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import Field, Operator
from dmlconf.catalogue.tensor_ref import TensorRef

__all__ = ["InputData", "attribute_entry", "desc_entry", "tensor_entry"]

InputData = Mapping[str, Mapping[str, Any]]
"""What an entry says about the data of each input, such as `values` or `fill`."""


def desc_entry(operator: Operator, desc: Desc, data: InputData) -> dict[str, Any]:
    """Return a desc in the form of a case file, without absent fields and count fields."""
    return {
        field.name: _field_entry(field, desc[field.name], data)
        for field in operator.fields
        if field.name not in operator.count_fields and desc[field.name] is not None
    }


def _field_entry(field: Field, value: Any, data: InputData) -> Any:
    if not field.is_tensor:
        return attribute_entry(value)
    if field.is_array:
        return [
            tensor_entry(each, data.get(str(TensorRef(field.name, i))))
            for i, each in enumerate(value)
        ]
    return tensor_entry(value, data.get(field.name))


def tensor_entry(tensor: TensorDesc, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a tensor in the form of a case file, with what the file says about its data."""
    entry: dict[str, Any] = {"Sizes": list(tensor.Sizes), "DataType": str(tensor.DataType)}
    if tensor.Strides is not None:
        entry["Strides"] = list(tensor.Strides)
    if tensor.Flags:
        entry["Flags"] = list(tensor.Flags)
    if tensor.DeclaredTensorSizeInBytes is not None:
        entry["TotalTensorSizeInBytes"] = tensor.DeclaredTensorSizeInBytes
    if tensor.GuaranteedBaseOffsetAlignment:
        entry["GuaranteedBaseOffsetAlignment"] = tensor.GuaranteedBaseOffsetAlignment
    return entry | dict(data or {})


def attribute_entry(value: Any) -> Any:
    """Return an attribute in the form of a case file."""
    if isinstance(value, Mapping):
        return {key: attribute_entry(item) for key, item in value.items() if item is not None}
    if isinstance(value, tuple | list):
        return [attribute_entry(item) for item in value]
    if isinstance(value, str):
        return str(value)  # SafeDumper refuses subclasses of str, such as DataType.
    return value.item() if isinstance(value, np.generic) else value
