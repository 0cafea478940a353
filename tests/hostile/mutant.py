"""Mutants: changed files that are fed to dmlconf."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutant"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed file.

    Attributes:
        content: its bytes.
        base: the file that it came from, or a name; of a certificate, that of the cheat.
    """

    content: bytes
    base: Path
