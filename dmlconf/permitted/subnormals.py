"""Replace a case's subnormal numbers by zeros, as a device does that flushes its operands.

Only FLOAT32 operands may be flushed: subnormal FLOAT16 numbers are normal FLOAT32 numbers.
An attribute such as `Alpha` is an operand, like an element of a tensor.

Source: Direct3D 11.3 functional specification, 3.1: operations flush subnormal FLOAT32 operands to
zero of the same sign.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import Desc
from dmlconf.catalogue.model import AttributeKind, Entry
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.float_limits import LEAST_NORMAL_FLOAT32

__all__ = ["with_and_without_subnormals", "without_subnormals"]


def without_subnormals(case: Case) -> Case:
    """Return the case with zeros for subnormal FLOAT32 inputs and attributes.

    A case without any is returned itself. The nodes of a graph stay as they are.
    """
    desc = _without_in_desc(case.entry, case.desc)
    inputs = case.inputs()
    arrays = {name: _without_in_array(array) for name, array in inputs.items()}
    if desc is not case.desc:
        case = replace(case, desc=desc)
    if any(array is not inputs[name] for name, array in arrays.items()):
        return case.with_data(arrays)
    return case


def _without_in_array(array: Array) -> Array:
    if array.dtype != np.float32:
        return array
    small = (np.abs(array) < LEAST_NORMAL_FLOAT32) & (array != 0)
    return np.where(small, np.copysign(np.float32(0), array), array) if small.any() else array


def with_and_without_subnormals(array: Array) -> tuple[Array, ...]:
    """Return the array and, if it has subnormal FLOAT32 numbers, the array with zeros for them."""
    without = _without_in_array(array)
    return (array,) if without is array else (array, without)


_OF_FLOATS: Final = frozenset(
    {
        AttributeKind.FLOAT,
        AttributeKind.SCALAR_UNION,
        AttributeKind.SCALE_BIAS,
        AttributeKind.OPERATOR,
    }
)
"""The kinds of attributes that may be, or contain, FLOAT32 numbers."""


def _without_in_desc(entry: Entry, desc: Desc) -> Desc:
    changed = {}
    for field in entry.fields:
        if field.is_tensor or field.attribute_kind not in _OF_FLOATS:
            continue
        if field.type_field is not None and desc.get(field.type_field) == DataType.FLOAT64:
            continue
        value = desc.get(field.name)
        flushed = _without_in_value(value)
        if flushed is not value:
            changed[field.name] = flushed
    return {**desc, **changed} if changed else desc


def _without_in_value(value: Any) -> Any:
    if isinstance(value, float):
        small = 0 < abs(value) < LEAST_NORMAL_FLOAT32
        return math.copysign(0.0, value) if small else value
    if isinstance(value, Mapping):
        members = {key: _without_in_value(member) for key, member in value.items()}
        return members if any(members[key] is not value[key] for key in members) else value
    if isinstance(value, list | tuple):
        parts = [_without_in_value(part) for part in value]
        return (
            type(value)(parts)
            if any(a is not b for a, b in zip(parts, value, strict=True))
            else value
        )
    return value
