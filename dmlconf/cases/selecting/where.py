"""Select cases by a condition over their facts, such as `GroupCount > 1`."""

from __future__ import annotations

from typing import Final

from dmlconf.cases.conditions import hint_at_name, read_condition
from dmlconf.cases.facts import names_of
from dmlconf.cases.loading.loader import built_case
from dmlconf.cases.model import PlannedCase
from dmlconf.catalogue.loader import entry_of, operator_names
from dmlconf.expressions import Budget, BudgetError, ExpressionError
from dmlconf.limits import MOST_SELECTION_STEPS

__all__ = ["Condition", "ConditionError"]

_MOST_OPERATORS: Final = 5
"""The most operators that a message names."""


class ConditionError(ValueError):
    """A condition that cannot be read or evaluated, or applies to no case; the message says why."""


class Condition:
    """A condition over the names that `names_of` returns for a case.

    A case that lacks a name, or for which evaluation fails, does not meet the condition. All cases
    share one budget of steps.
    """

    def __init__(self, text: str) -> None:
        """Read the condition.

        Raises:
            ConditionError: `text` is not an expression.
        """
        try:
            self._expression = read_condition(text)
        except ExpressionError as error:
            raise ConditionError(str(error)) from error
        self._budget = Budget(MOST_SELECTION_STEPS)
        self._lacking: dict[str, bool] = {}
        self._known: set[str] = set()
        self._evaluated = False
        self._error: ExpressionError | None = None

    def holds(self, planned: PlannedCase) -> bool:
        """Return whether a case meets the condition.

        Raises:
            ConditionError: the condition needs too many steps.
            InvalidFilesError: the case cannot be built.
        """
        name = planned.template.operator_name
        if self._lacking.get(name):
            return False
        case = built_case(planned)
        names = names_of(case, self._expression)
        needed = self._expression.names
        if name not in self._lacking:
            # A term may have a value in some cases only.
            known = names.keys() | case.entry.term_names
            self._lacking[name] = not needed <= known
            self._known |= known
        if not needed <= names.keys():
            return False
        try:
            value = bool(self._expression.evaluate(names, Budget(whole=self._budget)))
        except BudgetError as error:
            raise ConditionError(str(error)) from error
        except ExpressionError as error:
            self._error = error
            return False
        self._evaluated = True
        return value

    def check(self) -> None:
        """Raise `ConditionError` if `holds` was called, but never could evaluate the condition."""
        if not self._lacking or self._evaluated:
            return
        absent = sorted(self._expression.names - self._known)
        if absent:
            raise ConditionError(self._absence(absent[0]))
        if self._error is not None:
            raise ConditionError(str(self._error))
        together = ", ".join(sorted(self._expression.names))
        raise ConditionError(f"no case has all of {together}")

    def _absence(self, name: str) -> str:
        elsewhere = {each: _names_in(each) for each in operator_names()}
        owners = [each for each, names in elsewhere.items() if name in names]
        if owners:
            more = f" and {len(owners) - _MOST_OPERATORS}" if len(owners) > _MOST_OPERATORS else ""
            owner_names = ", ".join(owners[:_MOST_OPERATORS])
            return f"none of the cases has {name}; {owner_names}{more and more + ' more'} have it"
        known = {*self._known, *(n for names in elsewhere.values() for n in names)}
        return f"no case has {name}; {hint_at_name(name, known)}"


def _names_in(name: str) -> frozenset[str]:
    entry = entry_of(name)
    return frozenset((*(field.name for field in entry.fields), *entry.term_names))
