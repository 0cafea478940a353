"""Run a program in the lab; what it changes in the lab's own files is discarded afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from winelab.errors import LabError
from winelab.isolation import require, supervise
from winelab.machine import furnish, in_tree, mount, start_display
from winelab.packages import search_path
from winelab.recipe import CHECKOUT as CHECKOUT_HERE
from winelab.recipe import Lab
from winelab.tree import CHECKOUT, ENVIRONMENT, HERE, PYTHON, windows
from winelab.versions import INSIDE, library, releases_directory

__all__ = ["environment_for", "run", "run_inside"]

RUN_COMMANDS: Final = {"unshare": "util-linux", "setpriv": "util-linux", "mount": "mount"}

NO_DEVICE: Final = 103
"""The launcher's exit code if Direct3D 12 has no device."""

PASSED_ON: Final = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "WINEDEBUG")
"""The caller's environment variables that programs in the lab see, besides DMLCONF_*."""

WORKER_MEMORY: Final = {
    f"DMLCONF_{command}_WORKER_MEMORY": "768" for command in ("RUN", "RECORD", "FUZZ", "CERTIFY")
}
"""MiB by which a worker may grow: for every operator, Direct3D keeps more here than on Windows."""

OUTSIDE: Final = ("DMLCONF_DIRECTML", "DMLCONF_LAB", "DMLCONF_LAB_MIRROR")
"""Variables that have a meaning only outside the lab, and are not passed on."""


def run(lab: Lab, script: Path, arguments: Sequence[str], version: str | None = None) -> int:
    """Run Windows CPython in the lab, in the caller's current directory, and return its exit code.

    Args:
        lab: the lab.
        script: `lab.py`, which runs `run_inside` if its command is `_run`.
        arguments: the arguments of Windows CPython.
        version: the release of DirectML to use, or None for the lab's own.

    Raises:
        LabError: the lab is not built or not usable, or the release was not fetched.
    """
    require(RUN_COMMANDS)
    if not lab.is_built():
        raise LabError(f"the lab is not built; build it with: python3 {script} build")
    if version is not None:
        library(version)
    command = [sys.executable, str(script), "_run", str(lab.path), version or "", *arguments]
    return supervise(command, network=False)


def environment_for(caller: Mapping[str, str], version: str | None = None) -> dict[str, str]:
    """Return the environment of programs in the lab.

    Args:
        caller: the environment of the caller.
        version: the release of DirectML to use, or None for the lab's own.

    Raises:
        LabError: the release was not fetched.
    """
    passed_on = {
        name: value
        for name, value in caller.items()
        if name in PASSED_ON or (name.startswith("DMLCONF_") and name not in OUTSIDE)
    }
    directml = {"DMLCONF_DIRECTML": library(version)} if version is not None else {}
    packages = search_path()
    path = ";".join(filter(None, (ENVIRONMENT["PYTHONPATH"], packages)))
    return {**ENVIRONMENT, **WORKER_MEMORY, "PYTHONPATH": path, **directml, **passed_on}


def run_inside(lab: Lab, version: str | None, arguments: Sequence[str]) -> int:
    """Run Windows CPython, and return its exit code.

    This process must be the first of a process namespace, with mounts of its own (`supervise`).

    Args:
        lab: the lab.
        version: the release of DirectML to use, or None for the lab's own.
        arguments: the arguments of Windows CPython.
    """
    here = Path.cwd()
    view = lab.mount_point
    mount("-t", "tmpfs", "tmpfs", view)
    upper, work, tree = (view / name for name in ("upper", "work", "tree"))
    for directory in (upper, work, tree):
        directory.mkdir()
    layers = f"lowerdir={lab.tree},upperdir={upper},workdir={work}"
    mount("-t", "overlay", "overlay", "-o", layers, tree)
    furnish(tree)
    mount("--bind", "-o", "ro", CHECKOUT_HERE, tree / CHECKOUT[1:])
    mount("--rbind", here, tree / HERE[1:])
    if releases_directory().is_dir():
        (tree / INSIDE[1:]).mkdir()
        mount("--bind", "-o", "ro", releases_directory(), tree / INSIDE[1:])
    # Ctrl-C is for the program. This process must outlive the program, to return its exit code.
    signal.signal(signal.SIGINT, lambda *_: None)
    interpreter = windows(f"{PYTHON}/python.exe")
    command = in_tree(tree, "wine", interpreter, *arguments, directory=HERE)
    code = NO_DEVICE
    for _ in range(2):
        environment = start_display(tree, environment_for(os.environ, version))
        code = _wait_for(subprocess.Popen(command, env=environment))
        if code != NO_DEVICE:
            return code
        # Nothing has run yet. Rarely, Wine does not see the display in time: restart both.
        os.kill(-1, signal.SIGKILL)
    return code


def _wait_for(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process and return its exit code; reap all orphans that end meanwhile."""
    while True:
        pid, status = os.wait()
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            code = process.returncode
            return code if code >= 0 else 128 - code
