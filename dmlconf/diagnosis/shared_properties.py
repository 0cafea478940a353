"""Find what the failures of a run share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from dmlconf.diagnosis.common_conditions import SharedGroups, shared_groups
from dmlconf.diagnosis.groups import Group, operator_failures
from dmlconf.diagnosis.search import Explanation
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.simplest import simplest
from dmlconf.verdicts.verdict import Verdict

__all__ = ["Condition", "SharedProperty", "shared_properties"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition over the facts of cases.

    Attributes:
        text: an expression of the catalogue's language; empty if every case meets the condition.
        of: how many failures its `SharedProperty` has.
        alternatives: up to three other expressions that hold for exactly the same cases.
    """

    text: str
    failures: int
    of: int
    passes: int
    alternatives: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the condition holds for every failure and for no pass."""
        return self.failures == self.of and not self.passes


@dataclass(frozen=True, slots=True)
class SharedProperty:
    """Failures that have something in common.

    Attributes:
        reasons: the kinds of reason, the most frequent first, with their counts.
        compared: the number of passes with which the failures were compared.
        condition: what separates the failures from passes; None if no known fact does.
        simpler: a shorter condition with few exceptions, or None.
    """

    operators: tuple[str, ...]
    reasons: tuple[tuple[str, int], ...]
    failures: tuple[Verdict, ...]
    compared: int
    condition: Condition | None
    simpler: Condition | None = None

    @property
    def simplest(self) -> Verdict:
        """The failure to look at first."""
        return simplest(self.failures)


class _Identity:  # A log as a key of a cache, equal only to itself.
    def __init__(self, log: RunLog) -> None:
        self.log = log

    def __hash__(self) -> int:
        return id(self.log)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.log is self.log


def shared_properties(log: RunLog) -> tuple[SharedProperty, ...]:
    """Return the groups of a run's failures, the largest first; each failure is in one group."""
    return _properties(_Identity(log))


@lru_cache(maxsize=1)  # Several reports of a run call this.
def _properties(identity: _Identity) -> tuple[SharedProperty, ...]:
    log = identity.log
    shared, left = shared_groups(tuple(operator_failures(log.verdicts)))
    properties = [_of_groups(groups) for groups in shared] + [_of_group(group) for group in left]
    return tuple(sorted(properties, key=lambda p: (-len(p.failures), p.operators)))


def _of_group(group: Group) -> SharedProperty:
    explanation = group.explanation
    simpler = explanation.simpler if explanation else None
    of = len(group.failures)  # `explanation.of` may count failures of another group, too.
    return SharedProperty(
        (group.operator,),
        group.reasons,
        group.failures,
        group.compared,
        _condition(explanation, of),
        _condition(simpler, of),
    )


def _condition(explanation: Explanation | None, of: int) -> Condition | None:
    if explanation is None:
        return None
    terms = explanation.terms
    alternatives = terms[0].alternatives if len(terms) == 1 else ()
    return Condition(explanation.text, explanation.failures, of, explanation.passes, alternatives)


def _of_groups(shared: SharedGroups) -> SharedProperty:
    reasons: Counter[str] = Counter()
    for group in shared.groups:
        reasons.update(dict(group.reasons))
    failures = tuple(verdict for group in shared.groups for verdict in group.failures)
    return SharedProperty(
        operators=tuple(dict.fromkeys(group.operator for group in shared.groups)),
        reasons=tuple(reasons.most_common()),
        failures=failures,
        compared=sum({group.operator: group.compared for group in shared.groups}.values()),
        condition=Condition(shared.text, shared.failures, len(failures), shared.passes),
    )
