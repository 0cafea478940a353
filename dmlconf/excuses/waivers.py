"""Waivers: known failures that are accepted on some devices, within a bound, until a date.

A case that fails as its waiver says is `waived`. A case is `stale` if it fails otherwise or worse,
or after the waiver has expired. It is also `stale` if it passes, unless the waiver is intermittent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Final

from dmlconf.backends.protocol import Environment, Outcome, Rejection
from dmlconf.backends.subject import tested_environment
from dmlconf.cases.identifiers import fits
from dmlconf.cases.model import Case, ExpectedRejection, Location
from dmlconf.excuses.scope import Facts, Scope, VersionRange, parse_version
from dmlconf.verdicts.verdict import Reason, ReasonKind, Status, Verdict

__all__ = ["NO_WAIVERS", "Bound", "Devices", "Waiver", "Waivers", "effective_waivers", "today"]


_OF_REJECTED: Final = frozenset(
    {
        ReasonKind.ACCEPTED_INVALID,
        ReasonKind.WRONG_REJECTION,
        ReasonKind.CRASH,
        ReasonKind.HANG,
        ReasonKind.DEVICE_REMOVED,
        ReasonKind.OUT_OF_MEMORY,
        ReasonKind.BACKEND_ERROR,
    }
)
"""The kinds of failure for which a waiver without `cases` covers cases that must be rejected."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How wrong the values of each output may be; None for no bound.

    Wrong values that lack a figure, as integers lack the ULP, exceed each bound on it.

    Attributes:
        elements: how many elements may be outside the rule.
        ulp: how many ULP the worst element may be off.
        share_of_limit: the largest error, in multiples of the rule's limit.
    """

    elements: int | None = None
    ulp: float | None = None
    share_of_limit: float | None = None

    def excess(self, verdict: Verdict) -> str | None:
        """Say which figure of a verdict exceeds the bound; None if none does."""
        for output, figures in verdict.figures.items():
            for name, figure, most in (
                ("elements", figures.differing, self.elements),
                ("ULP", figures.worst_ulp, self.ulp),
                ("times the limit", figures.margin, self.share_of_limit),
            ):
                if most is None:
                    continue
                if figure is None and figures.differing:
                    return f"{output} has wrong integers, not the {most:,g} {name} waived"
                if figure is not None and not figure <= most:
                    return f"{output} is off by {figure:,g} {name}, more than the {most:,g} waived"
        return None


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices on which a failure is known; None, or an empty `adapters`, stands for any.

    Attributes:
        adapters: patterns of the adapter's description, or of its vendor and device, as
            `0x1002:0x73bf`; capitals count as small letters.
        drivers: versions of the driver; an unknown version is not included.
        directml: versions of DirectML; if given, only the backend `directml` fits.
    """

    adapters: tuple[str, ...] = ()
    drivers: VersionRange | None = None
    directml: VersionRange | None = None

    def include(self, environment: Environment) -> bool:
        """Return whether the devices include an environment's; for a recording, its source's."""
        tested = tested_environment(environment)
        if self.adapters and not self._adapter_fits(tested):
            return False
        if self.drivers is not None and not _is_in(self.drivers, tested["driver"]):
            return False
        if self.directml is None:
            return True
        return tested["backend"] == "directml" and _is_in(self.directml, tested["version"])

    def _adapter_fits(self, tested: Any) -> bool:
        details = tested["details"]
        identifiers = f"{details.get('vendor_id', '')}:{details.get('device_id', '')}"
        names = [(tested["adapter"] or "").casefold(), identifiers.casefold()]
        return any(fits(pattern.casefold(), name) for pattern in self.adapters for name in names)


def _is_in(versions: VersionRange, text: str | None) -> bool:
    version = parse_version(text or "unknown")
    return version is not None and versions.holds(version)


@dataclass(frozen=True, slots=True)
class Waiver:
    """A known failure that is accepted.

    Attributes:
        reason: what fails and why, for people.
        link: where the failure is tracked; `none yet` if nowhere.
        until: the last day of the waiver.
        scope: the cases that fail.
        failure: how these cases fail.
        rejection: for cases that are rejected, the HRESULT and the call: `E_FAIL by Execute`.
        bound: how large the errors of wrong values may be.
        intermittent: whether a case may also pass.
        location: the file and line.
    """

    name: str
    reason: str
    link: str
    until: date
    scope: Scope
    failure: ReasonKind
    rejection: str | None = None
    bound: Bound = Bound()
    devices: Devices = Devices()
    intermittent: bool = False
    location: Location | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.location})" if self.location else self.name

    def covers(self, case: Case, facts: Facts) -> bool:
        """Return whether the waiver is about the case.

        A case that must be rejected is covered only if the scope has `cases`, or if the failure is
        in `_OF_REJECTED`.
        """
        if isinstance(case.expectation, ExpectedRejection) and self.scope.cases is None:
            return self.failure in _OF_REJECTED and self.scope.covers(case, facts)
        return self.scope.covers(case, facts)

    def mismatch(self, outcome: Outcome, verdict: Verdict) -> Reason | None:
        """Return how a failure differs from the waived one, or exceeds its bound; else None."""
        assert verdict.reason is not None
        actual = f"{verdict.reason.kind}: {verdict.reason.message}"
        if verdict.reason.kind is not self.failure:
            message = f"{actual}; waiver {self} says `{self.failure}`. Fix it, or change the waiver"
            return Reason(ReasonKind.FAILS_OTHERWISE, message)
        if isinstance(outcome, Rejection) and self.rejection is not None:
            rejection = f"{outcome.hresult} by {outcome.stage}"
            if rejection != self.rejection:
                message = f"{actual}; waiver {self} says {self.rejection}. Change the waiver"
                return Reason(ReasonKind.FAILS_OTHERWISE, message)
        bound = self.bound
        if self.failure is not ReasonKind.WRONG_VALUES:
            bound = Bound(elements=0)  # No element may be outside its rule.
        excess = bound.excess(verdict)
        if excess is None:
            return None
        message = f"{actual}; {excess} by {self}. Fix it, or widen the waiver's bound"
        return Reason(ReasonKind.FAILS_WORSE, message)


@dataclass(frozen=True, slots=True)
class Waivers:
    """The waivers for a run's environment, and the day of the run in UTC."""

    waivers: tuple[Waiver, ...] = ()
    day: date = date.min

    def applied(self, case: Case, outcome: Outcome, verdict: Verdict) -> Verdict:
        """Return the verdict; if it is `passed`, `failed` or `broken`, waivers may change it."""
        if not (verdict.status is Status.PASSED or verdict.status.traits.excusable):
            return verdict
        facts = Facts(case)
        covering = [waiver for waiver in self.waivers if waiver.covers(case, facts)]
        if not covering:
            return verdict
        if verdict.status is Status.PASSED:
            return _passing(covering, verdict)
        mismatches = [waiver.mismatch(outcome, verdict) for waiver in covering]
        fitting = [w for w, wrong in zip(covering, mismatches, strict=True) if wrong is None]
        if not fitting:
            # FAILS_WORSE says more than FAILS_OTHERWISE.
            worse = (w for w in mismatches if w and w.kind is ReasonKind.FAILS_WORSE)
            return _stale(verdict, next(worse, mismatches[0]))
        current = [waiver for waiver in fitting if self.day <= waiver.until]
        if not current:
            return _stale(verdict, _expired(fitting[0], verdict))
        return _waived(current[0], verdict)


def _passing(covering: list[Waiver], verdict: Verdict) -> Verdict:
    steady = next((waiver for waiver in covering if not waiver.intermittent), None)
    if steady is None:
        return verdict
    message = (
        f"waiver {steady} says that this case fails by {steady.failure}, but it passes. Remove the "
        "case from the waiver, or the waiver from the file"
    )
    return _stale(verdict, Reason(ReasonKind.WAIVED_PASSES, message))


def _expired(waiver: Waiver, verdict: Verdict) -> Reason:
    assert verdict.reason is not None
    message = (
        f"{verdict.reason.kind}: {verdict.reason.message}; waiver {waiver} was valid until "
        f"{waiver.until}. Fix it, or extend the waiver"
    )
    return Reason(ReasonKind.WAIVER_EXPIRED, message)


def _stale(verdict: Verdict, reason: Reason | None) -> Verdict:
    assert reason is not None
    before = verdict.reason
    if before is not None:
        reason = replace(reason, differences=before.differences, diagnostics=before.diagnostics)
    return verdict.judged(status=Status.STALE, reason=reason)


def _waived(waiver: Waiver, verdict: Verdict) -> Verdict:
    assert verdict.reason is not None
    ended = waiver.reason if waiver.reason.endswith((".", "!", "?")) else f"{waiver.reason}."
    message = (
        f"{waiver.name}: {ended} Link: {waiver.link}. Until {waiver.until}. "
        f"Here {verdict.reason.kind}: {verdict.reason.message}"
    )
    reason = replace(verdict.reason, kind=ReasonKind.WAIVER, message=message)
    return verdict.judged(status=Status.WAIVED, reason=reason)


NO_WAIVERS: Final = Waivers()


def today() -> date:
    """Return today's date in UTC."""
    return datetime.now(UTC).date()


def effective_waivers(
    waivers: tuple[Waiver, ...], environment: Environment, day: date | None = None
) -> Waivers:
    """Return the waivers that apply to an environment; for a recording, to the recorded one.

    Args:
        day: the day of the run, in UTC; None for today.
    """
    concerned = tuple(waiver for waiver in waivers if waiver.devices.include(environment))
    return Waivers(concerned, day or today())
