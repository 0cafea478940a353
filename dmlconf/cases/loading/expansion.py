"""Keep the cases of a matrix in a short form, which can be stored as JSON.

The form has each value of a parameter once, and for each case an index of 4 bytes per parameter.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.cases.model import CaseTemplate, PlannedCase
from dmlconf.tensors.datatypes import DataType

__all__ = ["Expansion", "UnstorableError", "planned_case", "written"]

_INDEX: Final = "I"
"""The type code of arrays of indices: numbers of 32 bits."""


_EXACT: Final = frozenset({int, str, bool, DataType})
"""The types whose equal values are the same, unlike 0.0 and -0.0."""


class UnstorableError(ValueError):
    """A value of a parameter that does not survive a round trip through JSON."""


def written(value: Any) -> str:
    """Return a parameter's value as written in identifiers, such as `2x3` for the sizes (2, 3).

    An empty list is `none`; the values of a mapping are joined by colons.
    """
    if isinstance(value, tuple | list):
        return "x".join(map(written, value)) or "none"
    if isinstance(value, Mapping):
        return ":".join(map(written, value.values()))
    return str(value)


def planned_case(template: CaseTemplate, named: str, row: Mapping[str, Any]) -> PlannedCase:
    """Return a case of a matrix.

    Args:
        named: the parameters as in the identifier, such as `DataType=FLOAT32,Step=0`.
    """
    return PlannedCase(f"{template.identifier}[{named}]", template, row)


@dataclass(frozen=True, slots=True)
class Expansion:
    """The cases of one matrix.

    Attributes:
        values: the different values of each parameter.
        columns: for each parameter, the index of its value in `values` in each case.
    """

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    columns: tuple[array[int], ...]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Expansion:
        """Return the expansion of cases with these parameters.

        All rows have the same names in the same order, at least one name.
        """
        names: tuple[str, ...] = ()
        columns: list[_Column] = []
        for row in rows:
            if not columns:
                names, columns = tuple(row), [_Column() for _ in row]
            for column, value in zip(columns, row.values(), strict=True):
                column.add(value)
        return cls(
            names,
            tuple(tuple(column.values) for column in columns),
            tuple(column.indices for column in columns),
        )

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def cases(self, template: CaseTemplate) -> Iterator[PlannedCase]:
        """Yield the cases; `template` is the one that was expanded."""
        texts = [
            [f"{name}={written(value)}" for value in values]
            for name, values in zip(self.names, self.values, strict=True)
        ]
        named = zip(*map(_looked_up, texts, self.columns), strict=True)
        rows = zip(*map(_looked_up, self.values, self.columns), strict=True)
        for parts, row in zip(named, rows, strict=True):
            yield planned_case(template, ",".join(parts), dict(zip(self.names, row, strict=True)))

    def case(self, template: CaseTemplate, index: int) -> PlannedCase:
        """Return the template's case with an index in the order of `cases`."""
        row = self.parameters(index)
        named = ",".join([f"{name}={written(value)}" for name, value in row.items()])
        return planned_case(template, named, row)

    def parameters(self, index: int) -> dict[str, Any]:
        """Return the parameters of the case with this index."""
        return {
            name: of[column[index]]
            for name, of, column in zip(self.names, self.values, self.columns, strict=True)
        }

    def stored(self) -> list[Any]:
        """Return the expansion as values of JSON.

        Raises:
            UnstorableError: a value cannot be stored.
        """
        return [
            self.names,
            [[_stored(value) for value in values] for values in self.values],
            [column.tolist() for column in self.columns],
        ]

    @classmethod
    def restored(cls, stored: Sequence[Any], known: dict[int, Any] | None = None) -> Expansion:
        """Return the expansion from what `stored` returned.

        Args:
            known: values that were restored from the same file, by the `id` of their JSON object.
                The values of this expansion are added.
        """
        known = {} if known is None else known
        names, values, columns = stored
        restored = tuple(tuple([_restored(value, known) for value in each]) for each in values)
        return cls(tuple(names), restored, tuple([array(_INDEX, each) for each in columns]))


class _Column:
    """A parameter of a matrix: its different values, and the index of the value in each case."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.indices = array(_INDEX)
        self._known: dict[tuple[Any, ...], int] = {}
        self._last: Any = self

    def add(self, value: Any) -> None:
        if value is self._last:
            # Most parameters keep their value from case to case, and a key of a long one is slow.
            self.indices.append(self.indices[-1])
            return
        self._last = value
        kind = type(value)
        key = (kind, value) if kind in _EXACT else _identity(value)
        index = self._known.setdefault(key, len(self._known))
        if index == len(self.values):
            self.values.append(value)
        self.indices.append(index)


def _looked_up(values: Sequence[Any], indices: Iterable[int]) -> Iterator[Any]:
    return map(values.__getitem__, indices)


def _identity(value: Any) -> tuple[Any, ...]:
    """Return a key that differs for equal values of different types, such as 1, 1.0 and true."""
    if isinstance(value, tuple | list):
        return type(value), *map(_identity, value)
    if isinstance(value, Mapping):
        return type(value), *((key, _identity(item)) for key, item in value.items())
    return type(value), repr(value)


def _stored(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is DataType:
        return {"type": str(value)}
    if kind in (tuple, list):
        return {kind.__name__: [_stored(item) for item in value]}
    if kind is dict and all(type(key) is str for key in value):
        return {"dict": {key: _stored(item) for key, item in value.items()}}
    raise UnstorableError(f"{value!r} cannot be stored")


def _restored(stored: Any, known: dict[int, Any]) -> Any:
    if not isinstance(stored, dict):
        return stored
    if id(stored) not in known:
        known[id(stored)] = _value(stored, known)
    return known[id(stored)]


def _value(stored: Mapping[str, Any], known: dict[int, Any]) -> Any:
    ((kind, value),) = stored.items()
    if kind == "type":
        return DataType(value)
    if kind == "dict":
        return {key: _restored(item, known) for key, item in value.items()}
    return (tuple if kind == "tuple" else list)([_restored(item, known) for item in value])
