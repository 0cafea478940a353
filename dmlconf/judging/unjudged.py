"""Find cases that judge nothing, since their rules permit any value of every element."""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlconf.cases.model import Case, ExpectedOutputs, ExpectedRejection
from dmlconf.catalogue.model import Entry, Operator
from dmlconf.catalogue.precision import RuleKind
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.room import room
from dmlconf.tensors.datatypes import Array
from dmlconf.workers.memory import shortage

__all__ = ["UNDEFINED_TAG", "judges_nothing", "may_judge_nothing"]

UNDEFINED_TAG: Final = "undefined"
"""The tag of a case whose results the documentation leaves undefined."""

_NEVER_OPEN: Final = (RuleKind.EXACT, RuleKind.ULP, RuleKind.ABSOLUTE, RuleKind.RELATIVE)


def may_judge_nothing(operator: Entry) -> bool:
    """Return whether cases of an operator may judge nothing, by the kinds of its rules alone.

    Cases of graphs may, since their rules are those of their nodes.
    """
    return not isinstance(operator, Operator) or not any(
        all(entry.kind in _NEVER_OPEN for entry in entries)
        for output, entries in operator.precision.items()
        if not operator.field(output).optional
    )


def judges_nothing(case: Case) -> bool:
    """Return whether the verdict is `unchecked` for any outputs of the right sizes and types.

    The result is False for cases that must be rejected, break a constraint or exceed the memory.
    """
    if isinstance(case.expectation, ExpectedRejection):
        return False
    rules = {name: case.rule(name) for name in case.outputs()}
    if any(rule.kind in _NEVER_OPEN for rule in rules.values()):
        return False
    if case.violations() or shortage(case) is not None:
        return False
    case = case.with_inputs()
    allowances = CaseAllowances(case)

    def is_open(name: str, expected: Array) -> bool:
        return room(expected, rules[name], allowances.of(name)).open == expected.size

    # Zeros are tried first, since they need no reference.
    tensors = case.outputs()
    zeros = {
        name: np.zeros(tensor.Sizes, tensor.DataType.dtype) for name, tensor in tensors.items()
    }
    stated = case.expectation.outputs if isinstance(case.expectation, ExpectedOutputs) else {}
    try:
        return all(is_open(name, zeros[name]) for name in tensors) and all(
            is_open(name, {**allowances.right, **stated}[name]) for name in tensors
        )
    except MemoryError:  # `shortage` does not know the samples of a region.
        return False
