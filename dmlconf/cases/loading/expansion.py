"""Keep the cases of a matrix in a short form, which can be stored as JSON.

The form has the values of each parameter once, and for each case the indices of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dmlconf.cases.model import CaseTemplate, PlannedCase
from dmlconf.tensors.datatypes import DataType

__all__ = ["Expansion", "UnstorableError", "planned_case", "written"]


class UnstorableError(ValueError):
    """A value of a parameter that does not survive a round trip through JSON."""


def written(value: Any) -> str:
    """Return a parameter's value as written in identifiers, such as `2x3` for sizes."""
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
        rows: for each case, the index of each parameter's value in `values`.
    """

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    rows: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Expansion:
        """Return the expansion of cases with these parameters, whose names are the same in all."""
        rows = list(rows)
        names = tuple(rows[0]) if rows else ()
        indices: list[dict[tuple[Any, ...], int]] = [{} for _ in names]
        values: list[list[Any]] = [[] for _ in names]
        coded_rows = []
        for row in rows:
            of_row = []
            for known, column, value in zip(indices, values, row.values(), strict=True):
                index = known.setdefault(_identity(value), len(known))
                if index == len(column):
                    column.append(value)
                of_row.append(index)
            coded_rows.append(tuple(of_row))
        return cls(names, tuple(map(tuple, values)), tuple(coded_rows))

    def cases(self, template: CaseTemplate) -> Iterator[PlannedCase]:
        """Yield the cases of the template that was expanded."""
        texts = [
            [f"{name}={written(value)}" for value in values]
            for name, values in zip(self.names, self.values, strict=True)
        ]
        for index, row in enumerate(self.rows):
            named = ",".join([of[value] for of, value in zip(texts, row, strict=True)])
            yield planned_case(template, named, self.parameters(index))

    def parameters(self, index: int) -> dict[str, Any]:
        """Return the parameters of the case with this index."""
        row = self.rows[index]
        return {
            name: of[value] for name, of, value in zip(self.names, self.values, row, strict=True)
        }

    def stored(self) -> list[Any]:
        """Return the expansion as JSON.

        Raises:
            UnstorableError: a value cannot be stored.
        """
        return [
            self.names,
            [[_stored(value) for value in values] for values in self.values],
            self.rows,
        ]

    @classmethod
    def restored(cls, stored: Sequence[Any], known: dict[int, Any] | None = None) -> Expansion:
        """Return the expansion from what `stored` returned.

        Args:
            known: values that were restored from JSON objects of the same file, by the objects'
                `id`; those of this expansion are added.
        """
        known = {} if known is None else known
        names, values, rows = stored
        restored = tuple(tuple([_restored(value, known) for value in each]) for each in values)
        return cls(tuple(names), restored, tuple(map(tuple, rows)))


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
