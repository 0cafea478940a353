"""List the atoms (single conditions) that may tell one operator's failures from its passes.

Examples are `Axis == 3`, `InputTensor.Sizes[-1] % 4 != 0` and `FLOAT16 in DataTypes`. Bits are
explained in `dmlconf.diagnosis.atoms`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, combinations
from keyword import iskeyword
from typing import Any, Final

import numpy as np

from dmlconf.cases.facts import DATA, IN_PLACE, desc_of, is_tensor, products, tensor_of_text
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.loader import UnknownOperatorError
from dmlconf.catalogue.loader import operator as operator_entry
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.diagnosis.atoms import AtomTable, Column, TableBuilder, exact_numbers
from dmlconf.expressions import FUNCTIONS
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import Verdict

__all__ = ["atom_table"]

_FAMILIES: Final = (
    *((f"INT{bits}", f"UINT{bits}") for bits in (4, 8, 16, 32, 64)),
    ("FLOAT64", "FLOAT32", "FLOAT16"),
    ("INT64", "INT32", "INT16", "INT8", "INT4"),
    ("UINT64", "UINT32", "UINT16", "UINT8", "UINT4"),
)
"""Data types that have a width or a kind in common."""

_MOST_PAIRED: Final = 3
"""This many of an operator's first tensors are compared with each other."""

_MOST_SIZES: Final = 8
"""The most bounds on the size of a dimension."""

_DIVISORS: Final = (2, 4, 8, 16, 32, 64)
_FEW_DIVISORS: Final = (2, 4, 8)
_DERIVED_DIVISORS: Final = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Common sizes of vectors, thread groups and tiles in kernels."""

_MEMBER_BITS: Final = 6.5
"""Bits of an atom that names an item of a list: `'GEMM' in Operators`."""
_NEIGHBOURS_BITS: Final = 8.5
"""Bits of an atom on two nodes of which one feeds the other: `'GEMM>CAST' in Neighbours`."""
_DATA_BITS: Final = 6.0
"""Bits of an atom on the numbers in the inputs: `NAN in Data`."""
_DIMENSIONS: Final = (-1, -2, 0, 1, 2)
"""The dimensions whose sizes have atoms, such as `InputTensor.Sizes[-1] > 37`."""

_Tensors = Mapping[str, tuple[Column, Sequence[TensorDesc | None]]]


def atom_table(verdicts: Sequence[Verdict], groups: Sequence[Array]) -> AtomTable:
    """Return the atoms of one or more cases of one operator.

    Args:
        groups: indices of verdicts; the lowest and highest numbers of a group become bounds.
    """
    builder = TableBuilder(len(verdicts), groups)
    # A large log keeps facts pickled (`run_log.packed`): unpack each once for all columns.
    facts = [dict(verdict.facts) for verdict in verdicts]
    names = list(dict.fromkeys(chain.from_iterable(dict.fromkeys(map(tuple, facts)))))
    columns = {name: Column([each.get(name) for each in facts]) for name in names}
    in_place = columns.pop(IN_PLACE, None)
    data = columns.pop(DATA, None)
    tensors: dict[str, tuple[Column, Sequence[TensorDesc | None]]] = {}
    entry = _catalogue_entry(verdicts)
    for name, column in columns.items():
        if not _may_be_named(name):
            continue
        example = next((value for value in column.distinct if value is not None), None)
        if len({_kind(value) for value in column.distinct if value not in (None, [])}) > 1:
            continue  # Values of different kinds have nothing to compare.
        if None in column.distinct:
            present = column.mask(lambda value: True)
            builder.add(f"{name} is not None", 5.5, present)
            if entry is not None:  # A graph without this input does not have the name.
                builder.add(f"{name} is None", 5.5, ~present)
        if is_tensor(example):
            tensors[name] = column, [v and tensor_of_text(v) for v in column.distinct]
        elif isinstance(example, list) and example and is_tensor(example[0]):
            firsts = column.derived([value[0] if value else None for value in column.distinct])
            tensors[f"{name}[0]"] = firsts, [v and tensor_of_text(v) for v in firsts.distinct]
            builder.numbers(f"len({name})", 7, column.numbers(len))
        else:
            _attribute(builder, name, column, example)
    for name, (column, descs) in tensors.items():
        _tensor(builder, name, column, descs)
    _pairs(builder, tensors)
    _axes(builder, columns, tensors)
    if tensors:
        fields = [field.name for field in entry.fields] if entry is not None else []
        first_types = Column(_first_type(each, (*fields, *each)) for each in facts)
    else:
        first_types = None
    _case(builder, verdicts, columns, first_types, in_place)
    _derived(builder, verdicts)
    if data is not None:
        _data(builder, data)
    return builder.table()


def _may_be_named(name: str) -> bool:
    """Return whether expressions may name a fact.

    Inputs of graphs may be named `as`, `x-`, or like a function of expressions.
    """
    readable = name.isidentifier() and not iskeyword(name) and not name.startswith("_")
    return readable and name not in FUNCTIONS


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float) or value in ("inf", "-inf", "nan"):
        return "number"
    if isinstance(value, list):
        return f"list of {', '.join(sorted(set(map(_kind, value))))}"
    if isinstance(value, dict):
        return "mapping of an operator" if isinstance(value.get("operator"), str) else "mapping"
    return "tensor" if is_tensor(value) else "text"


def _derived(builder: TableBuilder, verdicts: Sequence[Verdict]) -> None:
    """Add atoms of `OutputElements` and `Products`; none for graphs or unknown operators."""
    entry = _catalogue_entry(verdicts)
    if entry is None:
        return
    descs = [desc_of(entry, verdict.facts) for verdict in verdicts]
    outputs = [
        max((t.ElementCount for _, _, t in tensors_of(entry, desc, FieldKind.OUTPUT)), default=0)
        for desc in descs
    ]
    builder.numbers("OutputElements", 7.9, exact_numbers(outputs), divisors=_DERIVED_DIVISORS)
    terms = [products(entry, desc) for desc in descs]
    builder.numbers("Products", 8.2, exact_numbers(terms), divisors=_DERIVED_DIVISORS)


def _catalogue_entry(verdicts: Sequence[Verdict]) -> Operator | None:
    try:
        return operator_entry(verdicts[0].operator)
    except UnknownOperatorError:
        return None


def _data(builder: TableBuilder, data: Column) -> None:
    for word in sorted({word for words in data.distinct if words for word in words}):
        holds = data.mask(partial(_has, word))
        builder.add(f"{word} in Data", _DATA_BITS, holds)
        builder.add(f"{word} not in Data", _DATA_BITS + 1, ~holds)


def _values(column: Column) -> list[Any]:
    return [column.distinct[code] for code in column.codes]


def _attribute(builder: TableBuilder, name: str, column: Column, example: Any) -> None:
    if isinstance(example, bool):
        builder.flag(name, 5.5, column.mask(bool))
    elif _kind(example) == "number":
        builder.numbers(name, 6, column.numbers(_number))
    elif isinstance(example, str):
        builder.constants(name, 5.5, column, absent_differs=True)
    elif isinstance(example, dict) and "operator" in example:
        operators = column.derived([value and value["operator"] for value in column.distinct])
        builder.constants(name, 6, operators, absent_differs=True)
    elif isinstance(example, dict):
        for part in example:
            values = column.numbers(partial(_part, part))
            builder.numbers(f'{name}["{part}"]', 7, values)
    elif isinstance(example, list):
        _list(builder, name, column)


def _part(name: str, value: Mapping[str, Any]) -> float | None:
    return _number(value.get(name))


def _item(at: int, values: Sequence[Any]) -> float | None:
    return _number(values[at]) if len(values) > max(at, 0) else None


def _end(which: Callable[[Sequence[float]], float], values: Sequence[Any]) -> float | None:
    """Return the maximum or minimum of a list, in which infinities may be text; None if empty."""
    numbers = [number for value in values if (number := _number(value)) is not None]
    return which(numbers) if numbers else None


def _number(value: Any) -> float | None:
    """Return a number, or the infinity or NaN of a text; None if the value is neither."""
    try:
        return value if isinstance(value, int) else float(value)
    except (TypeError, ValueError):
        return None


def _list(builder: TableBuilder, name: str, column: Column) -> None:
    builder.numbers(f"len({name})", 6.5, column.numbers(len))
    items = [item for value in column.distinct if value for item in value]
    if items and isinstance(items[0], dict):
        firsts = [v[0].get("operator") if v else None for v in column.distinct]
        builder.constants(f"{name}[0]", 8, column.derived(firsts))
    if items and all(isinstance(item, str) and _number(item) is None for item in items):
        _members(builder, name, column)
        return
    if not items or any(_number(item) is None for item in items):
        return
    builder.numbers(f"max({name})", 6.5, column.numbers(partial(_end, max)))
    builder.numbers(f"min({name})", 6.5, column.numbers(partial(_end, min)))
    uneven = column.mask(lambda v: len(set(v)) > 1)
    builder.add(f"min({name}) != max({name})", 8, uneven)
    for at in (0, 1, -1):
        values = column.numbers(partial(_item, at))
        builder.numbers(f"{name}[{at}]", 8.5, values)


def _members(builder: TableBuilder, name: str, column: Column) -> None:
    for member in sorted({item for value in column.distinct if value for item in value}):
        bits = _NEIGHBOURS_BITS if ">" in member else _MEMBER_BITS
        builder.add(f"'{member}' in {name}", bits, column.mask(partial(_has, member)))


def _tensor(
    builder: TableBuilder, name: str, column: Column, descs: Sequence[TensorDesc | None]
) -> None:
    types = [desc and str(desc.DataType) for desc in descs]
    of_case = column.derived(types)
    builder.constants(f"{name}.DataType", 5.6, of_case)
    _families(builder, f"{name}.DataType", 8, {t: of_case.mask(t.__eq__) for t in set(types) if t})

    def measured(values: Sequence[float | None]) -> Array:
        return exact_numbers(values)[column.codes]

    def met(values: Sequence[bool]) -> Array:
        return column.spread(values, bool)

    builder.numbers(
        f"{name}.DimensionCount",
        6.5,
        measured([None if d is None else len(d.Sizes) for d in descs]),
    )
    counts = measured([None if d is None else d.ElementCount for d in descs])
    builder.numbers(f"{name}.ElementCount", 8, counts, divisors=_DIVISORS)
    for at in _DIMENSIONS:
        needed = at + 1 if at >= 0 else -at
        sizes = [d.Sizes[at] if d is not None and len(d.Sizes) >= needed else None for d in descs]
        bits = {-1: 8.0, -2: 8.5}.get(at, 9.0)
        divisors = _DIVISORS if at == -1 else _FEW_DIVISORS
        builder.numbers(
            f"{name}.Sizes[{at}]", bits, measured(sizes), divisors=divisors, most=_MOST_SIZES
        )
    present = met([d is not None for d in descs])
    packed = met([d is not None and d.Packed for d in descs])
    builder.add(f"not {name}.Packed", 6, present & ~packed)
    builder.add(f"{name}.Packed", 6, packed)
    builder.add(f"{name}.Strides is not None", 7.5, met([bool(d and d.Strides) for d in descs]))
    repeated = met([d is not None and d.Broadcast for d in descs])
    builder.add(f"{name}.Broadcast", 6, repeated)
    builder.add(f"not {name}.Broadcast", 7, present & ~repeated)
    for flag in sorted({flag for d in descs if d is not None for flag in d.Flags}):
        flagged = met([d is not None and flag in d.Flags for d in descs])
        builder.add(f"{flag} in {name}.Flags", 6.5, flagged)
        builder.add(f"{flag} not in {name}.Flags", 7.5, present & ~flagged)
    larger = [d is not None and _has_more_bytes(d) for d in descs]
    text = f"{name}.TotalTensorSizeInBytes > {name}.MinimumTensorSizeInBytes"
    builder.add(text, 8, met(larger))
    aligned = measured([None if d is None else d.GuaranteedBaseOffsetAlignment for d in descs])
    builder.numbers(f"{name}.GuaranteedBaseOffsetAlignment", 8, aligned)


def _has_more_bytes(tensor: TensorDesc) -> bool:
    declared = tensor.DeclaredTensorSizeInBytes
    return declared is not None and declared > tensor.MinimumTensorSizeInBytes


def _families(builder: TableBuilder, text: str, bits: float, holds: Mapping[str, Array]) -> None:
    for family in _FAMILIES:
        members = [name for name in family if name in holds]
        if 1 < len(members) < len(holds):
            either = np.logical_or.reduce([holds[name] for name in members])
            builder.add(f"{text} in ({', '.join(members)})", bits, either)


def _pairs(builder: TableBuilder, tensors: _Tensors) -> None:
    for first, second in combinations(list(tensors)[:_MOST_PAIRED], 2):
        (a_column, a_descs), (b_column, b_descs) = tensors[first], tensors[second]
        both = (
            (np.array([d is not None for d in a_descs])[a_column.codes])
            & (np.array([d is not None for d in b_descs])[b_column.codes])
        )
        for attribute, bits in (("DataType", 7.0), ("Sizes", 8.0)):
            known: dict[Any, int] = {}
            a_codes, b_codes = (
                column.spread(
                    [known.setdefault(d and getattr(d, attribute), len(known)) for d in descs],
                    np.intp,
                )
                for column, descs in (tensors[first], tensors[second])
            )
            same = a_codes == b_codes
            builder.add(f"{first}.{attribute} == {second}.{attribute}", bits, both & same)
            builder.add(f"{first}.{attribute} != {second}.{attribute}", bits, both & ~same)


def _axes(builder: TableBuilder, columns: Mapping[str, Column], tensors: _Tensors) -> None:
    """Add atoms that relate Axis and Axes to the dimensions of the first tensor."""
    if not tensors:
        return
    name, (column, descs) = next(iter(tensors.items()))
    sizes = [() if d is None else d.Sizes for d in (descs[code] for code in column.codes)]
    ranks = np.array([len(size) for size in sizes])
    present = ranks > 0
    if "Axis" in columns:
        axes = columns["Axis"].numbers(_number)
        builder.add(f"Axis == {name}.DimensionCount - 1", 7, axes == ranks - 1)
        builder.add(f"Axis != {name}.DimensionCount - 1", 8, present & (axes != ranks - 1))
        along = [
            size[int(axis)] if axis == axis and 0 <= int(axis) < len(size) else None
            for size, axis in zip(sizes, axes.tolist(), strict=True)
        ]
        builder.numbers(f"{name}.Sizes[Axis]", 8, exact_numbers(along), divisors=_FEW_DIVISORS)
    if "Axes" in columns:
        values = [value or () for value in _values(columns["Axes"])]
        last = [rank - 1 in axes for rank, axes in zip(ranks, values, strict=True)]
        builder.add(f"{name}.DimensionCount - 1 in Axes", 7.5, np.array(last))
        builder.add(f"{name}.DimensionCount - 1 not in Axes", 8, present & ~np.array(last))
        every = present & (np.array([len(axes) for axes in values]) == ranks)
        builder.add(f"len(Axes) == {name}.DimensionCount", 7.5, every)
        builder.add(f"len(Axes) != {name}.DimensionCount", 8, present & ~every)


@dataclass(frozen=True, slots=True)
class _Summary:
    """The tensors of a field together.

    `rank` and `elements` are the largest. `packed` holds if all are packed, `broadcast` if one is
    broadcast.
    """

    types: frozenset[str]
    rank: int
    elements: int
    packed: bool
    broadcast: bool
    flags: frozenset[str]


def _has(name: str, names: Collection[str]) -> bool:
    return name in names


_NO_TENSORS: Final = _Summary(frozenset(), 0, 0, True, False, frozenset())


def _summary(value: Any) -> _Summary:
    if isinstance(value, list):
        return _joint_summary(part for part in value if isinstance(part, str))
    return _summary_of_tensor(value) if isinstance(value, str) else _NO_TENSORS


@lru_cache(maxsize=65_536)
def _summary_of_tensor(text: str) -> _Summary:
    return _joint_summary((text,))


def _joint_summary(texts: Iterable[str]) -> _Summary:
    descs = [desc for text in texts if (desc := tensor_of_text(text)) is not None]
    if not descs:
        return _NO_TENSORS
    return _Summary(
        frozenset(str(desc.DataType) for desc in descs),
        max(len(desc.Sizes) for desc in descs),
        max(desc.ElementCount for desc in descs),
        all(desc.Packed for desc in descs),
        any(desc.Broadcast for desc in descs),
        frozenset(flag for desc in descs for flag in desc.Flags),
    )


def _first_type(facts: Mapping[str, Any], fields: Iterable[str]) -> str | None:
    for name in fields:
        value = facts.get(name)
        for text in value if isinstance(value, list) else [value]:
            desc = tensor_of_text(text) if isinstance(text, str) else None
            if desc is not None:
                return str(desc.DataType)
    return None


def _case(
    builder: TableBuilder,
    verdicts: Sequence[Verdict],
    columns: Mapping[str, Column],
    first_types: Column | None,
    in_place: Column | None,
) -> None:
    """Add atoms whose names exist for every operator, such as `Rank` and `DataTypes`."""
    fields: list[tuple[Column, list[_Summary]]] = []
    for column in columns.values():
        summaries = [_summary(value) for value in column.distinct]
        if any(summary is not _NO_TENSORS for summary in summaries):
            fields.append((column, summaries))

    def either(part: str, test: Callable[[Any], bool]) -> Array:
        each = [column.mask(test) for column in parts[part]]
        return np.logical_or.reduce(each) if each else np.zeros(len(verdicts), bool)

    def greatest(measure: Callable[[_Summary], int]) -> Array:
        each = [
            exact_numbers(measure(s) for s in field_summaries)[column.codes]
            for column, field_summaries in fields
        ]
        return np.maximum.reduce(each) if each else np.zeros(len(verdicts))

    parts = {
        part: [
            column.derived([getattr(s, part) for s in field_summaries])
            for column, field_summaries in fields
        ]
        for part in ("types", "packed", "broadcast", "flags")
    }
    every = sorted({name for column in parts["types"] for of in column.distinct for name in of})
    holds = {name: either("types", partial(_has, name)) for name in every}
    # If a case has several data types, the atoms about one tensor (5.6 bits) say more.
    mixed = 0.7 if sum(map(np.asarray, holds.values()), np.zeros(1)).max() > 1 else 0.0
    for name, mask in holds.items():
        builder.add(f"{name} in DataTypes", 5.1 + mixed, mask)
        builder.add(f"{name} not in DataTypes", 6.1 + mixed, ~mask)
    if first_types is not None:
        types = {name: first_types.mask(name.__eq__) for name in first_types.distinct if name}
        builder.constants("DataType", 5 + mixed, first_types, absent_differs=True)
        _families(builder, "DataType", 7, types)
    builder.numbers("Rank", 6, greatest(lambda s: s.rank))
    builder.numbers("ElementCount", 7.9, greatest(lambda s: s.elements))
    builder.flag("Packed", 5, ~either("packed", operator.not_))
    builder.flag("Broadcast", 5.5, either("broadcast", bool))
    if in_place is not None:
        builder.flag("InPlace", 5.5, in_place.mask(bool))
    for flag in sorted(
        {flag for column in parts["flags"] for of in column.distinct for flag in of}
    ):
        flagged = either("flags", partial(_has, flag))
        builder.add(f"{flag} in Flags", 6, flagged)
        builder.add(f"{flag} not in Flags", 7, ~flagged)
    tags = Column(verdict.tags for verdict in verdicts)
    codes: dict[str, list[int]] = {}
    for code, of_case in enumerate(tags.distinct):
        for tag in of_case:
            codes.setdefault(tag, []).append(code)
    for tag, tagged in sorted(codes.items()):
        has_tag = np.zeros(len(tags.distinct), bool)
        has_tag[tagged] = True
        builder.add(f'"{tag}" in Tags', 10, has_tag[tags.codes])
