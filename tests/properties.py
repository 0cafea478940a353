"""The number of examples with which a property is tried."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples"]


def examples(count: int) -> int:
    """Return the number of examples of a slow property; `explore` tries as many as of all others.

    Args:
        count: the number otherwise.
    """
    profile = settings()
    return count if profile.derandomize else profile.max_examples
