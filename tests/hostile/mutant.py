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
        base: the file that was changed, or a name, such as that of the cheat in a certificate.
    """

    content: bytes
    base: Path
