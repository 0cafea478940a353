"""The state of a reduction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from dmlconf.backends.recording.digest import case_digest
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.desc import Desc
from dmlconf.diagnosis.reduction.cost import cost
from dmlconf.diagnosis.reduction.data import Part, fitted
from dmlconf.diagnosis.reduction.number_ref import NumberRef
from dmlconf.diagnosis.reduction.repair import repaired
from dmlconf.tensors.datatypes import Array

__all__ = ["Fails", "OutOfTime", "Search"]

Fails = Callable[[Case], bool]
"""Returns whether a case fails in the same way as the original."""


class OutOfTime(Exception):
    """The time is up."""


@dataclass
class Search:
    """The state of a reduction.

    Attributes:
        case: the smallest case so far that fails; at first the original.
        stopped: returns whether the time is up.
        on_smaller: is called with each case that is adopted.
        trials: how many cases were tried.
    """

    case: Case
    fails: Fails
    stopped: Callable[[], bool]
    on_smaller: Callable[[Case], None]
    trials: int = 0
    _seen: set[str] = field(default_factory=set)

    @property
    def rejected(self) -> bool:
        """Whether the case must be rejected."""
        return isinstance(self.case.expectation, ExpectedRejection)

    @cached_property
    def permitted(self) -> frozenset[str]:
        """The constraints that the original case breaks; smaller cases may break them, too.

        A smaller case that must be rejected breaks all of them.
        """
        return frozenset(self.case.documented_violations())

    def repaired(self, desc: Desc, fixed: frozenset[NumberRef]) -> Desc | None:
        """Return the desc, made valid without changing `fixed`; None if no way is found.

        A case that must be rejected is never repaired.
        """
        if self.rejected:
            return None
        return repaired(self.case.operator, desc, fixed, self.permitted)

    def attempt(self, candidate: Case) -> bool:
        """Adopt a valid case that fails and costs less than `case`; return whether it was adopted.

        A case is tried once; the result is False when it comes again.

        Raises:
            OutOfTime: the time is up.
        """
        if cost(candidate) >= cost(self.case) or not self._valid(candidate):
            return False
        key = case_digest(candidate)
        if key in self._seen:
            return False
        self._seen.add(key)
        if self.stopped():
            raise OutOfTime
        self.trials += 1
        if not self.fails(candidate):
            return False
        self.case = candidate
        self.on_smaller(candidate)
        return True

    def attempt_desc(self, desc: Desc) -> bool:
        """Attempt another desc with the data that each `Part` keeps, until a case is adopted."""
        return any(self.attempt(candidate) for candidate in self._with_desc(desc))

    def attempt_data(self, data: Mapping[str, Array]) -> bool:
        """Attempt the case with other data."""
        return self.attempt(replace(self.case, data=dict(data)))

    def _with_desc(self, desc: Desc) -> list[Case]:
        case = self.case
        present = {name: source for name, source in case.in_place.items() if desc.get(name)}
        changed: list[Case] = []
        digests: set[bytes] = set()
        for part in Part:
            data: dict[str, Any] | None = {}
            if not self.rejected:
                data = fitted(case.operator, desc, case, part)
            if data is not None:
                digest = b"|".join(array.tobytes() for array in data.values())
                if digest not in digests:
                    digests.add(digest)
                    changed.append(replace(case, desc=desc, data=data, in_place=present))
        return changed

    def _valid(self, candidate: Case) -> bool:
        if not _arrays_fit(candidate):
            return False
        broken = frozenset(candidate.documented_violations())
        return broken == self.permitted if self.rejected else broken <= self.permitted


def _arrays_fit(case: Case) -> bool:
    return all(
        case.desc.get(name) is None or len(case.desc[name]) == case.desc.get(count)
        for count, arrays in case.entry.count_fields.items()
        for name in arrays
    )
