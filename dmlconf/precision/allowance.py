"""What a rule permits in addition to the expected values, as given by the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dmlconf.catalogue.precision import RuleKind
from dmlconf.tensors.datatypes import Array

__all__ = ["Allowance", "Interval", "NoAllowance", "permitted_intervals"]

Interval = tuple[Array, Array]
"""The least and the greatest right value of each element; both may be NaN."""


class Allowance(Protocol):
    """What is permitted for one output of one case; computed only if values differ."""

    @property
    def half_precision(self) -> bool:
        """Whether the backend may compute FLOAT16 outputs in FLOAT16 throughout."""
        ...

    def right(self) -> Array:
        """Return what the reference computes, shaped like the output."""
        ...

    def error_scale(self) -> Array | None:
        """Return the scale of rounding errors, FLOAT64, shaped like the output."""
        ...

    def stored(self) -> Array | None:
        """Return the magnitudes of intermediate FLOAT16 values, FLOAT64; None if there are none."""
        ...

    def stored_deviation(self) -> Array | None:
        """Return the root of the sum of the squares of `stored`; None for `stored` itself."""
        ...

    def overflows(self) -> Array | None:
        """Return where an intermediate of a finite result may overflow; None for nowhere."""
        ...

    def quantum(self) -> float:
        """Return a power of two that all terms of a sum are multiples of; 0 for none."""
        ...

    def terms_vary(self) -> bool:
        """Return whether each sum certainly has many terms whose roundings are independent."""
        ...

    def sums_shared(self) -> bool:
        """Return whether many elements share the errors of one sum."""
        ...

    def others(self) -> tuple[Array, ...]:
        """Return outputs whose elements are as right as the expected ones."""
        ...

    def interval(self) -> Interval | None:
        """Return the least and the greatest right values, shaped like the output."""
        ...

    def candidates(self) -> Sequence[Interval]:
        """Return intervals, shaped like the output, of which an element lies in at least one.

        Under the rule `accumulate` these are further values, FLOAT64, that may be reached and
        stored in place of the expected one: any between the ends.
        """
        ...

    def flushed(self) -> tuple[Array, Array] | None:
        """Return the right values with subnormal inputs as they are, and with zeros for them.

        None where no input is subnormal.
        """
        ...


class NoAllowance:
    """An allowance of the expected values alone."""

    half_precision = False

    def right(self) -> Array:
        """Raise: there is no reference."""
        raise LookupError("only the expected values are known")

    def error_scale(self) -> Array | None:
        """Return None."""
        return None

    def stored(self) -> Array | None:
        """Return None."""
        return None

    def stored_deviation(self) -> Array | None:
        """Return None."""
        return None

    def overflows(self) -> Array | None:
        """Return None."""
        return None

    def quantum(self) -> float:
        """Return 0."""
        return 0.0

    def terms_vary(self) -> bool:
        """Return False."""
        return False

    def sums_shared(self) -> bool:
        """Return False."""
        return False

    def others(self) -> tuple[Array, ...]:
        """Return nothing."""
        return ()

    def interval(self) -> Interval | None:
        """Return None."""
        return None

    def candidates(self) -> Sequence[Interval]:
        """Return no candidates."""
        return ()

    def flushed(self) -> tuple[Array, Array] | None:
        """Return None."""
        return None


def permitted_intervals(kind: RuleKind, allowance: Allowance) -> tuple[Interval, ...]:
    """Return the intervals of which a right element lies in at least one.

    Args:
        kind: the rule's kind; any other than `interval` and `one of` has none.
        allowance: of the output.
    """
    if kind == RuleKind.ONE_OF:
        return tuple(allowance.candidates())
    interval = allowance.interval() if kind == RuleKind.INTERVAL else None
    return () if interval is None else (interval,)
