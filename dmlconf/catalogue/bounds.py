"""The values of indices and lengths for which the documentation defines results."""

from __future__ import annotations

from dataclasses import dataclass

from dmlconf.expressions import Expression

__all__ = ["Bounds"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The values of an input for which the documentation defines results.

    Attributes:
        high: the highest value, as an expression over the desc's fields and the operator's terms.
        low: the lowest value.
        from_end: whether negative values of signed types count from the end, down to `-high - 1`.
        writes: if the operator writes at these indices, the tensor whose elements it writes, such
            as UpdatesTensor. If several indices are equal, it is undefined which element stays.
            None if elements are only read.
    """

    high: Expression
    low: int = 0
    from_end: bool = False
    writes: str | None = None
