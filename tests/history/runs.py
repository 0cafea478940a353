"""Make the logs of nightly runs, for tests of histories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from dmlconf.cases.model import Provenance
from dmlconf.run_log.log import Footer, Header, RunLog
from dmlconf.verdicts.verdict import (
    Execution,
    Identity,
    Judgement,
    Reason,
    ReasonKind,
    Status,
    Verdict,
)

__all__ = ["night", "verdict"]

FIRST_NIGHT = datetime(2026, 1, 1, 2, tzinfo=UTC)


def verdict(
    case: str,
    *,
    fails: bool = False,
    bits: str = "00",
    facts: Mapping[str, str] | None = None,
    message: str = "0 is not 1",
) -> Verdict:
    """Return a verdict on a case; `bits`, repeated to 16 digits, is the digest of its output."""
    return Verdict(
        Identity(
            case=case,
            operator=case.partition("/")[0].upper(),
            tags=(case.split("/")[1],),
            facts=facts or {"InputTensor": "FLOAT32 2x3"},
        ),
        Judgement(
            status=Status.FAILED if fails else Status.PASSED,
            expectation=Provenance.DOCUMENTED,
            reason=Reason(ReasonKind.WRONG_VALUES, message) if fails else None,
        ),
        Execution(seconds=0.001, output_digests={"OutputTensor": bits * (16 // len(bits))}),
    )


def night(
    number: int,
    verdicts: Iterable[Verdict],
    *,
    driver: str = "1.0",
    version: str = "1.15.4",
    adapter: str = "GPU",
    suite: str = "a",
    dmlconf: str = "0.2.0",
    platform: str = "Windows 11",
    selected: int | None = None,
    shard: Mapping[str, int] | None = None,
) -> RunLog:
    """Return the log of a night's run, by default complete; night 0 is 1 January 2026."""
    listed = tuple(verdicts)
    started = FIRST_NIGHT + timedelta(days=number)
    counts: dict[str, int] = dict.fromkeys(map(str, Status), 0)
    for each in listed:
        counts[each.status] += 1
    header = Header(
        dmlconf=dmlconf,
        started=started.isoformat(),
        backend="directml",
        against="numpy",
        environment={
            "backend": "directml",
            "version": version,
            "adapter": adapter,
            "driver": driver,
            "details": {},
            "platform": platform,
            "python": "3.12.1",
            "numpy": "2.3.2",
        },
        paths=("cases",),
        suite_digest=suite * 64,
        catalogue_digest="c" * 64,
        selected=len(listed) if selected is None else selected,
        options={},
        shard=shard,
    )
    whole = selected is None or selected == len(listed)
    footer = Footer(started.isoformat(), 60.0, whole, counts)
    return RunLog(header, listed, footer)
