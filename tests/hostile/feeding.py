"""Run dmlconf on a mutant, and say what it did wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from dmlconf.documents.reader import read_document
from dmlconf.resources import cases_directory
from tests.cli.process import dmlconf_here
from tests.hostile.mutant import Mutant

__all__ = ["Subject", "complaint", "small_files", "small_recordings", "suite_of", "tree_of"]

_CODES: Final = frozenset({0, 1, 2, 3, 4, 5, 6, 7, 8})
"""All exit codes but 70, that of a bug in dmlconf itself."""
_LARGEST_BASE_BYTES: Final = 8_000
"""Mutants of larger files take more time."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of file that dmlconf reads.

    `feed` lets dmlconf read the mutant at a path, and returns what it did wrong, or an empty text.
    """

    suffix: str
    mutant: Callable[[Random], Mutant]
    feed: Callable[[Random, Path, Path], str]


def complaint(folder: Path, *arguments: str | Path, reports: Mapping[str, Path]) -> str:
    """Run dmlconf with reports to files, by format; return what it did wrong, or an empty text."""
    options = [part for name, path in reports.items() for part in ("--report", f"{name}:{path}")]
    done = dmlconf_here(folder, *arguments, *options)
    if done.returncode not in _CODES:
        return f"exit {done.returncode}: {done.stderr[-1500:]}"
    if "Traceback" in done.stderr:
        return f"a traceback: {done.stderr[-1500:]}"
    if done.returncode not in (0, 1, 6) and not done.stderr.strip():
        return f"exit {done.returncode} without a word"
    message = done.stdout + done.stderr
    if any(character in message for character in "\x1b\x07\x00\u202e"):
        return f"a control character reaches the terminal: {message[-1500:]!r}"
    if "json" in reports and done.returncode in (0, 1, 6) and reports["json"].exists():
        try:
            json.loads(reports["json"].read_bytes())
        except ValueError as error:
            return f"the JSON report is not JSON: {error}"
    return ""


@cache
def tree_of(path: Path) -> Any:
    return read_document(path).data


@cache
def small_files(pattern: str) -> tuple[Path, ...]:
    files = sorted(cases_directory().glob(pattern))
    return tuple(path for path in files if path.stat().st_size <= _LARGEST_BASE_BYTES)


@cache
def small_recordings() -> tuple[Path, ...]:
    return tuple(path for path in small_files("*/*.dmlrec") if suite_of(path).exists())


def suite_of(recording: Path) -> Path:
    return recording.parent / "documented.yaml"
