"""Keep verdicts in less memory: their large mappings are pickled, and equal pickles are kept once.

The mappings are facts, figures, and digests of files and outputs.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from dataclasses import replace
from functools import lru_cache
from sys import intern
from typing import Any, Final

from dmlconf.verdicts.verdict import Verdict

__all__ = ["DIGITS", "MANY", "Packed", "packing", "rounded"]

MANY: Final = 20_000
"""In logs of more selected cases than this, verdicts are packed, unless `columns` keeps them."""

DIGITS: Final = 6
"""Decimals of a verdict's `seconds` in the log."""

_PROTOCOL: Final = pickle.HIGHEST_PROTOCOL


class Packed(Mapping[str, Any]):
    """A mapping that is kept as a pickle."""

    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __getitem__(self, key: str) -> Any:
        return _unpacked(self._content)[key]

    def __iter__(self) -> Iterator[str]:
        return iter(_unpacked(self._content))

    def __len__(self) -> int:
        return len(_unpacked(self._content))

    def items(self) -> ItemsView[str, Any]:
        """Return the items of the mapping."""
        return _unpacked(self._content).items()

    def values(self) -> ValuesView[Any]:
        """Return the values of the mapping."""
        return _unpacked(self._content).values()


@lru_cache(maxsize=256)
def _unpacked(content: bytes) -> Mapping[str, Any]:
    mapping: Mapping[str, Any] = pickle.loads(content)  # Safe: this process made it.
    return mapping


def packing() -> Callable[[Verdict], Verdict]:
    """Return a function that packs verdicts, and rounds their seconds as in the log."""
    known: dict[bytes, Packed] = {}
    tags: dict[tuple[str, ...], tuple[str, ...]] = {}

    def packed(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
        if not mapping:
            return _NOTHING
        content = pickle.dumps(mapping, _PROTOCOL)
        return known.setdefault(content, Packed(content))

    def pack(verdict: Verdict) -> Verdict:
        identity, judgement, execution = verdict.identity, verdict.judgement, verdict.execution
        return Verdict(
            replace(
                identity,
                operator=intern(identity.operator),
                location=intern(identity.location),
                tags=tags.setdefault(identity.tags, identity.tags),
                facts=packed(identity.facts),
                files=packed(identity.files),
            ),
            replace(judgement, figures=packed(judgement.figures)),
            replace(
                execution,
                seconds=round(execution.seconds, DIGITS),
                output_digests=packed(execution.output_digests),
            ),
        )

    return pack


def rounded(verdict: Verdict) -> Verdict:
    """Return a verdict with its seconds rounded as in packed verdicts."""
    seconds = round(verdict.execution.seconds, DIGITS)
    return verdict if seconds == verdict.execution.seconds else verdict.ran(seconds=seconds)


_NOTHING: Final[Mapping[str, Any]] = {}
