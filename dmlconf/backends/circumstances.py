"""Circumstances: ways in which applications use an operator and a plain run does not.

A plain run binds each operator once and dispatches it twice with the same inputs. A backend that
supports circumstances names them in its capabilities and implements `Exerciser`. How DirectML runs
cases under each is in `directml/circumstances`, and how the results are judged in
`dmlconf.judging.circumstances`.
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
    """A circumstance. The members are in the order in which they are run, the simplest first."""

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
"""The circumstances of a run by default, as far as its backend supports them. Each costs less than
half of a plain run, on average.
"""


ALL: Final = "all"
NONE: Final = "none"
"""Values of `--circumstances`: all circumstances of a backend, or none."""


def chosen_circumstances(
    names: Sequence[str], capabilities: Capabilities, backend: str
) -> tuple[Circumstance, ...]:
    """Return the circumstances of a run, in the order in which they are run.

    Args:
        names: names of circumstances, or only `ALL` or `NONE`. `ALL` chooses all that the backend
            supports, and no name at all those in `CHEAP` that it supports.
        backend: the backend's name, for the message.

    Raises:
        BackendError: the backend does not support a circumstance that was named.
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
    """The results of one dispatch, or of several with the same inputs, buffers and results.

    Attributes:
        variation: the number of the input data, as `dmlconf.cases.variation.varied` takes it; 0
            for the case's own data.
        arrays: the outputs by tensor.
        faults: what the dispatches did wrong apart from the values.
        times: how many dispatches had these results.
        in_place: the inputs whose buffers are also those of outputs, by output; None stands for
            the case's own `in_place`.
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
        faults: faults of all dispatches together, such as a memory leak.
    """

    dispatches: tuple[Dispatch, ...]
    seconds: float = 0.0
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Inapplicable:
    """The circumstance does not apply to the case, for the given reason."""

    reason: str


UnderCircumstance = Exercised | Inapplicable | Rejection | Breakdown
"""The outcome of a case under a circumstance."""


@dataclass(frozen=True, slots=True)
class Exercises:
    """The outcomes of an `Exercise`.

    Attributes:
        plain: the outcome of the plain run, which is not a breakdown.
        under: the outcomes up to the first breakdown and with it; empty if `plain` is not
            `Outputs`.
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
    """Yield an `Exercise` for each case, or the case itself if it is to run only plainly.

    Cases that must be refused, and cases that compare two forms of a graph, run only plainly;
    without circumstances, all cases do.
    """
    for case in cases:
        rejected = isinstance(case.expectation, ExpectedRejection)
        plain = rejected or case.relation is not None
        yield case if plain or not circumstances else Exercise(case, circumstances)
