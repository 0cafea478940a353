"""Check the types of the facts in the lines of a run log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dmlconf.cases.facts import DATA, IN_PLACE, is_tensor
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import UnknownOperatorError, entry_of
from dmlconf.catalogue.model import AttributeKind, Field

__all__ = ["facts_problem"]

_LARGEST: Final = 1 << 64
_NUMBERS: Final = ("inf", "-inf", "nan")
"""How facts write numbers that JSON lacks."""
_NUMERIC: Final = (AttributeKind.UINT, AttributeKind.INT, AttributeKind.FLOAT, AttributeKind.BOOL)
_DEEPEST: Final = 4
"""The most levels of nested lists and objects in a fact."""


def facts_problem(operator_name: str, facts: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the first wrong fact of a verdict; None if nothing is wrong.

    An unknown field of an operator may have any plain value (`_is_plain`), but an unknown field of
    a graph must be a tensor.

    Args:
        facts: as `facts_of` returns them.
    """
    fields = _fields(operator_name)
    for name, value in facts.items():
        problem = None
        if name in (IN_PLACE, DATA):
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                problem = "a list of text"
        elif name in fields:
            problem = _misfit(fields[name], value)
        elif operator_name == GRAPHS and not is_tensor(value):
            problem = _TENSOR
        elif not _is_plain(value):
            problem = "a value of a desc"
        if problem is not None:
            return f"`{name}` of the facts must be {problem}, not {_shown(value)}"
    return None


_TENSOR: Final = "a tensor such as FLOAT16 2x3"


def _fields(operator_name: str) -> Mapping[str, Field]:
    try:
        return {field.name: field for field in entry_of(operator_name).fields}
    except UnknownOperatorError:  # The log is from another version.
        return {}


def _misfit(field: Field, value: Any) -> str | None:
    """Return the kind of value that a field needs, in words; None if the value is of that kind."""
    items = value if isinstance(value, list) else [value]
    if field.is_tensor:
        if isinstance(value, list) != field.is_array or not all(map(is_tensor, items)):
            return f"a list, each {_TENSOR}" if field.is_array else _TENSOR
    elif field.attribute_kind in _NUMERIC:
        if isinstance(value, list) != field.is_array or not all(map(_is_number, items)):
            return "a list of numbers" if field.is_array else "a number"
    elif not _is_plain(value):
        return "a value of a desc"
    return None


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return abs(value) <= _LARGEST
    return isinstance(value, float) or value in _NUMBERS


def _is_plain(value: Any, levels: int = _DEEPEST) -> bool:
    """Return whether a value is None, text, a number, or a list or object of plain values."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return levels > 0 and all(_is_plain(item, levels - 1) for item in value)
    return value is None or isinstance(value, str) or _is_number(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
