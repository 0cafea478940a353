"""Choose the fill that gives a tensor data of a class, such as large or special numbers."""

from __future__ import annotations

from typing import Any, Final

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.coverage.combinations.classes import LARGE

__all__ = ["fill_of"]

_FEW: Final = 25
"""Smaller tensors have the seed `_FROM_INFINITY`."""

_FROM_INFINITY: Final = 4
"""The seed with which the first special number is an infinity."""


def fill_of(tensor: TensorDesc, data_class: str, mild: int, seed: int) -> dict[str, Any]:
    """Return the fill that gives a tensor data of a class, as a case file has it.

    The higher `mild` (0 to 2), the fewer numbers are special. From 1 on, most others are smaller.
    """
    data_type = tensor.DataType
    signed = data_type.is_signed
    whole = {"integers": {"low": -9 if signed else 0, "high": 8 if mild else 9, "seed": seed}}
    match data_class:
        case "special" if mild > 1:
            return {"specials": {"seed": _FROM_INFINITY, "every": 997}}
        case "special" if tensor.ElementCount < _FEW:
            return {"specials": {"seed": _FROM_INFINITY, "every": 5}}
        case "special":
            return {"specials": {"seed": seed, "every": 23 if mild else 5}}
        case "all -infinity":
            return {"constant": {"value": float("-inf")}}
        case "fractions":
            return {"uniform": {"low": -2, "high": 1.75 if mild else 2, "seed": seed}}
        case "small" if data_type.is_float:
            return {"uniform": {"low": -0.003, "high": 0.003, "seed": seed}}
        case "small":
            return {"integers": {"low": -1 if signed else 0, "high": 1, "seed": seed}}
        case "large" if data_type.is_float:
            high = (1.25 if mild else 2) * LARGE[data_type]
            return {"uniform": {"low": -high, "high": high, "seed": seed}}
        case "large":
            low, high = int(data_type.minimum), int(data_type.maximum)
            return {"integers": {"low": low, "high": high, "seed": seed}}
    if data_type.bits == 4:
        return {"integers": {"low": -5 if signed else 0, "high": 5, "seed": seed}}
    return whole
