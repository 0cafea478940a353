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

from dmlconf.verdicts.verdict import Verdict

__all__ = ["MANY", "Packed", "packing"]

MANY: Final = 100_000
"""Logs with more verdicts are read packed."""


class Packed(Mapping[str, Any]):
    """A mapping of plain values, kept as JSON."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Take the JSON of the mapping; infinities and NaN are written as Python's `json` does."""
        self._text = text

    def __getitem__(self, key: str) -> Any:
        return _unpacked(self._text)[key]

    def __iter__(self) -> Iterator[str]:
        return iter(_unpacked(self._text))

    def __len__(self) -> int:
        return len(_unpacked(self._text))


@lru_cache(maxsize=256)
def _unpacked(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(text)
    return data


def packing() -> Callable[[Verdict], Verdict]:
    """Return a function that packs verdicts; equal parts share one object."""
    known: dict[str, Packed] = {}
    tags: dict[tuple[str, ...], tuple[str, ...]] = {}

    def packed(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
        text = json.dumps(mapping, separators=(",", ":"))
        return known.setdefault(text, Packed(text)) if mapping else _NOTHING

    def pack(verdict: Verdict) -> Verdict:
        return replace(
            verdict,
            operator=intern(verdict.operator),
            location=intern(verdict.location),
            tags=tags.setdefault(verdict.tags, verdict.tags),
            figures=packed(verdict.figures),
            facts=packed(verdict.facts),
            output_digests=packed(verdict.output_digests),
            files=packed(verdict.files),
        )

    return pack


_NOTHING: Final[Mapping[str, Any]] = {}
