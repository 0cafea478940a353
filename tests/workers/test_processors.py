"""Affinity and control groups limit the processors and the memory that a process may use.

The tested code is in `dmlconf/workers/processors.py` and `dmlconf/workers/control_groups.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dmlconf.workers import processors
from dmlconf.workers.control_groups import memory_limit, processor_quota
from tests.cli.process import environment

PRINT_PROCESSORS = "from dmlconf.workers.processors import usable_processors as n; print(n())"


def write_groups(folder: Path, membership: str, **files: str) -> tuple[Path, Path]:
    """Write the files by which Linux shows a process its control groups.

    In the names of `files`, `__` stands for a slash and `_dot_` for a dot. Return the root of the
    groups' folders, and the file with `membership`.
    """
    root = folder / "cgroup"
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    own = folder / "membership"
    own.write_text(membership, encoding="utf-8")
    return root, own


@pytest.mark.parametrize(
    ("quota", "number"),
    [
        # Microseconds of processor time, and of their period.
        ("max 100000", None),
        ("100000 100000", 1),
        ("150000 100000", 2),
        ("5000 100000", 1),
        ("6400000 100000", 64),
        ("100000", None),
        ("100000 0", None),
        ("nonsense", None),
    ],
)
def test_quota_is_rounded_up_and_other_text_is_none(
    tmp_path: Path, quota: str, number: int | None
) -> None:
    assert processor_quota(*write_groups(tmp_path, "0::/\n", cpu_dot_max=quota)) == number


@pytest.mark.parametrize(("lower", "higher"), [("slice", "slice__job"), ("slice__job", "slice")])
def test_the_lowest_limit_on_the_way_to_the_root_counts(
    tmp_path: Path, lower: str, higher: str
) -> None:
    limits = {
        f"{lower}__cpu_dot_max": "200000 100000",
        f"{higher}__cpu_dot_max": "800000 100000",
        f"{lower}__memory_dot_max": "1000000",
        f"{higher}__memory_dot_max": "2000000",
        "memory_dot_max": "max",
    }
    root, own = write_groups(tmp_path, "0::/slice/job\n", **limits)
    assert processor_quota(root, own) == 2
    assert memory_limit(root, own) == 1_000_000


def test_limits_of_both_versions_together_are_read(tmp_path: Path) -> None:
    root, own = write_groups(
        tmp_path,
        "1:memory:/job\n0::/job\n",
        unified__job__cpu_dot_max="150000 100000",
        memory__job__memory_dot_limit_in_bytes="1000000",
    )
    assert processor_quota(root, own) == 2
    assert memory_limit(root, own) == 1_000_000


def test_controller_may_have_a_folder_of_its_own(tmp_path: Path) -> None:
    """The membership names `cpu,cpuacct`, but the folder may be `cpu`."""
    root, own = write_groups(
        tmp_path,
        "1:cpu,cpuacct:/job\n",
        cpu__job__cpu_dot_cfs_quota_us="250000",
        cpu__job__cpu_dot_cfs_period_us="100000",
    )
    assert processor_quota(root, own) == 3


def test_limits_of_control_groups_version_1_are_read(tmp_path: Path) -> None:
    root, own = write_groups(
        tmp_path,
        "4:memory:/docker/x\n1:cpu,cpuacct:/docker/x\n0::/\n",
        **{"cpu,cpuacct__docker__x__cpu_dot_cfs_quota_us": "250000"},
        **{"cpu,cpuacct__docker__x__cpu_dot_cfs_period_us": "100000"},
        **{"cpu,cpuacct__cpu_dot_cfs_quota_us": "-1"},
        **{"cpu,cpuacct__cpu_dot_cfs_period_us": "100000"},
        memory__docker__x__memory_dot_limit_in_bytes="536870912",
    )
    assert processor_quota(root, own) == 3
    assert memory_limit(root, own) == 512 << 20


def test_root_has_the_limits_of_an_absent_group(
    tmp_path: Path,
) -> None:
    root, own = write_groups(
        tmp_path,
        "0::/system.slice/docker-1.scope\n",
        cpu_dot_max="50000 100000",
        memory_dot_max="268435456",
    )
    assert processor_quota(root, own) == 1
    assert memory_limit(root, own) == 256 << 20


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert processor_quota(tmp_path, tmp_path / "none") is None
    assert memory_limit(tmp_path, tmp_path / "none") is None


@pytest.mark.parametrize(("quota", "usable"), [(None, 4), (3, 3), (9, 4)])
def test_usable_processors_are_at_most_the_quota(
    monkeypatch: pytest.MonkeyPatch, quota: int | None, usable: int
) -> None:
    for name in ("cpu_count", "process_cpu_count"):
        monkeypatch.setattr(os, name, lambda: 4, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    monkeypatch.setattr(processors, "processor_quota", lambda: quota)
    assert processors.usable_processors() == usable


@pytest.mark.skipif(shutil.which("taskset") is None, reason="needs taskset")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two processors")
def test_a_process_that_may_use_one_processor_counts_one(tmp_path: Path) -> None:
    first = min(os.sched_getaffinity(0)) if sys.platform == "linux" else 0
    command = ["taskset", "-c", str(first), sys.executable, "-c", PRINT_PROCESSORS]
    assert subprocess.check_output(command, env=environment(tmp_path), text=True) == "1\n"
