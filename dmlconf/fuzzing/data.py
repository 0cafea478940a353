"""Choose data for the inputs of a random case: ordinary or special numbers, or valid indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dmlconf.cases.writing.desc_entry import InputData
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.indices import constant_writes, indices_of
from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.float_limits import LARGEST_FLOAT16

__all__ = ["data_of"]

_SEEDS: Final = 1 << 32
_EQUAL_NUMBERS: Final = (1.0, -0.7, 0.1, 3.3)
_EXPONENTS: Final = {
    DataType.FLOAT16: (15, 12, 8, 5, -5, -8, -12, -14, -17),
    DataType.FLOAT32: (127, 100, 70, 64, 40, 16, 8, 6, -40, -64, -75, -110, -130),
    DataType.FLOAT64: (1000, 100, 8, -100, -1000),
}
"""Exponents e: random numbers lie between -2^e and 2^e, some near the limits of their type."""


def data_of(operator: Operator, desc: Desc, chance: Chance) -> InputData:
    """Return data for the inputs of a desc.

    On average, two of three descs get only ordinary numbers, so that no NaN hides other errors. An
    input is constant if several of its elements may be written to one index.
    """
    inputs = list(tensors_of(operator, desc, FieldKind.INPUT))
    longest = max((max(tensor.Sizes) for _, _, tensor in inputs), default=1)
    ordinary = not chance.once_in(3)
    data: dict[str, Mapping[str, Any]] = {}
    for name, field, tensor in inputs:
        if field.bounds is not None and not tensor.DataType.is_float:
            data[name] = indices_of(operator, desc, field, tensor, chance)
        elif ordinary or chance.once_in(2):
            data[name] = {"fill": _ordinary(tensor, longest, chance)}
        else:
            data[name] = {"fill": _extraordinary(tensor, chance)}
    for name in sorted(constant_writes(operator, desc, data)):
        data[name] = {"fill": {"constant": {"value": chance.below(100)}}}
    return data


def _ordinary(tensor: TensorDesc, longest: int, chance: Chance) -> Mapping[str, Any]:
    data_type = tensor.DataType
    seed = chance.below(_SEEDS)
    if not data_type.is_float:
        return {"integers": _within(data_type, *_limits(longest, chance), seed)}
    if chance.once_in(16):  # Roundings of equal terms add up.
        return {"constant": {"value": chance.pick(_EQUAL_NUMBERS)}}
    match chance.below(6):
        case 0 | 1:
            return {"uniform": {"low": -1, "high": 1, "seed": seed}}
        case 2:
            return {"normal": {"seed": seed}}
        case 3:
            high = chance.pick((1, longest))
            if data_type == DataType.FLOAT16:
                high = min(high, int(LARGEST_FLOAT16))
            return {"uniform": {"low": 0, "high": high, "seed": seed}}
        case 4:
            return {"integers": {"low": -8, "high": 8, "seed": seed}}
    step = chance.pick((0.125, 0.25, 0.5))
    return {"uniform": {"low": -6, "high": 6, "step": step, "seed": seed}}


def _limits(longest: int, chance: Chance) -> tuple[int, int]:
    """Return the lowest and the highest of random integers, often indices below `longest`."""
    match chance.below(6):
        case 0 | 1:
            return 0, chance.below(longest)
        case 2:
            return -longest, longest - 1
        case 3:
            return 0, chance.pick((1, 2))
        case 4:
            return -8, 8
    return -128, 255


def _extraordinary(tensor: TensorDesc, chance: Chance) -> Mapping[str, Any]:
    data_type = tensor.DataType
    seed = chance.below(_SEEDS)
    kind = chance.below(5)
    if kind == 0:
        return {"ends": {"seed": seed % 64}}
    if kind < 3:
        # With `every: 7` each seventh number is special, and the others are ordinary.
        every = chance.pick((1, 2, 3, 7, 16))
        return {"specials": {"seed": seed % 64, "every": every}}
    if not data_type.is_float:
        low, high = int(data_type.minimum), int(data_type.maximum)
        return {"integers": {"low": low, "high": high, "seed": seed}}
    size = 2.0 ** chance.pick(_EXPONENTS[data_type])
    return {"uniform": {"low": -size, "high": size, "seed": seed}}


def _within(data_type: DataType, low: int, high: int, seed: int) -> Mapping[str, int]:
    low = min(max(low, int(data_type.minimum)), int(data_type.maximum))
    high = min(high, int(data_type.maximum))
    return {"low": min(low, high), "high": high, "seed": seed}
