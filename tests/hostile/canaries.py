"""Pretended kinds of file that make the child process hang or fail, to test the trial."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final

from tests.hostile.feeding import Subject
from tests.hostile.mutant import Mutant

__all__ = ["CANARIES"]


def _mutant(random: Random) -> Mutant:
    return Mutant(b"nothing", Path("nothing"))


def _works_on(random: Random, path: Path, base: Path) -> str:
    while True:
        pass


def _takes_memory(random: Random, path: Path, base: Path) -> str:
    """Take 1,200 MiB; `tests.hostile.child` permits 1,024."""
    return "" if bytearray(b"\x01") * (1200 << 20) else "nothing"


def _dies(random: Random, path: Path, base: Path) -> str:
    os.abort()


def _raises(random: Random, path: Path, base: Path) -> str:
    raise ZeroDivisionError("on purpose")


_FEEDS: Final[Mapping[str, Callable[[Random, Path, Path], str]]] = {
    "works on": _works_on,
    "takes memory": _takes_memory,
    "dies": _dies,
    "raises": _raises,
}

CANARIES: Final = {name: Subject(".txt", _mutant, feed) for name, feed in _FEEDS.items()}
