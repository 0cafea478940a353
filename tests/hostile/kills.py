"""Kill a run or one of its workers at a random moment, and check what must hold afterwards.

The backend `tests.engine.witness` writes down each case whose outcome it has handed over.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from dmlconf.run_log.log import InvalidLogError, read_log
from dmlconf.verdicts.verdict import Status, Verdict
from dmlconf.workers.pool import BATCH
from tests.cli.process import DMLCONF, environment, heed_interrupts, whole_lines
from tests.engine import witness
from tests.workers.processes import running

__all__ = ["VICTIMS", "Kill", "kill"]

VICTIMS: Final = {
    "main by SIGKILL": ("main", signal.SIGKILL),
    "main by SIGTERM": ("main", signal.SIGTERM),
    "main by SIGINT": ("main", signal.SIGINT),
    "group by SIGTERM": ("group", signal.SIGTERM),
    "worker by SIGKILL": ("worker", signal.SIGKILL),
    "worker by SIGTERM": ("worker", signal.SIGTERM),
}
_WORKERS: Final = 2
"""If one worker is killed, another is left."""
_CASES: Final = 192
"""Several batches for each worker."""
_START_SECONDS: Final = 2.0
"""A fifth of the kills come within this time of the start."""
_RUN_SECONDS: Final = 1.5
"""The other kills come within this time of the first line of the log."""

_MOST_LOST: Final = BATCH * (_WORKERS + 1)
"""SIGKILL may cost a batch of each worker, and a batch just read from a pipe."""

_CASE: Final = f"""
operator: TILE
cases:
  - name: quick
    note: Every fiftieth case takes 0.3 seconds.
    matrix: {{Number: "=range({_CASES})"}}
    desc:
      InputTensor:
        {{Sizes: [4000], DataType: FLOAT32, fill: {{uniform: {{low: -1, high: 1, seed: =Number}}}}}}
      OutputTensor: {{Sizes: [8000], DataType: FLOAT32}}
      Repeats: [2]
"""


@dataclass(frozen=True, slots=True)
class Kill:
    """How a killed run ended, and which promises it broke."""

    end: str
    problems: tuple[str, ...]


def kill(seed: int, folder: Path) -> Kill:
    """Start a run in a new folder, kill the victim of a seed, and check what is left."""
    random = Random(seed)
    victim_kind, number = VICTIMS[list(VICTIMS)[seed % len(VICTIMS)]]
    early = random.random() < 0.2
    moment = random.uniform(0, _START_SECONDS if early else _RUN_SECONDS)
    temporary = folder / "temporary"
    temporary.mkdir(parents=True)
    log, notes, plugins = (folder / name for name in ("run.jsonl", "notes", "plugins"))
    witness.install(plugins)
    (folder / "quick.yaml").write_text(_CASE, encoding="utf-8")
    own = environment(folder, TMPDIR=str(temporary), OPENBLAS_NUM_THREADS="1")
    own |= {
        witness.FILE: str(notes),
        "PYTHONPATH": os.pathsep.join((str(plugins), own["PYTHONPATH"])),
    }
    arguments = ("run", "quick.yaml", "-b", "witness", "-j", str(_WORKERS), "--log", "run.jsonl")
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [*DMLCONF, *arguments],
            cwd=folder,
            env=own,
            stdout=out,
            stderr=err,
            start_new_session=True,
            preexec_fn=heed_interrupts,
        )
    while not early and not whole_lines(log) and process.poll() is None:
        time.sleep(0.01)
    time.sleep(moment)
    victims = _workers(process.pid) if victim_kind == "worker" else [process.pid]
    victim = random.choice(victims) if victims else None
    before = whole_lines(log)
    handed_over = set(notes.read_text("utf-8").split()) if notes.exists() else set()
    if victim is None or process.poll() is not None or not _signalled(victim, victim_kind, number):
        victim = None
    try:
        code = process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return Kill(f"{victim_kind} hang", (f"after {moment:.3f} s: the run hangs",))
    problems = list(_problems(folder, process.pid, code, before))
    if victim_kind == "worker" or victim is None:
        problems += _problems_of_a_whole_run(folder, code, killed=victim is not None)
    elif number != signal.SIGKILL:
        problems += _problems_of_an_interrupted_run(folder, code)
    lost = handed_over - _judged(log) if whole_lines(log) else set()
    if len(lost) > (_MOST_LOST if code == -signal.SIGKILL else 0):
        problems.append(f"{len(lost)} outcomes have no verdict: {sorted(lost)[:3]}")
    name = f"{victim_kind} by {number.name}" if victim is not None else "nobody"
    since = "the start" if early else "the first line of the log"
    heading = f"seed {seed}, {name} at {since} + {moment:.3f} s, exit {code}"
    when = "" if before else " before its log"
    return Kill(f"{name}{when}, exit {code}", tuple(f"{heading}: {p}" for p in problems))


def _signalled(victim: int, kind: str, number: signal.Signals) -> bool:
    """Send a signal, and return whether the victim was still there."""
    try:
        (os.killpg if kind == "group" else os.kill)(victim, number)
    except ProcessLookupError:
        return False
    return True


def _judged(log: Path) -> set[str]:
    records = map(_record, whole_lines(log))
    return {
        record["case"].replace(" ", "")
        for record in records
        if record["record"] == "verdict" and record["status"] != Status.NOT_RUN
    }


def _problems(folder: Path, session: int, code: int, before: list[bytes]) -> Iterator[str]:
    """Yield what is wrong with any run."""
    deadline = time.monotonic() + 60
    while left := [pid for pid in _session(session) if running(pid)]:
        if time.monotonic() > deadline:
            yield f"processes outlive the run: {left}"
            break
        time.sleep(0.05)
    log = folder / "run.jsonl"
    lines = whole_lines(log)
    if lines[: len(before)] != before:
        yield "lines of the log were lost or changed"
    cases = Counter(record["case"] for record in map(_record, lines) if "case" in record)
    if doubled := [case for case, count in cases.items() if count > 1]:
        yield f"logged twice: {doubled}"
    if lines:
        try:
            verdicts = read_log(log).verdicts
        except InvalidLogError as error:
            yield f"the log cannot be read: {error}"
        else:
            if len(verdicts) != len(cases):
                yield f"the log has {len(cases)} verdicts, of which {len(verdicts)} are read"
            allowed = {Status.PASSED, Status.NOT_RUN, Status.BROKEN}
            yield from (f"{v.case} is {v.status}" for v in verdicts if v.status not in allowed)
    traceback = b"Traceback" in (folder / "err").read_bytes()
    if traceback and code != -signal.SIGKILL and not _was_starting(folder, code):
        # After SIGKILL of the parent, Python prints a traceback in a worker that is starting.
        yield f"a traceback: {(folder / 'err').read_text('utf-8')[-2000:]}"
    _start_again(folder)
    if rest := sorted(path.name for path in (folder / "temporary").iterdir()):
        yield f"the next start leaves {rest}"


def _problems_of_a_whole_run(folder: Path, code: int, *, killed: bool) -> Iterator[str]:
    """Yield what is wrong with a run whose main process survived."""
    if code == 4 and killed and not whole_lines(folder / "run.jsonl"):
        return  # The first worker died before the run began, so the backend cannot be used.
    if code not in (0, 1):
        yield f"exit {code}: {(folder / 'err').read_text('utf-8')[-500:]}"
        return
    log = read_log(folder / "run.jsonl")
    if not log.complete or len(log.verdicts) != _CASES:
        yield f"{len(log.verdicts)} of {_CASES} verdicts, complete: {log.complete}"
    broken = [verdict for verdict in log.verdicts if verdict.status is Status.BROKEN]
    if len(broken) > killed:
        yield f"broken: {[_described(verdict) for verdict in broken]}"
    if code != bool(broken):
        yield f"exit {code} with {len(broken)} broken"


def _was_starting(folder: Path, code: int) -> bool:
    """Return whether Python ended by SIGINT before dmlconf ran; it prints a traceback then."""
    errors = (folder / "err").read_bytes()
    ran = b"in _code_of" in errors or whole_lines(folder / "run.jsonl")
    return code in (1, -signal.SIGINT) and b"KeyboardInterrupt" in errors and not ran


def _problems_of_an_interrupted_run(folder: Path, code: int) -> Iterator[str]:
    """Yield what is wrong with a run whose main process was asked to end."""
    log = folder / "run.jsonl"
    died = code in (-signal.SIGTERM, -signal.SIGINT)
    if code not in (0, 6, 8) and not died and not _was_starting(folder, code):
        yield f"exit {code}"
    if died and whole_lines(log):
        yield "the run died of the signal after its log had begun"
    if code == 6 and whole_lines(log) and read_log(log).complete:
        yield "exit 6 after a complete log"
    if code in (0, 6, 8) and whole_lines(log) and read_log(log).footer is None:
        yield "the log lacks its footer"


def _described(verdict: Verdict) -> str:
    return f"{verdict.case}: {verdict.reason.message if verdict.reason else ''}"


def _start_again(folder: Path) -> None:
    """Remove what dead runs left behind, as a run does when it starts."""
    code = "from dmlconf.workers.scratch import ScratchFolder\nwith ScratchFolder(): pass"
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        check=True,
        timeout=60,
        env=environment(folder, TMPDIR=str(folder / "temporary")),
    )


def _record(line: bytes) -> dict[str, str]:
    record: dict[str, str] = json.loads(line)
    return record


def _workers(parent: int) -> list[int]:
    try:
        listed = Path(f"/proc/{parent}/task/{parent}/children").read_text("utf-8").split()
        return [int(pid) for pid in listed if b"spawn_main" in _command(pid)]
    except FileNotFoundError:
        return []


def _command(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _session(session: int) -> list[int]:
    members = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session:
            members.append(int(folder.name))
    return members
