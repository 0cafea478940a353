"""dmlconf works without a home folder, and on full and read-only file systems, as in containers.

The tested code is in `dmlconf/cli/common/logs.py`, `dmlconf/run_log/log.py`,
`dmlconf/workers/scratch.py`, `dmlconf/workers/pool.py`, `dmlconf/workers/mapping.py`,
`dmlconf/cli/runs/logged_run.py` and `dmlconf/cli/commands/running/doctor.py`.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dmlconf.run_log.log import read_log
from tests.cli.process import DMLCONF, TILE, environment, write

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("unshare") is None,
        reason="needs Linux's namespaces",
    ),
]

NO_OWN_FOLDERS = (
    "HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "DMLCONF_LOG_DIRECTORY",
    "DMLCONF_CACHE",
)
"""Variables that name folders in which dmlconf keeps files."""

FAILING = TILE.replace("[1, 2, 1, 2]", "[1, 2, 1, 3]")


def run_in_namespace(
    directory: Path, namespace: str, *lines: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run shell commands in a new namespace until one fails; `$D` runs dmlconf.

    TMPDIR is `tmp` below the directory.
    """
    (directory / "tmp").mkdir(exist_ok=True)
    kept = environment(directory, TMPDIR=str(directory / "tmp"), D=shlex.join(DMLCONF))
    for name in NO_OWN_FOLDERS:
        kept.pop(name, None)
    kept |= more
    command = ["unshare", *namespace.split(), "bash", "-ec", "\n".join(lines)]
    done = subprocess.run(
        command,
        cwd=directory,
        env=kept,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    if done.stderr.startswith("unshare:"):
        pytest.skip("this account may not create namespaces")
    return done


ANOTHER_USER = "--user --map-user=12345 --map-group=12345"
"""Options of `unshare` for a process of the user 12345, who has no home folder."""

OWN_MOUNTS = "--user --map-root-user --mount"
"""Options of `unshare` for a process of root, who may mount file systems."""


def test_an_account_without_a_home_can_run_cases(tmp_path: Path) -> None:
    write(tmp_path, FAILING)
    commands = ["eval $D run tile.yaml -q || test $? = 1", "eval $D report", "eval $D doctor"]
    done = run_in_namespace(
        tmp_path, ANOTHER_USER, *commands, "eval $D run --failed -q || test $? = 1"
    )
    assert done.returncode == 0, done.stderr
    assert "this account has no home folder" in done.stderr
    assert f"the run log is {tmp_path}/tmp/dmlconf-runs-12345/run-" in done.stderr
    assert "this account has no folder for it" in done.stdout
    logs = sorted((tmp_path / "tmp" / "dmlconf-runs-12345").iterdir())
    assert [read_log(log).verdicts[0].case for log in logs] == ["tile/tile/stated"] * 2
    assert not (tmp_path / "~").exists()


def test_old_temporary_logs_beyond_20_are_removed(tmp_path: Path) -> None:
    write(tmp_path)
    folder = tmp_path / "tmp" / "dmlconf-runs-12345"
    folder.mkdir(mode=0o700, parents=True)
    old = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    for number in range(30):
        log = folder / f"run-20200101T0000{number:02}.000000-1.jsonl"
        log.touch()
        os.utime(log, (old, old))
    assert run_in_namespace(tmp_path, ANOTHER_USER, "eval $D run tile.yaml").returncode == 0
    assert len(list(folder.iterdir())) == 20


def test_a_folder_writable_by_others_gets_no_log(tmp_path: Path) -> None:
    write(tmp_path)
    folder = tmp_path / "tmp" / "dmlconf-runs-12345"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    done = run_in_namespace(tmp_path, ANOTHER_USER, "eval $D run tile.yaml")
    assert done.returncode == 0
    assert f"{folder} belongs to another user" in done.stderr
    assert list(folder.iterdir()) == []


def test_a_full_home_moves_the_log_to_tmpdir(tmp_path: Path) -> None:
    write(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    lines = ["mount -t tmpfs -o size=64k tmpfs home", "head -c 99999 /dev/zero >home/x || true"]
    done = run_in_namespace(
        tmp_path, OWN_MOUNTS, *lines, "eval $D run tile.yaml; eval $D report", HOME=str(home)
    )
    assert done.returncode == 0, done.stderr
    assert "No space left on device: the run log is" in done.stderr
    assert "--log" not in done.stderr
    assert done.stdout.count("PASSED: 1 passed of 1 case") == 2
    # In the namespace, the number of this user is 0.
    [log] = (tmp_path / "tmp" / "dmlconf-runs-0").iterdir()
    assert read_log(log).complete


READ_ONLY = [
    "mount --make-rprivate / && mount -t tmpfs tmpfs /dev/shm && mount -o bind,remount,ro /",
    "for place in /tmp /var/tmp; do",
    "  ! test -w $place || { mount --bind $place $place; mount -o bind,remount,ro $place; }",
    "done",
]
"""Shell commands that make every file system read-only but shared memory, /dev/shm."""


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root may mount so much")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_read_only_system_logs_to_shared_memory(tmp_path: Path, jobs: int) -> None:
    write(tmp_path, FAILING)
    run = f"eval $D run tile.yaml -b faulty:zeros -j {jobs} || test $? = 1"
    done = run_in_namespace(tmp_path, "--mount", *READ_ONLY, run, "eval $D report")
    assert done.returncode == 0, done.stderr
    assert "the run log is /dev/shm/dmlconf-runs-0/run-" in done.stderr
    assert done.stdout.count("FAILED: 1 of 1 case") == 2


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root may mount so much")
def test_without_any_writable_folder_the_log_is_in_memory(tmp_path: Path) -> None:
    write(tmp_path)
    nothing_writable = [*READ_ONLY, "mount -o remount,ro /dev/shm"]
    done = run_in_namespace(
        tmp_path,
        "--mount",
        *nothing_writable,
        "eval $D run tile.yaml --report json",
        "eval $D run tile.yaml -b faulty:zeros || test $? = 4",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run"]["complete"] is True
    assert "the run log will be gone after this run; --log FILE keeps it" in done.stderr
    assert "faulty:zeros needs a temporary folder for its processes" in done.stderr


@pytest.mark.parametrize("loss", ["mount -t tmpfs -o ro tmpfs /dev/shm", "rmdir ../gone"])
def test_strength_needs_neither_shared_memory_nor_a_working_folder(
    tmp_path: Path, loss: str
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    case = write(tmp_path)
    measured = f"eval $D strength {case} --figure defects --figure drivers -q -j"
    done = run_in_namespace(
        tmp_path, OWN_MOUNTS, f"cd {gone}", loss, f"{measured} 2", f"{measured} 1"
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()  # Two processes, then one.
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :] != []
