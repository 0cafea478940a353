"""Types of options: numbers in a range, texts, and `ParamType`, the base of dmlconf's other types.

All are for every supported click.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

__all__ = ["TEXT", "Number", "ParamType", "WholeNumber", "WholeNumberOr"]

if TYPE_CHECKING:
    from click import ParamType
else:

    class ParamType(click.ParamType):
        """`click.ParamType` that allows `ParamType[int]`, which click before 8.4 does not."""

        def __class_getitem__(cls, values: Any) -> type[ParamType]:
            return cls


class _Text(click.types.StringParamType):
    """A text that is not empty, such as the name of a case."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "":
            self.fail("it is empty (perhaps a variable is not set)", param, ctx)
        return str(super().convert(value, param, ctx))


TEXT: Final = _Text()


class WholeNumber(click.IntRange):
    """A whole number in a range, which help and messages give in words, such as `at least 1`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or fail and say which numbers are allowed."""
        number = self.number(value)
        if number is None:
            self.fail(f"{value!r} is not {self.meaning}", param, ctx)
        return number

    def number(self, value: Any) -> int | None:
        """Return the number of a text, or of a number from a configuration; None if not allowed."""
        if isinstance(value, float) and not value.is_integer():
            return None
        try:
            number = int(super().convert(value, None, None))
        except (ValueError, click.BadParameter):  # More than 4,300 digits are a `ValueError`.
            return None
        return number

    @property
    def meaning(self) -> str:
        """What is allowed, such as `a whole number from 1 to 100`."""
        return f"a whole number {_of(self._describe_range())}"

    def _describe_range(self) -> str:
        return _range(self)


class Number(click.FloatRange):
    """A number in a range, which help and messages give in words. NaN is never in the range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or fail and say which numbers are allowed."""
        try:
            number = float(super().convert(value, param, ctx))
        except click.BadParameter:
            number = math.nan
        if math.isnan(number):
            self.fail(f"{value!r} is not a number {_of(self._describe_range())}", param, ctx)
        return number

    def _describe_range(self) -> str:
        return _range(self)


class WholeNumberOr(ParamType[int]):
    """A whole number in a range, or a word that stands for a number, such as `auto`."""

    def __init__(self, allowed: WholeNumber, word: str, meaning: Callable[[], int]) -> None:
        """`meaning` returns the number for which the word stands."""
        self.name = f"N|{word}"
        self._allowed, self._word, self._meaning = allowed, word, meaning

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or fail and say what is allowed."""
        if value == self._word:
            return self._meaning()
        number = self._allowed.number(value)
        if number is None:
            self.fail(f"{value!r} is neither {self._allowed.meaning} nor {self._word}", param, ctx)
        return number


def _range(allowed: click.IntRange | click.FloatRange) -> str:
    """Return a range in words: `from 1 to 100`, `at least 1` or `above 0`."""
    if allowed.max is not None:
        return f"from {allowed.min:,} to {allowed.max:,}"
    return f"{'above' if allowed.min_open else 'at least'} {allowed.min:,}"


def _of(words: str) -> str:
    return f"of {words}" if words.startswith("at least") else words
