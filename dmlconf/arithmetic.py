"""Arithmetic of expressions: it neither rounds large integers nor makes huge ones.

Comparisons need no function, since Python compares integers and floating-point numbers exactly.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from dmlconf.limits import MOST_BITS

__all__ = [
    "ExpressionError",
    "bounded",
    "divide",
    "exact",
    "floor_divide",
    "modulo",
    "multiply",
    "subtract",
]

_EXACT_BITS: Final = 53
"""A FLOAT64 number holds every integer of as many bits."""

_Operation = Callable[[Any, Any], Any]


class ExpressionError(ValueError):
    """An expression cannot be parsed or evaluated; the message says why."""


def bounded(value: Any) -> Any:
    """Return a value; raise `ExpressionError` if it is an integer of more than `MOST_BITS` bits."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ExpressionError(f"a number of more than {MOST_BITS} bits")
    return value


def exact(result: Any, *operands: Any) -> Any:
    """Return the result of an operation.

    Raises:
        ExpressionError: it is a floating-point number, and an operand is an integer that has none.
    """
    if isinstance(result, float):
        for each in operands:
            large = isinstance(each, int) and each.bit_length() > _EXACT_BITS
            if large and float(each) != each:
                advice = "compute with integers alone, and with // instead of /"
                raise ExpressionError(
                    f"{each} would be rounded to a floating-point number; {advice}"
                )
    return result


def _exactly(operation: _Operation) -> _Operation:
    return lambda left, right: exact(operation(left, right), left, right)


def _of_numbers(operation: _Operation) -> _Operation:
    """Return an operation for numbers only, since text and tuples may become too long."""

    def compute(left: Any, right: Any) -> Any:
        if isinstance(left, int | float) and isinstance(right, int | float):
            return bounded(exact(operation(left, right), left, right))
        raise ExpressionError("* and % take numbers only")

    return compute


divide: Final = _exactly(operator.truediv)
floor_divide: Final = _exactly(operator.floordiv)
modulo: Final = _of_numbers(operator.mod)
multiply: Final = _of_numbers(operator.mul)
subtract: Final = _exactly(operator.sub)
