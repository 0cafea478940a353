"""Excuse faults at elements that the documentation leaves undefined: these may stay unwritten.

An element is undefined if its rule permits any value of its data type. In a graph, an element that
depends on an undefined one may also differ from dispatch to dispatch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmlconf.backends.protocol import Fault, FaultKind, Outputs
from dmlconf.cases.model import Case
from dmlconf.catalogue.precision import RuleKind
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.allowance import permitted_intervals
from dmlconf.precision.compare import accumulation_of
from dmlconf.precision.rules import undefined

__all__ = ["without_excused_faults"]


def without_excused_faults(case: Case, outcome: Outputs) -> Outputs:
    """Return the outcome without the faults that affect only undefined elements."""
    faults = tuple(fault for fault in outcome.faults if not _excused(case, fault))
    return outcome if faults == outcome.faults else replace(outcome, faults=faults)


def _excused(case: Case, fault: Fault) -> bool:
    if fault.elements is None:
        return False
    rule = case.rule(fault.output)
    allowances = CaseAllowances(case)
    allowance = allowances.of(fault.output)
    if rule.kind in (RuleKind.INTERVAL, RuleKind.ONE_OF):
        intervals = permitted_intervals(rule.kind, allowance)
    elif rule.kind == RuleKind.ACCUMULATE:
        right = allowance.right.ravel()
        intervals = (accumulation_of(rule, allowance, right).ends(right),)
    else:
        return False
    open_elements = np.logical_or.reduce([undefined(*ends) for ends in intervals])
    if fault.kind is FaultKind.NOT_DETERMINISTIC and fault.output in allowances.undefined:
        open_elements = open_elements | allowances.undefined[fault.output]
    return bool(open_elements.ravel()[fault.elements].all())
