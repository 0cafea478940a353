"""The circumstance `long`: 1,000 dispatches; memory is measured after every 100.

Only the process's own memory is measured, not the device's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from dmlconf.backends.circumstances import Dispatch, Exercised, Inapplicable
from dmlconf.backends.directml.circumstances.bench import Bench
from dmlconf.backends.process_memory import committed_bytes
from dmlconf.backends.protocol import Fault, FaultKind
from dmlconf.cases.model import Case

__all__ = ["exercise", "leak"]

_BLOCKS: Final = 10
_EACH: Final = 100
_MOST_BYTES: Final = 1 << 16
"""Cases whose arenas take more bytes are left out, since copies would take long."""

_WARM: Final = 4
"""The number of blocks of dispatches after which caches should no longer grow."""

_LEAK_BYTES: Final = 4096
"""The least average growth per dispatch that is a leak: a page of memory."""


def exercise(bench: Bench, case: Case) -> Exercised | Inapplicable:
    """Dispatch 100 times in each of ten submissions, and read the last result of each."""
    site = bench.site(case)
    if site.placement.span > _MOST_BYTES:
        return Inapplicable(f"its tensors take {site.placement.span >> 10:,} KiB")
    bench.initialize(site)
    seen: list[Dispatch] = []
    sizes: list[int] = []
    for block in range(_BLOCKS):
        steps = bench.variations(site, [(block + number) % 3 for number in range(_EACH)])
        seen += bench.run(steps, read=lambda number: number == _EACH - 1)
        sizes.append(committed_bytes())
    # The case's own inputs come first.
    seen.sort(key=lambda dispatch: dispatch.variation)
    return Exercised(tuple(seen), faults=leak(sizes))


def leak(sizes: Sequence[int]) -> tuple[Fault, ...]:
    """Return a fault if memory grows in each block after the fourth, and by 4 KiB a dispatch.

    Args:
        sizes: bytes of the process after each of five or more blocks of 100 dispatches.
    """
    kept = sizes[_WARM - 1 :]
    slope = (kept[-1] - kept[0]) / (_EACH * (len(kept) - 1))
    if slope < _LEAK_BYTES or any(later <= size for size, later in pairwise(kept)):
        return ()
    warm, count = _EACH * _WARM, _EACH * len(sizes)
    growth = f"{slope / 1024:,.1f} KiB per dispatch"
    message = f"the process's memory grows by {growth} after the first {warm} of {count:,}"
    return (Fault(FaultKind.LEAK, message),)
