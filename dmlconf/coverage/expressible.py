"""Count the cases of a suite that a target, such as ONNX, can express."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dmlconf.cases.model import Case
from dmlconf.translation.program import NotExpressibleError
from dmlconf.translation.translate import translated

__all__ = ["Expressible", "measure_target"]


@dataclass(slots=True)
class Expressible:
    """How many cases of one operator a target can express.

    Attributes:
        expressible: the number of cases for which the target has a counterpart.
        reasons: the number of other cases, by the reason why there is no counterpart.
    """

    operator: str
    cases: int = 0
    expressible: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def share(self) -> tuple[int, int]:
        """Return how many cases are expressible, and how many there are."""
        return self.expressible, self.cases


def measure_target(
    cases: Iterable[Case], target: str, advance: Callable[[], None] = lambda: None
) -> list[Expressible]:
    """Return how many cases a target can express, for each operator with cases, by name."""
    rows: dict[str, Expressible] = {}
    for case in cases:
        row = rows.setdefault(case.operator_name, Expressible(case.operator_name))
        row.cases += 1
        try:
            translated(case, target)
            row.expressible += 1
        except NotExpressibleError as error:
            row.reasons[str(error)] += 1
        advance()
    return [rows[name] for name in sorted(rows)]
