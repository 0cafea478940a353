"""Run dmlconf and split its processor time by stage: `python stages.py TIMES ARGUMENTS...`.

`TIMES` is the file for the result, JSON: processor seconds by stage. The rest is a command line of
dmlconf, which runs in this process, so `-j 1` belongs to it. Each millisecond of processor time
the stack is looked at, and the time since the last look goes to the first stage in `STAGES` that
has a function on the stack; what no stage has goes to `other`. This needs the standard library
alone, so it can measure any checkout with that one's Python.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Final

STAGES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("reports", ("reports/", "cli/output/")),
    ("limits", ("permitted/", "precision/room.py")),
    ("data", ("tensors/fills.py", "inputs", "with_inputs")),
    ("building", ("valid_case", "cases/building/", "unsupported_reason", "facts_of")),
    ("execution", ("run_items",)),
    ("transport", ("workers/",)),
    ("comparison", ("precision/", "judging/", "verdicts/", "excuses/")),
    ("log", ("run_log/", "engine/consumers.py")),
    ("loading", ("cases/", "documents/")),
    ("start", ("cli/", "catalogue/", "engine/making_runs.py")),
)
"""The stages by precedence, each with parts of paths in `dmlconf` or names of functions."""

_INTERVAL: Final = 0.001
"""Processor seconds between two looks at the stack."""
_PACKAGE: Final = "/dmlconf/"


class StageTimes:
    """Adds up processor time by stage while it is active."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._known: dict[object, frozenset[int]] = {}
        self._last = 0.0

    def start(self) -> None:
        """Begin to look at the stack."""
        self._last = time.process_time()
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL, _INTERVAL)

    def stop(self) -> None:
        """Look no more; the time that is left belongs to no stage."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.seconds["other"] += time.process_time() - self._last

    def _look(self, number: int, frame: FrameType | None) -> None:
        now = time.process_time()
        least = len(STAGES)
        importing = False
        while frame is not None:
            code = frame.f_code
            known = self._known.get(code)
            if known is None:
                known = self._known[code] = _stages(code.co_filename, code.co_name)
            least = min(least, *known) if known else least
            importing = importing or code.co_filename.startswith("<frozen importlib")
            frame = frame.f_back
        stage = "start" if importing else STAGES[least][0] if least < len(STAGES) else "other"
        self.seconds[stage] += now - self._last
        self._last = now


def _stages(path: str, function: str) -> frozenset[int]:
    """Return the stages that a function belongs to, by number."""
    _, _, inside = path.replace("\\", "/").rpartition(_PACKAGE)
    if not inside or _PACKAGE not in path:
        return frozenset()
    return frozenset(
        number
        for number, (_, parts) in enumerate(STAGES)
        if any(part == function or inside.startswith(part) for part in parts)
    )


def main(times: Path, arguments: list[str]) -> None:
    """Run a command line of dmlconf, and write how long each stage took."""
    before = time.process_time()
    stages = StageTimes()
    stages.start()
    from dmlconf.cli.entry_point import main as dmlconf

    sys.argv = ["dmlconf", *arguments]
    try:
        dmlconf()
    finally:
        stages.stop()
        stages.seconds["start"] += before
        times.write_text(json.dumps(stages.seconds), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
