"""Circumstances: the ways in which an application uses an operator that a plain run does not.

A plain run binds each operator once and dispatches it twice with the same inputs. A backend that
can do more names its circumstances in its capabilities, and has the method of `Exerciser`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from dmlconf.backends.protocol import (
    BackendError,
    Breakdown,
    Capabilities,
    Fault,
    Outcome,
    Rejection,
)
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.tensors.datatypes import Array

__all__ = [
    "ALL",
    "CHEAP",
    "NONE",
    "SHOWS",
    "Circumstance",
    "Dispatch",
    "Exercise",
    "Exercised",
    "Exerciser",
    "Exercises",
    "Inapplicable",
    "UnderCircumstance",
    "chosen_circumstances",
    "exercises_of",
]


class Circumstance(StrEnum):
    """How a case is used; the simplest first, in the order in which they are run."""

    REPEATED = "repeated"
    REBOUND = "rebound"
    OFFSET = "offset"
    OWNED = "owned"
    ALIASED = "aliased"
    VOLATILE = "volatile"
    EVICTED = "evicted"
    INTERLEAVED = "interleaved"


SHOWS: Final[Mapping[Circumstance, str]] = {
    Circumstance.REPEATED: "stale inputs, and scratch or persistent memory of an earlier dispatch",
    Circumstance.REBOUND: "bindings that outlive their table's next binding, and tables mixed up",
    Circumstance.OFFSET: "offsets that are rounded or ignored, and tensor sizes taken for granted",
    Circumstance.OWNED: "data that DirectML should have copied, and another one's copy",
    Circumstance.ALIASED: "outputs written before all that depends on the input was read",
    Circumstance.VOLATILE: "descriptors that are read before the list is submitted",
    Circumstance.EVICTED: "memory and operators that do not survive an eviction",
    Circumstance.INTERLEAVED: "state that dispatches, lists or threads share, and fences ignored",
}
"""What each circumstance shows where something is wrong."""

CHEAP: Final = (
    Circumstance.REPEATED,
    Circumstance.REBOUND,
    Circumstance.OFFSET,
    Circumstance.OWNED,
)
"""Those that cost less than half of a plain run: what a run exercises by default."""


ALL: Final = "all"
NONE: Final = "none"
"""What stands for every circumstance that a backend has, and for none."""


def chosen_circumstances(
    names: Sequence[str], capabilities: Capabilities, backend: str
) -> tuple[Circumstance, ...]:
    """Return the circumstances of a run, in the order in which they are run.

    Args:
        names: as `parse_circumstances` returns them; none for those that cost little.
        capabilities: what the backend has.
        backend: its name, for people.

    Raises:
        BackendError: the backend lacks a circumstance that was named.
    """
    has = capabilities.circumstances
    if not names or ALL in names:
        candidates = CHEAP if not names else tuple(Circumstance)
        return tuple(each for each in candidates if each in has)
    lacking = [name for name in names if name != NONE and name not in has]
    if lacking:
        listed = ", ".join(lacking)
        message = f"{backend} cannot run cases {listed}"
        raise BackendError(
            f"{message}: it has no circumstances" if not has else message,
            f"Without --circumstances {','.join(lacking)} it runs them plainly",
        )
    return tuple(each for each in Circumstance if each in names)


@dataclass(frozen=True, slots=True)
class Exercise:
    """A case that a worker runs plainly and then under circumstances.

    Attributes:
        case: the case.
        circumstances: in the order in which they are run.
    """

    case: Case
    circumstances: tuple[Circumstance, ...]

    @property
    def identifier(self) -> str:
        """The case's identifier."""
        return self.case.identifier


@dataclass(frozen=True, slots=True)
class Dispatch:
    """What one dispatch left, or several with the same inputs that left the same.

    Attributes:
        variation: which inputs it had, as `dmlconf.cases.variation.varied` numbers them.
        arrays: the outputs by tensor.
        faults: what it must not have done beside.
        times: how many dispatches left this.
    """

    variation: int
    arrays: Mapping[str, Array]
    faults: tuple[Fault, ...] = ()
    times: int = 1


@dataclass(frozen=True, slots=True)
class Exercised:
    """A case ran under a circumstance.

    Attributes:
        dispatches: what the dispatches left, in order of first appearance.
        seconds: how long it took.
        faults: what is wrong with the whole and with no dispatch.
    """

    dispatches: tuple[Dispatch, ...]
    seconds: float = 0.0
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Inapplicable:
    """A circumstance that does not concern the case; the reason says why."""

    reason: str


UnderCircumstance = Exercised | Inapplicable | Rejection | Breakdown
"""What came of a case under a circumstance."""


@dataclass(frozen=True, slots=True)
class Exercises:
    """What came of an `Exercise`.

    Attributes:
        plain: of the plain run.
        under: by circumstance; nothing where the plain run gave no outputs.
    """

    plain: Outcome
    under: Mapping[Circumstance, UnderCircumstance]


class Exerciser(Protocol):
    """A backend that runs a case under a circumstance."""

    def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
        """Run a case under a circumstance that the backend's capabilities name."""
        ...


def exercises_of(
    cases: Iterable[Case], circumstances: tuple[Circumstance, ...]
) -> Iterator[Case | Exercise]:
    """Yield what a worker is to do with each case.

    A case that must be refused, and one that compares two forms of a graph, runs plainly.
    """
    for case in cases:
        related = isinstance(case, GraphCase) and case.relation is not None
        plain = isinstance(case.expectation, ExpectedRejection) or related
        yield case if plain or not circumstances else Exercise(case, circumstances)
