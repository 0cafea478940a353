"""Say what `capture` and `import` wrote, and what to do next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from dmlconf.capture.block_cases import FOLDER as BLOCKS
from dmlconf.capture.captured import Captured
from dmlconf.capture.case_files import Written
from dmlconf.capture.dispatch_cases import FOLDER
from dmlconf.cli.output.console import say
from dmlconf.documents.wording import counted

__all__ = ["report_blocks", "report_cases", "report_dispatches"]

_MOST_NAMED: Final = 5
"""The most left-out cases that are named."""


def report_cases(folder: Path, captured: Captured, written: Written) -> None:
    """Say which cases were written and left out, and what to do next."""
    count = counted(written.cases, "case")
    files = counted(len(written.files), "file")
    say(f"Captured {captured.summary()}: {count} in {files} below {folder}")
    refused = {
        graph.hresult for graph in captured.graphs if graph.hresult not in (None, "S_OK")
    } | {each.hresult for each in captured.operators if each.hresult not in (None, "S_OK")}
    if refused:
        say(f"DirectML refused to compile some of them: {', '.join(sorted(map(str, refused)))}")
    if captured.weights:
        say(f"Kept {len(captured.weights):,} tensors of weights next to the cases")
    followed = sum(bool(each.statistics) for each in captured.operators)
    followed += sum(bool(each.statistics) for each in captured.graphs)
    if followed:
        say(f"Generated data is like that of the first dispatch in {counted(followed, 'case')}")
    _report_left_out(written)
    if not written.cases:
        return
    argument = shlex.quote(folder.as_posix())
    say("What to do next")
    say(f"  see what it is           dmlconf list {argument}")
    say(f"  run it on this device    dmlconf run {argument} -b directml")


def report_dispatches(folder: Path, written: Written) -> None:
    """Say how many dispatches were kept, and how to judge them."""
    argument = shlex.quote((folder / FOLDER).as_posix())
    noun = "dispatch" if written.cases == 1 else "dispatches"
    say(f"Kept the data of {written.cases:,} {noun} below {argument}")
    _report_left_out(written)
    if written.cases:
        say(f"  judge what it got        dmlconf run {argument} -b recording:{argument}")
        say(f"  does it happen again?    dmlconf run {argument} -b directml")


def report_blocks(folder: Path, written: Written) -> None:
    """Say how many blocks of graphs were written, and what to do with them."""
    argument = shlex.quote((folder / BLOCKS).as_posix())
    if written.cases:
        say(f"Split graphs into {counted(written.cases, 'block')} below {argument}")
    _report_left_out(written)
    if written.cases:
        say(f"  which block is wrong?    dmlconf run {argument} -b directml")
        say(f"  what would be noticed?   dmlconf strength {argument} --figure graphs")


def _report_left_out(written: Written) -> None:
    for name, problem in list(written.left_out.items())[:_MOST_NAMED]:
        say(f"Left out {name}: {problem}")
    if len(written.left_out) > _MOST_NAMED:
        say(f"Left out {len(written.left_out) - _MOST_NAMED:,} more")
