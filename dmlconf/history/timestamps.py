"""Times as text of one form, ISO 8601 in UTC; sorted texts are sorted times."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["utc_text"]


def utc_text(text: str) -> str:
    """Return a date with or without a time as text in UTC: `2025-03-01T00:00:00+00:00`.

    A text without a time zone is taken as UTC.

    Raises:
        ValueError: `datetime.fromisoformat` does not read the text, or its year in UTC is not from
            1 to 9999.
    """
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC).isoformat()
    except OverflowError as error:
        raise ValueError(str(error)) from error
