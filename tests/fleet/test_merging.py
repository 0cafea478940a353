"""`dmlconf merge` makes one log of those of shards, names missing ones, and refuses other logs.

The tested code is in `dmlconf/run_log/merging.py`, `dmlconf/run_log/header_differences.py`,
`dmlconf/cli/commands/results/merge.py`, `dmlconf/cli/common/logs.py` and
`dmlconf/reports/runs/summary.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest

from dmlconf.cli.common.logs import opened_log
from dmlconf.run_log.log import read_log
from dmlconf.run_log.merging import Merger
from dmlconf.verdicts.verdict import Status
from tests.cli.process import dmlconf_here, write
from tests.fleet.suites import MATRIX, untimed

SHARDS = ("a.jsonl", "b.jsonl")
"""The logs of shards 1/2 and 2/2."""

MERGE = ("merge", *SHARDS, "-o", "merged.jsonl")


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A folder with the logs of two shards, and of the whole plan in one run."""
    write(tmp_path, MATRIX)
    codes = {
        dmlconf_here(tmp_path, "run", "tile.yaml", "--shard", f"{at}/2", "--log", log).returncode
        for at, log in enumerate(SHARDS, 1)
    }
    assert codes == {0, 1}
    assert dmlconf_here(tmp_path, "run", "tile.yaml", "--log", "run.jsonl").returncode == 1
    return tmp_path


def edit(log: Path, change: Callable[[dict[str, Any]], Any], at: int = 0) -> None:
    """Change the record in line `at` of a log; line 0 is the header, and line -1 the footer."""
    lines = log.read_text("utf-8").splitlines()
    record = json.loads(lines[at])
    change(record)
    lines[at] = json.dumps(record)
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_merged_log_equals_that_of_one_run(shards: Path) -> None:
    done = dmlconf_here(shards, *MERGE, "--report", "json:report.json")
    assert done.returncode == 1
    assert untimed(shards / "merged.jsonl") == untimed(shards / "run.jsonl")
    report = json.loads((shards / "report.json").read_text("utf-8"))
    assert report["summary"]["passed"] == 3
    assert report["run"]["complete"]


def test_log_of_a_run_that_begins_during_a_merge_is_not_replaced(
    shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_merged = Merger.write
    with ExitStack() as stack:

        def begin_and_write(merger: Merger, stream: IO[str]) -> None:
            log = stack.enter_context(opened_log(shards / "merged.jsonl"))
            log.write("of the run\n")
            log.flush()
            write_merged(merger, stream)

        monkeypatch.setattr(Merger, "write", begin_and_write)
        done = dmlconf_here(shards, *MERGE)
        assert done.returncode == 2
        assert "-o merged.jsonl: a run is writing to it" in done.stderr
        assert (shards / "merged.jsonl").read_text("utf-8") == "of the run\n"


def test_merged_log_renumbers_worker_processes(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    for at, log in enumerate(SHARDS, 1):
        # `faulty` runs in a worker process. No case is named `nothing`, so no output is 0.
        options = ("--shard", f"{at}/2", "--log", log, "-b", "faulty:zeros,on=nothing")
        assert dmlconf_here(tmp_path, "run", "tile.yaml", *options).returncode in (0, 1)
    assert dmlconf_here(tmp_path, *MERGE).returncode == 1
    merged = read_log(tmp_path / "merged.jsonl").verdicts
    # In each of the two logs, two cases ran in process 1.
    assert sorted(each.execution.process or 0 for each in merged) == [1, 1, 2, 2]


def test_merged_log_that_lacks_a_shard_can_be_resumed(shards: Path) -> None:
    passing = next(log for log in SHARDS if read_log(shards / log).footer.summary["failed"] == 0)  # type: ignore[union-attr]
    done = dmlconf_here(shards, "merge", passing, "-o", "merged.jsonl")
    assert done.returncode == 6
    assert "INCOMPLETE" in done.stdout
    assert dmlconf_here(shards, "run", "tile.yaml", "--resume", "merged.jsonl").returncode == 1
    assert untimed(shards / "merged.jsonl") == untimed(shards / "run.jsonl")


PASSING = MATRIX.partition("  - name: wrong")[0].replace("[0, 1, 2]", '"=range(40)"')


@pytest.fixture
def eight_shards(tmp_path: Path) -> Path:
    """A folder with the logs of eight shards of PASSING, `1.jsonl` to `8.jsonl`."""
    write(tmp_path, PASSING)
    for number in range(1, 9):
        options = ("--shard", f"{number}/8", "--log", f"{number}.jsonl")
        assert dmlconf_here(tmp_path, "run", "tile.yaml", *options).returncode == 0
    return tmp_path


@pytest.mark.parametrize(
    ("present", "text"),
    [
        ("124678", "INCOMPLETE: shards 3/8 and 5/8 are missing, after "),
        ("1245678", "INCOMPLETE: shard 3/8 is missing, after "),
        ("12", "INCOMPLETE: shards 3/8, 4/8, 5/8, 6/8, 7/8 and 8/8 are missing, after "),
        ("12345678", "PASSED: 40 passed of 40 cases"),
    ],
)
def test_missing_shards_are_named_and_can_be_resumed(
    eight_shards: Path, present: str, text: str
) -> None:
    logs = [f"{number}.jsonl" for number in present]
    done = dmlconf_here(eight_shards, "merge", *logs, "-o", "merged.jsonl")
    assert done.returncode == (0 if text.startswith("PASSED") else 6)
    assert text in done.stdout
    assert text in dmlconf_here(eight_shards, "report", "merged.jsonl").stdout
    resumed = dmlconf_here(eight_shards, "run", "tile.yaml", "--resume", "merged.jsonl")
    assert resumed.returncode == 0
    assert len(read_log(eight_shards / "merged.jsonl").verdicts) == 40


def test_merging_names_a_shard_whose_log_ended_early(eight_shards: Path) -> None:
    last = eight_shards / "8.jsonl"
    without_last_verdict_and_footer = last.read_text("utf-8").splitlines(keepends=True)[:-2]
    last.write_text("".join(without_last_verdict_and_footer), encoding="utf-8")
    logs = [f"{number}.jsonl" for number in range(1, 9)]
    done = dmlconf_here(eight_shards, "merge", *logs, "-o", "merged.jsonl")
    assert done.returncode == 6
    assert "Error: 8.jsonl (shard 8/8) ended early" in done.stderr
    assert "INCOMPLETE: the log ends early, after 39 of 40 cases" in done.stdout


def test_logs_that_disagree_on_a_case_are_refused(shards: Path) -> None:
    whole = shards / "run.jsonl"

    def fail(record: dict[str, Any]) -> None:
        record["status"] = "failed"
        record["reason"] = {
            "kind": "wrong values",
            "message": "1 of 4",
            "differences": [],
            "diagnostics": "",
        }

    edit(whole, fail, at=1)
    edit(whole, lambda record: record["summary"].update(passed=2, failed=2), at=-1)
    done = dmlconf_here(shards, "merge", *SHARDS, "run.jsonl", "-o", "merged.jsonl")
    assert done.returncode == 3
    assert "the logs disagree on 1 case" in done.stderr
    assert "failed (wrong values) in run.jsonl" in done.stderr
    assert not (shards / "merged.jsonl").exists()


def test_same_verdict_in_two_logs_is_merged_once(shards: Path) -> None:
    """The two logs differ only in the times of the case and of its variants."""
    case = json.loads((shards / "a.jsonl").read_text("utf-8").splitlines()[1])["case"]
    index = next(
        at
        for at, line in enumerate((shards / "run.jsonl").read_text("utf-8").splitlines())
        if json.loads(line).get("case") == case
    )

    def took(seconds: float) -> Callable[[dict[str, Any]], None]:
        result = {"status": "passed", "seconds": seconds}
        variants = {"metacommands=on": result, "metacommands=off": result}
        return lambda record: record.update(variants=variants)

    edit(shards / "a.jsonl", took(0.5), at=1)
    edit(shards / "run.jsonl", took(0.25), at=index)
    done = dmlconf_here(shards, "merge", *SHARDS, "run.jsonl", "-o", "merged.jsonl")
    assert done.returncode == 1, done.stderr
    assert len(read_log(shards / "merged.jsonl").verdicts) == 4


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda header: header.update(suite_digest="0" * 64), "suite (SHA-256)"),
        (lambda header: header.update(backend="directml"), "backend: numpy there, directml here"),
        (lambda header: header.update(against="recording:x.dmlrec"), "expected values"),
        (
            lambda header: header["options"].update(tags=["x"]),
            'option tags: none there, ["x"] here',
        ),
        (lambda header: header["shard"].update(plan_digest="0" * 64), "planned cases (SHA-256)"),
    ],
)
def test_logs_of_different_runs_are_refused(
    shards: Path, change: Callable[[dict[str, Any]], Any], difference: str
) -> None:
    edit(shards / "b.jsonl", change)
    done = dmlconf_here(shards, *MERGE)
    assert done.returncode == 3
    assert "b.jsonl is from a different run than a.jsonl" in done.stderr
    assert difference in done.stderr
    assert not (shards / "merged.jsonl").exists()


def test_other_environments_merges_logs_of_two_drivers(
    shards: Path,
) -> None:
    edit(shards / "b.jsonl", lambda header: header["environment"].update(driver="32.0"))
    done = dmlconf_here(shards, *MERGE)
    assert done.returncode == 3
    assert "driver: none there, 32.0 here\n--other-environments merges them" in done.stderr
    assert dmlconf_here(shards, *MERGE, "--other-environments").returncode == 1
    log = read_log(shards / "merged.jsonl")
    assert [worker["name"] for worker in log.header.workers] == list(SHARDS)
    assert [worker["environment"]["driver"] for worker in log.header.workers] == [None, "32.0"]
    own = {verdict.case for verdict in read_log(shards / "b.jsonl").verdicts}
    assert {
        verdict.case for verdict in log.verdicts if verdict.execution.worker == "b.jsonl"
    } == own


def test_verdict_replaces_not_run_of_another_log(tmp_path: Path) -> None:
    def statuses(log: str) -> Counter[Status]:
        return Counter(verdict.status for verdict in read_log(tmp_path / log).verdicts)

    beginning, wrong, end = MATRIX.partition("  - name: wrong")
    heading, tiles, rest = beginning.partition("  - name: tiles")
    write(tmp_path, heading + wrong + end + tiles + rest)  # The failing case is the first.
    stopped = ("run", "tile.yaml", "-x", "--log", "stopped.jsonl")
    assert dmlconf_here(tmp_path, *stopped).returncode == 1
    assert statuses("stopped.jsonl") == {Status.FAILED: 1, Status.NOT_RUN: 3}
    assert dmlconf_here(tmp_path, "run", "tile.yaml", "--log", "whole.jsonl").returncode == 1
    done = dmlconf_here(tmp_path, "merge", "stopped.jsonl", "whole.jsonl", "-o", "merged.jsonl")
    assert done.returncode == 1
    assert statuses("merged.jsonl") == {Status.FAILED: 1, Status.PASSED: 3}


def test_merging_into_one_of_the_logs_is_refused(shards: Path) -> None:
    before = (shards / "a.jsonl").read_bytes()
    done = dmlconf_here(shards, "merge", *SHARDS, "-o", "a.jsonl")
    assert done.returncode == 2
    assert "-o a.jsonl is one of the logs to merge" in done.stderr
    assert (shards / "a.jsonl").read_bytes() == before


def test_merging_names_shards_of_different_divisions(
    eight_shards: Path,
) -> None:
    options = ("run", "tile.yaml", "--shard", "2/3", "--log", "third.jsonl")
    assert dmlconf_here(eight_shards, *options).returncode == 0
    done = dmlconf_here(eight_shards, "merge", "1.jsonl", "third.jsonl", "-o", "merged.jsonl")
    assert done.returncode == 6
    assert "cases are in none of the logs, which divide the plan differently: " in done.stderr
    assert "1.jsonl is shard 1/8, third.jsonl is shard 2/3" in done.stderr


def test_merging_names_balanced_and_plain_shards(eight_shards: Path) -> None:
    """`balanced_by` is the digest of the log that `--shard-by` names."""
    edit(eight_shards / "1.jsonl", lambda header: header["shard"].update(balanced_by="a" * 64))
    done = dmlconf_here(eight_shards, "merge", "1.jsonl", "2.jsonl", "-o", "merged.jsonl")
    assert done.returncode == 6
    assert "1.jsonl is balanced shard 1/8, 2.jsonl is shard 2/8" in done.stderr


def test_repeated_line_of_a_log_is_merged_once(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    log = tmp_path / "a.jsonl"
    command = ("run", "tile.yaml", "-b", "faulty:zeros", "-x", "--log", "a.jsonl")
    assert dmlconf_here(tmp_path, *command).returncode == 1
    *lines, last, footer = log.read_text("utf-8").splitlines(keepends=True)
    assert json.loads(last)["status"] == "not run"
    log.write_text("".join([*lines, last, last, footer]), encoding="utf-8")
    assert dmlconf_here(tmp_path, "merge", "a.jsonl", "-o", "merged.jsonl").returncode == 1
    assert len(read_log(tmp_path / "merged.jsonl").verdicts) == 4
