"""Feed mutants to dmlconf: `python -m tests.hostile.child KIND FOLDER FIRST COUNT`.

Before it makes or feeds a mutant, this process prints the mutant's seed, so that
`tests.hostile.trial` knows at which mutant it died or hung.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from random import Random

from tests.hostile.canaries import CANARIES
from tests.hostile.subjects import SUBJECTS

__all__ = ["main"]

_MOST_MIB = 1024
"""The most memory that dmlconf may use for one mutant."""
os.environ["DMLCONF_MEMORY_MIB"] = str(_MOST_MIB)  # Else a valid case may use all memory.


def main(kind: str, folder: Path, first: int, count: int) -> None:
    import resource

    limit = 4 * _MOST_MIB << 20  # Protects the machine; a mutant may use a quarter of it.
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tempfile.tempdir = str(folder)
    for seed in range(first, first + count):
        _tell({"seed": seed})
        problem = _problem_with(kind, seed, folder / f"{kind}-{seed}")
        if problem:
            _tell({"seed": seed, "problem": problem})
    _tell({"seed": first + count})


def _problem_with(kind: str, seed: int, folder: Path) -> str:
    subject, random = {**SUBJECTS, **CANARIES}[kind], Random(f"{kind}:{seed}")
    mutant = subject.mutant(random)
    folder.mkdir(exist_ok=True)
    path = folder / f"mutant{subject.suffix}"
    path.write_bytes(mutant.content)
    _tell({"seed": seed})  # Time and memory count from here on.
    _forget_peak()
    try:
        problem = subject.feed(random, path, mutant.base)
    except Exception:
        problem = traceback.format_exc()[-1500:]
    if not problem and _peak() > _MOST_MIB:
        problem = f"{_peak()} MiB of memory"
    if not problem:
        shutil.rmtree(folder)
    return problem


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak() -> int:
    """Return the greatest resident size since `_forget_peak`, in MiB."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) >> 10
    raise AssertionError("/proc/self/status has no VmHWM")


def _tell(record: dict[str, object]) -> None:
    os.write(_OUTPUT, json.dumps(record).encode() + b"\n")


if __name__ == "__main__":
    _OUTPUT = os.dup(1)
    os.dup2(2, 1)  # Other output of this process must not mix with the lines.
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
