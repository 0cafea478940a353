"""The events of a run: everything that the log, progress, reports and scripts learn about it.

A run of two cases, the second of which fails once and is retried once, has the events `Opened`,
`Judged`, `Retried`, `Retried`, `Judged`, `Finished`. The run of `dmlconf record`, which keeps the
outcomes, has `Opened`, `Executed`, `Executed`, `Finished`.
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
        header: the run's description, the first line of its log.
        total: how many cases will get a verdict; None where they are generated while it runs.
        resumed: whether the log has the first part of the run already.
    """

    header: Header
    total: int | None
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Repeated:
    """The plan begins to run, for the first time or again.

    Attributes:
        repetition: the number of this repetition, from 1.
        of: how many repetitions there are.
    """

    repetition: int
    of: int


@dataclass(frozen=True, slots=True)
class Executed:
    """The backend ran a case, in a run whose outcomes are not judged.

    Attributes:
        case: the case, with its inputs.
        outcome: what the backend returned for it, or how it broke down.
    """

    case: Case
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The backend need not run a case, since it lacks the case's feature level or data types.

    Only runs whose outcomes are not judged have this event.

    Attributes:
        verdict: the verdict `unsupported`, with the reason.
    """

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Retried:
    """A case has failed in its first run, or has run again after that; its verdict follows later.

    Attributes:
        attempt: the judgement on this attempt.
        place: the index of the case in the plan, from 0.
    """

    attempt: Verdict
    place: int


@dataclass(frozen=True, slots=True)
class Judged:
    """A case has its verdict.

    Attributes:
        verdict: the judgement.
        place: the index of the case in the plan, from 0.
    """

    verdict: Verdict
    place: int


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The run stops early: `not run` verdicts on the remaining cases follow, if it judges any.

    Attributes:
        reason: why the run stops.
    """

    reason: ReasonKind


@dataclass(frozen=True, slots=True)
class Finished:
    """The run has ended, complete or not.

    Attributes:
        footer: the counts of verdicts and the duration, the last line of the log.
        logged: whether the log has this footer already, because the run to be resumed was complete.
    """

    footer: Footer
    logged: bool = False


Event = Opened | Repeated | Executed | Unsupported | Retried | Judged | Interrupted | Finished
"""One thing that happened in a run."""
