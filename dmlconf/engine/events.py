"""The events of a run.

A run of two cases, the second of which fails and is retried once, has `Opened`, `Judged`,
`Retried`, `Retried`, `Judged`, `Finished`. `dmlconf record` judges nothing: its run of two cases
has `Opened`, `Executed`, `Executed`, `Finished`.
"""

from __future__ import annotations

from dataclasses import dataclass

from dmlconf.backends.protocol import Outcome
from dmlconf.cases.model import Case
from dmlconf.run_log.log import Footer, Header
from dmlconf.verdicts.verdict import ReasonKind, Verdict

__all__ = [
    "Event",
    "Executed",
    "Finished",
    "Interrupted",
    "Judged",
    "Opened",
    "Repeated",
    "Retried",
    "Unsupported",
]


@dataclass(frozen=True, slots=True)
class Opened:
    """The run begins: the backend is ready.

    Attributes:
        header: the description of the run, the first line of its log.
        total: how many cases the run is to reach; None if that is not known in advance.
        resumed: whether the log already has the first part of the run.
    """

    header: Header
    total: int | None
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Repeated:
    """A repetition begins.

    Attributes:
        repetition: its number, from 1.
        of: how many repetitions there are.
    """

    repetition: int
    of: int


@dataclass(frozen=True, slots=True)
class Executed:
    """The backend has run a case, in a run that judges nothing.

    Attributes:
        outcome: what the backend returned, or how it broke down.
    """

    case: Case
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A case is not run, since the backend lacks what the case needs, such as a feature level.

    Only runs that judge nothing have this event.

    Attributes:
        verdict: the verdict `unsupported`, with the reason.
    """

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Retried:
    """A run of a failing case ended; the verdict on the case follows later.

    Attributes:
        attempt: the judgement on this run.
        place: the index of the case in the plan.
    """

    attempt: Verdict
    place: int


@dataclass(frozen=True, slots=True)
class Judged:
    """A case has its verdict.

    Attributes:
        place: the index of the case in the plan.
    """

    verdict: Verdict
    place: int


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The run stops early; in judged runs, verdicts on the remaining cases follow."""

    reason: ReasonKind


@dataclass(frozen=True, slots=True)
class Finished:
    """The run has ended, complete or not.

    Attributes:
        footer: the counts of verdicts and the duration, the last line of the log.
        logged: whether the log already has this footer, as after a complete run is resumed.
    """

    footer: Footer
    logged: bool = False


Event = Opened | Repeated | Executed | Unsupported | Retried | Judged | Interrupted | Finished
"""Something that happened in a run."""
