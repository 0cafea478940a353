"""The error of the lab.

It is raised if something that the lab needs is missing, a step of the build failed, the lab is not
built, or an argument names a path that the lab does not see.
"""

from __future__ import annotations

__all__ = ["LabError"]


class LabError(Exception):
    """The lab cannot do what was requested; the message says why and what to do."""
