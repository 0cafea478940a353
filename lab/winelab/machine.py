"""What a program inside the lab needs of a machine: mounts, devices, and a display for Wine."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from winelab.errors import LabError

__all__ = ["call", "furnish", "in_tree", "mount", "start_display"]

DISPLAY_SECONDS: Final = 30

LAST_LINES: Final = 12
"""Number of output lines that the error of a failed command shows."""

DEVICES: Final = ("null", "zero", "full", "random", "urandom")


def call(*command: str | Path, log: IO[str], env: Mapping[str, str] | None = None) -> None:
    """Run a command to its end.

    Args:
        command: the command.
        log: receives the command's output.
        env: the command's environment; None for that of this process.

    Raises:
        LabError: the command failed; the message has the end of its output.
    """
    done = subprocess.run(
        [*map(str, command)],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        env=env,
    )
    log.write(done.stdout)
    log.flush()
    if done.returncode:
        end = "".join(f"\n  {line}" for line in done.stdout.splitlines()[-LAST_LINES:])
        raise LabError(f"{' '.join(map(str, command))}: exit code {done.returncode}{end}")


def mount(*arguments: str | Path) -> None:
    """Run `mount` with arguments; the mount ends with the namespace of this process.

    Raises:
        LabError: this process has no right to mount.
    """
    done = subprocess.run(
        ["mount", *map(str, arguments)], check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise LabError(
            f"{done.stderr.strip()}; the lab needs the right to mount "
            "(in a container: the capability CAP_SYS_ADMIN, or --privileged)"
        )


def furnish(tree: Path) -> None:
    """Mount what programs expect in a tree: /proc, /sys, /tmp, and /dev with a few devices."""
    mount("-t", "proc", "proc", tree / "proc")
    mount("--rbind", "/sys", tree / "sys")
    mount("-t", "tmpfs", "tmpfs", tree / "tmp")
    devices = tree / "dev"
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", devices)
    for name in DEVICES:
        (devices / name).touch()
        mount("--bind", Path("/dev", name), devices / name)
    (devices / "shm").mkdir(mode=0o1777)
    (devices / "fd").symlink_to("/proc/self/fd")


def in_tree(tree: Path, *command: str, directory: str = "/") -> list[str]:
    """Return the command that runs a command inside a tree, in a directory of the tree."""
    return ["chroot", str(tree), "/usr/bin/env", "-C", directory, *command]


def start_display(tree: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Start the display that Wine needs, and return the environment of programs that use it.

    The display ends with the process namespace.

    Raises:
        LabError: the display is not ready in time.
    """
    ready, theirs = os.pipe()
    with open(ready, encoding="ascii") as answer:  # noqa: PTH123 - a descriptor, not a path
        try:
            subprocess.Popen(
                in_tree(
                    tree,
                    "Xvfb",
                    "-displayfd",
                    str(theirs),
                    "-noreset",
                    "-nolisten",
                    "tcp",
                    "-screen",
                    "0",
                    "640x480x24",
                ),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs,),
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        readable, _, _ = select.select([answer], [], [], DISPLAY_SECONDS)
        # The whole line is read: Xvfb writes it in pieces, and ends if nobody reads the last.
        number = answer.readline().strip() if readable else ""
    if not number:
        raise LabError("the lab's display (Xvfb) did not start")
    return {**environment, "DISPLAY": f":{number}"}
