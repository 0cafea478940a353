"""The failure to look at first, wherever a report names one of several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dmlconf.cases.facts import element_count
from dmlconf.cases.model import INVALID_TAG
from dmlconf.verdicts.verdict import Verdict

__all__ = ["simplest", "simplest_first"]

_FOR_COMBINATIONS: Final = frozenset({"combinations", "triples"})
"""Tags of cases for pairs and triples of values. Their identifiers list all values of the desc."""

_FEW_ELEMENTS: Final = 1000
"""Cases of at most this many elements can be looked at."""


def simplest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on the simplest of some cases.

    Its inputs and outputs have the fewest elements; among such cases it has the shortest
    identifier. Of cases that have few elements, those for pairs and triples of values come after
    the others, since their names and descs are long.

    A case with the tag `invalid`, which DirectML must refuse, comes last: leaving something out of
    it may make it valid, so changes of it say little. So does one whose desc the log does not have.

    Args:
        verdicts: at least one.
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
