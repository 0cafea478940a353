"""Say what was written of what an application gave to DirectML."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from dmlconf.capture.captured import Captured
from dmlconf.capture.case_files import Written
from dmlconf.cli.output.console import say

__all__ = ["report_cases"]

_MOST_NAMED: Final = 5


def report_cases(folder: Path, captured: Captured, written: Written) -> None:
    """Say what was written, what was left out, and what to do next."""
    count = f"{written.cases:,} case{'' if written.cases == 1 else 's'}"
    files = f"{len(written.files):,} file{'' if len(written.files) == 1 else 's'}"
    say(f"Captured {captured.summary()}: {count} in {files} below {folder}")
    refused = {
        graph.hresult for graph in captured.graphs if graph.hresult not in (None, "S_OK")
    } | {each.hresult for each in captured.operators if each.hresult not in (None, "S_OK")}
    if refused:
        say(f"DirectML refused to compile some of them: {', '.join(sorted(map(str, refused)))}")
    for name, problem in list(written.left_out.items())[:_MOST_NAMED]:
        say(f"Left out {name}: {problem}")
    if len(written.left_out) > _MOST_NAMED:
        say(f"and {len(written.left_out) - _MOST_NAMED:,} more that dmlconf's own rules refuse")
    place = shlex.quote(folder.as_posix())
    say("What to do next")
    say(f"  see what it is           dmlconf list {place}")
    say(f"  run it on this device    dmlconf run {place} -b directml")
