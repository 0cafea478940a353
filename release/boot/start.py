"""Chooses what the running Python needs from the file, unpacks it once, and starts dmlconf.

Python 3.7 and newer can read this module, so that older ones are told which Pythons the file holds.
"""

from __future__ import annotations

import json
import os
import platform
import runpy
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

FILE = Path(__file__).resolve().parent
"""The single file: to Python, a folder that it imports from."""

CONTENT = "content.zip"
"""The member that holds each content once, under its SHA-256, and a list of files per target."""

WRONG_USAGE = 2  # As in dmlconf's own exit codes.
OLDEST_GLIBC = (2, 28)
"""What wheels for `manylinux_2_28` need, which `release/single_file.py` installs."""
KEPT_DAYS = 30


def main() -> None:
    """Start dmlconf from the user's cache folder, or from a temporary one where there is none."""
    target = target_of_this_python()
    with ZipFile(FILE) as file:
        about = json.loads(file.read("about.json"))
    if target not in about["targets"]:
        say(
            f"Error: {FILE.name} holds dmlconf for {about['holds']}; this is {this_python()}. "
            "Use one of these Pythons, or install dmlconf from its wheel: pip install dmlconf-*.whl"
        )
        sys.exit(WRONG_USAGE)
    os.environ["DMLCONF_SINGLE_FILE"] = str(FILE)  # For messages that say what to type.
    folder = kept(f"{about['digest'][:16]}-{target}", target)
    if folder is None:
        sys.exit(run_from_temporary_folder(target))
    start(folder)


def target_of_this_python() -> str:
    """Return what the running Python needs, such as `cp311-win-amd64`."""
    build = sysconfig.get_platform()
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "unknown"
    if build.startswith("linux"):
        name, version = platform.libc_ver()
        if name != "glibc" or tuple(map(int, version.split(".")[:2])) < OLDEST_GLIBC:
            return "unknown"
    return f"cp{sys.version_info[0]}{sys.version_info[1]}-{build}"


def this_python() -> str:
    """Return the running Python in words: `CPython 3.10.13 for linux-x86_64 (glibc 2.36)`."""
    free = ", free-threaded," if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    libc = " ".join(platform.libc_ver()) or "another C library"
    shown = f" ({libc})" if sys.platform == "linux" else ""
    name = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{name}{free} for {sysconfig.get_platform()}{shown}"


def kept(name: str, target: str) -> Path | None:
    """Return the folder in the cache with what a target needs, unpacked if it is not yet there.

    Returns:
        None where the cache is turned off, or cannot be used safely.
    """
    cache = cache_folder()
    if cache is None:
        return None
    parent = cache / "unpacked"
    folder = parent / name
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (is_own(cache) and is_own(parent)):
            return None
        if not folder.exists():
            say(f"Unpacking dmlconf to {folder}, once")
            remove_unused(parent)
            part = Path(tempfile.mkdtemp(prefix="part-", dir=str(parent)))
            try:
                unpack(target, part)
                part.rename(folder)
            except OSError:
                shutil.rmtree(part, ignore_errors=True)
                if not folder.exists():  # Else another process was faster.
                    return None
        if not is_own(folder):
            return None
        os.utime(folder)
    except OSError:
        return None
    return folder


def cache_folder() -> Path | None:
    """Return the cache folder by dmlconf's own rules; None if it is off or there is none."""
    named = os.environ.get("DMLCONF_CACHE")
    if named == "off":
        return None
    if named:
        return Path(named).absolute()
    from platformdirs import user_cache_path  # It is in this file, and needs a newer Python.

    try:
        folder = user_cache_path("dmlconf", appauthor=False)
    except RuntimeError:
        return None
    return folder if folder.is_absolute() else None


def is_own(folder: Path) -> bool:
    """Return whether this is a folder, not a link, that only this user can write to."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    if sys.platform == "win32":  # Access control lists decide there.
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def remove_unused(parent: Path) -> None:
    """Remove what no process has started from for a month, such as earlier versions."""
    for folder in parent.iterdir():
        with suppress(FileNotFoundError):  # Another process has renamed or removed it.
            if time.time() - folder.lstat().st_mtime > KEPT_DAYS * 86400:
                shutil.rmtree(folder, ignore_errors=True)


def unpack(target: str, folder: Path) -> None:
    """Write the files of a target to a folder."""
    with ZipFile(FILE) as file, file.open(CONTENT) as stream, ZipFile(stream) as content:
        files = json.loads(content.read(f"{target}.json"))
        # In the order of the inner archive, since going back in it means reading from its start.
        places = {info.filename: info.header_offset for info in content.infolist()}
        for name, digest in sorted(files.items(), key=lambda item: places[item[1]]):
            data = content.read(digest)
            if sha256(data).hexdigest() != digest:
                raise OSError(f"{FILE} is damaged")
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def start(folder: Path) -> None:
    """Run dmlconf from a folder in this process."""
    sys.path[0] = str(folder)
    runpy.run_module("dmlconf", run_name="__main__", alter_sys=True)


def run_from_temporary_folder(target: str) -> int:
    """Run dmlconf in a process of its own from a folder that is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="dmlconf-"))
    try:
        unpack(target, folder)
        code = (
            "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
            "runpy.run_module('dmlconf', run_name='__main__', alter_sys=True)"
        )
        process = subprocess.Popen([sys.executable, "-c", code, str(folder), *sys.argv[1:]])
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # The child gets Ctrl-C, too, and ends after its report.
                continue
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def say(message: str) -> None:
    """Print a line to standard error."""
    print(message, file=sys.stderr)
