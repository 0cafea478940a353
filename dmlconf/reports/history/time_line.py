"""Time lines on the pages of a history: bars of one or more runs, taller where more cases fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from dmlconf.verdicts.status import Status

__all__ = ["TimeLine", "time_line"]

MOST_BARS: Final = 60
"""The most bars; with 120 runs each bar shows the worse of two runs."""

_HEIGHT: Final = 12
"""The height of a bar in which all cases fail, in units of the picture."""
_LEAST: Final = 6
"""The least height of a bar with a failing case."""
_PASSING: Final = 2
"""The height of a bar in which no case fails."""


@dataclass(frozen=True, slots=True)
class TimeLine:
    """A time line as a picture.

    Attributes:
        width: the width of the picture in its own units: 2 for each bar, and at least 2.
        spoken: what the picture shows, in words.
        paths: pairs of a CSS class, `failed` or `passed`, and the bars of this class as an SVG
            path.
    """

    width: int
    spoken: str
    paths: tuple[tuple[str, str], ...]


def time_line(shares: Sequence[float | None]) -> TimeLine:
    """Return the time line of some runs.

    Args:
        shares: for each run, the share of cases that fail, from 0 to 1; None if no case ran.
    """
    bars = list(_bars(shares))
    failing = [share for share in shares if share]
    known = [share for share in shares if share is not None]
    spoken = f"failures in {len(failing):,} of {len(known):,} runs"
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
    """Yield the height of each bar: that of its worst run, 0 if no run has a case."""
    count = min(len(shares), MOST_BARS)
    for bar in range(count):
        part = shares[bar * len(shares) // count : (bar + 1) * len(shares) // count]
        yield _height(share for share in part if share is not None)


def _height(shares: Iterable[float]) -> int:
    worst = max(shares, default=None)
    if worst is None:
        return 0
    # Without the root, the bars of 1% and 8% would both have the height 6; with it, 7 and 8.
    return round(_LEAST + (_HEIGHT - _LEAST) * worst**0.5) if worst else _PASSING
