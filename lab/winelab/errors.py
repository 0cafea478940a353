"""The error of the lab: something it needs is missing, a build step failed, it is not built, or an
argument names a path that the lab does not see.
"""

from __future__ import annotations

__all__ = ["LabError"]


class LabError(Exception):
    """The lab cannot do what was requested; the message says why and what to do."""
