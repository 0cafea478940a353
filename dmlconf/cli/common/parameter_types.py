"""Types of options: numbers in a range, and `ParamType`, the base class of dmlconf's other types.

All are for every supported click.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

__all__ = ["Number", "ParamType", "WholeNumber"]

if TYPE_CHECKING:
    from click import ParamType
else:

    class ParamType(click.ParamType):
        """`click.ParamType` that allows `ParamType[int]`, which click before 8.4 does not."""

        def __class_getitem__(cls, values: Any) -> type[ParamType]:
            return cls


class WholeNumber(click.IntRange):
    """A whole number in a range; other text is refused in plainer words than by the base class."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or fail as the base class does."""
        try:
            int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        return int(super().convert(value, param, ctx))


class Number(click.FloatRange):
    """A number in a range. NaN is refused, unlike in the base class."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or fail as the base class does."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number.", param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number in the range {self._describe_range()}.", param, ctx)
        return float(super().convert(value, param, ctx))
