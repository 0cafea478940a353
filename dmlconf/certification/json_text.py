"""JSON in certificates: written in one canonical form, and read without ambiguity."""

from __future__ import annotations

import json
from typing import Any, Final

from dmlconf.certification.errors import RefusedError

__all__ = ["canonical_json", "parsed_json"]

_ENCODER: Final = json.JSONEncoder(
    allow_nan=False, sort_keys=True, separators=(",", ":"), ensure_ascii=True
)


def canonical_json(value: Any) -> bytes:
    """Return a value as JSON in one line: keys sorted, no spaces, ASCII only."""
    return _ENCODER.encode(value).encode("ascii")


def parsed_json(content: bytes, name: str, *, whole: bool = False) -> Any:
    """Return the value of JSON text.

    Args:
        content: in UTF-8.
        name: of the member, for the message.
        whole: whether all numbers must be integers, without a point or an exponent.

    Raises:
        RefusedError: it is not JSON, or has a duplicate key, which readers resolve differently.
    """
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_constant,
            parse_float=_fraction if whole else None,
        )
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{name} is not JSON: {str(error)[:200]}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("an object has a duplicate key")
    return mapping


def _fraction(number: str) -> Any:
    raise ValueError(f"{number[:40]} is not an integer")


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
