"""A full disk, a clock that jumps, a slow network share or a process that dies loses no verdict.

The tested code is in `dmlconf/run_log/log.py`, `dmlconf/run_log/earlier.py`,
`dmlconf/cli/common/logs.py`, `dmlconf/fleet/cluster.py` and `dmlconf/fleet/dispatch.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from dmlconf.run_log.log import read_log
from tests.cli.process import DMLCONF, dmlconf, environment, text_of, write
from tests.fleet.faults import Laboratory
from tests.fleet.suites import MATRIX, untimed

pytestmark = pytest.mark.fleet

LONG = MATRIX.replace("[0, 1, 2]", '"=range(60)"')
"""Sixty cases that the reference passes (`tiles`), and one that it fails."""

SLOW = ("run", "tile.yaml", "-b", "faulty:slow,seconds=0.5")
"""A run that takes half a second for each case."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a suite of 61 cases, and the log of a whole run, `whole.jsonl`."""
    write(tmp_path, LONG)
    assert dmlconf(tmp_path, "run", "tile.yaml", "--log", "whole.jsonl").returncode == 1
    return tmp_path


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The preloaded library that makes the clock jump and writing slow."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("odd") / "odd.so"
    source = Path(__file__).parent / "odd_system.c"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return str(library)


def test_clock_that_jumps_changes_no_verdict(folder: Path, preloaded: str) -> None:
    odd = {"LD_PRELOAD": preloaded, "ODD_CLOCK": "1"}
    assert dmlconf(folder, "run", "tile.yaml", "--log", "run.jsonl", **odd).returncode == 1
    assert untimed(folder / "run.jsonl") == untimed(folder / "whole.jsonl")
    header, *verdicts, footer = map(json.loads, text_of(folder / "run.jsonl").splitlines())
    assert min(record["seconds"] for record in (*verdicts, footer)) >= 0
    datetime.fromisoformat(header["started"])
    slow = dmlconf(folder, *SLOW, "-k", "Number=1", "--timeout", "2", "--log", "odd.jsonl", **odd)
    # The clock jumps by an hour or a day, but no case exceeds the timeout.
    assert slow.returncode == 0, slow.stdout


def test_log_on_a_slow_network_share_has_every_verdict(folder: Path, preloaded: str) -> None:
    odd = {"LD_PRELOAD": preloaded, "SLOW_LOG_MS": "20"}
    began = time.monotonic()
    assert dmlconf(folder, "run", "tile.yaml", "--log", "run.jsonl", **odd).returncode == 1
    # The header and 61 verdicts are written one by one, each in 20 ms.
    assert time.monotonic() - began > 62 * 0.02
    assert untimed(folder / "run.jsonl") == untimed(folder / "whole.jsonl")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for some verdicts, but not for all 60."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
    if os.getuid() != 0 or subprocess.run(command, check=False).returncode:
        pytest.skip("only root mounts a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_log_on_a_full_disk_can_be_resumed(folder: Path, small_disk: Path) -> None:
    log = small_disk / "run.jsonl"
    full = dmlconf(folder, "run", "tile.yaml", "-k", "tiles", "--log", log)
    assert full.returncode == 6, full.stderr
    assert "cannot be written: No space left on device" in full.stderr
    reached = [line for line in text_of(log).splitlines(keepends=True) if line.endswith("\n")]
    assert len(reached) > 2
    again = dmlconf(folder, "run", "tile.yaml", "-k", "tiles", "--resume", log)
    assert again.returncode == 6  # The disk is still full.
    subprocess.run(["mount", "-o", "remount,size=1m", str(small_disk)], check=True)
    assert dmlconf(folder, "run", "tile.yaml", "-k", "tiles", "--resume", log).returncode == 0
    assert text_of(log).splitlines(keepends=True)[: len(reached)] == reached
    assert len(read_log(log).verdicts) == 60


@pytest.mark.parametrize("option", ["--log", "--resume"])
def test_log_that_a_run_writes_is_refused_to_another(folder: Path, option: str) -> None:
    process = subprocess.Popen(
        [*DMLCONF, *SLOW, "-q", "--log", "run.jsonl"],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while text_of(folder / "run.jsonl").count("\n") < 2:
        assert process.poll() is None
        time.sleep(0.01)
    second = dmlconf(folder, *SLOW, option, "run.jsonl")
    assert process.poll() is None, "the first run was over before the second"
    assert second.returncode == 2
    assert "another run" in second.stderr
    process.terminate()
    assert process.wait(timeout=60) == 6
    log = read_log(folder / "run.jsonl")
    assert log.footer is not None
    assert len(log.verdicts) == 61


@pytest.mark.parametrize(
    ("victim", "seed"),
    [("main", 8), ("nanny", 5), ("hung-worker", 7), ("cut-off-worker", 23), ("hung-scheduler", 24)],
)
def test_process_that_dies_or_hangs_loses_no_verdict(
    tmp_path: Path, victim: str, seed: int
) -> None:
    """With these seeds, it does so after the log begins and before the run ends."""
    with closing(Laboratory(tmp_path, victim)) as laboratory:
        fault = laboratory.fault(seed)
    assert fault.problems == ()
    assert f"{victim} in its log, " in fault.end
