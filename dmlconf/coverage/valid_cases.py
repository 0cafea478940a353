"""The cases of a suite that expect no rejection."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

from dmlconf.cases.model import Case, ExpectedRejection

__all__ = ["valid_cases"]


def valid_cases(
    cases: Iterable[Case], operators: Container[str], advance: Callable[[], None]
) -> Iterator[Case]:
    """Yield the cases of some operators, without those that DirectML must refuse.

    Args:
        advance: is called after each case, also of other operators.
    """
    for case in cases:
        if case.operator_name in operators and not isinstance(case.expectation, ExpectedRejection):
            yield case
        advance()
