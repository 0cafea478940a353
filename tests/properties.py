"""Choose how many random examples Hypothesis tries in a slow property test."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples"]


def examples(count: int) -> int:
    """Return how many examples to try in a slow property test.

    Args:
        count: the number with the default profile. With `explore` each test tries 1,500.
    """
    profile = settings()
    return count if profile.derandomize else profile.max_examples
