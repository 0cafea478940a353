"""`--resume` continues a run that ended at any point; its log is then that of an unbroken run.

The tested code is in `dmlconf/run_log/earlier.py`, `dmlconf/run_log/header_differences.py` and
`dmlconf/cli/options/resumption.py`.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from dmlconf.limits import LONGEST_LOG_LINE
from dmlconf.run_log.log import read_log
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.cli.process import beginning, dmlconf_here, text_of, write
from tests.fleet.suites import MATRIX, untimed

RUN = ("run", "tile.yaml", "--log", "run.jsonl")
RESUME = ("run", "tile.yaml", "--resume", "run.jsonl")


@pytest.fixture
def whole_log(tmp_path: Path) -> list[str]:
    """The lines of the log of a complete run in the folder."""
    write(tmp_path, MATRIX)
    assert dmlconf_here(tmp_path, *RUN).returncode == 1
    return lines(tmp_path)


def lines(folder: Path) -> list[str]:
    return (folder / "run.jsonl").read_text("utf-8").splitlines(keepends=True)


@pytest.mark.parametrize(
    ("kept", "end"),
    [
        (1, ""),
        (3, ""),
        (3, '{"record":"verdict","pl'),
        (3, "\0" * 512),
        (3, "\0" * 512 + "\n{}\n"),
        (5, ""),
    ],
    ids=["header", "verdicts", "half-a-line", "nul", "nul-line", "no-footer"],
)
def test_log_that_ends_early_or_damaged_is_continued(
    tmp_path: Path, whole_log: list[str], kept: int, end: str
) -> None:
    log = tmp_path / "run.jsonl"
    expected = untimed(log)
    log.write_text("".join(whole_log[:kept]) + end, encoding="utf-8")
    done = dmlconf_here(tmp_path, *RESUME)
    assert done.returncode == 1
    assert f"Resuming: {kept - 1} of 4 cases have verdicts" in done.stderr
    assert untimed(log) == expected
    assert lines(tmp_path)[:kept] == whole_log[:kept]


def test_resumption_continues_the_numbers_of_processes(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    # `faulty` runs in a worker process. No case is named `nothing`, so no output is 0.
    backend = ("-b", "faulty:zeros,on=nothing")
    assert dmlconf_here(tmp_path, *RUN, *backend).returncode == 1
    log = tmp_path / "run.jsonl"
    log.write_text("".join(lines(tmp_path)[:3]), encoding="utf-8")
    assert dmlconf_here(tmp_path, *RESUME, *backend).returncode == 1
    processes = [verdict.execution.process for verdict in read_log(log).verdicts]
    assert processes == [1, 1, 2, 2]


def test_last_verdict_without_a_newline_is_kept(tmp_path: Path, whole_log: list[str]) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text("".join(whole_log[:3]).rstrip("\n"), encoding="utf-8")
    assert dmlconf_here(tmp_path, *RESUME).returncode == 1
    assert lines(tmp_path)[:3] == whole_log[:3]
    assert len(read_log(log).verdicts) == 4


@pytest.mark.slow
def test_cases_that_an_interrupt_left_out_are_resumed(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    backend = "faulty:slow,seconds=0.2"
    command = ("run", "tile.yaml", "-k", "tiles", "-b", backend, "--log", "run.jsonl")
    process = beginning(tmp_path, *command)
    while text_of(tmp_path / "run.jsonl").count("\n") < 2:
        assert process.poll() is None
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 6
    reached = [line for line in lines(tmp_path) if '"passed"' in line and "verdict" in line[:20]]
    assert dmlconf_here(tmp_path, *command[:-2], "--resume", "run.jsonl").returncode == 0
    assert lines(tmp_path)[1 : 1 + len(reached)] == reached
    log = read_log(tmp_path / "run.jsonl")
    assert log.complete
    assert [verdict.status for verdict in log.verdicts] == [Status.PASSED] * 3
    assert log.footer is not None
    assert log.footer.kept_verdicts == len(reached)


def test_resuming_a_complete_log_leaves_it_unchanged(tmp_path: Path, whole_log: list[str]) -> None:
    done = dmlconf_here(tmp_path, *RESUME)
    assert done.returncode == 1
    assert lines(tmp_path) == whole_log
    assert "1 failed" in done.stdout


@pytest.mark.parametrize("content", ["", '{"rec', '{"record":"header","form', "\0\0\0"])
def test_resuming_a_log_without_a_line_starts_anew(tmp_path: Path, content: str) -> None:
    write(tmp_path, MATRIX)
    (tmp_path / "run.jsonl").write_text(content, encoding="utf-8")
    done = dmlconf_here(tmp_path, *RESUME)
    assert "run.jsonl holds no run yet" in done.stderr
    assert read_log(tmp_path / "run.jsonl").complete


def test_resuming_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    (tmp_path / "run.jsonl").write_text("What I found out", encoding="utf-8")
    done = dmlconf_here(tmp_path, *RESUME)
    assert done.returncode == 3
    assert "run.jsonl:1: not a dmlconf run log" in done.stderr
    assert (tmp_path / "run.jsonl").read_text(encoding="utf-8") == "What I found out"


def test_resuming_a_log_with_too_long_a_first_line_is_refused_and_leaves_it_unchanged(
    tmp_path: Path, whole_log: list[str]
) -> None:
    log = tmp_path / "run.jsonl"
    long = whole_log[0].replace(
        "{", '{"record":"header","more":"' + "x" * LONGEST_LOG_LINE + '",', 1
    )
    log.write_text("".join([long, *whole_log[1:]]), encoding="utf-8")
    size = log.stat().st_size
    done = dmlconf_here(tmp_path, *RESUME)
    assert done.returncode == 3
    assert "run.jsonl:1: not a run log: a line of more than 16,777,216 bytes" in done.stderr
    assert log.stat().st_size == size


def test_resuming_a_missing_log_is_refused(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    done = dmlconf_here(tmp_path, *RESUME)
    assert done.returncode == 2
    assert "--resume run.jsonl: there is no such log; start one with --log" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "difference"),
    [
        (("-b", "faulty:negated"), "backend: numpy there, faulty:negated here"),
        (("-b", "faulty:negated"), f"adapter: {platform.machine()} there, negated here"),
        (("-k", "Number=1"), "option keywords: none there, Number=1 here"),
        (("-k", "Number=1"), "planned cases: 4 there, 1 here"),
        (("--retries", "1"), "option retries: none there, 1 here"),
        (("--against", "numpy"), "option against: auto there, numpy here"),
    ],
)
def test_resuming_a_run_with_other_options_is_refused(
    tmp_path: Path, whole_log: list[str], arguments: tuple[str, ...], difference: str
) -> None:
    done = dmlconf_here(tmp_path, *RESUME, *arguments)
    assert done.returncode == 2
    assert difference in done.stderr
    assert lines(tmp_path) == whole_log


def test_resuming_a_run_of_another_suite_is_refused(tmp_path: Path, whole_log: list[str]) -> None:
    write(tmp_path, MATRIX.replace("Two by two", "Twice"))
    done = dmlconf_here(tmp_path, *RESUME)
    assert done.returncode == 2
    assert "suite (SHA-256): " in done.stderr
    assert lines(tmp_path) == whole_log


def test_failure_before_a_resumption_counts_for_option_x(
    tmp_path: Path, whole_log: list[str]
) -> None:
    # The header, the verdict of case 4, which failed, and that of case 1, which passed.
    failure_first = [whole_log[0], whole_log[4], whole_log[1]]
    (tmp_path / "run.jsonl").write_text("".join(failure_first), encoding="utf-8")
    assert dmlconf_here(tmp_path, *RESUME, "-x").returncode == 1
    statuses = [verdict.status for verdict in read_log(tmp_path / "run.jsonl").verdicts]
    assert statuses == [Status.PASSED, Status.NOT_RUN, Status.NOT_RUN, Status.FAILED]


def test_attempts_before_a_resumption_count(
    tmp_path: Path,
) -> None:
    write(tmp_path, MATRIX)
    command = ("run", "tile.yaml", "-k", "tiles", "-b", "faulty:flaky,on=Number=2")
    log = tmp_path / "run.jsonl"
    assert dmlconf_here(tmp_path, *command, "--retries", "2", "--log", log).returncode == 1
    whole_log = lines(tmp_path)
    attempts = [json.loads(line)["status"] for line in whole_log if '"attempt"' in line[:20]]
    assert attempts == ["failed", "passed", "passed"]
    # The run ends right after the failure.
    first = next(at for at, line in enumerate(whole_log) if '"attempt"' in line[:20])
    log.write_text("".join(whole_log[: first + 1]), encoding="utf-8")
    assert [verdict.status for verdict in read_log(log).verdicts][2] is Status.FAILED
    assert dmlconf_here(tmp_path, *command, "--retries", "2", "--resume", log).returncode == 1
    # `flaky` begins anew, so the case failed once before the resumption and once after it.
    verdict = read_log(log).verdicts[2]
    assert verdict.status is Status.FAILED
    assert len(verdict.judgement.attempts) == 3
    assert verdict.reason is not None
    assert (verdict.reason.kind, verdict.reason.message[:20]) == (
        ReasonKind.NOT_REPRODUCIBLE,
        "passed in 1 of 3 run",
    )


def test_verdict_that_a_log_has_twice_counts_once(tmp_path: Path, whole_log: list[str]) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text("".join([*whole_log[:2], *whole_log[1:3]]), encoding="utf-8")
    done = dmlconf_here(tmp_path, *RESUME)
    assert done.returncode == 1
    assert "Resuming: 2 of 4 cases have verdicts" in done.stderr
    read = read_log(log)
    assert read.complete
    assert len(read.verdicts) == 4
