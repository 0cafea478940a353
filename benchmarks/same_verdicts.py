"""Compare the verdicts of two run logs: `python -m benchmarks.same_verdicts BEFORE AFTER`.

For code changes that must not change any verdict: it compares all that a log says of a case, except
what differs between two runs of the same code, such as times and the worker process. Cases that
only one log has are counted but are not a difference, so a run of some operators can be compared
with one of all. The exit code is 1 if verdicts differ.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_MOST_SHOWN: Final = 40

_OF_THE_RUN: Final = frozenset({"seconds", "dispatch_seconds", "process", "sequence", "place"})
"""Fields that differ between two runs of the same code."""


def verdicts(log: Path) -> dict[str, Mapping[str, Any]]:
    """Return the compared parts of each case's verdict, by its identifier."""
    with log.open(encoding="utf-8") as lines:
        records = map(json.loads, lines)
        return {
            record["case"]: compared(record) for record in records if record["record"] == "verdict"
        }


def compared(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must be the same, in parts; each figure of an output is a part of its own."""
    parts = {name: value for name, value in verdict.items() if name not in _OF_THE_RUN}
    for output, figures in (parts.pop("figures", None) or {}).items():
        parts |= {f"{output}.{name}": value for name, value in figures.items()}
    return parts


def main(before: Path, after: Path) -> int:
    """Print the cases whose verdicts differ, and return 1 if there are any."""
    old, new = verdicts(before), verdicts(after)
    both = [case for case in old if case in new]
    kinds: Counter[str] = Counter()
    lines = []
    for case in both:
        names = {**old[case], **new[case]}
        changes = {
            name: (old[case].get(name), new[case].get(name))
            for name in names
            if old[case].get(name) != new[case].get(name)
        }
        kinds.update(name.rpartition(".")[2] for name in changes)
        if changes:
            shown = "; ".join(f"{name} {was} -> {now}" for name, (was, now) in changes.items())
            lines.append(f"{case}: {shown}")
    print(*lines[:_MOST_SHOWN], sep="\n")
    print(
        f"{len(both)} cases compared, {len(lines)} differ ({dict(kinds)}); "
        f"{len(old) - len(both)} only before, {len(new) - len(both)} only after"
    )
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:3])))
