"""Read JSON and TOML of strangers into plain values; nesting and long numbers are limited."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

from dmlconf.limits import DEEPEST_DOCUMENT, DEEPEST_JSON, LONGEST_NUMBER

__all__ = ["TreeError", "parsed_json", "parsed_toml", "require_shallow"]

_LARGE_NUMBER: Final = re.compile(rb"[0-9]{130}|[eE]\+?0*[0-9]{3}")
"""Text that may be a number of too many characters, or one too large for FLOAT64.

A number of more than `LONGEST_NUMBER` (400) characters has at least 130 digits before the point,
after it, or in the exponent.
"""
_OPENING: Final = re.compile(rb"[\[{]")
_MOST_INTEGER_BITS: Final = LONGEST_NUMBER * 4
"""Bits of the largest integer of `LONGEST_NUMBER` hexadecimal digits, as TOML may have them."""


class TreeError(ValueError):
    """JSON or TOML that is rejected; the message says why.

    Attributes:
        line: the line of the mistake, from 1; 0 if unknown.
        column: from 1.
    """

    def __init__(self, message: str, line: int = 0, column: int = 1) -> None:
        self.line, self.column = line, column
        super().__init__(message)


def parsed_json(content: bytes, *, unique: bool = False, whole: bool = False) -> Any:
    """Return the value of JSON text in UTF-8.

    Args:
        unique: whether an object must not have a key twice.
        whole: whether all numbers must be integers, without a point or an exponent.

    Raises:
        TreeError: the text is not JSON, is nested too deeply, breaks `unique` or `whole`, or has
            NaN, an infinity, a number that is too long, or a decimal too large for FLOAT64.
    """
    more: dict[str, Any] = {"object_pairs_hook": _unique} if unique else {}
    if _LARGE_NUMBER.search(content):  # A string may match too, so each number is checked.
        more |= {"parse_int": _integer, "parse_float": _float}
    if whole:
        more["parse_float"] = _fraction
    try:
        value = json.loads(content.decode("utf-8"), parse_constant=_constant, **more)
    except RecursionError as error:
        raise TreeError(f"nested deeper than {DEEPEST_JSON} levels") from error
    except TreeError:
        raise
    except UnicodeDecodeError as error:
        raise TreeError(f"not UTF-8: byte {error.object[error.start]:#04x}") from error
    except ValueError as error:
        raise TreeError(str(error)) from error
    # Text with few brackets cannot be deep, so its values need no check.
    if len(_OPENING.findall(content)) > DEEPEST_JSON:
        require_shallow(value, DEEPEST_JSON)
    return value


def _integer(text: str) -> int:
    _require_short(text)
    return int(text)


def _float(text: str) -> float:
    _require_short(text)
    value = float(text)
    if not isfinite(value):
        raise TreeError(f"{text[:40]} is larger than FLOAT64 holds")
    return value


def _fraction(text: str) -> Any:
    raise TreeError(f"{text[:40]} is not an integer")


def _require_short(text: str) -> None:
    if len(text) > LONGEST_NUMBER:
        raise TreeError(f"a number of more than {LONGEST_NUMBER} characters")


def _constant(name: str) -> Any:
    raise TreeError(f"{name} is not JSON")


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise TreeError("an object has a duplicate key")
    return mapping


def parsed_toml(text: str) -> dict[str, Any]:
    """Return the table of TOML text.

    Raises:
        TreeError: it is not TOML, is nested too deeply, or has an integer that is too long.
    """
    import tomllib  # Slow to import.

    try:
        table = tomllib.loads(text)
    except RecursionError as error:
        raise TreeError(f"nested deeper than {DEEPEST_DOCUMENT} levels") from error
    except tomllib.TOMLDecodeError as error:
        message, _, location = str(error).partition(" (at ")
        numbers = [int(number) for number in re.findall(r"\d{1,9}", location)]
        if len(numbers) != 2:  # "at end of document".
            lines = text.rstrip().split("\n")
            numbers = [len(lines), len(lines[-1]) + 1]
        line, column = numbers
        raise TreeError(message, line, column) from error
    except ValueError as error:  # Python converts no integer of more than 4,300 digits.
        raise TreeError(f"a number of more than {LONGEST_NUMBER} characters") from error
    require_shallow(table, DEEPEST_DOCUMENT)
    return table


def require_shallow(value: Any, levels: int) -> None:
    """Raise `TreeError` if a tree has more than `levels` levels or an integer that is too long."""
    level = [value]
    for depth in itertools.count():
        if any(type(each) is int and each.bit_length() > _MOST_INTEGER_BITS for each in level):
            raise TreeError(f"a number of more than {LONGEST_NUMBER} characters")
        inner = [each for each in level if isinstance(each, dict | list)]
        if not inner:
            return
        if depth == levels:
            raise TreeError(f"nested deeper than {levels} levels")
        contents = (each.values() if isinstance(each, dict) else each for each in inner)
        level = list(itertools.chain.from_iterable(contents))
