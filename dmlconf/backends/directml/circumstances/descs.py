"""Cases with other tensor descs and the same data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.model import FieldKind

__all__ = ["with_tensors"]


def with_tensors(case: Case, change: Callable[[str, TensorDesc], TensorDesc]) -> Case:
    """Return an operator's case with changed tensors; graphs stay unchanged: edges hold descs too.

    Args:
        case: the case.
        change: returns a tensor's replacement, given its name (in arrays `InputTensors[0]`).
    """
    if isinstance(case, GraphCase):
        return case
    desc = dict(case.desc)
    for field in case.operator.of_kind(FieldKind.INPUT, FieldKind.OUTPUT):
        value = desc.get(field.name)
        if isinstance(value, TensorDesc):
            desc[field.name] = change(field.name, value)
        elif value is not None:
            tensors = (change(f"{field.name}[{i}]", tensor) for i, tensor in enumerate(value))
            desc[field.name] = tuple(tensors)
    return replace(case, desc=desc)
