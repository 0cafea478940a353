"""Make forged certificates, and check what `dmlconf verify` says about them."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

from tests.certification.forging import taken_apart
from tests.certification.suite import VENDOR, certify, printed_text, verify, write_suite
from tests.hostile.cheats.stranger import STRANGER
from tests.hostile.cheats.vendor import REPORTED, VENDOR_CHEATS
from tests.hostile.mutant import Mutant

__all__ = ["ENDS", "NOTED", "feed", "mutant", "tally"]

ENDS: Final = {0: "same content", 1: "does not hold", 3: "refused"}
"""The permitted results of a verification, by exit code."""

NOTED: Final = "holds with a note"
"""The result for a certificate that is accepted with a note."""

NAMES: Final = (*STRANGER, *VENDOR_CHEATS, *REPORTED)

_TALLY: Final = "certificate.tally"
_DAY: Final = "2026-01-0{}T00:00:00+00:00"


@cache
def _workplace() -> Path:
    """Return a folder with a suite and a right certificate, one for each process."""
    folder = write_suite(Path(tempfile.mkdtemp()) / "workplace")
    forgery = taken_apart(certify(folder, "--key", "vendor.pem"))
    forgery.log[0]["started"], forgery.log[-1]["finished"] = _DAY.format(1), _DAY.format(2)
    (folder / "it.dmlcert").write_bytes(forgery.content(VENDOR))
    done = verify(folder, "--key", "vendor.pub.pem")
    assert done.returncode == 0, done.stdout
    return folder


@cache
def _right() -> bytes:
    return (_workplace() / "it.dmlcert").read_bytes()


def mutant(random: Random) -> Mutant:
    name = random.choice(NAMES)
    if name in STRANGER:
        return Mutant(STRANGER[name](random, _right()), Path(name))
    forgery = taken_apart(_right())
    cheat = REPORTED[name][0] if name in REPORTED else VENDOR_CHEATS[name]
    cheat(random, forgery)
    return Mutant(forgery.content(VENDOR), Path(name))


def feed(random: Random, path: Path, base: Path) -> str:
    """Return what `dmlconf verify` did wrong with a forged certificate, or an empty text."""
    report = path.parent / "report.json"
    done = verify(
        _workplace(), "--key", "vendor.pub.pem", "--report", f"json:{report}", file=str(path)
    )
    end = ENDS.get(done.returncode, f"exit {done.returncode}")
    note = REPORTED.get(str(base), (None, None))[1]
    noted = done.returncode == 0 and note is not None and note in printed_text(done)
    with (path.parent.parent / _TALLY).open("a", encoding="utf-8") as tallies:
        tallies.write(f"{base}\t{NOTED if noted else end}\n")
    if done.returncode not in ENDS or "Traceback" in done.stderr:
        return f"exit {done.returncode}: {done.stderr[-1500:]}"
    if any(character in done.stdout + done.stderr for character in "\x1b\x07\x00\u202e"):
        return f"a control character reaches the terminal: {done.stdout[-1500:]!r}"
    verification = json.loads(report.read_bytes())
    if done.returncode == 0:
        return "" if noted or _same_content(path) else f"accepted: {base}"
    if not verification["findings"]:
        return f"exit {done.returncode} without a finding"
    return ""


def _same_content(path: Path) -> bool:
    forgery, right = taken_apart(path), taken_apart(_right())
    return forgery.members() == right.members() and forgery.statement == right.statement


def tally(folder: Path) -> dict[str, Counter[str]]:
    ends: dict[str, Counter[str]] = {name: Counter() for name in NAMES}
    for line in (folder / _TALLY).read_text("utf-8").splitlines():
        name, end = line.rsplit("\t", 1)
        ends[name][end] += 1
    return ends
