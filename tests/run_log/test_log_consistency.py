"""Run logs that contradict themselves are refused, and the error names the contradiction.

The tested code is in `dmlconf/run_log/consistency.py`, `dmlconf/run_log/log.py` and
`dmlconf/run_log/lines.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dmlconf.reports.runs.summary import closing_sentence
from dmlconf.run_log.log import InvalidLogError, read_log
from tests.cli.process import dmlconf_here, write
from tests.reports import logs

Lines = list[dict[str, Any]]

CASES = """
operator: TILE
cases:
  - name: stated
    note: A wrong value among right ones.
    matrix: {Number: [1, 2, 3]}
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, "=Number"]}
"""


@pytest.fixture
def lines(tmp_path: Path) -> Lines:
    """Return a header, the verdicts on three cases, of which the second passes, and a footer."""
    write(tmp_path, CASES, "case.yaml")
    done = dmlconf_here(tmp_path, "run", "case.yaml", "-q", "--log", "run.jsonl")
    assert done.returncode == 1
    return [json.loads(line) for line in (tmp_path / "run.jsonl").read_text("utf-8").splitlines()]


def write_log(directory: Path, lines: Lines) -> Path:
    path = directory / "changed.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def make_pass(line: dict[str, Any]) -> None:
    line.update(status="passed", reason=None)


CHANGES: dict[str, tuple[Callable[[Lines], object], str]] = {
    "a failure turned into a pass": (
        lambda lines: make_pass(lines[1]),
        ":5: .*the footer counts 1 `passed`, but the log has 2",
    ),
    "a case by another name": (
        lambda lines: lines[2].update(case="tile/case/stated[Number=9]"),
        ":5: .*its verdicts are on other cases than the run had selected",
    ),
    "a status without its reason": (
        lambda lines: lines[1].update(reason=None),
        ":2: .* is `failed`, but without a reason",
    ),
    "a pass with a reason": (
        lambda lines: lines[2].update(reason=lines[1]["reason"]),
        ":3: .* is `passed`, but for the reason `expectation contradicts the reference`",
    ),
    "a summary of other verdicts": (
        lambda lines: lines[-1]["summary"].update(failed=0),
        ":5: .*the footer counts 0 `failed`, but the log has 2",
    ),
    "a verdict removed": (lambda lines: lines.pop(1), ":4: .*the footer counts 2 `failed`, but"),
    "a verdict and its count removed": (
        lambda lines: (lines.pop(1), lines[-1]["summary"].update(failed=1)),
        ":4: .*the run ended with 2 verdicts, but the header says 3 are selected",
    ),
    "fewer cases selected": (
        lambda lines: (lines[0].update(selected=2), [line.pop("place", 0) for line in lines]),
        ":4: .*3 cases have verdicts, but the header says that 2 are selected",
    ),
    "a place beyond the plan": (
        lambda lines: lines[3].update(place=3),
        ":4: .* has the place 3, but the header says that 3 are selected",
    ),
    "one place for two cases": (
        lambda lines: lines[3].update(place=1),
        r":4: .*\[Number=3\] has the place 1, as .*\[Number=2\] has in line 3",
    ),
    "a case twice with different verdicts": (
        lambda lines: lines.insert(2, {**lines[1], "status": "passed", "reason": None}),
        ":3: .* has another verdict in line 2: `failed` there, `passed` here",
    ),
    "incomplete, but every case was run": (
        lambda lines: lines[-1].update(complete=False),
        ":5: .*the footer says that the run is incomplete, but every selected case was run",
    ),
    "complete, but a case was not run": (
        lambda lines: (
            lines[1].update(status="not run"),
            lines[-1]["summary"].update({"failed": 1, "not run": 1}),
        ),
        ":5: .*the footer says that the run is complete, but 1 of its cases are `not run`",
    ),
    "a verdict after the footer": (
        lambda lines: lines.append(lines[1]),
        ":6: .*a line after the footer",
    ),
}
"""Changes of the lines, and where and why the log is then refused."""


@pytest.mark.parametrize("name", CHANGES)
def test_a_log_that_contradicts_itself_is_refused(tmp_path: Path, lines: Lines, name: str) -> None:
    change, message = CHANGES[name]
    change(lines)
    with pytest.raises(InvalidLogError, match=f"changed.jsonl{message}"):
        read_log(write_log(tmp_path, lines))


def test_a_place_beyond_the_plan_of_all_shards_is_refused(tmp_path: Path, lines: Lines) -> None:
    shard = {"number": 1, "count": 2, "planned": 6, "plan_digest": "0" * 64}
    lines[0].update(shard=shard)
    lines[3].update(place=6)
    message = ":4: .* has the place 6, but the header says that all shards have 6 cases"
    with pytest.raises(InvalidLogError, match=message):
        read_log(write_log(tmp_path, lines))


def test_a_consistent_log_is_read(tmp_path: Path, lines: Lines) -> None:
    assert len(read_log(write_log(tmp_path, lines)).verdicts) == 3


def test_two_equal_verdicts_of_a_case_count_once(tmp_path: Path, lines: Lines) -> None:
    lines.insert(2, lines[1])
    assert len(read_log(write_log(tmp_path, lines)).verdicts) == 3


@pytest.mark.parametrize("count", range(1, 5))
def test_a_log_that_ends_early_is_read_as_incomplete(
    tmp_path: Path, lines: Lines, count: int
) -> None:
    log = read_log(write_log(tmp_path, lines[:count]))
    assert (len(log.verdicts), log.complete) == (count - 1, False)


def test_report_refuses_a_contradictory_log_with_a_message(tmp_path: Path, lines: Lines) -> None:
    lines[-1]["summary"]["failed"] = 0
    done = dmlconf_here(tmp_path, "report", write_log(tmp_path, lines))
    assert done.returncode == 3
    assert "the log contradicts itself: the footer counts 0 `failed`, but the log has 2" in (
        done.stderr
    )


def test_log_of_a_killed_run_without_a_count_is_read(
    tmp_path: Path,
) -> None:
    """`fuzz` with a time limit writes 0 as the number of cases. Place 1 has the only verdict."""
    path = logs.write(tmp_path / "run.jsonl", logs.dead(logs.run_log(logs.PASSED), 0))
    path.write_text(path.read_text("utf-8").replace('"place":0', '"place":1'), encoding="utf-8")
    log = read_log(path)
    assert log.header.selected == 2
    assert closing_sentence(log) == "INCOMPLETE: the log ends early, after 1 of 2 cases; 1 passed"
