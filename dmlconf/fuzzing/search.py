"""Walk at random from a desc to one that meets all constraints, or all but a chosen one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import prod
from typing import Any, Final

from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.loader import operator_sets
from dmlconf.catalogue.model import FieldKind, Operator, SupportTable
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.conditions import Condition, condition_over, conditions_of, negated
from dmlconf.fuzzing.drafts import Drafts, UnfitError
from dmlconf.fuzzing.solving import Solver
from dmlconf.fuzzing.terms import Changes, Scope, condition_of

__all__ = ["MOST_ELEMENTS", "valid_desc"]

_STEPS: Final = 60
_CHANGES: Final = 20
"""The most changes that are compared in one step to repair a constraint."""
_NOISE: Final = 10
"""On average, one in this many steps takes a random change instead of the best one."""

MOST_ELEMENTS: Final = 6000
"""The most elements of a tensor, unless all lie along one axis (`_LONG_AXIS`)."""

_LONG_AXIS: Final = 1 << 16
"""A tensor whose elements all lie along one axis may have 65,535 to 65,537 elements. Direct3D
permits 65,535 thread groups along a dimension of a dispatch."""

_MOST_READS: Final = 1 << 24
"""The most elements that windows may read: a window's elements times the largest tensor's."""

_MOST_TIME_STEPS: Final = 1 << 12
"""The most time steps of a recurrent layer, which a device computes one after the other."""


def valid_desc(
    operator: Operator,
    table: SupportTable,
    chance: Chance,
    goal: Callable[[Desc], bool],
    begin: Callable[[Desc, Drafts], Desc],
    *,
    broken: str | None = None,
) -> Desc | None:
    """Return a desc that meets all constraints and the goal.

    None if no such desc is found in `_STEPS` steps, or if a device would take long for it. The desc
    also meets constraints that a real DirectML does not enforce: breaking one may crash DirectML.

    Args:
        table: the table of support from which the tensors' data types and ranks come.
        goal: what else the desc must meet after each step.
        begin: changes the first random desc so that it meets the goal; it may raise `UnfitError`.
        broken: the name of a constraint to break while all others hold.
    """
    drafts = Drafts(operator, table, chance)
    conditions = [
        negated(operator, each) if each.name == broken else each for each in conditions_of(operator)
    ]
    if table.when is not None:
        conditions.append(condition_over(operator, "table", table.when))
    try:
        desc = begin(drafts.first(), drafts)
    except UnfitError:
        return None
    # Breaking a constraint on an enum may need a number that is none of its constants.
    beyond = any(each.name == broken and len(each.fields) == 1 for each in conditions)
    solver = Solver(chance, beyond_enums=beyond)
    walk = _Walk(operator, table, drafts, conditions, chance, goal, solver)
    return walk.run(desc)


class _Walk:
    """Takes, in most steps, the change after which the fewest constraints are broken."""

    def __init__(
        self,
        operator: Operator,
        table: SupportTable,
        drafts: Drafts,
        conditions: Sequence[Condition],
        chance: Chance,
        goal: Callable[[Desc], bool],
        solver: Solver,
    ) -> None:
        self._operator, self._table = operator, table
        self._drafts, self._chance, self._goal = drafts, chance, goal
        self._conditions = conditions
        self._solver = solver
        self._tensor_names = frozenset(
            field.name for field in operator.of_kind(FieldKind.INPUT, FieldKind.OUTPUT)
        )

    def run(self, desc: Desc) -> Desc | None:
        broken = self._broken(desc)
        for _ in range(_STEPS):
            large = self._too_large(desc)
            if not broken and not large:
                return (
                    desc if self._listed(desc) and not _takes_long(self._operator, desc) else None
                )
            reached = self._step(desc, broken, large)
            if reached is None:
                return None
            desc, broken = reached
        return None

    def _broken(self, desc: Desc) -> list[Condition]:
        return [each for each in self._conditions if not each.holds(desc)]

    def _step(
        self, desc: Desc, broken: list[Condition], large: list[Changes]
    ) -> tuple[Desc, list[Condition]] | None:
        options = []
        for changes in self._options(desc, broken, large):
            try:
                other = self._drafts.changed(desc, changes)
            except UnfitError:
                continue
            if not self._fits(other):
                continue
            options.append((other, self._still_broken(desc, other, broken)))
        if not options:
            return None
        if self._chance.once_in(_NOISE):
            return self._chance.pick(options)
        least = min(len(rest) for _, rest in options)
        return self._chance.pick([option for option in options if len(option[1]) == least])

    def _options(
        self, desc: Desc, broken: list[Condition], large: list[Changes]
    ) -> Iterator[Changes]:
        if not broken or (large and self._chance.once_in(3)):
            yield from large
            return
        first = self._chance.once_in(2)
        condition = broken[0] if first else self._chance.pick(broken)
        scope = Scope(desc, condition.terms, operator_sets())
        term = condition_of(condition.require, scope)
        yield from islice(self._solver.solve(term, True), _CHANGES)

    def _still_broken(self, old: Desc, new: Desc, broken: list[Condition]) -> list[Condition]:
        changed = {name for name, value in new.items() if value is not old[name]}
        before = set(broken)
        return [
            each
            for each in self._conditions
            if (not each.holds(new) if each.fields & changed else each in before)
        ]

    def _fits(self, desc: Desc) -> bool:
        return self._goal(desc) and self._listed(desc)

    def _listed(self, desc: Desc) -> bool:
        """Return whether the table lists each rank and data type.

        The catalogue's `undocumented_data_types` count, too.
        """
        for name in self._tensor_names:
            value = desc[name]
            row = self._table.tensors[name]
            for tensor in (value,) if isinstance(value, TensorDesc) else value or ():
                if not row.has_rank(len(tensor.Sizes)):
                    return False
                if tensor.DataType not in row.data_types and not self._extra(name, tensor):
                    return False
        return True

    def _extra(self, name: str, tensor: TensorDesc) -> bool:
        return tensor.DataType in self._operator.undocumented_data_types.get(name, ())

    def _too_large(self, desc: Desc) -> list[Changes]:
        """Return changes, each of which shrinks one dimension of a tensor that is too large."""
        changes: list[Changes] = []
        for tensors in self._tensors_of_fields(desc):
            for path, tensor in tensors:
                if _is_small(tensor):
                    continue
                for index, size in enumerate(tensor.Sizes):
                    if size > 1:
                        changes.append((((*path, "Sizes", index), max(1, size // 3)),))
        return changes

    def _tensors_of_fields(self, desc: Desc) -> Iterator[list[tuple[tuple[Any, ...], TensorDesc]]]:
        for field in self._operator.of_kind(FieldKind.INPUT, FieldKind.OUTPUT):
            value = desc[field.name]
            if isinstance(value, TensorDesc):
                yield [((field.name,), value)]
            elif value is not None:
                yield [((field.name, index), tensor) for index, tensor in enumerate(value)]


def _takes_long(operator: Operator, desc: Desc) -> bool:
    """Return whether a software device may need more than a minute although tensors are small."""
    window = desc.get("WindowSize")
    if window is not None:
        elements = max(prod(tensor.Sizes) for _, _, tensor in tensors_of(operator, desc))
        if prod(window) * elements > _MOST_READS:
            return True
    return "RecurrenceTensor" in desc and desc["InputTensor"].Sizes[-3] > _MOST_TIME_STEPS


def _is_small(tensor: TensorDesc) -> bool:
    """Return whether a tensor has few elements, or about `_LONG_AXIS`, all along one axis."""
    count = prod(tensor.Sizes)
    return count <= MOST_ELEMENTS or _LONG_AXIS - 2 < max(tensor.Sizes) == count < _LONG_AXIS + 2
