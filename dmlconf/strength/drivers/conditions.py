"""Conditions of driver defects, and the features of cases that they read.

`conditions.yaml` has the named conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.model import Entry, FieldKind
from dmlconf.documents.reader import read_document
from dmlconf.expressions import Expression, Namespace
from dmlconf.tensors.layout import layout_class, packed_strides

__all__ = ["Condition", "condition", "features"]

_RECURRENT: Final = frozenset({"RNN", "GRU", "LSTM"})

_LAYOUTS: Final = ("padded", "transposed", "channels-last", "broadcast")
"""Layouts by which conditions choose tensors."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on a case.

    Attributes:
        when: an expression over the features and VALUE, which stands for `value`.
        text: what a case that meets the condition has, in words.
        value: the value of a named condition in the defect's entry; None for an expression.
    """

    when: Expression
    text: str
    value: Any = None

    def holds(self, names: Namespace) -> bool:
        """Return whether features meet the condition; False if it cannot be evaluated."""
        return self.when.holds({**names, "VALUE": self.value})


@cache
def _named() -> Mapping[str, Mapping[str, str]]:
    data: Mapping[str, Mapping[str, str]] = read_document(
        Path(__file__).with_name("conditions.yaml")
    ).data
    return data


def condition(entry: str | Mapping[str, Any]) -> Condition:
    """Return a condition in the entry of a driver defect.

    Args:
        entry: an expression, or a mapping of a condition's name to its value.

    Raises:
        KeyError: there is no condition of that name.
        ExpressionError: the expression cannot be read.
    """
    if isinstance(entry, str):
        return Condition(Expression(entry), f"`{entry}`")
    [(name, value)] = entry.items()
    known = _named()[name]
    text = known["text"].format(VALUE=value)
    if value is False:
        text = f"not {text}"
    return Condition(Expression(known["when"]), text, value)


def features(case: Case) -> Namespace:
    """Return the features of a case: the names and values that conditions can use."""
    desc, operator = case.desc, case.entry
    inputs = [tensor for _, _, tensor in tensors_of(operator, desc, FieldKind.INPUT)]
    named = {name: tensor for name, _, tensor in tensors_of(operator, desc, FieldKind.OUTPUT)}
    outputs = list(named.values())
    first_in, first_out = (inputs or outputs)[0], outputs[0]
    sizes = first_out.Sizes
    derived: dict[str, Any] = {
        **_types("input", first_in),
        **_types("output", first_out),
        "data_type": str(first_out.DataType),
        "index_bits": next((t.DataType.bits for n, t in named.items() if _is_index(case, n)), 0),
        "rank": first_out.DimensionCount,
        "elements": prod(sizes),
        "input_elements": max((prod(tensor.Sizes) for tensor in inputs), default=0),
        "columns": sizes[-1],
        "rows": prod(sizes[:-1]),
        "batch": sizes[0],
        "input_batch": first_in.Sizes[0],
        "channels": sizes[1] if len(sizes) > 1 else 1,
        "spatial": len(sizes) - 2,
        "matrix_rows": sizes[-2] if len(sizes) > 1 else 1,
        "matrices": prod(sizes[:-2]),
        "axis_size": _axis_size(case, first_in),
        "strided_input": any(_strided(tensor) for tensor in inputs),
        "strided_output": any(_strided(tensor) for tensor in outputs),
        "broadcast_input": any(_repeats(tensor) for tensor in inputs),
        "aliased": bool(case.in_place),
        "owned": any(tensor.Owned for tensor in inputs),
        "keys": _keys(desc),
        **_tensor_names(operator, desc),
    }
    if case.operator_name in _RECURRENT:
        derived["steps"], derived["sequences"], derived["features"] = first_in.Sizes[-3:]
        derived["hidden"] = desc["RecurrenceTensor"].Sizes[-1]
    return operator.names({**desc, **derived})


def _tensor_names(operator: Entry, desc: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the names of each layout's tensors, such as `padded_tensors`, and of owned ones."""
    tensors = [(field.name, tensor) for _, field, tensor in tensors_of(operator, desc)]
    names = {
        f"{layout.replace('-', '_')}_tensors": tuple(
            name for name, tensor in tensors if layout_class(tensor.Sizes, tensor.Strides) == layout
        )
        for layout in _LAYOUTS
    }
    names["owned_tensors"] = tuple(name for name, one in tensors if one.Owned)
    return names


def _types(prefix: str, tensor: TensorDesc) -> dict[str, Any]:
    data_type = tensor.DataType
    return {
        f"{prefix}_type": str(data_type),
        f"{prefix}_bits": data_type.bits,
        f"{prefix}_float": data_type.is_float,
        f"{prefix}_integer": not data_type.is_float,
        f"{prefix}_signed": data_type.is_signed,
    }


def _is_index(case: Case, name: str) -> bool:
    return "Ind" in name or case.operator_name in ("ARGMAX", "ARGMIN")


def _strided(tensor: TensorDesc) -> bool:
    strides = tensor.Strides
    if strides is None:
        return False
    packed = packed_strides(tensor.Sizes)
    pairs = zip(tensor.Sizes, strides, packed, strict=True)
    return any(size > 1 and stride != other for size, stride, other in pairs)


def _repeats(tensor: TensorDesc) -> bool:
    strides = tensor.Strides or ()
    return any(s == 0 and n > 1 for n, s in zip(tensor.Sizes, strides, strict=False))


def _axis_size(case: Case, tensor: TensorDesc) -> int:
    """Return how many elements the axes, the window or one filter span.

    Without them, it is the size of the last dimension, or of the one before if TransA transposes.
    CrossChannel without LocalSize stands for the axes from 1 on if true, else from 2 on.
    """
    desc, sizes = case.desc, tensor.Sizes
    axes = desc.get("Axes")
    if isinstance(axes, Sequence) and axes and max(axes) < len(sizes):
        return prod(sizes[axis] for axis in axes)
    axis = desc.get("Axis")
    if isinstance(axis, int) and axis < len(sizes):
        return sizes[axis]
    if desc.get("TransA") == "TRANSPOSE":
        return sizes[-2]
    if "CrossChannel" in desc and "LocalSize" not in desc:
        return prod(sizes[1:] if desc["CrossChannel"] else sizes[2:])
    window = desc.get("WindowSize") or desc.get("WindowSizes")
    if window:
        return prod(window)
    filter_ = desc.get("FilterTensor")
    return prod(filter_.Sizes[1:]) if isinstance(filter_, TensorDesc) else sizes[-1]


def _keys(desc: Mapping[str, Any]) -> int:
    """Return the number of new keys in each batch of an attention; 0 for other operators."""
    key = desc.get("KeyTensor")
    if isinstance(key, TensorDesc):
        return key.Sizes[-2]
    names = "StackedKeyValueTensor", "StackedQueryKeyTensor", "StackedQueryKeyValueTensor"
    stacks = [desc[name] for name in names if isinstance(desc.get(name), TensorDesc)]
    return stacks[0].Sizes[1] if stacks else 0
