"""Random indices and lengths for which the documentation defines results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import Field, Operator
from dmlconf.fuzzing.chance import Chance

__all__ = ["constant_writes", "indices_of"]


def indices_of(
    operator: Operator, desc: Desc, field: Field, tensor: TensorDesc, chance: Chance
) -> Mapping[str, Any]:
    """Return random data, in the form of a case file, for an input whose field has `bounds`."""
    bounds = field.bounds
    assert bounds is not None
    high = bounds.high.evaluate(operator.names(desc))
    largest = min(int(tensor.DataType.maximum), max(high, bounds.low))
    low = -high - 1 if bounds.from_end and tensor.DataType.is_signed else bounds.low
    low = max(low, int(tensor.DataType.minimum))
    if chance.once_in(3):  # No index counts from the end.
        low = bounds.low
    listed = bounds.writes is not None and not tensor.OverlappingStrides
    distinct = _distinct(desc, tensor, largest + 1, chance) if listed else None
    if distinct is not None:
        return {"values": distinct}
    return {"fill": {"integers": {"low": low, "high": largest, "seed": chance.below(1 << 32)}}}


def constant_writes(
    operator: Operator, desc: Desc, data: Mapping[str, Mapping[str, Any]]
) -> frozenset[str]:
    """Return the inputs whose elements must be equal, since several may be written to one index.

    Args:
        data: the data of each input; indices in `values`, rather than in `fill`, are distinct.
    """
    return frozenset(
        field.bounds.writes
        for field in operator.fields
        if field.bounds is not None
        and field.bounds.writes is not None
        and desc[field.name] is not None
        and "values" not in data[field.name]
    )


def _distinct(desc: Desc, tensor: TensorDesc, size: int, chance: Chance) -> list[int] | None:
    """Return indices that address different elements; None if none are found.

    With an Axis, indices on different lines along the axis always address different elements.
    """
    axis = desc.get("Axis")
    if axis is None:
        count = tensor.ElementCount
        single = tensor.Sizes[-1] == 1 or "InputDimensionCount" not in desc
        return _permuted(size, count, chance) if single and count <= size <= 1 << 14 else None
    count = tensor.Sizes[axis]
    if count > size:
        return None
    after = prod(tensor.Sizes[axis + 1 :])
    values = [0] * tensor.ElementCount
    for line in range(tensor.ElementCount // count):
        start = line // after * after * count + line % after
        for step, index in enumerate(_permuted(size, count, chance)):
            values[start + step * after] = index
    return values


def _permuted(size: int, count: int, chance: Chance) -> list[int]:
    order: Sequence[int] = chance.shuffled(range(size))
    return list(order[:count])
