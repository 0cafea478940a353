"""Read the limits of this process's control groups, which containers and batch systems set.

A group's limit also holds for the groups below it, so the lowest limit from the process's own group
up to the root counts.

Source: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["memory_limit", "processor_quota"]

_ROOT: Final = Path("/sys/fs/cgroup")
_MEMBERSHIP: Final = Path("/proc/self/cgroup")
_UNIFIED: Final = "unified"
"""The folder of version 2 on systems that use both versions."""


def memory_limit(root: Path = _ROOT, membership: Path = _MEMBERSHIP) -> int | None:
    """Return how many bytes of memory the processes of this process's group may use together.

    None if no limit can be read. In version 1, almost 2^63 bytes stand for no limit.

    Args:
        root: the folder of the file systems of control groups.
        membership: the file that names the groups of this process.
    """
    return _least(
        _whole(_words(folder / ("memory.max" if version == 2 else "memory.limit_in_bytes")))
        for version, folder in _folders("memory", root, membership)
    )


def processor_quota(root: Path = _ROOT, membership: Path = _MEMBERSHIP) -> int | None:
    """Return how many processors the quota of processor time can keep busy, rounded up.

    None if no quota can be read. The arguments are those of `memory_limit`.
    """
    return _least(
        _rounded_up(
            _words(folder / "cpu.max")
            if version == 2
            else _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
        )
        for version, folder in _folders("cpu", root, membership)
    )


def _folders(controller: str, root: Path, membership: Path) -> Iterator[tuple[int, Path]]:
    """Yield the version and the folder of each group from this process's own up to the root.

    In a container, often only the root's folder exists.
    """
    lines: list[str] = []
    with suppress(OSError, UnicodeDecodeError):
        lines = membership.read_text("utf-8").splitlines()
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers:
            version, mounts = 2, [root, root / _UNIFIED]
        elif controller in controllers.split(","):
            version, mounts = 1, [root / controllers, root / controller]
        else:
            continue
        inner = Path(path.lstrip("/"))
        for mount in mounts:
            for part in (inner, *inner.parents):
                yield version, mount / part


def _words(file: Path) -> list[str]:
    try:
        return file.read_text("utf-8").split()
    except (OSError, UnicodeDecodeError):
        return []


def _whole(words: list[str]) -> int | None:
    return int(words[0]) if words and words[0].isdecimal() else None


def _rounded_up(words: list[str]) -> int | None:
    """Return a quota divided by its period, rounded up, at least 1; None without a quota."""
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return None
    quota, period = map(int, words)
    return max(1, -(-quota // period)) if period else None


def _least(limits: Iterator[int | None]) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
