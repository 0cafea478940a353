"""Turn dataclasses into JSON objects (records) and back, for the run log and the JSON report.

A field with its default value is written only if it is marked `ALWAYS`. A class may state the order
of the fields in `RECORD_ORDER`. In fields of the type `float`, and those annotated with `NUMBERS`,
infinities and NaN are text. Reading ignores fields that the class lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

__all__ = ["ALWAYS", "NUMBERS", "PART", "Positional", "Rounded", "record_of", "value_of"]

ALWAYS: Final[Mapping[str, bool]] = {"always": True}
"""Metadata of a field that is written even if it has its default."""

PART: Final[Mapping[str, bool]] = {"part": True}
"""Metadata of a field that is written as the fields of the dataclass that it holds."""

NUMBERS: Final = "numbers"
"""An annotation of values in which infinities and NaN are written as `inf`, `-inf` and `nan`."""

_Value = TypeVar("_Value")
_Convert = Callable[[Any], Any]


class Positional:
    """The base of dataclasses that are pickled as a call of the class, which is faster."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), _all_values(type(self))(self)  # type: ignore[arg-type]  # A class is hashable.


@cache
def _all_values(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*(each.name for each in fields(kind)))


@dataclass(frozen=True, slots=True)
class Rounded:
    """An annotation of numbers that are written with at most `digits` decimals."""

    digits: int

    def __call__(self, value: float) -> float:
        """Return the number, rounded."""
        return round(value, self.digits)


@dataclass(frozen=True, slots=True)
class _Field:
    """How a field is written and read; a `write` or `read` of None leaves the value."""

    name: str
    write: _Convert | None
    read: _Convert | None
    omitted: Any
    """The value that is not written; `MISSING` if every value is written."""

    part: type[Any] | None = None
    """The dataclass of a field that is marked `PART`."""


def record_of(value: Any) -> dict[str, Any]:
    """Return a dataclass as JSON values."""
    record: dict[str, Any] = {}
    for part, each in _leaves(type(value)):  # type: ignore[arg-type]  # A class is hashable.
        content = getattr(getattr(value, part) if part else value, each.name)
        if each.omitted is MISSING or content != each.omitted:
            record[each.name] = each.write(content) if each.write else content
    return record


def value_of(kind: type[_Value], record: Mapping[str, Any], **values: Any) -> _Value:
    """Return the dataclass that `record_of` wrote.

    Types of values are not checked: a value of another JSON type may raise any error, or none.

    Args:
        values: fields that the record lacks.

    Raises:
        TypeError: a field without a default is missing.
        ValueError: an enumeration lacks a value.
    """
    for each in _fields(kind):  # type: ignore[arg-type]  # A class is hashable.
        if each.part is not None:
            values[each.name] = value_of(each.part, record)
        elif each.name in record:
            content = record[each.name]
            values[each.name] = each.read(content) if each.read else content
    return kind(**values)


@cache
def _leaves(kind: type[Any]) -> tuple[tuple[str, _Field], ...]:
    """Return each field in order, after the name of its part; "" stands for no part."""
    leaves: list[tuple[str, _Field]] = []
    for each in _fields(kind):  # type: ignore[arg-type]  # A class is hashable.
        if each.part is None:
            leaves.append(("", each))
            continue
        own = _fields(each.part)  # type: ignore[arg-type]  # A class is hashable.
        leaves += ((each.name, field) for field in own)
    order = getattr(kind, "RECORD_ORDER", None)
    if order is not None:
        leaves.sort(key=lambda leaf: order.index(leaf[1].name))
    return tuple(leaves)


@cache
def _fields(kind: type[Any]) -> tuple[_Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    described = []
    for each in fields(kind):
        if each.metadata.get("part"):
            described.append(_Field(each.name, None, None, MISSING, hints[each.name]))
            continue
        default = each.default
        if each.default_factory is not MISSING:
            default = each.default_factory()
        if each.metadata.get("always"):
            default = MISSING
        described.append(_Field(each.name, *_conversions(hints[each.name]), default))
    return tuple(described)


def _conversions(hint: Any) -> tuple[_Convert | None, _Convert | None]:
    """Return the functions that write and read a type; None leaves values."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        mark = hint.__metadata__[0]
        return (_spelled, _number) if mark == NUMBERS else (mark, None)
    if origin in (Union, UnionType):
        (present,) = (each for each in arguments if each is not NoneType)
        return cast(
            tuple[_Convert | None, _Convert | None], tuple(map(_or_none, _conversions(present)))
        )
    if origin is tuple:
        write, read = _conversions(arguments[0])
        return _each(list, write), _each(tuple, read)
    if origin is not None and issubclass(origin, Mapping):
        write, read = _conversions(arguments[1])
        return _by_name(write), _by_name(read)
    if isinstance(hint, type) and is_dataclass(hint):
        return record_of, lambda record: value_of(hint, record)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return None, hint
    return (_spelled, _number) if hint is float else (None, None)


def _or_none(convert: _Convert | None) -> _Convert | None:
    return convert and (lambda value: None if value is None else convert(value))


def _each(collect: Callable[..., Any], convert: _Convert | None) -> _Convert:
    return lambda values: collect(map(convert, values) if convert else values)


def _by_name(convert: _Convert | None) -> _Convert:
    if convert is None:
        return dict
    return lambda values: {name: convert(value) for name, value in values.items()}


def _spelled(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return [_spelled(item) for item in value] if isinstance(value, list) else value


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(item) for item in value]
    return float(value) if value in ("inf", "-inf", "nan") else value
