"""Verdicts that take less memory: what only some reports read is kept as text.

A verdict's figures, facts and digests take kilobytes as dictionaries, and some hundred bytes as
JSON; equal ones of several cases are stored once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from sys import intern
from typing import Any, Final

from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.record import value_of
from dmlconf.verdicts.verdict import Execution, Identity, Judgement, Verdict

__all__ = ["MANY", "Packed", "PackedFigures", "packing"]

MANY: Final = 20_000
"""Logs with more verdicts are read packed."""


class Packed(Mapping[str, Any]):
    """A mapping of plain values, kept as JSON."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Take the JSON of the mapping; infinities and NaN are written as Python's `json` does."""
        self._text = text

    def __getitem__(self, key: str) -> Any:
        return self._unpacked()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._unpacked())

    def __len__(self) -> int:
        return len(self._unpacked())

    def _unpacked(self) -> Mapping[str, Any]:
        return _plain(self._text)


class PackedFigures(Packed):
    """A verdict's figures, kept as JSON."""

    __slots__ = ()

    def _unpacked(self) -> Mapping[str, Any]:
        return _figures(self._text)


@lru_cache(maxsize=256)
def _plain(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(text)
    return data


@lru_cache(maxsize=256)
def _figures(text: str) -> dict[str, Figures]:
    return {name: value_of(Figures, record) for name, record in json.loads(text).items()}


def packing() -> Callable[[Mapping[str, Any]], Verdict]:
    """Return a function that reads packed verdicts from records; equal parts share one object."""
    known: dict[str, Packed] = {}
    tags: dict[tuple[str, ...], tuple[str, ...]] = {}

    def packed(mapping: Mapping[str, Any], kind: type[Packed] = Packed) -> Mapping[str, Any]:
        if not mapping:
            return _NOTHING
        text = json.dumps(mapping, separators=(",", ":"))
        return known.setdefault(text, kind(text))

    def read(record: Mapping[str, Any]) -> Verdict:
        plain = {**record, "tags": tags.setdefault(tuple(record["tags"]), tuple(record["tags"]))}
        for name in ("operator", "location"):
            plain[name] = intern(record[name])
        facts, files = (packed(plain.pop(name, _NOTHING)) for name in ("facts", "files"))
        figures = packed(plain.pop("figures"), PackedFigures)
        digests = packed(plain.pop("output_digests", _NOTHING))
        return Verdict(
            value_of(Identity, plain, facts=facts, files=files),
            value_of(Judgement, plain, figures=figures),
            value_of(Execution, plain, output_digests=digests),
        )

    return read


_NOTHING: Final[Mapping[str, Any]] = {}
