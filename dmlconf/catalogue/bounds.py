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
        low: the lowest value.
        from_end: whether negative values of signed types count from the end; their lowest value is
            then `-high - 1`.
        writes: the tensor whose elements the operator writes at these indices, such as
            UpdatesTensor; None if it only reads. If equal indices write different elements, the
            result is undefined.
    """

    high: Expression
    low: int = 0
    from_end: bool = False
    writes: str | None = None
