"""Shards: parts of a plan, one for each machine.

A digest of a case's identifier decides its shard, so machines need not communicate, and a new case
moves no other. But cases whose seconds are known are distributed so that shards take about equally
long; a new one may move others.
"""

from __future__ import annotations

import heapq
import json
import re
from array import array
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from dmlconf.cases.identifiers import cases_digest
from dmlconf.cases.loading.planned import Picked
from dmlconf.cases.model import PlannedCase

__all__ = ["Selected", "Shard", "balanced", "parse_shard", "selected", "shard_number"]

_FORM: Final = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number`, from 1, of the `count` parts of a plan."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@dataclass(frozen=True, slots=True)
class Selected:
    """The cases of a plan that a run takes.

    Attributes:
        places: the index of each selected case in the whole plan; None for the whole plan.
        digest: `cases_digest` of the selected cases, including any that `without` left out.
        record: the shard, for the log's header; None for the whole plan.
    """

    cases: Sequence[PlannedCase]
    places: Sequence[int] | None
    digest: str
    record: Mapping[str, Any] | None

    def without(self, names: Container[str]) -> Selected:
        """Return the selection without some cases, but with the digest of this selection."""
        left = [index for index, each in enumerate(self.cases) if each.identifier not in names]
        places = self.every_place
        return replace(
            self, cases=Picked(self.cases, left), places=array("I", [places[each] for each in left])
        )

    @property
    def every_place(self) -> Sequence[int]:
        """The index of each selected case in the whole plan."""
        return range(len(self.cases)) if self.places is None else self.places


def parse_shard(text: str) -> Shard:
    """Return the shard of a text such as `3/8`.

    Raises:
        ValueError: the text names no shard.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a shard; write the number and the count, such as 3/8")
    shard = Shard(int(match[1]), int(match[2]))
    if not 1 <= shard.number <= shard.count:
        raise ValueError(f"there is no shard {shard}: numbers run from 1 to the count")
    return shard


def shard_number(identifier: str, count: int) -> int:
    """Return the number, from 1, of the shard to which an identifier's digest assigns a case."""
    digest = sha256(identifier.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % count + 1


def balanced(seconds: Mapping[str, float], count: int) -> dict[str, int]:
    """Return the number, from 1, of the shard of each case with known seconds.

    The longest case comes first; each goes to the shard with the fewest seconds so far. Cases of 5,
    4, 3 and 3 s become two shards of 8 and 7 s.
    """
    loads = [(0.0, number) for number in range(1, count + 1)]
    numbers: dict[str, int] = {}
    for identifier in sorted(seconds, key=lambda each: (-seconds[each], each)):
        load, number = heapq.heappop(loads)
        numbers[identifier] = number
        heapq.heappush(loads, (load + seconds[identifier], number))
    return numbers


def selected(
    plan: Sequence[PlannedCase],
    shard: Shard | None = None,
    seconds: Mapping[str, float] | None = None,
) -> Selected:
    """Return the cases of a plan that a run takes.

    Args:
        shard: the shard to take; None for the whole plan.
        seconds: how long cases took, by identifier. Cases without seconds are distributed by the
            digests of their identifiers.
    """
    digest = cases_digest(planned.identifier for planned in plan)
    if shard is None:
        return Selected(plan, None, digest, None)
    known = (
        {
            planned.identifier: seconds[planned.identifier]
            for planned in plan
            if planned.identifier in (seconds or {})
        }
        if seconds
        else {}
    )
    numbers = balanced(known, shard.count)
    places = array(
        "I",
        (
            place
            for place, planned in enumerate(plan)
            if numbers.get(planned.identifier) == shard.number
            or (
                planned.identifier not in numbers
                and shard_number(planned.identifier, shard.count) == shard.number
            )
        ),
    )
    cases = Picked(plan, places)
    record = {
        "number": shard.number,
        "count": shard.count,
        "planned": len(plan),
        "plan_digest": digest,
    }
    if known:
        text = json.dumps(sorted(known.items()))
        record["balanced_by"] = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Selected(cases, places, cases_digest(each.identifier for each in cases), record)
