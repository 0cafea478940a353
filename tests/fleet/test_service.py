"""A scheduler's worker judges the cases it is given, and refuses jobs that do not fit it.

Wrong options about schedulers are refused before a run begins.

The tested code is in `dmlconf/fleet/service.py`, `dmlconf/fleet/cluster.py` and
`dmlconf/cli/options/targets.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from dmlconf.backends.protocol import BackendError
from dmlconf.backends.registry import parse
from dmlconf.fleet.cluster import Cluster
from dmlconf.fleet.service import Batch, Job, Prepared, Refusal, finish, prepare, run_cases
from tests.cli.process import dmlconf_here, write
from tests.fleet.suites import MATRIX, job_of


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    yield job_of(write(tmp_path, MATRIX))
    finish("job")


def test_worker_judges_the_cases_of_a_job(job: Job) -> None:
    prepared = prepare(job)
    assert isinstance(prepared, Prepared)
    assert prepared.record["backend"] == prepared.environment.backend == "numpy"
    names = ["tile/tile/wrong", "tile/tile/tiles[Number=1]"]
    batch = run_cases("job", names)
    assert isinstance(batch, Batch)
    assert [(verdict.case, verdict.status) for verdict in batch.verdicts] == [
        (names[0], "failed"),
        (names[1], "passed"),
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"suite_digest": "0" * 64}, "its suite ("),
        ({"catalogue_digest": "0" * 64}, "or catalogue differs from this machine's: SHA-256"),
        ({"dmlconf": "9.9"}, "it has a different version: dmlconf "),
        ({"paths": ("nowhere",)}, "nowhere"),
        ({"backend": parse("recording:nowhere.dmlrec")}, "nowhere.dmlrec"),
    ],
)
def test_worker_refuses_a_job_that_does_not_fit(
    job: Job, change: dict[str, object], reason: str
) -> None:
    refusal = prepare(replace(job, **change))  # type: ignore[arg-type]  # One field each.
    assert isinstance(refusal, Refusal)
    assert reason in refusal.message


def test_worker_forgets_its_job_after_an_os_error(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    assert isinstance(prepare(job), Prepared)
    monkeypatch.setattr("dmlconf.fleet.service.verdicts", fail)
    assert run_cases("job", ["tile/tile/wrong"]) == Refusal("the disk is full")
    assert run_cases("job", ["tile/tile/wrong"]) == Refusal(
        "its process has not prepared the job", again=True
    )


def test_worker_without_the_job_asks_to_be_prepared() -> None:
    refusal = run_cases("another", ["tile/tile/wrong"])
    assert isinstance(refusal, Refusal)
    assert refusal.again


def test_new_job_replaces_the_previous_one(job: Job) -> None:
    assert isinstance(prepare(job), Prepared)
    assert isinstance(prepare(replace(job, identifier="next")), Prepared)
    assert isinstance(run_cases("job", ["tile/tile/wrong"]), Refusal)
    assert isinstance(run_cases("next", ["tile/tile/wrong"]), Batch)
    finish("next")


def test_scheduler_without_dask_is_refused(
    tmp_path: Path,
) -> None:
    write(tmp_path, MATRIX)
    with patch.dict(sys.modules, {"distributed": None}):
        done = dmlconf_here(tmp_path, "run", "tile.yaml", "--scheduler", "local:2")
    assert done.returncode == 4
    assert "--scheduler needs Dask's scheduler\npip install" in done.stderr
    assert "[fleet]'" in done.stderr
    # A package index may have somebody else's package of this name.
    assert "dmlconf[fleet]" not in done.stderr


@pytest.mark.fleet
def test_local_scheduler_needs_a_temporary_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(**_: object) -> None:
        raise FileNotFoundError(2, "No usable temporary directory")

    monkeypatch.setattr("dmlconf.fleet.cluster.TemporaryDirectory", fail)
    with pytest.raises(BackendError, match="--scheduler needs a temporary folder"):
        Cluster("local:1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--scheduler", "lab-0"),
            "lab-0 is neither an address such as tcp://",
        ),
        (("--scheduler", "local:0"), "local:0 is neither an address"),
        (("--by-adapter",), "add --scheduler"),
        (("--scheduler", "local:1", "--dump", "x"), "--dump runs cases on this machine"),
    ],
)
def test_wrong_options_about_schedulers_are_refused(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    write(tmp_path, MATRIX)
    done = dmlconf_here(tmp_path, "run", "tile.yaml", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
