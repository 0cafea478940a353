"""Choose the verdict on the simplest case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dmlconf.cases.facts import element_count
from dmlconf.cases.model import INVALID_TAG
from dmlconf.verdicts.verdict import Verdict

__all__ = ["simplest", "simplest_first"]

_FOR_COMBINATIONS: Final = frozenset({"combinations", "triples"})
"""Tags of cases for pairs and triples of values."""

_FEW_ELEMENTS: Final = 1000
"""A case with more elements has too many to look at."""


def simplest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on the simplest case; there must be at least one verdict.

    Of two cases, the first of these differences decides which is simpler:

    - no tag `invalid`
    - known facts
    - at most 1,000 elements in inputs and outputs
    - not made for pairs or triples of values
    - fewer elements, a shorter identifier, an earlier identifier in the alphabet
    """
    return min(verdicts, key=_key)


def simplest_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts with the simplest case's first, and the others in the given order."""
    ordered = list(verdicts)
    if ordered:
        ordered.insert(0, ordered.pop(ordered.index(simplest(ordered))))
    return ordered


def _key(verdict: Verdict) -> tuple[bool, bool, bool, bool, int, int, str]:
    elements = element_count(verdict.facts)
    return (
        INVALID_TAG in verdict.tags,
        not verdict.facts,
        elements > _FEW_ELEMENTS,
        not _FOR_COMBINATIONS.isdisjoint(verdict.tags),
        elements,
        len(verdict.case),
        verdict.case,
    )
