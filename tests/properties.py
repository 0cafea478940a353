"""Choose how many random examples Hypothesis tries of a slow property."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples"]


def examples(count: int) -> int:
    """Return how many examples to try of a slow property.

    Args:
        count: the number by default. The profile `explore` tries as many as of other properties.
    """
    profile = settings()
    return count if profile.derandomize else profile.max_examples
