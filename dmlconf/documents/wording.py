"""Phrases of messages and reports: counts, and lists that are cut off."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

__all__ = ["counted", "first_lines", "first_names"]


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 case`, `1,234 cases`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_names(names: Collection[str], most: int) -> str:
    """Return the first names, and how many more there are: `a, b and 7 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(islice(names, most))}{more}"


def first_lines(lines: Collection[str], most: int) -> list[str]:
    """Return the first lines and, if there are more, `and 7 more`; two blanks precede each line."""
    more = [f"and {len(lines) - most:,} more"] if len(lines) > most else []
    return [f"  {line}" for line in (*islice(lines, most), *more)]
