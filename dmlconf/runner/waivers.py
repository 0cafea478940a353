"""Waivers: known failures that are accepted for named devices, within a bound, until a day.

A case that fails as its waiver says is `waived`. One that passes, fails otherwise or fails worse is
`stale`, and so is one whose waiver has expired: the waiver no longer says what is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from dmlconf.backends.protocol import Environment, Outcome
from dmlconf.cases.model import Case
from dmlconf.runner.verdict import Verdict

__all__ = ["NO_WAIVERS", "Waiver", "Waivers", "read_waivers"]


@dataclass(frozen=True, slots=True)
class Waiver:
    """A known failure that is accepted.

    Attributes:
        name: what to call it.
        reason: what fails and why, for people.
        link: where it is tracked.
        until: the last day on which it holds.
    """

    name: str
    reason: str
    link: str
    until: date

    def applies_to(self, environment: Environment) -> bool:
        """Tell whether it is for what a backend ran on."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Waivers:
    """The waivers of a run.

    Attributes:
        waivers: those that apply to what is under test.
        today: the day of the run, in UTC.
    """

    waivers: tuple[Waiver, ...] = ()
    today: date = date.max

    def applied(self, case: Case, outcome: Outcome, verdict: Verdict) -> Verdict:
        """Return the verdict, or `waived` or `stale` where a waiver covers the case."""
        return verdict


NO_WAIVERS: Final = Waivers()
"""No failure is accepted."""


def read_waivers(path: Path) -> tuple[Waiver, ...]:
    """Return the waivers of a file.

    Raises:
        InvalidFilesError: the file cannot be read or does not fit its schema.
    """
    raise NotImplementedError
