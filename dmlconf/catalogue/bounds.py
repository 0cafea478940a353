"""The values of indices and lengths for which the documentation defines results."""

from __future__ import annotations

from dataclasses import dataclass

from dmlconf.expressions import Expression

__all__ = ["Bounds"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one input.

    Attributes:
        high: the highest value, as an expression over the desc's fields and the operator's terms.
        low: the lowest value, except where `from_end` gives another one.
        from_end: whether negative values count from the end. The lowest value of signed types is
            then `-high - 1`.
        writes: the input whose elements the operator writes to these indices, such as
            UpdatesTensor; None if it only reads. If two elements have the same index, it is not
            defined which of them stays.
    """

    high: Expression
    low: int = 0
    from_end: bool = False
    writes: str | None = None
