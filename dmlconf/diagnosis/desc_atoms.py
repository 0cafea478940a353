"""The atoms over the facts of cases of one operator: of its tensors, of its attributes, of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np

from dmlconf.cases.facts import IN_PLACE, is_tensor, read_tensor
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.diagnosis.atoms import AtomTable, Column, TableBuilder
from dmlconf.runner.verdict import Verdict
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["atom_table"]

_FAMILIES: Final = (
    *((f"INT{bits}", f"UINT{bits}") for bits in (4, 8, 16, 32, 64)),
    ("FLOAT64", "FLOAT32", "FLOAT16"),
    ("INT64", "INT32", "INT16", "INT8", "INT4"),
    ("UINT64", "UINT32", "UINT16", "UINT8", "UINT4"),
)
"""Data types of one width or kind."""

_MOST_PAIRED: Final = 4
_DIMENSIONS: Final = (-1, -2, 0, 1, 2)

_Tensors = Mapping[str, tuple[Column, Sequence[TensorDesc | None]]]


def atom_table(verdicts: Sequence[Verdict], groups: Sequence[Array]) -> AtomTable:
    """Return the atoms of cases of one operator.

    Args:
        verdicts: the verdicts, each with its facts.
        groups: places of verdicts whose least and greatest numbers make bounds.
    """
    builder = TableBuilder(len(verdicts), groups)
    names = list(dict.fromkeys(name for verdict in verdicts for name in verdict.facts))
    columns = {name: Column(v.facts.get(name) for v in verdicts) for name in names}
    in_place = columns.pop(IN_PLACE, None)
    tensors: dict[str, tuple[Column, Sequence[TensorDesc | None]]] = {}
    for name, column in columns.items():
        example = next(value for value in column.distinct if value is not None)
        if None in column.distinct:
            present = column.mask(lambda value: True)
            builder.add(f"{name} is not None", 6, present)
            builder.add(f"{name} is None", 6, ~present)
        if is_tensor(example):
            tensors[name] = column, [v and read_tensor(v) for v in column.distinct]
        elif isinstance(example, list) and example and is_tensor(example[0]):
            firsts = Column(value[0] if value else None for value in _values(column))
            tensors[f"{name}[0]"] = firsts, [v and read_tensor(v) for v in firsts.distinct]
            builder.numbers(f"len({name})", 7, column.numbers(len))
        else:
            _attribute(builder, name, column, example)
    for name, (column, descs) in tensors.items():
        _tensor(builder, name, column, descs)
    _pairs(builder, tensors)
    _axes(builder, columns, tensors)
    _case(builder, verdicts, in_place)
    return builder.table()


def _values(column: Column) -> list[Any]:
    return [column.distinct[code] for code in column.codes]


def _attribute(builder: TableBuilder, name: str, column: Column, example: Any) -> None:
    if isinstance(example, bool):
        builder.flag(name, 5.5, column.mask(bool))
    elif isinstance(example, int | float):
        builder.numbers(name, 6, column.numbers(_number))
    elif isinstance(example, str):
        builder.constants(name, 5.5, column)
    elif isinstance(example, dict) and "operator" in example:
        operators = Column(value and value["operator"] for value in _values(column))
        builder.constants(name, 6, operators)
    elif isinstance(example, dict):
        for part in example:
            values = column.numbers(partial(_part, part))
            builder.numbers(f"{name}['{part}']", 7, values)
    elif isinstance(example, list):
        _list(builder, name, column)


def _part(name: str, value: Mapping[str, Any]) -> float | None:
    return _number(value.get(name))


def _item(at: int, values: Sequence[float]) -> float | None:
    return values[at] if len(values) > max(at, 0) else None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _list(builder: TableBuilder, name: str, column: Column) -> None:
    builder.numbers(f"len({name})", 6.5, column.numbers(len))
    items = [item for value in column.distinct if value for item in value]
    if items and isinstance(items[0], dict):
        firsts = [v[0].get("operator") if v else None for v in column.distinct]
        builder.constants(f"{name}[0]", 8, Column(firsts[code] for code in column.codes))
    if not items or not all(isinstance(item, int | float) for item in items):
        return
    builder.numbers(f"max({name})", 6.5, column.numbers(lambda v: max(v, default=None)))
    builder.numbers(f"min({name})", 6.5, column.numbers(lambda v: min(v, default=None)))
    uneven = column.mask(lambda v: len(set(v)) > 1)
    builder.add(f"min({name}) != max({name})", 8, uneven)
    for at in (0, 1, -1):
        values = column.numbers(partial(_item, at))
        builder.numbers(f"{name}[{at}]", 8.5, values)


def _tensor(
    builder: TableBuilder, name: str, column: Column, descs: Sequence[TensorDesc | None]
) -> None:
    types = [desc and str(desc.DataType) for desc in descs]
    of_case = Column(types[code] for code in column.codes)
    builder.constants(f"{name}.DataType", 5.6, of_case)
    _families(builder, f"{name}.DataType", 8, {t: of_case.mask(t.__eq__) for t in types if t})

    def measured(values: Sequence[float | None]) -> Array:
        return column.spread([np.nan if v is None else v for v in values], np.float64)

    def met(values: Sequence[bool]) -> Array:
        return column.spread(values, bool)

    builder.numbers(
        f"{name}.DimensionCount",
        6.5,
        measured([None if d is None else len(d.Sizes) for d in descs]),
    )
    counts = measured([None if d is None else d.ElementCount for d in descs])
    builder.numbers(f"{name}.ElementCount", 8, counts, remainders=True)
    for at in _DIMENSIONS:
        needed = at + 1 if at >= 0 else -at
        sizes = [d.Sizes[at] if d is not None and len(d.Sizes) >= needed else None for d in descs]
        bits = {-1: 8.0, -2: 8.5}.get(at, 9.0)
        builder.numbers(f"{name}.Sizes[{at}]", bits, measured(sizes), remainders=True)
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
    aligned = measured([0 if d is None else d.GuaranteedBaseOffsetAlignment for d in descs])
    builder.numbers(f"{name}.GuaranteedBaseOffsetAlignment", 8, aligned)


def _has_more_bytes(tensor: TensorDesc) -> bool:
    return tensor.TotalTensorSizeInBytes > tensor.MinimumTensorSizeInBytes


def _families(builder: TableBuilder, text: str, bits: float, holds: Mapping[str, Array]) -> None:
    for family in _FAMILIES:
        members = [name for name in family if name in holds]
        if 1 < len(members) < len(holds):
            either = np.logical_or.reduce([holds[name] for name in members])
            builder.add(f"{text} in ({', '.join(members)})", bits, either)


def _pairs(builder: TableBuilder, tensors: _Tensors) -> None:
    """Add whether sizes and data types of two tensors are the same."""
    for first, second in combinations(list(tensors)[:_MOST_PAIRED], 2):
        (a_column, a_descs), (b_column, b_descs) = tensors[first], tensors[second]
        both = (
            (np.array([d is not None for d in a_descs])[a_column.codes])
            & (np.array([d is not None for d in b_descs])[b_column.codes])
        )
        for attribute, bits in (("DataType", 7.0), ("Sizes", 8.0), ("DimensionCount", 8.0)):
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
    """Add where an operator's axes lie among the dimensions of its first tensor."""
    if not tensors:
        return
    name, (column, descs) = next(iter(tensors.items()))
    sizes = [() if d is None else d.Sizes for d in (descs[code] for code in column.codes)]
    ranks = np.array([len(size) for size in sizes])
    if "Axis" in columns:
        axes = columns["Axis"].numbers(_number)
        builder.add(f"Axis == {name}.DimensionCount - 1", 7, axes == ranks - 1)
        builder.add(f"Axis != {name}.DimensionCount - 1", 8, axes != ranks - 1)
        along = [
            size[int(axis)] if axis == axis and 0 <= int(axis) < len(size) else np.nan
            for size, axis in zip(sizes, axes, strict=True)
        ]
        builder.numbers(f"{name}.Sizes[Axis]", 8, np.array(along, float), remainders=True)
    if "Axes" in columns:
        values = [value or () for value in _values(columns["Axes"])]
        last = [rank - 1 in axes for rank, axes in zip(ranks, values, strict=True)]
        builder.add(f"{name}.DimensionCount - 1 in Axes", 7.5, np.array(last))
        builder.add(f"{name}.DimensionCount - 1 not in Axes", 8, ~np.array(last))
        every = np.array([len(axes) for axes in values]) == ranks
        builder.add(f"len(Axes) == {name}.DimensionCount", 7.5, every)
        builder.add(f"len(Axes) != {name}.DimensionCount", 8, ~every)


def _case(builder: TableBuilder, verdicts: Sequence[Verdict], in_place: Column | None) -> None:
    """Add what means the same of every operator."""
    tensors = [
        [
            desc
            for value in verdict.facts.values()
            for item in (value if isinstance(value, list) else (value,))
            if isinstance(item, str) and (desc := read_tensor(item)) is not None
        ]
        for verdict in verdicts
    ]
    types = [frozenset(str(desc.DataType) for desc in descs) for descs in tensors]
    # Where tensors differ in their data types, the name of one of them says more.
    mixed = 0.7 if any(len(of_case) > 1 for of_case in types) else 0.0
    first = Column(str(descs[0].DataType) if descs else None for descs in tensors)
    builder.constants("DataType", 5 + mixed, first)
    _families(builder, "DataType", 7, {t: first.mask(t.__eq__) for t in first.distinct if t})
    for name in DataType:
        holds = np.array([name in of_case for of_case in types], bool)
        builder.add(f"{name} in DataTypes", 5.1 + mixed, holds)
        builder.add(f"{name} not in DataTypes", 6.1 + mixed, ~holds)
    ranks = [max((len(desc.Sizes) for desc in descs), default=0) for descs in tensors]
    builder.numbers("Rank", 6, np.array(ranks, float))
    counts = [max((desc.ElementCount for desc in descs), default=0) for descs in tensors]
    builder.numbers("ElementCount", 7.9, np.array(counts, float))
    builder.flag("Packed", 5, np.array([all(d.Packed for d in descs) for descs in tensors]))
    builder.flag("Broadcast", 5.5, np.array([any(d.Broadcast for d in ds) for ds in tensors]))
    if in_place is not None:
        builder.flag("InPlace", 5.5, in_place.mask(bool))
    flags = [frozenset(flag for desc in descs for flag in desc.Flags) for descs in tensors]
    for flag in sorted(frozenset().union(*flags)):
        holds = np.array([flag in of_case for of_case in flags])
        builder.add(f"{flag} in Flags", 6, holds)
        builder.add(f"{flag} not in Flags", 7, ~holds)
    tags = [frozenset(verdict.tags) for verdict in verdicts]
    for tag in sorted(frozenset().union(*tags)):
        builder.add(f"'{tag}' in Tags", 10, np.array([tag in of_case for of_case in tags]))
