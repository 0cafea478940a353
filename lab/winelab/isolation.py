"""Run a command in namespaces of its own, so that it leaves no process and no mount behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import IO, Any, Final

from winelab.errors import LabError

__all__ = ["GRACE_SECONDS", "find", "require", "supervise"]

GRACE_SECONDS: Final = 10
"""How long a command may take to end after Ctrl-C."""

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


def require(commands: Mapping[str, str]) -> None:
    """Check that this machine can build or run a lab.

    Args:
        commands: the commands that must exist, with the Debian package of each.

    Raises:
        LabError: this is not Linux, its user is not root, or a command is missing.
    """
    if not sys.platform.startswith("linux"):
        raise LabError("the Wine lab needs Linux; on Windows, dmlconf needs no lab")
    if os.geteuid() != 0:
        raise LabError("the Wine lab mounts its own file system and must be run as root")
    missing = {command: package for command, package in commands.items() if not find(command)}
    if missing:
        raise LabError(
            f"missing on this machine: {', '.join(missing)}; "
            f"on Debian: apt-get install {' '.join(sorted(set(missing.values())))}"
        )


def find(command: str) -> str | None:
    """Return the path of a command, also if it is in /usr/sbin or /sbin; None if there is none."""
    return shutil.which(command, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def supervise(command: Sequence[str], *, network: bool) -> int:
    """Run a command with processes and mounts of its own, which all end with the command.

    The first Ctrl-C is passed on, so that the command can finish its work. A second one, the end of
    `GRACE_SECONDS`, or the end of this process ends everything at once.

    Args:
        command: the command.
        network: whether the command may use the network.

    Returns:
        The command's exit code; 128 and the signal's number if a signal ended it.
    """
    isolated = ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--mount", "--pid", "--ipc"]
    if not network:
        # The display's abstract socket belongs to the network. If runs shared a network, each would
        # find the displays of others, and fail when those end.
        isolated.append("--net")
    isolated += ["--fork", "--kill-child", "--propagation", "private", "--", *command]
    outputs = {name: _output(name) for name in ("stdout", "stderr")}
    process = subprocess.Popen(
        isolated,
        stdin=subprocess.DEVNULL if os.isatty(0) else None,
        stdout=outputs["stdout"],
        stderr=outputs["stderr"],
        start_new_session=True,
    )
    ended_by = 0

    def end(number: int, _: FrameType | None) -> None:
        nonlocal ended_by
        first = not ended_by
        ended_by = ended_by if number == signal.SIGALRM else number
        if first and number == signal.SIGINT:
            os.killpg(process.pid, signal.SIGINT)
            signal.alarm(GRACE_SECONDS)
        else:
            process.kill()

    handlers = {number: signal.signal(number, end) for number in ENDING}
    pumps = [_pump(process.stdout, 1), _pump(process.stderr, 2)]
    code = process.wait()
    signal.alarm(0)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for pump in filter(None, pumps):
        pump.join(1)
    if code >= 0:
        return code
    return 128 + (ended_by or -code)


def _output(name: str) -> int | None:
    """Return a pipe if a stream is a terminal, which Wine would take over; else None."""
    return subprocess.PIPE if os.isatty(1 if name == "stdout" else 2) else None


def _pump(source: IO[Any] | None, target: int) -> threading.Thread | None:
    """Start a thread that forwards a pipe's output to a descriptor; None without a pipe."""
    if source is None:
        return None
    descriptor = source.fileno()

    def work() -> None:
        while data := os.read(descriptor, 65536):
            while data:
                data = data[os.write(target, data) :]

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
