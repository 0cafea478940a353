"""Verdicts that take less memory: what only some reports read is kept as text.

A verdict's figures, facts and digests take kilobytes as dictionaries, and some hundred bytes as
JSON; equal ones of several cases are stored once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from sys import intern
from typing import Any, Final

from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.record import record_of, value_of
from dmlconf.verdicts.verdict import Verdict

__all__ = ["MANY", "Packed", "PackedFigures", "packing"]

MANY: Final = 100_000
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


def packing() -> Callable[[Verdict], Verdict]:
    """Return a function that packs verdicts; equal parts share one object."""
    known: dict[str, Packed] = {}
    tags: dict[tuple[str, ...], tuple[str, ...]] = {}

    def packed(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
        text = json.dumps(mapping, separators=(",", ":"))
        return known.setdefault(text, Packed(text)) if mapping else _NOTHING

    def packed_figures(figures: Mapping[str, Figures]) -> Mapping[str, Figures]:
        records = {name: record_of(each) for name, each in figures.items()}
        text = json.dumps(records, separators=(",", ":"))
        return known.setdefault(text, PackedFigures(text)) if figures else _NOTHING

    def pack(verdict: Verdict) -> Verdict:
        identity = replace(
            verdict.identity,
            operator=intern(verdict.operator),
            location=intern(verdict.location),
            tags=tags.setdefault(verdict.tags, verdict.tags),
            facts=packed(verdict.facts),
            files=packed(verdict.identity.files),
        )
        judgement = replace(verdict.judgement, figures=packed_figures(verdict.figures))
        digests = packed(verdict.execution.output_digests)
        return Verdict(identity, judgement, replace(verdict.execution, output_digests=digests))

    return pack


_NOTHING: Final[Mapping[str, Any]] = {}
