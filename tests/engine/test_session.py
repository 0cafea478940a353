"""Every planned case of a run gets one verdict in its log; a file that is no log is refused.

The tested code is in `dmlconf/engine/session.py`, `dmlconf/engine/core.py`,
`dmlconf/run_log/lines.py`, `dmlconf/run_log/log.py` and `dmlconf/documents/files.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from dmlconf.backends import registry
from dmlconf.backends.numpy.backend import NumpyBackend
from dmlconf.backends.protocol import Capabilities, Outcome, Outputs
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.documents.schema import bundled_schema
from dmlconf.engine.session import in_process, judged, open_backend, reference
from dmlconf.judging.judge import Recorded
from dmlconf.run_log.log import InvalidLogError, RunLog, read_log
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from dmlconf.workers.execution import Limits
from tests.engine.cases import FIRST_CASE_BUILDS, numbered_cases, plan, write
from tests.engine.runs import Interrupt, logged_run, run_of


def run_and_read_log(
    directory: Path,
    planned: list[PlannedCase],
    backend: str = "numpy",
    limits: Limits = Limits(),  # noqa: B008  # It is frozen.
    on_verdict: Callable[[Verdict], None] = lambda verdict: None,
    *,
    most_failures: int | None = None,
) -> RunLog:
    run = run_of(directory, planned, backend, limits, most_failures=most_failures)
    return logged_run(directory, run, on_verdict)


def statuses(log: RunLog) -> list[str]:
    """Return each case's name and status, such as `stated: passed`."""
    return [f"{verdict.case.split('/')[-1]}: {verdict.status}" for verdict in log.verdicts]


def test_reference_is_never_judged_by_itself(tmp_path: Path) -> None:
    log = run_and_read_log(tmp_path, plan(tmp_path))
    assert statuses(log) == [
        "stated: passed",
        "unstated: unchecked",
        "invalid: passed",
        "undocumented: passed",
    ]
    assert log.complete


def test_reference_in_workers_is_never_judged_by_itself(tmp_path: Path) -> None:
    log = run_and_read_log(tmp_path, plan(tmp_path), limits=Limits(jobs=2))
    assert "unstated: unchecked" in statuses(log)


@pytest.mark.slow
def test_log_numbers_processes_and_their_cases(
    tmp_path: Path,
) -> None:
    in_workers = run_and_read_log(tmp_path, plan(tmp_path), "faulty:crash,on=unstated")
    ran = {
        each.case.split("/")[-1]: (each.execution.process, each.execution.sequence)
        for each in in_workers.verdicts
    }
    processes = [process or 0 for process, _ in ran.values()]
    assert min(processes) >= 1
    assert len(set(processes)) > 1  # The crash ended one process.
    for process in {*processes}:
        numbers = [sequence for each, sequence in ran.values() if each == process]
        assert sorted(map(int, filter(None, numbers))) == [*range(1, len(numbers) + 1)]
    here = run_and_read_log(tmp_path, plan(tmp_path))
    assert {(each.execution.process, each.execution.sequence) for each in here.verdicts} == {
        (None, None)
    }


def test_backend_that_returns_zeros_fails_every_case(tmp_path: Path) -> None:
    log = run_and_read_log(tmp_path, plan(tmp_path), "faulty:zeros")
    assert {verdict.status for verdict in log.verdicts} == {Status.FAILED}


def test_case_above_the_level_of_a_backend_is_unsupported(tmp_path: Path) -> None:
    log = run_and_read_log(tmp_path, plan(tmp_path, "stated"), "faulty:first-level")
    assert statuses(log) == ["stated: unsupported"]
    assert log.complete


@pytest.mark.parametrize("backend", ["numpy", "faulty:first-level"])
def test_reached_case_has_feature_level_and_facts(tmp_path: Path, backend: str) -> None:
    [verdict] = run_and_read_log(tmp_path, plan(tmp_path, "stated"), backend).verdicts
    assert verdict.identity.feature_level == "3_1"
    assert verdict.facts["InputTensor"].startswith("FLOAT32")


def test_unreached_case_has_no_feature_level(tmp_path: Path) -> None:
    log = run_and_read_log(tmp_path, plan(tmp_path), "faulty:zeros", most_failures=1)
    levels = {verdict.status: verdict.identity.feature_level for verdict in log.verdicts}
    assert levels == {Status.FAILED: "3_1", Status.NOT_RUN: None}


def test_judging_error_breaks_only_its_case(tmp_path: Path) -> None:
    planned = plan(tmp_path)
    name = registry.parse("faulty:zeros")
    known = reference("numpy", name)

    def against(case: Case) -> Outcome | Recorded | None:
        if case.identifier == planned[1].identifier:
            raise ZeroDivisionError("a fault of the reference")
        return known(case)

    ready = open_backend(name, Limits())
    try:
        verdicts = {each.case: each for each in judged(planned, ready, against)}
    finally:
        ready.close()
    assert verdicts.keys() == {each.identifier for each in planned}
    broken = verdicts.pop(planned[1].identifier)
    assert broken.status is Status.BROKEN
    assert broken.reason is not None
    assert broken.reason.kind is ReasonKind.JUDGING_ERROR
    assert "a fault of the reference" in broken.reason.message
    assert "Traceback" in broken.reason.diagnostics
    assert {each.status for each in verdicts.values()} == {Status.FAILED}


def test_run_stopped_at_first_failure_leaves_rest_not_run(tmp_path: Path) -> None:
    log = run_and_read_log(tmp_path, plan(tmp_path), "faulty:zeros", most_failures=1)
    assert [verdict.status for verdict in log.verdicts].count(Status.FAILED) == 1
    rest = [verdict for verdict in log.verdicts if verdict.status is Status.NOT_RUN]
    assert len(rest) == 3
    assert {v.reason.kind for v in rest if v.reason} == {ReasonKind.STOPPED_AT_FIRST_FAILURE}
    assert not log.complete


def test_interrupted_run_has_a_verdict_for_every_case(tmp_path: Path) -> None:
    interrupt = Interrupt(5)
    log = run_and_read_log(tmp_path, numbered_cases(tmp_path, 20), on_verdict=interrupt)
    assert [verdict.status for verdict in log.verdicts].count(Status.PASSED) == 5
    assert [verdict.status for verdict in log.verdicts].count(Status.NOT_RUN) == 15
    assert not log.complete


def test_unbuildable_case_leaves_a_readable_log(tmp_path: Path) -> None:
    planned = list(load_suite([write(tmp_path, FIRST_CASE_BUILDS, "late.yaml")]).plan())
    with pytest.raises(InvalidFilesError, match=r"1 value is given where Sizes \{2\} ask for 2"):
        run_and_read_log(tmp_path, planned)
    log = read_log(tmp_path / "run.jsonl")
    assert [verdict.status for verdict in log.verdicts] == [
        Status.UNCHECKED,
        Status.NOT_RUN,
        Status.NOT_RUN,
    ]


def test_lines_of_a_log_fit_the_schema(tmp_path: Path) -> None:
    run_and_read_log(tmp_path, plan(tmp_path), "faulty:zeros")
    checker = jsonschema.Draft202012Validator(bundled_schema("run-log"))
    lines = (tmp_path / "run.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 6  # A header, four verdicts and a footer.
    for line in lines:
        checker.validate(json.loads(line))


def test_log_cut_within_a_line_keeps_earlier_verdicts(tmp_path: Path) -> None:
    run_and_read_log(tmp_path, plan(tmp_path))
    path = tmp_path / "run.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    # The header, two verdicts, and part of the third.
    path.write_text("".join(lines[:3]) + lines[3][:20], encoding="utf-8")
    log = read_log(path)
    assert len(log.verdicts) == 2
    assert not log.complete


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("{}\n", "its first line is not a header"),
        ('{"record": "header", "format": 99}\n', "this dmlconf reads format 1"),
        ("not json\n", "not JSON"),
        ("[1]\n", "its first line is not a header"),
        (
            '{"record": "header", "format": 1}\n',
            "not a record of a run log: '.*' is a ",
        ),
        ("[" * 99_999 + "\n", "not JSON"),
        ("x" * (1 << 24) + "y\n", "a line of more than 16,777,216 bytes"),
    ],
)
def test_file_that_is_no_log_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidLogError, match=message):
        read_log(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"seconds":', '"seconds":null,"x":', "`seconds`|unexpected"),
        ('"status":"passed"', '"status":"excellent"', "`status`: 'excellent' is not one of"),
        ('"tags":[', '"tags":[1,', r"`tags\[0\]`: 1 is not of type 'string'"),
        ('"place":1', '"place":"1"', "`place`: '1' is not of type 'integer'"),
        ('"record":"verdict"', '"record":"verdicts"', "not a record of a run log"),
    ],
)
def test_log_line_that_breaks_the_schema_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    run_and_read_log(tmp_path, plan(tmp_path))
    path = tmp_path / "run.jsonl"
    text = path.read_text("utf-8")
    at = text.index(old, text.index("\n"))
    path.write_text(text[:at] + new + text[at + len(old) :], encoding="utf-8")
    with pytest.raises(InvalidLogError, match=rf"run.jsonl:[2-9]: .*({message})"):
        read_log(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_named_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log.jsonl")
    with pytest.raises(InvalidLogError, match="is a named pipe, not a regular file"):
        read_log(tmp_path / "log.jsonl")


LONG_SUMS = """
operator: REDUCE
cases:
  - name: many-terms
    desc:
      Function: SUM
      InputTensor: {Sizes: [1, 1, 2, 2048], DataType: FLOAT16, fill: {uniform: {low: 0, high: 1}}}
      OutputTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT16}
      Axes: [3]
"""
"""Two sums of many terms, which additions in FLOAT16 round."""


@dataclass
class HalfSums(NumpyBackend):
    """Adds terms one by one in FLOAT16; its capabilities say so if `half_precision`."""

    half_precision: bool

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), half_precision=self.half_precision)

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            terms = case.inputs()["InputTensor"]
            sums = np.add.accumulate(terms, axis=3, dtype=np.float16)[..., -1:]
            yield Outputs({"OutputTensor": sums})


@pytest.mark.parametrize("permitted", [True, False])
def test_float16_sums_pass_only_with_half_precision(tmp_path: Path, permitted: bool) -> None:
    planned = list(load_suite([write(tmp_path, LONG_SUMS, "sums.yaml")]).plan())
    tested = registry.parse("faulty:zeros")
    backend = in_process(tested, HalfSums(permitted))
    (verdict,) = judged(planned, backend, reference("numpy", tested))
    assert verdict.status is (Status.PASSED if permitted else Status.FAILED)
