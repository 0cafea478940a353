"""Kill, stop or cut off a process of a run on a scheduler, and check what the run leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from dmlconf.run_log.log import InvalidLogError, read_log
from tests.cli.process import DMLCONF, environment, whole_lines, write
from tests.fleet.lab_backend import install
from tests.fleet.machines import Machines
from tests.fleet.suites import MATRIX, untimed

__all__ = ["KILLED", "SILENT", "Fault", "Laboratory"]

KILLED: Final = ("main", "worker", "nanny", "scheduler")

SILENT: Final = ("hung-worker", "cut-off-worker", "hung-scheduler")
"""Processes that SIGSTOP stops, or whose network is cut."""

_ENDING: Final = {
    "main": (-signal.SIGKILL,),
    "scheduler": (1, 4, 6),
    "hung-scheduler": (1, 4, 6),
}
"""Victims without which the run ends, with the exit codes that it may have then."""

_BEHIND_NETWORK: Final = "lab-1"

_CASES: Final = 81
"""Each takes 50 ms, so two workers need two seconds."""

_START_SECONDS: Final = 4.0

_RUN_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Fault:
    """The end of a run, such as `worker in its log, exit 1`, and the promises that it broke."""

    end: str
    problems: tuple[str, ...]


class Laboratory:
    """A scheduler and two workers, restarted if a fault has ended them."""

    def __init__(self, folder: Path, victim: str) -> None:
        self._folder = folder
        self._victim = victim
        self._plugins = folder / "plugins"
        install(self._plugins)
        write(folder, MATRIX.replace("[0, 1, 2]", f'"=range({_CASES - 1})"'))
        self._machines: Machines | None = None
        self._starts = 0
        done = self._run("--log", "reference.jsonl")
        assert done.returncode == 1, done.stderr

    def close(self) -> None:
        if self._machines is not None:
            self._machines.__exit__(None, None, None)
            self._machines = None

    def fault(self, seed: int) -> Fault:
        """Harm a run at a random moment, and check what is left."""
        victim = self._victim
        random = Random(f"{victim}:{seed}")
        early = random.random() < 0.25
        moment = random.uniform(0, _START_SECONDS if early else _RUN_SECONDS)
        machines = self._lab()
        log = self._folder / "run.jsonl"
        log.unlink(missing_ok=True)
        options = ("--scheduler", machines.address, "--log", "run.jsonl")
        process = subprocess.Popen(
            [*DMLCONF, "run", "tile.yaml", "-b", "lab", *options],
            cwd=self._folder,
            env=self._environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        while not early and not whole_lines(log) and process.poll() is None:
            time.sleep(0.02)
        time.sleep(moment)
        before = whole_lines(log)
        over = process.poll() is not None
        undo = _nothing if over else self._harm(process, random)
        try:
            _, errors = process.communicate(timeout=180)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.close()
            return Fault(f"{victim}, hang", (f"{victim}, seed {seed}: the run hangs",))
        undo()
        code = process.returncode
        problems = list(self._problems(code, before, errors, over=over))
        if victim in ("nanny", "scheduler", "hung-scheduler"):
            self.close()
        when = "after its end" if over else ("before its log" if not before else "in its log")
        since = "the start" if early else "the log's first line"
        heading = f"{victim}, seed {seed}, {since} + {moment:.3f} s, exit {code}"
        return Fault(f"{victim} {when}, exit {code}", tuple(f"{heading}: {p}" for p in problems))

    def _harm(self, process: subprocess.Popen[str], random: Random) -> Callable[[], None]:
        """Kill or silence the victim; return a function that lets a silent one continue."""
        machines = self._lab()
        name = random.choice(list(machines.nannies))
        if self._victim == "cut-off-worker":
            machines.cut_off(_BEHIND_NETWORK)
            return lambda: machines.reconnect(_BEHIND_NETWORK)
        target = {
            "main": process.pid,
            "worker": machines.worker_process(name),
            "nanny": machines.nannies[name].pid,
            "scheduler": machines.scheduler.pid,
        }[self._victim.removeprefix("hung-")]
        if target is None:
            return _nothing
        with suppress(ProcessLookupError):
            os.kill(target, signal.SIGKILL if self._victim in KILLED else signal.SIGSTOP)
        return _nothing if self._victim in KILLED else lambda: os.kill(target, signal.SIGCONT)

    def _problems(
        self, code: int, before: list[bytes], errors: str, *, over: bool
    ) -> Iterator[str]:
        """Yield the promises that the run broke; resume a log that has begun and is incomplete."""
        log = self._folder / "run.jsonl"
        expected = _ENDING.get(self._victim, (1,))
        if code not in ((1,) if over else expected):
            yield f"exit {code}: {errors[-300:]}"
        if "Traceback" in errors:
            yield f"a traceback: {errors[-1500:]}"
        after = whole_lines(log)
        if after[: len(before)] != before:
            yield "lines of the log were lost or changed"
        if code == 4 and after:
            yield "exit 4 though the log has begun"
        complete = b'"complete":true' in after[-1] if after else False
        if self._victim not in _ENDING and not complete:
            yield "the run is not complete"
        if not after or complete:
            resumed = after
        else:
            reached = [line for line in after if b'"not run"' not in line]
            done = self._run("--resume", "run.jsonl")
            resumed = whole_lines(log)
            if done.returncode != 1:  # One case fails.
                yield f"resumed with exit {done.returncode}: {done.stderr[-300:]}"
            if resumed[: len(reached)] != reached:
                yield "verdicts were lost or changed by resuming"
        if resumed:
            yield from self._unlike_reference(log)

    def _unlike_reference(self, log: Path) -> Iterator[str]:
        try:
            verdicts = read_log(log).verdicts
        except InvalidLogError as error:
            yield f"the log cannot be read: {error}"
            return
        if len(verdicts) != _CASES:
            yield f"{len(verdicts)} verdicts of {_CASES}"
        if untimed(log) != untimed(self._folder / "reference.jsonl"):
            yield "the log differs from that of a run without a scheduler"

    def _lab(self) -> Machines:
        if self._machines is None:
            self._starts += 1
            folder = self._folder / f"lab-{self._starts}"
            folder.mkdir()
            variables = {"PYTHONPATH": self._environment()["PYTHONPATH"]}
            self._machines = Machines(folder, cwd=self._folder, **variables)
            for name in ("lab-1", "lab-2"):
                if self._victim == "cut-off-worker" and name == _BEHIND_NETWORK:
                    self._machines.worker_behind_network(name)
                else:
                    self._machines.worker(name)
            self._machines.wait()
        return self._machines

    def _environment(self) -> dict[str, str]:
        inherited = environment(self._folder)
        path = os.pathsep.join((str(self._plugins), inherited["PYTHONPATH"]))
        return {**inherited, "PYTHONPATH": path}

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*DMLCONF, "run", "tile.yaml", "-b", "lab", "-q", "-j", "2", *arguments],
            cwd=self._folder,
            env=self._environment(),
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )


def _nothing() -> None: ...
