"""Worker processes that build, run and judge cases give the same log as one process.

The tested code is in `dmlconf/engine/parallel.py`, `dmlconf/engine/core.py`,
`dmlconf/workers/pool.py`, `dmlconf/documents/problems.py` and `dmlconf/run_log/log.py`.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path

import pytest

from dmlconf.backends import registry
from dmlconf.backends.protocol import BackendError, Outcome
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.engine.against import AUTO, Expectations, expectations
from dmlconf.engine.parallel import judged_in_processes
from dmlconf.engine.session import open_backend
from dmlconf.run_log.log import RunLog, read_log
from dmlconf.verdicts.verdict import Identity, Judgement, Reason, ReasonKind, Status, Verdict
from dmlconf.workers.execution import Limits
from tests.engine.cases import FIRST_CASE_BUILDS, numbered_cases, plan, write
from tests.engine.runs import Interrupt, logged_run, run_of
from tests.engine.test_against import STALE_DIGEST, write_recording

pytestmark = pytest.mark.breakdown

NUMPY = registry.parse("numpy")


def logged(
    directory: Path,
    planned: Sequence[PlannedCase],
    expected: Expectations | None = None,
    *,
    jobs: int = 2,
    timeout: float = 60,
    most_failures: int | None = None,
    on_verdict: Callable[[Verdict], None] = lambda verdict: None,
) -> RunLog:
    """Run the plan on the reference, by default with `--against auto`, and read its log."""
    run = run_of(
        directory,
        planned,
        limits=Limits(jobs, timeout),
        against=AUTO,
        most_failures=most_failures,
    )
    judge = None
    if expected is not None:
        judge = partial(
            judged_in_processes, backend=NUMPY, expected=expected, limits=run.how.limits
        )
    return logged_run(directory, run, on_verdict, judge)


def without_time(log: RunLog) -> list[Verdict]:
    return [verdict.ran(seconds=0.0) for verdict in log.verdicts]


def test_two_processes_give_the_log_of_one(tmp_path: Path) -> None:
    planned = [*plan(tmp_path), *numbered_cases(tmp_path, 200)]
    alone = logged(tmp_path, planned, jobs=1)
    together = logged(tmp_path, planned)
    assert without_time(together) == without_time(alone)
    assert [verdict.case for verdict in together.verdicts] == [each.identifier for each in planned]
    assert together.complete


def test_worker_beyond_the_memory_limit_is_replaced(
    tmp_path: Path,
) -> None:
    planned = numbered_cases(tmp_path, 200)
    one_byte = Limits(jobs=2, timeout=60, memory=1)
    run = run_of(tmp_path, planned, limits=one_byte, against=AUTO)
    log = logged_run(tmp_path, run)
    assert len({verdict.execution.process for verdict in log.verdicts}) > 2  # Two run at a time.


def test_worker_processes_use_the_recordings_of_the_suite(tmp_path: Path) -> None:
    case = build(plan(tmp_path, "unstated")[0])
    write_recording(tmp_path / "recordings" / "x.dmlrec", case)
    log = logged(tmp_path, plan(tmp_path))
    # Without the recording, the case `unstated` would be unchecked.
    assert [verdict.status for verdict in log.verdicts] == [Status.PASSED] * 4


def test_worker_processes_report_stale_cases_of_a_recording(tmp_path: Path) -> None:
    planned = plan(tmp_path)
    write_recording(tmp_path / "recordings" / "x.dmlrec", build(planned[1]), digest=STALE_DIGEST)
    suite = load_suite([write(tmp_path)])
    backend = open_backend(NUMPY, Limits())
    expected = expectations(AUTO, backend, suite, planned, [tmp_path])
    logged(tmp_path, planned, expected)
    [recording] = expected.recordings
    assert recording.stale == ["tile/mixed/unstated"]


def test_recording_that_workers_cannot_read_is_reported(tmp_path: Path) -> None:
    planned = plan(tmp_path)
    path = write_recording(tmp_path / "recordings" / "x.dmlrec", build(planned[1]))
    suite = load_suite([write(tmp_path)])
    backend = open_backend(NUMPY, Limits())
    expected = expectations(AUTO, backend, suite, planned, [tmp_path])
    path.write_bytes(b"no recording")
    with pytest.raises(BackendError, match=r"x\.dmlrec: not a recording"):
        logged(tmp_path, planned, expected)


class Fatal:
    """Gives no expected outcomes, and at one case kills its process, raises an error or hangs."""

    def __init__(self, fault: str, part: str) -> None:
        self.fault, self.part = fault, part

    def __call__(self, case: Case) -> Outcome | None:
        if self.part in case.identifier:
            if self.fault == "crash":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.fault == "raise":
                raise RuntimeError("a mistake in dmlconf")
            signal.pause()
        return None


UNSTATED = """
operator: TILE
cases:
  - matrix: {Number: "=range(50)"}
    desc:
      InputTensor: {Sizes: [1], DataType: INT32, values: =Number}
      OutputTensor: {Sizes: [2], DataType: INT32}
      Repeats: [2]
"""
"""Cases for which workers ask for the expected outcome."""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(
    ("fault", "kind"), [("crash", ReasonKind.CRASH), ("hang", ReasonKind.HANG)]
)
def test_process_that_crashes_or_hangs_breaks_one_case(
    tmp_path: Path, fault: str, kind: ReasonKind
) -> None:
    planned = list(load_suite([write(tmp_path, UNSTATED)]).plan())
    expected = Expectations("nothing", Fatal(fault, "=40]"))
    log = logged(tmp_path, planned, expected, timeout=2)
    broken = [verdict for verdict in log.verdicts if verdict.status is Status.BROKEN]
    assert [(verdict.case[-4:], verdict.reason and verdict.reason.kind) for verdict in broken] == [
        ("=40]", kind)
    ]
    assert [verdict.case for verdict in log.verdicts] == [each.identifier for each in planned]
    assert log.complete


def test_error_of_dmlconf_in_a_worker_breaks_one_case(tmp_path: Path) -> None:
    planned = list(load_suite([write(tmp_path, UNSTATED)]).plan())
    log = logged(tmp_path, planned, Expectations("nothing", Fatal("raise", "=40]")))
    [broken] = [verdict for verdict in log.verdicts if verdict.status is Status.BROKEN]
    assert broken.case.endswith("=40]")
    assert broken.reason is not None
    assert broken.reason.kind is ReasonKind.JUDGING_ERROR
    assert "a mistake in dmlconf" in broken.reason.message
    assert broken.reason.diagnostics.startswith("Traceback")
    assert log.complete


def test_unbuildable_case_is_reported_as_in_one_process(tmp_path: Path) -> None:
    planned = list(load_suite([write(tmp_path, FIRST_CASE_BUILDS, "late.yaml")]).plan())
    with pytest.raises(InvalidFilesError) as alone:
        logged(tmp_path, planned, jobs=1)
    with pytest.raises(InvalidFilesError) as together:
        logged(tmp_path, planned)
    assert together.value.problems == alone.value.problems
    assert str(together.value) == str(alone.value)
    statuses = [verdict.status for verdict in read_log(tmp_path / "run.jsonl").verdicts]
    assert statuses == [Status.UNCHECKED, Status.NOT_RUN, Status.NOT_RUN]


def test_invalid_files_error_survives_pickling(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidFilesError) as actual:
        load_suite([tmp_path])
    copied = pickle.loads(pickle.dumps(actual.value))
    assert (copied.problems, str(copied)) == (actual.value.problems, str(actual.value))


def test_interrupted_run_has_a_verdict_for_every_case(tmp_path: Path) -> None:
    interrupt = Interrupt(5)
    planned = numbered_cases(tmp_path, 400)
    log = logged(tmp_path, planned, on_verdict=interrupt)
    assert [verdict.case for verdict in log.verdicts] == [each.identifier for each in planned]
    reached = {verdict.case for verdict in interrupt.seen[:5]}
    statuses = {verdict.case: verdict.status for verdict in log.verdicts}
    assert {statuses[case] for case in reached} == {Status.PASSED}
    assert set(statuses.values()) == {Status.PASSED, Status.NOT_RUN}
    assert not log.complete


WRONG_VALUES = Reason(ReasonKind.WRONG_VALUES, "1 of 4 elements of OutputTensor differs")


def out_of_order(
    directory: Path, order: Sequence[int], *, most_failures: int | None = None
) -> tuple[list[str], RunLog]:
    """Run five cases with verdicts in this order, of which case 2 fails, and interrupt the run.

    Returns:
        the numbers of the cases as logged, and the log as read back.
    """
    planned = numbered_cases(directory, 5)

    def verdicts(plan: Sequence[PlannedCase]) -> Generator[Verdict, None, None]:
        for index in order:
            status = Status.FAILED if index == 2 else Status.PASSED
            reason = WRONG_VALUES if status is Status.FAILED else None
            identity = Identity(planned[index].identifier, "TILE", ())
            yield Verdict(identity, Judgement(status, reason=reason))
        raise KeyboardInterrupt

    path = directory / "run.jsonl"
    logged_run(directory, run_of(directory, planned, most_failures=most_failures), judge=verdicts)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    log = read_log(path)
    assert [verdict.case for verdict in log.verdicts] == [each.identifier for each in planned]
    return [line["case"][-2] for line in lines if line["record"] == "verdict"], log


def test_log_is_written_as_reached_and_read_as_planned(
    tmp_path: Path,
) -> None:
    written, log = out_of_order(tmp_path, [3, 2, 0])
    assert written == ["3", "2", "0", "1", "4"]
    assert [verdict.status for verdict in log.verdicts] == [
        "passed",
        "not run",
        "failed",
        "passed",
        "not run",
    ]


def test_run_stops_at_a_failure_that_comes_early(
    tmp_path: Path,
) -> None:
    written, log = out_of_order(tmp_path, [3, 2, 0, 1], most_failures=1)
    assert written[:2] == ["3", "2"]
    assert [verdict.status for verdict in log.verdicts] == [
        "not run",
        "not run",
        "failed",
        "passed",
        "not run",
    ]
