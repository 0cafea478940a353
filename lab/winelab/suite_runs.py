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
        earlier = stamp.read_text().split() if stamp.is_file() and _complete(log) else []
        if earlier[:1] == [digest] and len(earlier) == 2:
            print(f"DirectML {release.version}: {log} is up to date", file=sys.stderr, flush=True)
            codes.append(int(earlier[1]))
            continue
        print(f"DirectML {release.version}:", file=sys.stderr, flush=True)
        stamp.unlink(missing_ok=True)
        command = ["run", str(CHECKOUT / "cases"), "-b", "directml", "-j", "auto", "--quiet"]
        if not any(each.startswith("--circumstances") for each in arguments):
            command += ["--circumstances", "none"]  # Compare releases by their plain runs.
        codes.append(dmlconf(release.version, [*command, *arguments, "--log", str(log)]))
        if _complete(log):
            stamp.write_text(f"{digest} {codes[-1]}")
    return next(filter(None, codes), 0)


def _complete(log: Path) -> bool:
    """Return whether the last line of a log is the footer of a run that did not end early."""
    if not log.is_file():
        return False
    lines = log.read_bytes().rstrip().rpartition(b"\n")
    try:
        footer = json.loads(lines[2])
    except ValueError:
        return False
    footed = isinstance(footer, dict) and footer.get("record") == "footer"
    return footed and footer.get("complete") is True
