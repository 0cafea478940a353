"""Time lines of pages: runs from left to right, tall bars where something fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from dmlconf.verdicts.status import Status

__all__ = ["TimeLine", "time_line"]

MOST_BARS: Final = 60
"""Bars of a time line; each of more runs' bars stands for several runs."""

_HEIGHT: Final = 12
_LEAST: Final = 6
"""The height of a bar in which the smallest share of cases fails."""

_PASSING: Final = 2


@dataclass(frozen=True, slots=True)
class TimeLine:
    """A picture of runs.

    Attributes:
        width: of the picture, in units of two for each bar.
        spoken: what it shows, in words.
        paths: for each status its class and the bars as a path of SVG.
    """

    width: int
    spoken: str
    paths: tuple[tuple[str, str], ...]


def time_line(shares: Sequence[float | None], what: str = "run") -> TimeLine:
    """Return the picture of some runs.

    Args:
        shares: of each run the share of the cases that fail, from 0 to 1; None where there is none.
        what: what each of them is.
    """
    bars = list(_bars(shares))
    failing = [share for share in shares if share]
    known = [share for share in shares if share is not None]
    spoken = f"failures in {len(failing):,} of {len(known):,} {what}s"
    if known:
        spoken += ", also in the latest" if known[-1] else ", none in the latest"
    paths: dict[str, str] = {}
    at = 0
    for height, run in groupby(bars):
        width = 2 * len(list(run))
        if height:
            name = (Status.PASSED if height == _PASSING else Status.FAILED).css_class
            bar = f"M{at} {_HEIGHT - height}h{width}v{height}h-{width}z"
            paths[name] = paths.get(name, "") + bar
        at += width
    return TimeLine(max(at, 2), spoken, tuple(sorted(paths.items())))


def _bars(shares: Sequence[float | None]) -> Iterator[int]:
    """Yield the height of each bar: of the run in it that is worst; 0 where there is no run."""
    count = min(len(shares), MOST_BARS)
    for bar in range(count):
        part = shares[bar * len(shares) // count : (bar + 1) * len(shares) // count]
        yield _height(share for share in part if share is not None)


def _height(shares: Iterable[float]) -> int:
    worst = max(shares, default=None)
    if worst is None:
        return 0
    return round(_LEAST + (_HEIGHT - _LEAST) * worst**0.5) if worst else _PASSING
