"""Change all input and output tensors of a desc by one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import FieldKind, Operator

__all__ = ["KINDS", "with_tensors"]

KINDS: Final = FieldKind.INPUT, FieldKind.OUTPUT


def with_tensors(
    operator: Operator, desc: Desc, change: Callable[..., TensorDesc]
) -> dict[str, Any]:
    """Return the desc with each input and output tensor replaced by `change(field, tensor)`."""
    changed = dict(desc)
    for each in operator.of_kind(*KINDS):
        value = desc.get(each.name)
        if isinstance(value, TensorDesc):
            changed[each.name] = change(each, value)
        elif value is not None:
            changed[each.name] = tuple(change(each, tensor) for tensor in value)
    return changed
