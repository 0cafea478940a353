"""The types of what a run of cases yields: verdicts, attempts and repetitions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from dmlconf.cases.model import PlannedCase
from dmlconf.engine.events import Repeated
from dmlconf.verdicts.verdict import Verdict

__all__ = ["Attempt", "Judge", "Stream", "Verdicts"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """The judgement on one run of a failing case."""

    verdict: Verdict


Stream = Generator[Verdict | Attempt | Repeated, None, None]
"""Verdicts, and between them the attempts at retried cases and the beginnings of repetitions."""

Judge = Callable[[Sequence[PlannedCase]], Stream]
"""Runs cases, and yields a verdict on each.

One that runs cases several times also yields a `Repeated` before each repetition.
"""

Verdicts = Generator[Verdict, None, None]
"""What a run yields without retries and repetitions: one verdict on each case."""
