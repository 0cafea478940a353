"""Find contradictions within and between a certificate's statement and its log.

This finds mistakes and careless forgeries, but not an invented environment that is consistent
(docs/certification.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from dmlconf.backends.protocol import Capabilities
from dmlconf.backends.recording.consistency import contradiction
from dmlconf.backends.recording.model import Recording
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.certification.statement import Predicate
from dmlconf.excuses.scope import parse_version
from dmlconf.run_log.log import RunLog

__all__ = ["implausible"]

_HIGHEST: Final = (
    ((1, 10), "5_1"),
    ((1, 12), "6_0"),
    ((1, 13), "6_1"),
    ((1, 14), "6_2"),
    ((1, 15), "6_3"),
)
"""Versions, each with the highest feature level of older ones: before 1.10, at most 5_1.

The levels of the first two rows are one above those measured in docs/versions.md."""

_CLOCKS: Final = timedelta(days=1)
"""How far the clock of the machine that ran the cases may be ahead of the verifier's."""


def implausible(predicate: Predicate, log: RunLog, now: datetime) -> Iterator[str]:
    """Yield contradictions within and between the statement and the log of a certificate.

    Args:
        log: the certificate's log, which must have a footer.
        now: the verifier's time, with a time zone.
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
            yield f"the statement and the log differ in the {name}"
    tested = header.backend.partition(":")[0]
    if tested == "recording" and predicate.source.recording is None:
        yield "it claims to be of a run, but its backend is a recording"
    if predicate.source.recording is not None:
        tested = str(header.environment["backend"])
    if header.environment["backend"] == "recording":
        yield "its environment is that of a recording, not that of the recorded device"
    recording = Recording(predicate.dmlconf, tested, header.environment, predicate.capabilities, {})
    reason = contradiction(recording)
    if reason is not None:
        yield f"the environment contradicts itself: {reason}"
    yield from _version(tested, str(header.environment["version"]), predicate.capabilities)
    yield from _times(log, now)


def _version(tested: str, text: str, capabilities: Capabilities) -> Iterator[str]:
    """Yield a complaint if a DirectML is too old for the feature level that it claims.

    Known faults depend on the version, so claiming an older version excuses more.
    """
    version = parse_version(text)
    if tested != "directml" or version is None:
        return
    highest = next((level for before, level in _HIGHEST if version < before), None)
    level = capabilities.feature_level
    if highest is not None and level > FeatureLevel.parse(highest):
        yield f"DirectML {text} has no feature level above {highest}, but it claims {level}"


def _times(log: RunLog, now: datetime) -> Iterator[str]:
    assert log.footer is not None
    try:
        started = datetime.fromisoformat(log.header.started)
        finished = datetime.fromisoformat(log.footer.finished)
        early, late = finished < started, finished > now + _CLOCKS
    except (ValueError, TypeError):
        yield "the log's times are not valid times"
        return
    if early:
        yield f"the run ended at {log.footer.finished}, before it began at {log.header.started}"
    if late:
        yield f"the run ended at {log.footer.finished}, which is in the future"
