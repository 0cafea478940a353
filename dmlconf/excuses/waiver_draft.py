"""A draft of a waiver file, from the failures in a run's log."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

import yaml

from dmlconf.backends.subject import tested_environment
from dmlconf.cases.identifiers import unique_name
from dmlconf.documents.problems import printable
from dmlconf.documents.wording import counted
from dmlconf.excuses.scope import parse_version
from dmlconf.excuses.waiver_file import NO_LINK, REJECTIONS, UNEXPLAINED
from dmlconf.run_log.log import Header, RunLog
from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.verdict import ReasonKind, Verdict

__all__ = ["draft"]

_HOLDS_FOR: Final = timedelta(days=90)

_COMMENT: Final = """\
# Failures of a run on {adapter}, {started}, accepted until the dates below.
# Write in each `reason`, in place of the TODO, why the cases fail; until then a run refuses this
# file. Link the report of the fault, and narrow or widen `devices` and `bound`: docs/waivers.md.
"""

_REJECTION: Final = re.compile(r"\b([A-Z][A-Z0-9_]*) by ([A-Z][A-Za-z]*)\b")

_Key = tuple[str, ReasonKind, str | None]
"""The operator, the kind of failure and, for a refusal, its HRESULT and call."""


def draft(
    log: RunLog,
    link: str = NO_LINK,
    until: date | None = None,
    chosen: Collection[str] | None = None,
) -> str | None:
    """Return a waiver file for failed and broken cases; None if there are none.

    There is a waiver for each operator and kind of failure; for refusals, also for each HRESULT and
    call. The waiver names its cases, and the log's adapter, driver and DirectML. For wrong values,
    its bound is their largest error.

    Args:
        link: where the failures are tracked.
        until: the last day of the waivers; by default 90 days after the run began.
        chosen: identifiers of the cases to waive; None for all.
    """
    groups: dict[_Key, list[Verdict]] = {}
    for verdict in log.verdicts:
        if chosen is not None and verdict.case not in chosen:
            continue
        if verdict.status.traits.excusable and verdict.reason is not None:
            groups.setdefault(_key(verdict), []).append(verdict)
    if not groups:
        return None
    last = until or (datetime.fromisoformat(log.header.started) + _HOLDS_FOR).date()
    devices = _devices(log.header)
    names: set[str] = set()
    waivers = [
        _waiver(_name(key, names), key, verdicts, devices, link, last)
        for key, verdicts in groups.items()
    ]
    adapter = printable(str(log.header.environment.get("adapter") or log.header.backend))
    comment = _COMMENT.format(adapter=adapter, started=log.header.started[:10])
    body = yaml.dump({"format": 1, "waivers": waivers}, Dumper=_Dumper, sort_keys=False, width=100)
    return comment + body


class _Dumper(yaml.SafeDumper):
    """Writes equal parts of a file in full, without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _key(verdict: Verdict) -> _Key:
    assert verdict.reason is not None
    kind = verdict.reason.kind
    match = _REJECTION.search(verdict.reason.message) if kind in REJECTIONS else None
    return verdict.operator, kind, f"{match[1]} by {match[2]}" if match else None


def _name(key: _Key, names: set[str]) -> str:
    operator, kind, _ = key
    plain = re.sub(r"[^a-z0-9]+", "-", f"{operator} {kind}".lower()).strip("-")
    return unique_name(plain, names)


def _waiver(
    name: str,
    key: _Key,
    verdicts: Sequence[Verdict],
    devices: Mapping[str, Any],
    link: str,
    until: date,
) -> dict[str, Any]:
    _, kind, rejection = key
    first = verdicts[0].reason
    assert first is not None
    count = counted(len(verdicts), "case")
    waiver: dict[str, Any] = {
        "name": name,
        "reason": printable(f"{UNEXPLAINED} {count}; the first: {first.message}"),
        "link": link,
        "until": until.isoformat(),
        "cases": [verdict.case for verdict in verdicts],
        "failure": str(kind),
    }
    if rejection is not None:
        waiver["rejection"] = rejection
    if kind is ReasonKind.WRONG_VALUES:
        waiver["bound"] = _bound(verdicts)
    if devices:
        waiver["devices"] = devices
    return waiver


def _bound(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """Return the largest figures: at least 1 element, and ULP rounded up.

    If the largest ULP or share is infinite or 0, it is left out.
    """
    figures = [figures for verdict in verdicts for figures in verdict.figures.values()]
    bound: dict[str, Any] = {"elements": max([1, *(each.differing for each in figures)])}
    ulp = max(map(_ulp, figures), default=0)
    share = max((each.margin or 0 for each in figures), default=0)
    if 0 < ulp < math.inf:
        bound["ulp"] = math.ceil(ulp)
    if 0 < share < math.inf:
        bound["share_of_limit"] = share
    return bound


def _ulp(figures: Figures) -> float:
    """Return the largest error in ULP; infinity for wrong integers."""
    if figures.worst_ulp is None:
        return math.inf if figures.differing else 0
    return float(figures.worst_ulp)


def _devices(header: Header) -> dict[str, Any]:
    tested = tested_environment(header.environment)
    devices: dict[str, Any] = {}
    if tested.get("adapter"):
        devices["adapters"] = [str(tested["adapter"])]
    if _is_version(tested.get("driver")):
        devices["drivers"] = {"first": tested["driver"], "last": tested["driver"]}
    if tested["backend"] == "directml" and _is_version(tested.get("version")):
        devices["directml"] = {"first": tested["version"], "last": tested["version"]}
    return devices


def _is_version(text: Any) -> bool:
    version = parse_version(text) if isinstance(text, str) else None
    return version is not None and 2 <= len(version) <= 4
