"""The types of what reaches the engine from functions that run and judge cases.

These are verdicts, attempts and repetitions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from dmlconf.cases.model import PlannedCase
from dmlconf.engine.events import Repeated
from dmlconf.verdicts.verdict import Verdict

__all__ = ["Attempt", "Judge", "Stream", "Verdicts"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """The judgement on one of the runs of a case that failed in its first run.

    Attributes:
        verdict: the judgement.
    """

    verdict: Verdict


Stream = Generator[Verdict | Attempt | Repeated, None, None]
"""Verdicts as they are reached, with the attempts and repetitions that lead to them."""

Judge = Callable[[Sequence[PlannedCase]], Stream]
"""Runs cases, and yields a verdict on each, with the attempts and repetitions before it."""

Verdicts = Generator[Verdict, None, None]
"""Verdicts alone, as they are reached."""
