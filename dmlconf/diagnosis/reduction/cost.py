"""The cost of a case, which a reduction lowers at each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dmlconf.cases.model import Case
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import AttributeKind, Field, Operator
from dmlconf.diagnosis.reduction.data import data_cost
from dmlconf.tensors.datatypes import DataType

__all__ = ["Cost", "cost", "element_count", "tensors_in", "type_cost"]

_PLAIN_TYPES: Final = (
    DataType.FLOAT32,
    DataType.INT32,
    DataType.UINT32,
    DataType.FLOAT16,
    DataType.FLOAT64,
    DataType.INT8,
    DataType.UINT8,
    DataType.INT16,
    DataType.UINT16,
    DataType.INT64,
    DataType.UINT64,
    DataType.INT4,
    DataType.UINT4,
)
"""The data types, the most common first."""

Cost = tuple[int, ...]
"""Numbers that are compared from the left: for nodes, elements, dimensions, flags and the like,
data types, attributes, and data.
"""


def tensors_in(case: Case) -> list[TensorDesc]:
    """Return the tensors of a case, including those of a graph's nodes."""
    tensors = [tensor for _, _, tensor in tensors_of(case.entry, case.desc)]
    for node in case.nodes:
        tensors += [*node.inputs.values(), *node.outputs.values()]
    return tensors


def element_count(case: Case) -> int:
    """Return the number of elements of a case's inputs and outputs."""
    return sum(t.ElementCount for _, _, t in tensors_of(case.entry, case.desc))


def type_cost(data_type: DataType) -> int:
    """Return how uncommon a data type is: 0 for FLOAT32, 12 for UINT4."""
    return _PLAIN_TYPES.index(data_type)


def cost(case: Case) -> Cost:
    """Return the cost of a case."""
    tensors = tensors_in(case)
    extras = sum(
        1
        + len(t.Flags)
        + (t.Strides is not None)
        + (t.DeclaredTensorSizeInBytes is not None)
        + bool(t.GuaranteedBaseOffsetAlignment)
        for t in tensors
    )
    return (
        len(case.nodes),
        element_count(case) + sum(t.ElementCount for t in tensors),
        sum(t.DimensionCount for t in tensors),
        extras + len(case.in_place),
        sum(type_cost(t.DataType) for t in tensors),
        _attributes(case),
        *data_cost(case),
    )


def _attributes(case: Case) -> int:
    return sum(_attributes_of(node.operator, node.desc) for node in case.graph.operator_nodes)


def _attributes_of(operator: Operator, desc: Desc) -> int:
    return sum(
        _attribute(field, desc.get(field.name)) for field in operator.fields if not field.is_tensor
    )


def _attribute(field: Field, value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, tuple):
        return sum(1 + _attribute(field, item) for item in value)
    if field.attribute_kind is AttributeKind.ENUM and isinstance(value, str):
        values = list(catalogue.enumeration(field.base_type).values)
        return values.index(value) if value in values else len(values)
    if isinstance(value, Mapping):
        return 10 + sum(_number(item) for item in value.values())
    return _number(value)


def _number(value: Any) -> int:
    if isinstance(value, bool | int):
        return min(abs(int(value)), 1 << 20) + (value < 0)
    if isinstance(value, float):
        return {0.0: 0, 1.0: 1}.get(value, 1 + len(f"{value:.9g}"))
    return 1
