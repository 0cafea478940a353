"""Choose which of several failures a report names: the one on the simplest case."""

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
"""A person can look at all elements of a case that has at most this many."""


def simplest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on the simplest of some cases, of which there is at least one.

    The simplest case has the fewest elements in its inputs and outputs, then the shortest
    identifier. But among cases of few elements, as among larger ones, those for pairs and triples
    of values come last. After all these come cases whose desc the log lacks. Cases with the tag
    `invalid` come last: leaving something out may make them valid.
    """
    return min(verdicts, key=_key)


def simplest_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return verdicts with that on the simplest case first, the others in the order given."""
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
