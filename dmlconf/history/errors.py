"""The error of operations on histories."""

from __future__ import annotations

from dmlconf.documents.problems import ExpectedError

__all__ = ["HistoryError"]


class HistoryError(ExpectedError):
    """A history cannot be used as asked; the message says why."""
