"""Facts of a case for the run log, and the names that conditions over the case may use.

With the fact `InputTensor: FLOAT16 2x3`, the condition `FLOAT16 in DataTypes and Rank > 1` holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from dmlconf.cases.data_facts import DATA_WORDS, data_words
from dmlconf.cases.model import Case
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import AttributeKind, Entry, FieldKind, Operator
from dmlconf.catalogue.precision import RuleKind
from dmlconf.expressions import Expression, ExpressionError, Namespace
from dmlconf.tensors.datatypes import DataType

if TYPE_CHECKING:
    from dmlconf.graphs.model import Node

__all__ = [
    "DATA",
    "IN_PLACE",
    "constants",
    "desc_of",
    "element_count",
    "facts_of",
    "is_tensor",
    "names",
    "names_of",
    "names_of_node",
    "products",
    "tensor_of_text",
    "tensor_text",
]

# Keys of facts that are not fields of the desc.
IN_PLACE: Final = "in_place"
DATA: Final = "data"

_SIZES: Final = r"-|-?\d{1,20}(?:x-?\d{1,20})*"
_TENSOR: Final = re.compile(
    rf"(?P<type>U?INT\d+|FLOAT\d+) (?P<sizes>{_SIZES})(?: strides=(?P<strides>{_SIZES}))?"
    r"(?: flags=(?P<flags>\w+))?(?: bytes=(?P<bytes>\d{1,20}))?"
    r"(?: alignment=(?P<alignment>\d{1,20}))?\Z",
    re.ASCII,
)


def element_count(facts: Mapping[str, Any]) -> int:
    """Return how many elements the tensors in a case's facts have in all.

    The tensors of a graph are its inputs and outputs.

    Args:
        facts: as `facts_of` returns them.
    """
    nested = (value if isinstance(value, list) else [value] for value in facts.values())
    texts = (text for values in nested for text in values if isinstance(text, str))
    return sum(tensor.ElementCount for text in texts if (tensor := tensor_of_text(text)))


def facts_of(case: Case) -> dict[str, Any]:
    """Return the facts of a case for the run log, as JSON values.

    Absent fields are left out. Tensors, infinities and NaN are text, such as
    `FLOAT16 2x3 strides=1x2`. Arrays are lists, and nested operators and structs are objects.

    `in_place` lists the outputs that share the buffer of an input, and `data` the words of
    `DATA_WORDS` that apply to the inputs. Both are left out if empty.
    """
    known: dict[str, Any] | None = case.recalled("facts")
    if known is not None:
        return known
    facts = _desc_facts(case)
    words = data_words(case)
    return {**facts, DATA: list(words)} if words else facts


def _desc_facts(case: Case) -> dict[str, Any]:
    facts = {name: _plain(value) for name, value in case.described.items() if value is not None}
    if case.in_place:
        facts[IN_PLACE] = list(case.in_place)
    return facts


def _plain(value: Any) -> Any:
    if isinstance(value, TensorDesc):
        return tensor_text(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


@lru_cache(maxsize=4096)
def tensor_text(tensor: TensorDesc) -> str:
    """Write a tensor's desc in one line, such as `FLOAT16 2x3 strides=1x2`."""
    parts = [str(tensor.DataType), _times(tensor.Sizes)]
    if tensor.Strides is not None:
        parts.append(f"strides={_times(tensor.Strides)}")
    if tensor.Flags:
        parts.append(f"flags={'_and_'.join(tensor.Flags)}")
    if tensor.DeclaredTensorSizeInBytes is not None:
        parts.append(f"bytes={tensor.DeclaredTensorSizeInBytes}")
    if tensor.GuaranteedBaseOffsetAlignment:
        parts.append(f"alignment={tensor.GuaranteedBaseOffsetAlignment}")
    return " ".join(parts)


def _times(values: Iterable[int]) -> str:
    return "x".join(map(str, values)) or "-"


def is_tensor(value: Any) -> bool:
    """Return whether a fact is the text of a tensor's desc."""
    return isinstance(value, str) and tensor_of_text(value) is not None


@lru_cache(maxsize=65_536)
def tensor_of_text(text: str) -> TensorDesc | None:
    """Read what `tensor_text` wrote; None if the text is something else."""
    match = _TENSOR.match(text)
    if match is None or match["type"] not in DataType.__members__:
        return None
    size = match["bytes"]
    return TensorDesc(
        DataType(match["type"]),
        _numbers(match["sizes"]),
        None if match["strides"] is None else _numbers(match["strides"]),
        tuple(match["flags"].split("_and_")) if match["flags"] else (),
        None if size is None else int(size),
        int(match["alignment"] or 0),
    )


def _numbers(text: str) -> tuple[int, ...]:
    return () if text == "-" else tuple(map(int, text.split("x")))


def names_of(case: Case, condition: Expression | None = None) -> Namespace:
    """Return the names that a condition over a case may use, with their values.

    They are those of `names`, and `FeatureLevel`: `Case.required_level` as a number, or None. Level
    4_1 is 41, as Python reads `4_1`.

    Args:
        condition: the condition; None if all names are needed. `Data` may be empty if a condition
            does not use it.
    """
    level = case.required_level
    number = None if level is None else int(str(level).replace("_", ""))
    asked = condition is None or "Data" in condition.names
    facts = facts_of(case) if asked else _desc_facts(case)
    return {**names(case.entry, facts, case.tags), "FeatureLevel": number}


def names_of_node(node: Node) -> Namespace:
    """Return the names that a condition over a graph's node may use, with their values.

    `FeatureLevel` is missing, `Data` and `Tags` are empty, and `InPlace` is false.
    """
    facts = {name: _plain(value) for name, value in node.desc.items() if value is not None}
    return names(node.operator, facts, ())


def names(entry: Entry, facts: Mapping[str, Any], tags: Iterable[str]) -> Namespace:
    """Return the names that a condition may use, with their values.

    - the desc's fields; an absent one is None, a nested operator is its name
    - the terms of the operator's entry
    - what the function `constants` returns, such as `FLOAT16` and `BACKWARD`
    - `DataType` of the first tensor, None without tensors
    - `DataTypes` and `Flags` of all tensors
    - `Rank`: the largest number of dimensions
    - `ElementCount` of the largest tensor, `OutputElements` of the largest output
    - `Products`: what the function `products` returns, 1 for graphs
    - `Packed`: whether all tensors are packed
    - `Broadcast`: whether any tensor is broadcast
    - `InPlace`: whether an output shares an input's buffer
    - `Data`: the words of `DATA_WORDS` that apply to the inputs
    - `Tags` of the case

    The tensors of a graph are its inputs and outputs.

    Args:
        facts: as `facts_of` returns them.
    """
    desc = desc_of(entry, facts)
    tensors = list(_tensors(desc.values()))
    outputs = [tensor for _, _, tensor in tensors_of(entry, desc, FieldKind.OUTPUT)]
    return {
        **entry.names(desc),
        **constants(entry.name),
        "DataType": tensors[0].DataType if tensors else None,
        "DataTypes": tuple(dict.fromkeys(tensor.DataType for tensor in tensors)),
        "Rank": max((tensor.DimensionCount for tensor in tensors), default=0),
        "ElementCount": max((tensor.ElementCount for tensor in tensors), default=0),
        "OutputElements": max((tensor.ElementCount for tensor in outputs), default=0),
        "Products": products(entry, desc) if isinstance(entry, Operator) else 1,
        "Packed": all(tensor.Packed for tensor in tensors),
        "Broadcast": any(tensor.Broadcast for tensor in tensors),
        "InPlace": bool(facts.get(IN_PLACE)),
        "Flags": tuple({flag: None for tensor in tensors for flag in tensor.Flags}),
        "Data": tuple(facts.get(DATA, ())),
        "Tags": tuple(tags),
    }


def desc_of(entry: Entry, facts: Mapping[str, Any]) -> Desc:
    """Return the desc that the facts describe.

    An absent field is None, and a nested operator is its name.
    """
    return {field.name: _read(facts.get(field.name)) for field in entry.fields}


def products(operator: Operator, desc: Desc) -> int:
    """Return how many terms are summed for an element of an output; the most if outputs differ.

    A GEMM of 128 x 128 matrices has 129, since C counts even if absent. The number is 1 if nothing
    is summed or if it cannot be computed.

    Source: the precision rules of the catalogue.
    """
    most = 1
    names = operator.names(desc)
    for _, field, tensor in tensors_of(operator, desc, FieldKind.OUTPUT):
        entries = operator.precision.get(field.name, ())
        if any(entry.kind is RuleKind.ACCUMULATE for entry in entries):
            with suppress(ExpressionError):
                most = max(most, operator.rule(field.name, tensor.DataType, names).products)
    return most


@cache
def constants(operator_name: str) -> Mapping[str, str]:
    """Return the constants that a condition may name, each by its own name.

    These are data types, `OWNED_BY_DML`, the words of `DATA_WORDS`, and the constants of the
    operator's enums. Graphs, and operators with a nested one, also have the names of all operators.
    A constant that is named like a field is left out.
    """
    entry = catalogue.entry_of(operator_name)
    values = [str(data_type) for data_type in DataType]
    values += ["OWNED_BY_DML", *DATA_WORDS]
    for field in entry.fields:
        if not field.is_tensor and field.attribute_kind is AttributeKind.ENUM:
            values += catalogue.enumeration(field.base_type).values
        if not field.is_tensor and field.attribute_kind is AttributeKind.OPERATOR:
            values += catalogue.operator_names()
    taken = {field.name for field in entry.fields}
    return {value: value for value in values if value not in taken}


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_read, value))
    if isinstance(value, Mapping):
        return value.get("operator", {name: _read(item) for name, item in value.items()})
    if value in ("inf", "-inf", "nan"):
        return float(value)
    tensor = tensor_of_text(value) if isinstance(value, str) else None
    return value if tensor is None else tensor


def _tensors(values: Iterable[Any]) -> Iterable[TensorDesc]:
    for value in values:
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, TensorDesc):
                yield item
