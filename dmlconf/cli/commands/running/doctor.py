"""`dmlconf doctor`: check what works on this machine, and what to do about the rest."""

from __future__ import annotations

import errno
import json
import os
import platform
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import click

from dmlconf.backends.errors import AmbiguousBackendError
from dmlconf.backends.plugins import installed_plugins, require_one
from dmlconf.backends.registry import is_built_in
from dmlconf.cli.common.cache import VARIABLE, figure_folder, user_store
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.configuration import read_configuration
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.logs import latest_log, log_directory, temporary_log_directory
from dmlconf.documents.problems import InvalidFilesError, printable
from dmlconf.documents.store import is_own_folder
from dmlconf.documents.wording import counted
from dmlconf.extras import install_command
from dmlconf.resources import cases_directory

__all__ = ["command"]


class _State(StrEnum):
    FINE = "ok"
    ABSENT = "absent"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class _Finding:
    """What one check found.

    Attributes:
        subject: what was checked, such as `DirectML`.
        state: `ok`, `absent` if it cannot be used, or `broken`, which makes the exit code 1.
        told: its version, path or number, or what is wrong with it.
    """

    subject: str
    state: _State
    told: str
    advice: str | None = None


@click.command("doctor", cls=Command, short_help="Check this machine, and say what to fix.")
@option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> int:
    """Check Python, NumPy, suite, DirectML, adapters, plugins, configuration, folders and Wine lab.

    The exit code is 1 if something prevents every run or the bundled suite has no case files or
    recordings; DirectML is optional.
    """
    findings = [finding for check in _CHECKS for finding in check()]
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        width = max(len(finding.subject) for finding in findings)
        for finding in findings:
            click.echo(printable(f"{finding.state:<6}  {finding.subject:<{width}}  {finding.told}"))
            if finding.advice:
                click.echo(printable(f"{'':<{width + 10}}{finding.advice}"))
    broken = any(finding.state is _State.BROKEN for finding in findings)
    return ExitCode.FAILED if broken else ExitCode.SUCCESS


def _python() -> Iterator[_Finding]:
    text = f"{platform.python_version()} ({sys.executable}) on {platform.platform()}"
    yield _Finding("Python", _State.FINE, text)


def _numpy() -> Iterator[_Finding]:
    import numpy as np

    yield _Finding("NumPy", _State.FINE, np.__version__)


def _suite() -> Iterator[_Finding]:
    folder = cases_directory()
    files = sum(1 for _ in folder.rglob("*.yaml"))
    recordings = sum(1 for _ in folder.rglob("*.dmlrec"))
    text = f"{files:,} case files and {recordings:,} recordings in {folder}"
    if files and recordings:
        yield _Finding("suite", _State.FINE, text)
    else:
        yield _Finding("suite", _State.BROKEN, text, "install dmlconf again: files are missing")


def _directml() -> Iterator[_Finding]:
    from dmlconf.backends.protocol import BackendError
    from dmlconf.backends.registry import survey_adapters

    try:
        surveyed = survey_adapters()
    except BackendError as error:
        text = str(error).partition("\n")[0].partition(" Tried:")[0]
        yield _Finding("DirectML", _State.ABSENT, text, _directml_advice())
        return
    yield _Finding("DirectML", _State.FINE, f"{surveyed.file.version}, {surveyed.file.path}")
    for index, each in enumerate(surveyed.adapters):
        name = f"adapter {index}"
        if each.capabilities is None:
            advice = "update its driver, or choose another adapter with -b directml:adapter=INDEX"
            yield _Finding(
                name, _State.ABSENT, f"{each.adapter.description}: {each.refusal}", advice
            )
        else:
            level = each.capabilities.feature_level
            advice = f"dmlconf run -b directml:adapter={index}"
            yield _Finding(name, _State.FINE, f"{each.adapter.description}, level {level}", advice)


def _directml_advice() -> str:
    if sys.platform == "win32":
        return f"{install_command('directml')}, or name a file with --directml FILE"
    if os.environ.get("WSL_DISTRO_NAME"):
        return "pip install --no-deps torch-directml, or name libdirectml.so with --directml FILE"
    return "needed for -b directml only; without Windows, the Wine lab runs it (docs/wine-lab.md)"


def _plugins() -> Iterator[_Finding]:
    for name, plugins in installed_plugins().items():
        try:
            require_one(name, plugins, built_in=is_built_in(name))
        except AmbiguousBackendError as error:
            yield _Finding(f"plugin {name}", _State.ABSENT, str(error))
            continue
        text = ", ".join(map(str, plugins))
        yield _Finding(f"plugin {name}", _State.FINE, text, f"dmlconf run -b {name}")


def _logs() -> Iterator[_Finding]:
    try:
        folder = log_directory()
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, f"{folder} is not writable")
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        with suppress(OSError):
            reason = f"{reason}; until then they are in {temporary_log_directory()}"
        advice = "set DMLCONF_LOG_DIRECTORY to a writable folder, or use --log FILE"
        yield _Finding("run logs", _State.ABSENT, str(reason), advice)
        return
    count, size = _files(folder.glob("run-*.jsonl"))
    text = f"{count} in {folder}, {size / 1e6:,.1f} MB"
    advice = "dmlconf report shows the latest, dmlconf run --failed repeats its failures"
    yield _Finding("run logs", _State.FINE, text, advice if latest_log() else None)


def _configuration() -> Iterator[_Finding]:
    try:
        configuration = read_configuration()
    except InvalidFilesError as error:
        text = "; ".join(f"{each.path}:{each.line}: {each.message}" for each in error.problems)
        yield _Finding("configuration", _State.BROKEN, text, "dmlconf config shows each line")
        return
    text = str(configuration.path) if configuration else "no file"
    yield _Finding("configuration", _State.FINE, text)


def _cache() -> Iterator[_Finding]:
    store = user_store()
    if store is None or (os.path.lexists(store.folder) and not is_own_folder(store.folder)):
        advice = f"set {VARIABLE}=FOLDER"
        if store is not None:
            text = f"{store.folder} is not a folder that you own and only you may write to"
        elif os.environ.get(VARIABLE):
            text, advice = f"turned off by {VARIABLE}", f"unset {VARIABLE} to start faster"
        else:
            text = "this account has no folder for it"
        yield _Finding(
            "cache", _State.ABSENT, f"{text}: nothing is kept for later commands", advice
        )
        return
    count, size = _files((*store.folder.glob("*"), *figure_folder(store).glob("*")))
    text = f"{counted(count, 'file')} in {store.folder}, {size / 1e6:,.1f} MB"
    # The single file `dmlconf.pyz` unpacks itself there.
    unpacked = store.folder / "unpacked"
    if unpacked.is_dir():
        _, size = _files(unpacked.rglob("*"))
        text += f"; {size / 1e6:,.1f} MB in {unpacked}"
    yield _Finding("cache", _State.FINE, text)


def _files(paths: Iterable[Path]) -> tuple[int, int]:
    """Return how many of the paths are regular files, and the bytes of these files."""
    count, size = 0, 0
    for path in paths:
        with suppress(OSError):  # Another process removed it.
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                count, size = count + 1, size + status.st_size
    return count, size


def _lab() -> Iterator[_Finding]:
    if not sys.platform.startswith("linux"):
        return
    chosen = os.environ.get("DMLCONF_LAB")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    with suppress(RuntimeError):  # The account has no home.
        cache = cache.expanduser()
    folder = Path(chosen) if chosen else cache / "dmlconf" / "lab"
    labs = [each for each in folder.glob("*") if (each / "packages.txt").exists()]
    if labs:
        text = f"{len(labs)} built in {folder}"
        advice = "in a checkout: python3 lab/lab.py run -- run cases/ -b directml"
        yield _Finding("Wine lab", _State.FINE, text, advice)
    else:
        advice = "in a checkout: python3 lab/lab.py build (docs/wine-lab.md)"
        yield _Finding("Wine lab", _State.ABSENT, f"none in {folder}", advice)


_CHECKS: Final[tuple[Callable[[], Iterator[_Finding]], ...]] = (
    _python,
    _numpy,
    _suite,
    _directml,
    _plugins,
    _configuration,
    _logs,
    _cache,
    _lab,
)
