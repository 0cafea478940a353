"""Mutants are changed files that dmlconf reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutant"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed file; `base` names what was changed."""

    content: bytes
    base: Path
