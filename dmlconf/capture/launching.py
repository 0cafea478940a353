"""Run a program with the hooks, in its own process, and return the captured calls."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dmlconf.capture.captured import Captured, captured_from
from dmlconf.capture.journal import read_journal
from dmlconf.workers.tuning import thread_variables_set

__all__ = ["Launched", "launched", "program_environment"]

_SAFE_PATH: Final = "PYTHONSAFEPATH"
_END_SECONDS: Final = 10.0
"""How long a program may take to end after Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A program that has ended.

    Attributes:
        folder: the folder of the kept arrays.
        exit_code: on Linux, minus the number of the signal if one ended it.
        interrupted: whether Ctrl-C was pressed.
    """

    captured: Captured
    folder: Path
    exit_code: int
    interrupted: bool


def program_environment() -> dict[str, str]:
    """Return this process's environment without the variables that dmlconf sets for itself.

    These are counts of threads and, unless `sys.flags.safe_path` is true, PYTHONSAFEPATH.
    """
    own = {*thread_variables_set(), *(() if sys.flags.safe_path else (_SAFE_PATH,))}
    return {key: value for key, value in os.environ.items() if key not in own}


@contextmanager
def launched(arguments: Sequence[str], data: str = "none") -> Iterator[Launched]:
    """Run a program until it ends, with this process's standard streams.

    After Ctrl-C, the program is killed if it does not end within 10 seconds, or at a second Ctrl-C.
    The folder of arrays is removed at the end of `with`.

    Args:
        arguments: a script or `-m MODULE`, and its arguments.
        data: the data to keep, as `dmlconf.capture.hooking.program` reads it.

    Raises:
        OSError: there is no temporary folder, Python cannot be started, or the journal cannot be
            read.
        JournalError: the journal is too large or damaged.
    """
    with tempfile.TemporaryDirectory(prefix="dmlconf-capture-", ignore_cleanup_errors=True) as name:
        journal = Path(name) / "journal.jsonl"
        journal.touch()
        command = [
            sys.executable,
            "-P",
            "-m",
            "dmlconf.capture.hooking.program",
            str(journal),
            data,
            "--",
        ]
        process = subprocess.Popen([*command, *arguments], env=program_environment())
        interrupted = False
        try:
            code = process.wait()
        except KeyboardInterrupt:  # The terminal sends Ctrl-C to the program, too.
            interrupted = True
            try:
                code = process.wait(_END_SECONDS)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                process.kill()
                code = process.wait()
        yield Launched(captured_from(read_journal(journal)), Path(name), code, interrupted)
