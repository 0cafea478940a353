"""Prepare constraints for frequent evaluation while a desc changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from dmlconf.catalogue.desc import Desc
from dmlconf.catalogue.loader import operator_sets
from dmlconf.catalogue.model import Operator
from dmlconf.expressions import Expression, ExpressionError, namespace

__all__ = ["Condition", "condition_over", "conditions_of", "negated"]


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """A constraint with what is needed to evaluate it.

    Attributes:
        require: the condition over the desc's fields and over `terms`.
        terms: the `terms` of the operator's entry that `require` uses, directly or through another
            term; each comes after those that it uses.
        fields: the fields that `require` or one of `terms` names.
        enforced: whether a real DirectML refuses descs that break it.
    """

    name: str
    require: Expression
    terms: Mapping[str, Expression]
    fields: frozenset[str]
    enforced: bool

    def holds(self, desc: Desc) -> bool:
        """Return whether a desc meets the condition; False if the condition cannot be evaluated."""
        names = namespace(operator_sets())
        for field in self.fields:
            names[field] = desc[field]
        for name, term in self.terms.items():
            try:
                names[name] = term.evaluate(names)
            except ExpressionError:
                continue
        return self.require.holds(names)


@cache
def conditions_of(operator: Operator) -> tuple[Condition, ...]:
    """Return the constraints of an operator's entry, in the entry's order."""
    return tuple(
        condition_over(operator, each.name, each.require, enforced=each.enforced)
        for each in operator.constraints
    )


def condition_over(
    operator: Operator, name: str, require: Expression, *, enforced: bool = True
) -> Condition:
    """Return a condition with this name over the fields and terms of an operator."""
    terms = operator.terms_in(require)
    used = set(require.names).union(*(term.names for term in terms.values()))
    fields = frozenset(field.name for field in operator.fields if field.name in used)
    return Condition(name, require, terms, fields, enforced)


def negated(operator: Operator, condition: Condition) -> Condition:
    """Return the negation of a condition; it does not hold if the condition cannot be evaluated."""
    require = Expression(f"not ({condition.require.source})")
    return condition_over(operator, condition.name, require, enforced=condition.enforced)
