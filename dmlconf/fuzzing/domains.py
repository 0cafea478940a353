"""Choose the first random values of a desc's fields.

Most tables pair values with weights: in `_SIZES`, 3 is five times as frequent as 9.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from dmlconf.catalogue.explanations import syntax_tree
from dmlconf.catalogue.loader import enumeration, operator_names, operator_sets
from dmlconf.catalogue.loader import operator as catalogue_operator
from dmlconf.catalogue.model import AttributeKind, Field, Operator
from dmlconf.fuzzing.chance import Chance
from dmlconf.tensors.datatypes import DataType

__all__ = [
    "attribute",
    "foreign_operators",
    "length",
    "nested",
    "nested_operators",
    "rank",
    "scalar",
    "scalar_fits",
    "size",
    "uses_nested_operator",
]

_SIZES: Final = (
    (1, 5),
    (2, 3),
    (3, 5),
    (4, 2),
    (5, 4),
    (7, 3),
    (8, 2),
    (9, 1),
    (10, 1),
    (13, 1),
    (16, 2),
    (17, 1),
    (24, 1),
    (32, 1),
    (64, 1),
)
_LONG_SIZES: Final = (
    31,
    33,
    63,
    64,
    65,
    127,
    129,
    255,
    256,
    257,
    513,
    1023,
    1024,
    1025,
    65535,
    65536,
    65537,
)
_RANKS: Final = {1: 2, 2: 2, 3: 2, 4: 6, 5: 3, 6: 1, 7: 1, 8: 1}
_NUMBERS: Final = ((0, 3), (1, 6), (2, 5), (3, 4), (4, 1), (5, 2), (7, 1))
_SIGNED: Final = ((1, 4), (-1, 3), (2, 3), (-2, 2), (0, 2), (3, 2), (-3, 1), (5, 1))
_REALS: Final = (
    (1.0, 6),
    (0.5, 4),
    (0.0, 3),
    (2.0, 3),
    (-1.0, 3),
    (0.25, 2),
    (-0.5, 2),
    (1.5, 2),
    (3.0, 2),
    (0.10000000149011612, 2),
    (-2.75, 1),
    (0.0009765625, 1),
    (100.0, 1),
    (7.0, 1),
)
_EXTREME_REALS: Final = (
    float("inf"),
    float("-inf"),
    float("nan"),
    -0.0,
    3.4028234663852886e38,
    1.1754943508222875e-38,
    65504.0,
    1.401298464324817e-45,
    1e20,
    -1e38,
    40000.0,
    16777216.0,
    -1e-20,
    6e-5,
    6e-8,
)


def size(chance: Chance) -> int:
    """Return a random size of a dimension, usually small."""
    return chance.pick(_LONG_SIZES) if chance.once_in(40) else chance.weighted(_SIZES)


def rank(chance: Chance, least: int, greatest: int) -> int:
    """Return a random DimensionCount from `least` to `greatest`, most often 4 if allowed."""
    return chance.weighted([(n, _RANKS.get(n, 1)) for n in range(least, greatest + 1)])


def length(chance: Chance) -> int:
    """Return a random length of an array of tensors, from 1 to 5."""
    return chance.weighted(((1, 2), (2, 4), (3, 3), (4, 1), (5, 1)))


def attribute(field: Field, operator: Operator, chance: Chance) -> Any:
    """Return a random value of an attribute, or of one item of an array; 0 for a scalar union."""
    match field.attribute_kind:
        case AttributeKind.UINT:
            return chance.weighted(_NUMBERS)
        case AttributeKind.INT:
            return chance.weighted(_SIGNED)
        case AttributeKind.FLOAT:
            # Arrays, such as the scales of resampling, get no extreme numbers.
            return chance.weighted(_REALS) if field.is_array else _real(chance)
        case AttributeKind.BOOL:
            return bool(chance.below(2))
        case AttributeKind.ENUM:
            return chance.pick(_constants(field))
        case AttributeKind.SIZE_2D:
            return {"Width": chance.weighted(_SIZES), "Height": chance.weighted(_SIZES)}
        case AttributeKind.SCALE_BIAS:
            return {"Scale": _real(chance), "Bias": _real(chance)}
        case AttributeKind.OPERATOR:
            return nested(chance.pick(nested_operators(operator, field.name)), chance)
        case AttributeKind.SCALAR_UNION:
            return 0


def _constants(field: Field) -> tuple[str, ...]:
    return tuple(name for name in enumeration(field.base_type).values if name != "UNKNOWN")


def _real(chance: Chance) -> float:
    return chance.pick(_EXTREME_REALS) if chance.once_in(10) else chance.weighted(_REALS)


def scalar(data_type: DataType, chance: Chance) -> float | int:
    """Return a random scalar of a data type, occasionally an extreme one."""
    if data_type.is_float:
        value = _real(chance)
        beyond = abs(value) > data_type.maximum and abs(value) != float("inf")
        return 1.0 if beyond else value
    low, high = int(data_type.minimum), int(data_type.maximum)
    if chance.once_in(6):
        return chance.pick((low, high, high - 1))
    return max(low, chance.weighted(_SIGNED))


def scalar_fits(value: Any, data_type: DataType) -> bool:
    """Return whether a data type has a scalar, apart from rounding.

    FLOAT types have infinity and NaN. Integer types have no floats, not even 3.0.
    """
    if data_type.is_float:
        return not -float("inf") < value < float("inf") or abs(value) <= data_type.maximum
    return isinstance(value, int) and data_type.minimum <= value <= data_type.maximum


def nested(name: str, chance: Chance) -> Mapping[str, Any]:
    """Return a random desc of an operator that is an attribute of another; its tensors are null."""
    inner = catalogue_operator(name)
    desc: dict[str, Any] = {"operator": name}
    for field in inner.fields:
        if field.is_tensor or (field.optional and chance.once_in(2)):
            desc[field.name] = None
        elif field.is_array:
            desc[field.name] = tuple(attribute(field, inner, chance) for _ in range(2))
        else:
            desc[field.name] = attribute(field, inner, chance)
    for count, arrays in inner.count_fields.items():
        desc[count] = len(desc[arrays[0]] or ())
    return desc


def uses_nested_operator(field: Field) -> bool:
    """Return whether an attribute is an operator, or an array of them."""
    return not field.is_tensor and field.attribute_kind is AttributeKind.OPERATOR


@cache
def nested_operators(operator: Operator, field: str) -> tuple[str, ...]:
    """Return the operators that a field may hold: those that its constraints name.

    Args:
        field: the name of a field that is an operator desc, or an array of them.
    """
    names: dict[str, None] = {}
    sets = operator_sets()
    for constraint in operator.constraints:
        used = constraint.require.names | {
            name for term in operator.terms_in(constraint.require).values() for name in term.names
        }
        if field not in used:
            continue
        for name in sorted(used & sets.keys()):
            names |= dict.fromkeys(sets[name])
        for node in ast.walk(syntax_tree(constraint.require.source)):
            if isinstance(node, ast.Constant) and str(node.value).startswith(
                ("ACTIVATION_", "ELEMENT_WISE_")
            ):
                names[str(node.value)] = None
    return tuple(names)


@cache
def foreign_operators(operator: Operator, field: str) -> tuple[str, ...]:
    """Return activations, element-wise operators and variants of REDUCE that a field may not hold.

    Args:
        field: as in `nested_operators`.
    """
    named = nested_operators(operator, field)
    return tuple(
        name
        for name in operator_names()
        if name.startswith(("ACTIVATION_", "ELEMENT_WISE_", "REDUCE")) and name not in named
    )
