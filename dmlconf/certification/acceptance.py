"""What a verifier must allow or know to accept a certificate: backend, waivers, origin, dates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import dmlconf
from dmlconf.backends.subject import REFERENCE
from dmlconf.certification.certificate import Certificate
from dmlconf.certification.statement import Predicate
from dmlconf.certification.waived_limit import WaivedLimit
from dmlconf.documents.wording import counted
from dmlconf.excuses.waivers import Waiver
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import ReasonKind, Verdict

__all__ = [
    "not_allowed_backend",
    "notes_on_dates",
    "notes_on_origin",
    "notes_on_target",
    "notes_on_waivers",
    "share_text",
    "too_many_waived",
    "waived_by_sender",
]

_DIRECTML: Final = "directml"

_LONGEST_RUN: Final = timedelta(days=30)
"""A run that lasted longer gets a note."""

_OLDEST_RUN: Final = timedelta(days=366)
"""A run that ended longer ago gets a note."""

_LONGEST_WAIVER: Final = timedelta(days=2 * 366)
"""A waiver that is valid for longer after the day of the run gets a note."""


def not_allowed_backend(predicate: Predicate, allowed: Collection[str]) -> str | None:
    """Return why a certificate's backend is not accepted, with what to do; None if it is accepted.

    Args:
        allowed: names of backends that the verifier accepts besides DirectML on an adapter.
    """
    environment = predicate.environment
    name = str(environment["backend"])
    if name in allowed:
        return None
    if name != _DIRECTML:
        said = f"it is of the backend {name}, not of DirectML on an adapter"
    else:
        lacking = [key for key in ("adapter", "driver") if not environment[key]]
        if not lacking:
            return None
        said = f"it is of DirectML, but names no {' and no '.join(lacking)}"
    return f"{said}: if you accept that, add --allow-backend {name}"


def waived_by_sender(verdicts: Mapping[str, Verdict]) -> tuple[str, ...]:
    """Return the failing cases that the sender's waivers excuse."""
    return tuple(
        case
        for case, verdict in verdicts.items()
        if verdict.reason is not None and verdict.reason.kind is ReasonKind.WAIVER
    )


def too_many_waived(limit: WaivedLimit | None, verdicts: Mapping[str, Verdict]) -> str | None:
    """Return why the sender's waivers excuse too many cases; None if they do not.

    Args:
        limit: how many cases may be waived; None for any number.
    """
    waived = len(waived_by_sender(verdicts))
    if limit is None or not limit.exceeded(waived, len(verdicts)):
        return None
    return (
        f"{_excused(waived, verdicts)}, more than the {limit} allowed: read them, and if you "
        "accept them, add --max-waived"
    )


def _excused(count: int, verdicts: Collection[str]) -> str:
    return f"waivers of the sender excuse {share_text(count, len(verdicts))}"


def share_text(count: int, of: int) -> str:
    """Return a count and its share, such as `3 of 1,234 cases (0.243%)`."""
    share = 100 * count / of if of else 0.0
    return f"{count:,} of {counted(of, 'case')} ({share:.3g}%)"


def notes_on_origin(certificate: Certificate, *, demands_keys: bool) -> Iterator[str]:
    """Yield notes on a certificate's signatures, backend, recording and version of dmlconf."""
    predicate = certificate.predicate
    if not certificate.signers:
        yield "it is not signed: nobody vouches for its origin"
    elif not demands_keys:
        yield (
            "it is signed with the keys that came with it: give the vendor's key with --key, "
            "otherwise nobody vouches for whose they are"
        )
    name = str(predicate.environment["backend"])
    if name == REFERENCE:
        yield f"it is of {REFERENCE}, which is dmlconf's own reference, not of a device"
    elif name != _DIRECTML:
        yield f"it is of the backend {predicate.source.backend}, which you allowed, not of DirectML"
    if predicate.source.recording is not None:
        yield "it is of an earlier recording, not of a run"
        if count := certificate.outcomes.recording_samples:
            yield (
                f"it has only samples of {count:,} large outputs, of elements that could be "
                "known before the run"
            )
    if predicate.dmlconf != dmlconf.__version__:
        yield f"dmlconf {predicate.dmlconf} wrote it; this is {dmlconf.__version__}, same suite"


def notes_on_dates(log: RunLog, now: datetime) -> Iterator[str]:
    """Yield notes on a run that lasted very long or ended long ago, by the times in its log."""
    assert log.footer is not None
    try:
        started = datetime.fromisoformat(log.header.started)
        finished = datetime.fromisoformat(log.footer.finished)
        lasted, ago = finished - started, now - finished
    except (ValueError, TypeError, OverflowError):
        return  # `implausible` reports it.
    if lasted > _LONGEST_RUN:
        yield f"the run lasted {lasted.days:,} days, from {started.date()} to {finished.date()}"
    if ago > _OLDEST_RUN:
        yield f"the run ended on {finished.date()}, {ago.days:,} days ago"


def notes_on_target(verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    """Yield notes on cases that the target cannot express, or that its specification excuses."""
    kinds = Counter(verdict.reason.kind for verdict in verdicts.values() if verdict.reason)
    if declined := kinds[ReasonKind.NOT_EXPRESSIBLE]:
        yield f"the backend cannot express {share_text(declined, len(verdicts))}"
    if deviations := kinds[ReasonKind.DEVIATION]:
        yield (
            f"{share_text(deviations, len(verdicts))} fail by DirectML's documentation, but not by "
            "the specification that the backend follows"
        )


def notes_on_waivers(
    waivers: Sequence[Waiver], verdicts: Mapping[str, Verdict], started: str, now: datetime
) -> Iterator[str]:
    """Yield notes on the sender's waivers: what they excuse and permit, and for how long.

    Args:
        waivers: the waivers that apply to the device on the day of the run.
    """
    cases = waived_by_sender(verdicts)
    if not cases:
        return
    messages = [verdicts[case].reason.message for case in cases if verdicts[case].reason]  # type: ignore[union-attr]  # The condition says that it is there.
    used = [w for w in waivers if any(text.startswith(f"{w.name}: ") for text in messages)]
    yield f"{_excused(len(cases), verdicts)}; they accept {_widest(used)}"
    day = datetime.fromisoformat(started).date()
    for waiver in used:
        if waiver.until < now.date():
            yield (
                f"the waiver {waiver.name} was valid on the day of the run, but ended "
                f"{waiver.until}"
            )
        elif waiver.until - day > _LONGEST_WAIVER:
            years = (waiver.until - day).days // 365
            yield (
                f"the waiver {waiver.name} is valid until {waiver.until}, {years} years after "
                "the run"
            )


def _widest(waivers: Sequence[Waiver]) -> str:
    """Return what waivers accept, with their largest bounds, as the end of a sentence."""
    wrong = [w.bound for w in waivers if w.failure is ReasonKind.WRONG_VALUES]
    others = sorted({str(w.failure) for w in waivers if w.failure is not ReasonKind.WRONG_VALUES})
    parts = []
    if wrong:
        elements = _largest([bound.elements for bound in wrong])
        count = "any number of" if elements is None else f"up to {elements:,g}"
        errors = []
        for name, values in (
            ("ULP", [bound.ulp for bound in wrong]),
            ("times the limit", [bound.share_of_limit for bound in wrong]),
        ):
            largest = _largest(values)
            if largest is not None:
                errors.append(f"{largest:,g} {name}")
        by = f"by up to {' and '.join(errors)}" if errors else "by any amount"
        parts.append(f"{count} wrong elements in an output, off {by}")
    parts += [f"the failure `{name}`" for name in others]
    return " and ".join(parts)


def _largest(values: Sequence[float | None]) -> float | None:
    """Return the largest bound; None if one of them is None, which permits anything."""
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None
