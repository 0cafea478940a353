"""Environments that contradict themselves, or the rest of a certificate.

This finds mistakes and careless forgeries. Whoever invents an environment that fits together is not
found out: docs/certification.md says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from dmlconf.backends.recording.consistency import contradiction
from dmlconf.backends.recording.model import Recording
from dmlconf.certification.statement import Predicate
from dmlconf.runner.log import RunLog

__all__ = ["implausible"]

_CLOCKS: Final = timedelta(days=1)
"""How far two clocks may be apart."""


def implausible(predicate: Predicate, log: RunLog, now: datetime) -> Iterator[str]:
    """Yield what in a certificate's environment and log does not fit together.

    Args:
        predicate: what the certificate says of itself.
        log: its log, complete.
        now: the time of the verification, in UTC.
    """
    header = log.header
    for name, said, logged in (
        ("environment", predicate.environment, header.environment),
        ("backend", predicate.source.backend, header.backend),
        ("version of dmlconf", predicate.dmlconf, header.dmlconf),
        ("suite", predicate.suite, header.suite_digest),
        ("catalogue", predicate.catalogue, header.catalogue_digest),
        ("profile", predicate.profile, header.options.get("profile")),
        ("challenge", predicate.challenge, header.options.get("challenge")),
    ):
        if said != logged:
            yield f"the statement and the log name another {name}"
    tested = header.backend.partition(":")[0]
    if tested == "recording" and predicate.source.recording is None:
        yield "it is said to be of a run, but its backend is a recording"
    if predicate.source.recording is not None:
        tested = str(header.environment["backend"])
    if header.environment["backend"] == "recording":
        yield "its environment is that of a recording, and not of what was recorded"
    recording = Recording(predicate.dmlconf, tested, header.environment, predicate.capabilities, {})
    reason = contradiction(recording)
    if reason is not None:
        yield f"the environment contradicts itself: {reason}"
    yield from _times(log, now)


def _times(log: RunLog, now: datetime) -> Iterator[str]:
    assert log.footer is not None
    try:
        started = datetime.fromisoformat(log.header.started)
        finished = datetime.fromisoformat(log.footer.finished)
        early, late = finished < started, finished > now + _CLOCKS
    except (ValueError, TypeError):
        yield "the log's times are no times"
        return
    if early:
        yield f"the run ended at {log.footer.finished}, before it began at {log.header.started}"
    if late:
        yield f"the run ended at {log.footer.finished}, which is in the future"
