"""A run yields its events in order, and loses no verdict if a consumer of events raises.

The tested code is in `dmlconf/engine/events.py`, `dmlconf/engine/core.py`,
`dmlconf/engine/consumers.py` and `docs/plugin-api.md`.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from dmlconf.backends.process_start import INTERRUPTS
from dmlconf.backends.protocol import Outputs
from dmlconf.engine import core
from dmlconf.engine.consumers import LogKeeper, logging_to, run_through, run_to_end
from dmlconf.engine.core import Engine
from dmlconf.engine.events import Event, Executed, Finished, Interrupted, Judged, Opened
from dmlconf.run_log.log import LogWriter, RunLog, read_log, verdict_data
from dmlconf.verdicts.verdict import ReasonKind, Status
from dmlconf.workers.interrupts import treat_termination_as_interrupt
from tests.cli.process import write as write_file
from tests.engine.cases import numbered_cases, plan
from tests.engine.runs import run_of
from tests.reports.logs import everything, run_log, text_of, write

HELPER_PROCESS = re.compile(r"multiprocessing\.(resource_tracker|forkserver) import main")
"""Matches command lines of Python's helper processes, which outlive an engine."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plugin-api.md"


def test_run_yields_opened_then_verdicts_then_finished(tmp_path: Path) -> None:
    planned = plan(tmp_path)
    with Engine(run_of(tmp_path, planned)) as engine:
        events = list(engine.execute())
    assert [type(event) for event in events] == [Opened, *[Judged] * len(planned), Finished]
    [opened, *judged, finished] = events
    assert isinstance(opened, Opened)
    assert opened.total == len(planned)
    assert [each.place for each in judged if isinstance(each, Judged)] == [0, 1, 2, 3]
    assert isinstance(finished, Finished)
    assert finished.footer.complete


def test_stopped_run_has_a_verdict_for_every_case(tmp_path: Path) -> None:
    planned = numbered_cases(tmp_path, 6)
    events: list[Event] = []
    with Engine(run_of(tmp_path, planned)) as engine:
        for event in engine.execute():
            events.append(event)
            if len(events) == 3:
                engine.stop()
    judged = [event.verdict for event in events if isinstance(event, Judged)]
    # It stopped after Opened and two of the six verdicts.
    assert [each.status for each in judged].count(Status.NOT_RUN) == 4
    assert len(judged) == 6
    assert Interrupted(ReasonKind.INTERRUPTED) in events
    assert isinstance(events[-1], Finished)
    assert not events[-1].footer.complete


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let this process treat signals as the command line does."""
    handlers = {number: signal.getsignal(number) for number in INTERRUPTS}
    treat_termination_as_interrupt()
    yield
    treat_termination_as_interrupt()  # Forget the interrupt.
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("moment", ["header", "preparation"])
@pytest.mark.usefixtures("interruptible")
def test_interrupt_before_the_first_case_ends_the_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    planned = numbered_cases(tmp_path, 6)

    class Interrupting(core._State):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            signal.raise_signal(signal.SIGINT)

    if moment == "preparation":
        monkeypatch.setattr(core, "_State", Interrupting)
    events: list[Event] = []
    with Engine(run_of(tmp_path, planned)) as engine:
        for event in engine.execute():
            events.append(event)
            if moment == "header" and isinstance(event, Opened):
                signal.raise_signal(signal.SIGINT)
    assert [type(event) for event in events] == [Opened, Interrupted, *[Judged] * 6, Finished]
    judged = [event.verdict for event in events if isinstance(event, Judged)]
    assert {each.status for each in judged} == {Status.NOT_RUN}


def test_unjudged_run_yields_outcomes_of_cases_not_left_out(
    tmp_path: Path,
) -> None:
    planned = numbered_cases(tmp_path, 6)
    run = replace(run_of(tmp_path, planned), judged=False)
    with Engine(run) as engine:
        engine.leave_out({planned[1].identifier})
        events = list(engine.execute())
    [opened, *executed, finished] = events
    assert isinstance(opened, Opened)
    assert opened.total == 5
    assert [each.case.identifier for each in executed if isinstance(each, Executed)] == [
        each.identifier for number, each in enumerate(planned) if number != 1
    ]
    assert all(
        isinstance(each, Executed) and isinstance(each.outcome, Outputs) for each in executed
    )
    assert isinstance(finished, Finished)
    assert finished.footer.complete


def test_stopped_unjudged_run_raises_keyboard_interrupt(tmp_path: Path) -> None:
    planned = numbered_cases(tmp_path, 6)
    reached: list[Event] = []
    with Engine(replace(run_of(tmp_path, planned), judged=False)) as engine:

        def consume(event: Event) -> None:
            reached.append(event)
            if len(reached) == 3:
                engine.stop()

        with pytest.raises(KeyboardInterrupt):
            run_to_end(engine, consume)
    kinds = [Opened, Executed, Executed, Interrupted, Finished]
    assert [type(event) for event in reached] == kinds
    assert isinstance(reached[-1], Finished)
    assert reached[-1].footer.summary["not run"] == 4


def test_closing_the_events_closes_the_backend(tmp_path: Path) -> None:
    with Engine(run_of(tmp_path, numbered_cases(tmp_path, 6), "faulty:slow,seconds=300")) as engine:
        events = engine.execute()
        assert isinstance(next(events), Opened)
        here = psutil.Process()
        helpers = [each for each in here.children() if HELPER_PROCESS.search(str(each.cmdline()))]
        children = [each for each in here.children(recursive=True) if each not in helpers]
        assert children
        events.close()
    _, alive = psutil.wait_procs(children, timeout=100)
    assert not alive


def test_no_verdict_is_lost_if_a_consumer_raises(tmp_path: Path) -> None:
    planned = numbered_cases(tmp_path, 6)
    log = tmp_path / "run.jsonl"
    seen: list[Event] = []

    def breaks(event: Event) -> None:
        if isinstance(event, Judged):
            raise ZeroDivisionError("a broken display")

    with (
        Engine(run_of(tmp_path, planned)) as engine,
        log.open("w", encoding="utf-8") as stream,
        pytest.raises(ZeroDivisionError, match="a broken display"),
    ):
        run_through(engine, logging_to(LogWriter(stream)), [breaks, seen.append])
    written = read_log(log)
    assert written.complete
    assert len(written.verdicts) == 6
    assert len([event for event in seen if isinstance(event, Judged)]) == 6


@pytest.mark.parametrize(
    "limits",  # Verdicts of larger runs are packed, or kept in columns.
    [(10_000, 10_000), (0, 10_000), (0, 0)],
    ids=["as they are", "packed", "in columns"],
)
def test_log_in_memory_equals_log_in_a_file(tmp_path: Path, limits: tuple[int, int]) -> None:
    every = everything().verdicts
    verdicts = [
        each.of_case(case=f"case/{n}/{each.case}").ran(seconds=n / 7, sequence=n or None)
        for n in range(80)
        for each in every
    ]
    written = run_log(*verdicts, options={"tags": ("a", "b")})
    keeper = LogKeeper(*limits)
    keeper(Opened(written.header, len(verdicts)))
    # Verdicts from worker processes do not follow the order of the plan.
    places = sorted(range(len(verdicts)), key=lambda place: place % 7)
    for place in places:
        keeper(Judged(verdicts[place], place))
    assert written.footer is not None
    keeper(Finished(written.footer))
    kept = keeper.take_log()
    assert kept is not None
    read = read_log(write(tmp_path / "run.jsonl", written))
    assert (kept.header, kept.footer) == (read.header, read.footer)
    assert text_of(kept) == text_of(read)
    assert [each.execution for each in kept.verdicts] == [each.execution for each in read.verdicts]
    assert [verdict_data(each) for each in kept.verdicts[5:90:7]] == [
        verdict_data(each) for each in read.verdicts[5:90:7]
    ]
    assert verdict_data(kept.verdicts[-1]) == verdict_data(read.verdicts[-1])


def kept_log(names: Sequence[str]) -> RunLog:
    """Return a log in columns, of passing cases with these names."""
    written = everything()
    passed = next(each for each in written.verdicts if each.status is Status.PASSED)
    keeper = LogKeeper(0, 0)
    keeper(Opened(replace(written.header, selected=len(names)), len(names)))
    for place, name in enumerate(names):
        keeper(Judged(passed.of_case(case=name).ran(seconds=place / 7), place))
    kept = keeper.take_log()
    assert kept is not None
    return kept


@pytest.mark.slow
def test_verdict_in_columns_takes_less_than_150_bytes() -> None:
    names = [f"tile/large[Number={number}]" for number in range(2000)]
    kept_log(names)  # Fills the caches that all logs share.
    tracemalloc.start()
    kept = kept_log(names)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [each.case for each in kept.verdicts] == names
    assert taken < 150 * len(names)


def test_log_of_a_resumed_run_is_not_kept() -> None:
    written = everything()
    keeper = LogKeeper()
    keeper(Opened(written.header, 1, resumed=True))
    keeper(Judged(written.verdicts[0], 0))
    assert keeper.take_log() is None


@pytest.mark.slow
def test_script_in_docs_plugin_api_runs(tmp_path: Path) -> None:
    [code, *_] = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert '"directml"' in code
    code = code.replace('"directml"', '"faulty:zeros"')
    write_file(tmp_path, code, "script.py")
    folder = tmp_path / "cases"
    folder.mkdir()
    # GEMM gives 9, and `faulty:zeros` gives 0.
    suite = "operator: GEMM\ncases:\n  - name: one\n    desc:\n"
    tensor = "{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [3]}"
    suite += f"      ATensor: {tensor}\n      BTensor: {tensor}\n"
    suite += "      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}\n"
    suite += "      TransA: NONE\n      TransB: NONE\n      Alpha: 1.0\n      Beta: 0.0\n"
    write_file(folder, suite, "own.yaml")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "gemm/own/one 1 of 1 element of OutputTensor differs\n", done.stdout
