"""Read the expressions of an entry once, and evaluate them for each case or node.

Text that begins with `=` is an expression, which `prepared` replaces with a `Formula`. Values
without expressions become `Fixed`. `evaluated` computes the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dmlconf.cases.errors import CaseError
from dmlconf.expressions import Expression, ExpressionError, Namespace

__all__ = ["Fixed", "Formula", "evaluated", "prepared"]


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression, and the keys and indices that lead to it in the case's entry."""

    expression: Expression
    where: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value without expressions."""

    value: Any


def prepared(value: Any, where: Sequence[str | int]) -> Any:
    """Return a value with its expressions parsed.

    Raises:
        CaseError: an expression cannot be read.
    """
    if isinstance(value, str) and value.startswith("="):
        try:
            return Formula(Expression(value[1:]), tuple(where))
        except ExpressionError as error:
            raise CaseError(where, str(error)) from error
    if isinstance(value, dict):
        parts = {key: prepared(item, (*where, key)) for key, item in value.items()}
        return Fixed(value) if _all_fixed(list(parts.values())) else parts
    if isinstance(value, list):
        items = [prepared(item, (*where, index)) for index, item in enumerate(value)]
        return Fixed(value) if _all_fixed(items) else items
    return Fixed(value)


def _all_fixed(values: list[Any]) -> bool:
    return all(type(value) is Fixed for value in values)


def evaluated(node: Any, names: Namespace) -> Any:
    """Evaluate what `prepared` returned; `names` has the values of the names in expressions.

    Raises:
        CaseError: an expression cannot be evaluated.
    """
    kind = type(node)
    if kind is Fixed:
        return node.value
    if kind is Formula:
        try:
            return node.expression.evaluate(names)
        except ExpressionError as error:
            raise CaseError(node.where, str(error)) from error
    if kind is dict:
        return {key: evaluated(item, names) for key, item in node.items()}
    return [evaluated(item, names) for item in node]
