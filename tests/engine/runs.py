"""Make runs, execute them, and read their logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from dmlconf.backends import registry
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.engine.consumers import logging_to, run_through
from dmlconf.engine.core import Engine
from dmlconf.engine.events import Event, Judged
from dmlconf.engine.run import How, Run
from dmlconf.engine.shards import selected
from dmlconf.engine.target import JudgePlan, local_target
from dmlconf.run_log.log import LogWriter, RunLog, read_log
from dmlconf.verdicts.verdict import Verdict
from dmlconf.workers.execution import Limits
from tests.engine.cases import write

__all__ = ["Interrupt", "logged_run", "run_of"]


class Interrupt:
    """Receives verdicts, and at one of them raises KeyboardInterrupt, as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.seen: list[Verdict] = []

    def __call__(self, verdict: Verdict) -> None:
        self.seen.append(verdict)
        if len(self.seen) == self.number:
            raise KeyboardInterrupt


def run_of(
    directory: Path,
    planned: Sequence[PlannedCase],
    backend: str = "numpy",
    limits: Limits = Limits(),  # noqa: B008  # It is frozen.
    *,
    against: str = "numpy",
    most_failures: int | None = None,
) -> Run:
    """Return a run of these cases; its suite is TILE of tests/engine/cases.py."""
    return Run(
        suite=load_suite([write(directory)]),
        paths=("cases",),
        suite_paths=(directory,),
        plan=planned,
        chosen=selected(planned),
        how=How(registry.parse(backend), limits),
        against=against,
        most_failures=most_failures,
    )


def logged_run(
    directory: Path,
    run: Run,
    on_verdict: Callable[[Verdict], None] = lambda verdict: None,
    judge: JudgePlan | None = None,
) -> RunLog:
    """Execute a run, by default on its backend, and return its log as read back."""
    path = directory / "run.jsonl"

    def consume(event: Event) -> None:
        if isinstance(event, Judged):
            on_verdict(event.verdict)

    target = local_target(run.how)
    if judge is not None:
        target = replace(target, judge=lambda expected, waivers: judge)
    with Engine(run, target) as engine, path.open("w", encoding="utf-8") as stream:
        run_through(engine, logging_to(LogWriter(stream)), [consume])
    return read_log(path)
