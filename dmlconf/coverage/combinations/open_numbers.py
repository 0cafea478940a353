"""Evaluate conditions over partly known values, such as numbers with a lower bound.

If a size is at least 2, `size == 1` is false. `size == 7` is a question, for which both answers are
tried. A condition is impossible if it is false for all series of answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from dmlconf.expressions import FUNCTIONS, ExpressionError

__all__ = ["FUNCTIONS_OF_OPEN_NUMBERS", "Answers", "OneOf", "OpenNumber", "OpenSizes", "possible"]

_MOST_PATHS: Final = 256
"""The most series of answers to try."""


class Answers:
    """The answers to the questions of an evaluation: first a given series, then always yes.

    Attributes:
        series: the given answers, then the further answers of the evaluation.
    """

    def __init__(self) -> None:
        self.series: list[bool] = []
        self._next = 0

    def begin(self, series: list[bool]) -> None:
        """Begin an evaluation; its first questions get these answers."""
        self.series, self._next = list(series), 0

    def answer(self) -> bool:
        """Return the answer to the next question."""
        if self._next == len(self.series):
            self.series.append(True)
        self._next += 1
        return self.series[self._next - 1]


def possible(condition: Callable[[], Any], answers: Answers) -> bool:
    """Return whether a condition is true, or cannot be evaluated, for some series of answers.

    A condition with `_MOST_PATHS` series of answers or more counts as possible.
    """
    waiting: list[list[bool]] = [[]]
    for _ in range(_MOST_PATHS):
        if not waiting:
            return False
        start = waiting.pop()
        answers.begin(start)
        try:
            if condition():
                return True
        except ExpressionError:
            return True
        series = answers.series
        waiting += [[*series[:at], not series[at]] for at in range(len(start), len(series))]
    return True


class _Question:
    """A truth value that is not known: `bool` of it takes the next answer."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def __bool__(self) -> bool:
        return self._answers.answer()


class _Open:
    """An unknown value, which has no hash and cannot be a member of a set."""

    def __hash__(self) -> int:
        raise ExpressionError("unknown")


class OpenNumber(_Open):
    """A number for which only a lower bound is known."""

    __hash__ = _Open.__hash__

    def __init__(self, answers: Answers, least: float = -math.inf) -> None:
        self._answers, self.least = answers, least

    def _question(self) -> Any:
        return _Question(self._answers)

    def _of(self, least: float) -> OpenNumber:
        return OpenNumber(self._answers, least)

    def __eq__(self, other: object) -> Any:
        if other is self:
            return True
        if isinstance(other, int | float) and other < self.least:
            return False
        return self._question()

    def __ne__(self, other: object) -> Any:
        if other is self:
            return False
        if isinstance(other, int | float) and other < self.least:
            return True
        return self._question()

    def __lt__(self, other: Any) -> Any:
        return False if isinstance(other, int | float) and other <= self.least else self._question()

    def __le__(self, other: Any) -> Any:
        return False if isinstance(other, int | float) and other < self.least else self._question()

    def __gt__(self, other: Any) -> Any:
        return True if isinstance(other, int | float) and other < self.least else self._question()

    def __ge__(self, other: Any) -> Any:
        return True if isinstance(other, int | float) and other <= self.least else self._question()

    def __bool__(self) -> bool:
        return True if self.least > 0 else self._answers.answer()

    def __add__(self, other: Any) -> Any:
        return self._of(self.least + _least(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        exact = isinstance(other, int | float)
        return self._of(self.least - other if exact else -math.inf)

    def __rsub__(self, other: Any) -> Any:
        return self._of(-math.inf)

    def __mul__(self, other: Any) -> Any:
        least = _least(other)
        return self._of(self.least * least if min(self.least, least) > 0 else -math.inf)

    __rmul__ = __mul__

    def __mod__(self, other: Any) -> Any:
        return self._of(0 if isinstance(other, int) and other > 0 else -math.inf)

    def __rmod__(self, other: Any) -> Any:
        return self._of(0 if self.least > 0 else -math.inf)

    def __floordiv__(self, other: Any) -> Any:
        return self._of(0 if self.least >= 0 and _least(other) > 0 else -math.inf)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._of(0 if self.least > 0 and _least(other) >= 0 else -math.inf)

    def __truediv__(self, other: Any) -> Any:
        return self._of(-math.inf)

    __rtruediv__ = __truediv__

    def __neg__(self) -> Any:
        return self._of(-math.inf)


class OneOf(_Open):
    """One of several values, such as the data types that a support table lists."""

    __hash__ = _Open.__hash__

    def __init__(self, answers: Answers, values: Collection[Any]) -> None:
        self._answers, self._values = answers, values

    def __eq__(self, other: object) -> Any:
        if other is self:
            return True
        if isinstance(other, _Open):
            return _Question(self._answers)
        return other in self._values and _Question(self._answers)

    def __ne__(self, other: object) -> Any:
        if other is self:
            return False
        if isinstance(other, _Open):
            return _Question(self._answers)
        return other not in self._values or _Question(self._answers)


class OpenSizes(_Open):
    """The sizes of a tensor, each at least 1. Their number is unknown, too."""

    __hash__ = _Open.__hash__

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def __eq__(self, other: object) -> Any:
        return _Question(self._answers)

    __ne__ = __eq__

    def __getitem__(self, at: Any) -> Any:
        return OpenSizes(self._answers) if isinstance(at, slice) else OpenNumber(self._answers, 1)

    def __len__(self) -> int:
        raise ExpressionError("unknown")

    def __iter__(self) -> Any:
        raise ExpressionError("unknown")

    def product(self) -> OpenNumber:
        """Return the number of elements."""
        return OpenNumber(self._answers, 1)


def _least(value: Any) -> float:
    if isinstance(value, OpenNumber):
        return value.least
    return value if isinstance(value, int | float) else -math.inf


def _product(values: Any) -> Any:
    if isinstance(values, OpenSizes):
        return values.product()
    product: Any = 1
    for value in values:
        product = _multiply(product, value)
    return product


def _multiply(left: Any, right: Any) -> Any:
    if isinstance(left, OpenNumber | int | float) and isinstance(right, OpenNumber | int | float):
        return left * right
    raise ExpressionError("* takes numbers only")


def _modulo(left: Any, right: Any) -> Any:
    if isinstance(left, OpenNumber | int | float) and isinstance(right, OpenNumber | int | float):
        return left % right
    raise ExpressionError("% takes numbers only")


def _sum(values: Iterable[Any]) -> Any:
    total: Any = 0
    for value in values:
        total = total + value
    return total


FUNCTIONS_OF_OPEN_NUMBERS: Final[Mapping[str, Callable[..., Any]]] = {
    **FUNCTIONS,
    "_multiply": _multiply,
    "_modulo": _modulo,
    "product": _product,
    "sum": _sum,
}
"""The functions of expressions, some of which are replaced to take open numbers, too."""
