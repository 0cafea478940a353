"""Circumstances: ways in which applications use an operator and a plain run does not.

A backend that supports circumstances names them in its capabilities and implements `Exerciser`.
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
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.tensors.datatypes import Array

__all__ = [
    "ALL",
    "CHEAP",
    "NONE",
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
    """A circumstance; cases run under them in the order of the members."""

    REPEATED = "repeated"
    REBOUND = "rebound"
    OFFSET = "offset"
    OWNED = "owned"
    ALIASED = "aliased"
    VOLATILE = "volatile"
    EVICTED = "evicted"
    INTERLEAVED = "interleaved"
    LONG = "long"


CHEAP: Final = (
    Circumstance.REPEATED,
    Circumstance.REBOUND,
    Circumstance.OFFSET,
    Circumstance.OWNED,
)
"""The default circumstances of a run."""

ALL: Final = "all"
NONE: Final = "none"
"""In `--circumstances`: all circumstances of the backend, and none."""


def chosen_circumstances(
    names: Sequence[str], capabilities: Capabilities, backend: str
) -> tuple[Circumstance, ...]:
    """Return the circumstances of a run, in the order in which they are run.

    Args:
        names: names of circumstances, `ALL` or `NONE`; empty for `CHEAP`. `ALL` and `CHEAP` leave
            out what the backend does not support. `NONE` has no effect beside other names.
        backend: the backend's name, for messages.

    Raises:
        BackendError: `names` lacks `ALL` and contains a circumstance that the backend lacks.
    """
    has = capabilities.circumstances
    if not names or ALL in names:
        candidates = CHEAP if not names else tuple(Circumstance)
        return tuple(each for each in candidates if each in has)
    lacking = [name for name in names if name != NONE and name not in has]
    if lacking:
        listed = ", ".join(lacking)
        message = f"{backend} does not support --circumstances {listed}"
        if not has:
            hint = f"Without --circumstances {','.join(lacking)}, it runs cases plainly"
            raise BackendError(f"{message}: it supports none", hint)
        own = ", ".join(each for each in Circumstance if each in has)
        raise BackendError(message, f"It supports {own}")
    return tuple(each for each in Circumstance if each in names)


@dataclass(frozen=True, slots=True)
class Exercise:
    """A case for a worker to run plainly and then under these circumstances, in order."""

    case: Case
    circumstances: tuple[Circumstance, ...]

    @property
    def identifier(self) -> str:
        """The case's identifier."""
        return self.case.identifier


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The results of one dispatch, or of several with equal inputs, buffers and results.

    Attributes:
        variation: the variation of the input data, see `dmlconf.cases.variation.varied`; 0 for
            the case's own data.
        faults: what the dispatches did wrong apart from the values.
        times: how many dispatches had these results and were read back.
        in_place: for each output that shares the buffer of an input, that input; None means the
            case's own `in_place`.
    """

    variation: int
    arrays: Mapping[str, Array]
    faults: tuple[Fault, ...] = ()
    times: int = 1
    in_place: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Exercised:
    """The results of a case under a circumstance.

    Attributes:
        dispatches: the distinct results; the first is of the case's own data.
        faults: what only several dispatches together show, such as a memory leak.
    """

    dispatches: tuple[Dispatch, ...]
    seconds: float = 0.0
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Inapplicable:
    """The circumstance does not apply to the case; `reason` says why."""

    reason: str


UnderCircumstance = Exercised | Inapplicable | Rejection | Breakdown


@dataclass(frozen=True, slots=True)
class Exercises:
    """The outcomes of an `Exercise`.

    Attributes:
        plain: the outcome of the plain run, which is not a breakdown.
        under: the outcomes under circumstances. Only the last may be a breakdown. Empty if
            `plain` is not `Outputs`.
    """

    plain: Outcome
    under: Mapping[Circumstance, UnderCircumstance]


class Exerciser(Protocol):
    """A backend that can run cases under circumstances."""

    def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
        """Run a case under one of the circumstances that the backend's capabilities name."""
        ...


def exercises_of(
    cases: Iterable[Case], circumstances: tuple[Circumstance, ...]
) -> Iterator[Case | Exercise]:
    """Yield an `Exercise` for each case, or the case itself if it is to run only plainly."""
    for case in cases:
        rejected = isinstance(case.expectation, ExpectedRejection)
        plain = rejected or case.relation is not None
        yield case if plain or not circumstances else Exercise(case, circumstances)
