"""How many cases may be waived or declined in a certificate: a number, or a share of its cases."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

__all__ = ["WaivedLimit"]

_FORM: Final = re.compile(r"(?P<number>\d{1,9}(?:\.\d{1,6})?)(?P<percent>%?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class WaivedLimit:
    """The most cases that waivers of the sender may excuse, or that the backend may decline.

    Cases that a known fault of DirectML or a limit of a substrate excuses do not count as waived.

    Attributes:
        number: a number of cases, or a percentage.
        percent: whether `number` is a percentage of the profile's cases.
    """

    number: Fraction
    percent: bool

    @classmethod
    def parse(cls, text: str) -> WaivedLimit:
        """Read `20` or `0.5%`.

        Raises:
            ValueError: the text is neither, or above 100%, or has more than 9 digits before the
                point or 6 after it.
        """
        match = _FORM.fullmatch(text.strip())
        if match is None or (not match["percent"] and "." in match["number"]):
            raise ValueError("is neither a number of cases such as 20 nor a share such as 0.5%")
        number = Fraction(match["number"])
        if match["percent"] and number > 100:
            raise ValueError("is more than 100%")
        return cls(number, bool(match["percent"]))

    def exceeded(self, waived: int, cases: int) -> bool:
        """Return whether `waived` of `cases` cases exceed the limit."""
        return waived > (self.number * cases / 100 if self.percent else self.number)

    def __str__(self) -> str:
        return f"{float(self.number):.9g}%" if self.percent else f"{int(self.number):,}"
