"""JSON in certificates: written in one canonical form, and read without ambiguity."""

from __future__ import annotations

import json
from typing import Any, Final

from dmlconf.certification.errors import RefusedError
from dmlconf.documents import trees

__all__ = ["canonical_json", "parsed_json"]

_ENCODER: Final = json.JSONEncoder(
    allow_nan=False, sort_keys=True, separators=(",", ":"), ensure_ascii=True
)


def canonical_json(value: Any) -> bytes:
    """Return one line of JSON in ASCII, with sorted keys and without needless spaces.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    return _ENCODER.encode(value).encode("ascii")


def parsed_json(content: bytes, name: str, *, whole: bool = False) -> Any:
    """Return the value of JSON text.

    Args:
        name: what the message calls the text.
        whole: whether all numbers must be integers, without a point or an exponent.

    Raises:
        RefusedError: the text is not JSON that dmlconf reads, has a duplicate key or, with `whole`,
            has another number than an integer.
    """
    try:
        return trees.parsed_json(content, unique=True, whole=whole)
    except trees.TreeError as error:
        raise RefusedError(f"{name} is not JSON: {str(error)[:200]}") from error
