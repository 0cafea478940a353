"""`dmlconf merge`: the log of all shards is that of one run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dmlconf.runner.log import read_log
from dmlconf.runner.verdict import Status
from tests.cli.process import dmlconf_here, write
from tests.fleet.suites import MATRIX, untimed

SHARDS = ("a.jsonl", "b.jsonl")
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
    """Change one record of a log."""
    lines = log.read_text("utf-8").splitlines()
    record = json.loads(lines[at])
    change(record)
    lines[at] = json.dumps(record)
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_the_merged_log_is_that_of_one_run_but_for_times_and_order(shards: Path) -> None:
    done = dmlconf_here(shards, *MERGE, "--report", "json:report.json")
    assert done.returncode == 1
    assert untimed(shards / "merged.jsonl") == untimed(shards / "run.jsonl")
    report = json.loads((shards / "report.json").read_text("utf-8"))
    assert report["summary"]["passed"] == 3
    assert report["run"]["complete"]


def test_what_shards_lack_makes_the_run_incomplete_and_can_be_resumed(shards: Path) -> None:
    passing = next(log for log in SHARDS if read_log(shards / log).footer.summary["failed"] == 0)  # type: ignore[union-attr]
    done = dmlconf_here(shards, "merge", passing, "-o", "merged.jsonl")
    assert done.returncode == 6
    assert "INCOMPLETE" in done.stdout
    assert dmlconf_here(shards, "run", "tile.yaml", "--resume", "merged.jsonl").returncode == 1
    assert untimed(shards / "merged.jsonl") == untimed(shards / "run.jsonl")


def test_refuses_logs_that_disagree_on_a_case(shards: Path) -> None:
    whole = shards / "run.jsonl"

    def fail(record: dict[str, Any]) -> None:
        record["status"] = "failed"
        record["reason"] = {
            "kind": "wrong values", "message": "1 of 4", "differences": [], "diagnostics": "",
        }  # fmt: skip

    edit(whole, fail, at=1)
    edit(whole, lambda record: record["summary"].update(passed=2, failed=2), at=-1)
    done = dmlconf_here(shards, "merge", *SHARDS, "run.jsonl", "-o", "merged.jsonl")
    assert done.returncode == 3
    assert "the logs disagree on 1 case" in done.stderr
    assert "failed (wrong values) in run.jsonl" in done.stderr
    assert not (shards / "merged.jsonl").exists()


def test_takes_overlaps_that_agree_once(shards: Path) -> None:
    done = dmlconf_here(shards, "merge", *SHARDS, "run.jsonl", "-o", "merged.jsonl")
    assert done.returncode == 1
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
def test_refuses_another_run(
    shards: Path, change: Callable[[dict[str, Any]], Any], difference: str
) -> None:
    edit(shards / "b.jsonl", change)
    done = dmlconf_here(shards, *MERGE)
    assert done.returncode == 3
    assert "b.jsonl is of another run than a.jsonl" in done.stderr
    assert difference in done.stderr


def test_other_environments_are_merged_only_where_asked_and_verdicts_name_them(
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
    assert {verdict.case for verdict in log.verdicts if verdict.worker == "b.jsonl"} == own


def test_a_verdict_replaces_not_run(shards: Path) -> None:
    command = ("run", "tile.yaml", "-x", "-k", "wrong or tiles", "--log", "stopped.jsonl")
    assert dmlconf_here(shards, *command).returncode == 1
    rest = ("run", "tile.yaml", "-k", "wrong or tiles", "--shard", "1/1", "--log", "rest.jsonl")
    assert dmlconf_here(shards, *rest).returncode == 1
    done = dmlconf_here(shards, "merge", "stopped.jsonl", "rest.jsonl", "-o", "merged.jsonl")
    assert done.returncode == 1
    statuses = [verdict.status for verdict in read_log(shards / "merged.jsonl").verdicts]
    assert Status.NOT_RUN not in statuses


def test_refuses_to_write_over_one_of_the_logs(shards: Path) -> None:
    done = dmlconf_here(shards, "merge", *SHARDS, "-o", "a.jsonl")
    assert done.returncode == 2
    assert "-o a.jsonl is one of the logs to merge" in done.stderr
