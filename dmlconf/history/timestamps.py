"""Times of runs as text in one form, so that the order of the texts is that of the times."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["utc_text"]


def utc_text(text: str) -> str:
    """Return a date, with or without a time, in UTC; without a time zone it is in UTC already.

    Raises:
        ValueError: it is not a date of ISO 8601.
    """
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC).isoformat()
    except OverflowError as error:
        raise ValueError(str(error)) from error
