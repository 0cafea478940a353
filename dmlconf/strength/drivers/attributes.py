"""Effects of driver defects: a kernel ignores, alters or exchanges attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dmlconf.strength.drivers.computation import Arrays, Computation, Settings

__all__ = ["exchanged", "set_attributes"]

_OTHERS: Final = {
    "INCREASING": "DECREASING",
    "DECREASING": "INCREASING",
    "DEPTH_COLUMN_ROW": "COLUMN_ROW_DEPTH",
    "COLUMN_ROW_DEPTH": "DEPTH_COLUMN_ROW",
}
"""By an attribute's right value, what it becomes if a defect's entry sets it to `other`."""


def set_attributes(right: Computation, settings: Settings) -> Arrays | None:
    """Return the outputs with other attributes; settings: their values by name (`_value`).

    Attributes that the operator lacks are ignored. None if no attribute changes, or if the
    reference fails.
    """
    desc = {
        name: _value(right.desc, name, value)
        for name, value in settings.items()
        if name in right.desc
    }
    same = all(right.desc[name] == value for name, value in desc.items())
    return None if same else right.again(desc=desc)


def exchanged(right: Computation, settings: Settings) -> Arrays | None:
    """Return the outputs with two attributes exchanged; settings: the two `names`.

    None if the reference fails.
    """
    one, other = settings["names"]
    return right.again(desc={one: right.desc[other], other: right.desc[one]})


def _value(desc: Mapping[str, Any], name: str, value: Any) -> Any:
    """Return what an attribute becomes.

    A mapping such as `{times: 2}` and a word such as `last` or `ones` are computed from the desc.
    Any other value stands for itself.
    """
    old = desc[name]
    if isinstance(value, Mapping):
        [(change, operand)] = value.items()
        if change == "as":
            return desc[operand]
        if change == "as_constant":
            return (operand,) * len(old)
        if isinstance(old, tuple):
            return tuple(_computed(each, change, operand) for each in old)
        return _computed(old, change, operand)
    if value in ("zeros", "ones"):
        return (type(old[0])(value == "ones"),) * len(old)
    if value == "first":
        return (old[0],) * len(old)
    if value == "last":
        return (desc["InputTensor"].DimensionCount - 1,)
    if value == "zero":
        return type(old)(0) if isinstance(old, int | float) else old
    if value == "absent":
        return None
    return _OTHERS[old] if value == "other" else value


def _computed(old: Any, change: str, operand: float) -> Any:
    if change == "plus":
        return old + operand
    return old * operand if change == "times" else old**operand
