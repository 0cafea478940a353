"""Mutants are changed files that dmlconf reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutant"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed file.

    Attributes:
        content: its bytes.
        base: the file that was changed, or another name, such as that of a cheat.
    """

    content: bytes
    base: Path
