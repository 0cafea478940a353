"""Run the whole suite on releases of DirectML, one after another, and keep a log of each."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from winelab.recipe import CHECKOUT
from winelab.versions import Release

__all__ = ["LOGS", "log_file", "run_suite", "suite_digest"]

LOGS: Final = Path("directml-versions")
"""The folder of the logs, below the current directory, unless the user names another one."""

_TESTED: Final = ("cases", "dmlconf", "schemas", "lab/substrate.yaml")
"""The files and folders of the checkout on which verdicts depend."""

_SUFFIXES: Final = (".yaml", ".json", ".py", ".dmlrec")


def log_file(logs: Path, release: Release) -> Path:
    """Return the file for the log of a release."""
    return logs / f"{release.version}.jsonl"


def suite_digest(arguments: Iterable[str], checkout: Path = CHECKOUT) -> str:
    """Return the digest of everything on which a run's verdicts depend, but DirectML and the lab.

    Args:
        arguments: the options of the run.
        checkout: the checkout.
    """
    whole = hashlib.sha256(json.dumps(list(arguments)).encode())
    for name in _TESTED:
        place = checkout / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.suffix in _SUFFIXES:
                whole.update(f"{path.relative_to(checkout)}\n".encode())
                whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def run_suite(
    releases: Sequence[Release],
    logs: Path,
    arguments: Sequence[str],
    dmlconf: Callable[[str, Sequence[str]], int],
) -> int:
    """Run the suite on each release that has no complete log of the same suite and options.

    Args:
        releases: the releases.
        logs: the folder of the logs, below the current directory.
        arguments: further options of `dmlconf run`.
        dmlconf: runs dmlconf in the lab with a version of DirectML and arguments; returns its
            exit code.

    Returns:
        0, or the first nonzero exit code. A nonzero exit code does not stop the other releases.
    """
    logs.mkdir(parents=True, exist_ok=True)
    digest = suite_digest(arguments)
    codes = []
    for release in releases:
        log = log_file(logs, release)
        stamp = log.with_suffix(".suite")
        if _complete(log) and stamp.is_file() and stamp.read_text() == digest:
            print(f"DirectML {release.version}: {log} is up to date", file=sys.stderr, flush=True)
            codes.append(_exit_code(log))
            continue
        print(f"DirectML {release.version}:", file=sys.stderr, flush=True)
        stamp.unlink(missing_ok=True)
        command = ["run", str(CHECKOUT / "cases"), "-b", "directml", "-j", "auto", "--quiet"]
        if not any(each.startswith("--circumstances") for each in arguments):
            command += ["--circumstances", "none"]  # Compare releases by their plain runs.
        codes.append(dmlconf(release.version, [*command, *arguments, "--log", str(log)]))
        if _complete(log):
            stamp.write_text(digest)
    return next(filter(None, codes), 0)


def _footer(log: Path) -> dict[str, object]:
    """Return the last line of a log if it is a footer; empty for a run that ended early."""
    if not log.is_file():
        return {}
    lines = log.read_bytes().rstrip().rpartition(b"\n")
    try:
        footer = json.loads(lines[2])
    except ValueError:
        return {}
    return footer if isinstance(footer, dict) and footer.get("record") == "footer" else {}


def _complete(log: Path) -> bool:
    return _footer(log).get("complete") is True


def _exit_code(log: Path) -> int:
    """Return the exit code that the run of a complete log had: 1 if a verdict fails it, else 0."""
    summary = _footer(log)["summary"]
    assert isinstance(summary, dict)
    return int(any(summary[status] for status in ("failed", "broken", "stale")))
