"""Try mutants of every kind in a campaign, which can be stopped and continued."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from tests.hostile.subjects import SUBJECTS
from tests.hostile.trial import Finding, trial

__all__ = ["Campaign", "opened_campaign", "run_campaign", "table"]

_STATE: Final = "campaign.json"
_CHUNK: Final = 250
"""Mutants of a fast kind that are tried before the state is saved."""
_COSTS: Final = {
    "certificate": 25,
    "plugin": 25,
    "where": 5,
    "matrix": 5,
    "graph": 5,
    "log-kinds": 5,
}
"""How many times fewer mutants are tried of a slow kind."""


@dataclass(slots=True)
class Campaign:
    """The state of a campaign.

    The first mutant of each kind has the seed `seed + 1`; `tried` counts mutants by kind.
    """

    seed: int
    tried: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.tried.values())


def opened_campaign(folder: Path, seed: int | None) -> Campaign:
    """Return the campaign in a folder, or a new one with this seed, which is random by default."""
    try:
        return Campaign(**json.loads((folder / _STATE).read_bytes()))
    except FileNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
        return Campaign(secrets.randbelow(1 << 40) if seed is None else seed)


def run_campaign(campaign: Campaign, folder: Path, count: int, seconds: float) -> Iterator[Finding]:
    """Try chunks of each kind in turn, and yield the mutants at which dmlconf failed.

    The state is saved after each chunk. None begins after `count` mutants in all, or `seconds`.
    """
    began = time.monotonic()
    while campaign.total < count and time.monotonic() - began < seconds:
        kind = min(SUBJECTS, key=lambda each: campaign.tried.get(each, 0) * _weight(each))
        tried, start = campaign.tried.get(kind, 0), time.monotonic()
        chunk = _CHUNK // _weight(kind)
        for finding in trial(kind, folder / kind, campaign.seed + tried + 1, chunk):
            campaign.findings.append(str(finding))
            yield finding
        campaign.tried[kind] = tried + chunk
        spent = campaign.seconds.get(kind, 0.0) + time.monotonic() - start
        campaign.seconds[kind] = round(spent, 1)
        temporary = folder / f"{_STATE}.new"
        temporary.write_text(json.dumps(asdict(campaign), indent=1), encoding="utf-8")
        temporary.replace(folder / _STATE)


def _weight(kind: str) -> int:
    return _COSTS.get(kind, 1)


def table(campaign: Campaign) -> str:
    rows = [
        f"| {kind} | {number:,} | {campaign.seconds[kind]:,.0f} | {_findings(campaign, kind)} |"
        for kind, number in sorted(campaign.tried.items())
    ]
    total = f"| all | {campaign.total:,} | {sum(campaign.seconds.values()):,.0f} | "
    return "\n".join(
        [
            "| Kind | Mutants | Seconds | Findings |",
            "|---|---:|---:|---:|",
            *rows,
            f"{total}{len(campaign.findings)} |",
        ]
    )


def _findings(campaign: Campaign, kind: str) -> int:
    return sum(finding.startswith(f"{kind} ") for finding in campaign.findings)
