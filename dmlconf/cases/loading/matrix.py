"""Expand a matrix into cases, each with a combination of its parameters' values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from dmlconf.cases.errors import CaseError
from dmlconf.cases.loading.expansion import planned_case, written
from dmlconf.cases.model import CaseTemplate, PlannedCase
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.model import Entry, Operator
from dmlconf.catalogue.support import data_types_of, ranks_of
from dmlconf.expressions import Budget, Expression, ExpressionError, namespace
from dmlconf.limits import LONGEST_IDENTIFIERS, MOST_COMBINATIONS, MOST_MATRIX_STEPS

__all__ = ["MatrixBudget", "expand", "pairwise"]

Row = dict[str, Any]


@dataclass(slots=True)
class MatrixBudget:
    """What expanding one or more matrices may cost.

    Attributes:
        steps: how many steps the evaluation of expressions may still take.
        characters: how many characters the parameters in identifiers may still have.
    """

    steps: Budget = field(default_factory=lambda: Budget(MOST_MATRIX_STEPS))
    characters: int = LONGEST_IDENTIFIERS

    def named(self, parameters: str) -> None:
        """Subtract the characters of the parameters in an identifier from the budget.

        Raises:
            CaseError: the budget is used up.
        """
        self.characters -= len(parameters)
        if self.characters < 0:
            message = f"the cases' identifiers have more than {LONGEST_IDENTIFIERS:,} characters"
            raise CaseError(("matrix",), message, "give parameters shorter values, or fewer")


def expand(template: CaseTemplate, budget: MatrixBudget | None = None) -> Iterator[PlannedCase]:
    """Yield the template's cases in the order of its matrix; one case if it has no matrix.

    Args:
        budget: shared with other matrices; None for a new one.

    Raises:
        CaseError: a parameter's values or `where` cannot be computed, two cases have the same
            identifier, there are no cases or too many, or the budget is used up.
    """
    matrix = template.data.get("matrix")
    if matrix is None:
        yield PlannedCase(template.identifier, template, {})
        return
    budget = budget or MatrixBudget()
    entry = catalogue.entry_of(template.operator_name)
    identifiers: set[str] = set()
    texts = _Texts()
    for row in _rows(entry, template.data, budget.steps):
        named = ",".join([f"{name}={texts.of(name, value)}" for name, value in row.items()])
        if named in identifiers:
            hint = "list each value of a parameter once"
            raise CaseError(("matrix",), f"two combinations are written [{named}]", hint)
        identifiers.add(named)
        budget.named(named)
        yield planned_case(template, named, row)
    if not identifiers:
        raise CaseError(("matrix",), "no combination is left", "check `where`")


class _Texts:
    """The texts of the last row's values: most values of the next row are the same."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Any, str]] = {}

    def of(self, name: str, value: Any) -> str:
        last = self._last.get(name)
        if last is None or last[0] is not value:
            last = self._last[name] = (value, written(value))
        return last[1]


def _rows(operator: Entry, entry: Mapping[str, Any], steps: Budget) -> Iterator[Row]:
    matrix = entry["matrix"]
    fixed = {
        name: _listed(operator, name, values)
        for name, values in matrix.items()
        if not isinstance(values, str)
    }
    computed = {
        name: _expression(values, ("matrix", name))
        for name, values in matrix.items()
        if isinstance(values, str)
    }
    where = _expression(entry["where"], ("where",)) if "where" in entry else None
    pairs_only = entry.get("combine") == "pairwise"
    too_many = CaseError(("matrix",), f"more than {MOST_COMBINATIONS:,} combinations")
    if not pairs_only and math.prod(map(len, fixed.values())) > MOST_COMBINATIONS:
        raise too_many
    count = 0
    if pairs_only:
        _limit_pairs(fixed)
    for chosen in pairwise(fixed) if pairs_only else _products(fixed):
        for row in _with_computed(chosen, computed, steps):
            count += 1
            if count > MOST_COMBINATIONS:
                raise too_many
            ordered = {name: row[name] for name in matrix}
            if where is None or _evaluated(where, ordered, ("where",), steps):
                yield ordered


def _products(values: Mapping[str, Sequence[Any]]) -> Iterator[Row]:
    for chosen in product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def _limit_pairs(values: Mapping[str, Sequence[Any]]) -> None:
    count = sum(len(a) * len(b) for a, b in combinations(values.values(), 2))
    if count * len(values) > MOST_COMBINATIONS:
        raise CaseError(("matrix",), f"{count:,} pairs of values", "give each parameter fewer")


def _with_computed(row: Row, computed: Mapping[str, Expression], steps: Budget) -> Iterator[Row]:
    """Yield the row with each combination of values of the computed parameters."""
    if not computed:
        yield row
        return
    name, *rest = computed
    values = _evaluated(computed[name], row, ("matrix", name), steps)
    if not isinstance(values, tuple | list):
        raise CaseError(("matrix", name), f"must give a list of values, not {values!r}")
    for value in values:
        if not _is_plain(value):
            message = f"must give numbers, texts and lists of these, not a {type(value).__name__}"
            raise CaseError(("matrix", name), message, "write `tuple(...)` around what is computed")
        yield from _with_computed({**row, name: value}, {key: computed[key] for key in rest}, steps)


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number, text, None or a list of these."""
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, int | float | str)


def _listed(operator: Entry, name: str, values: Any) -> Sequence[Any]:
    if isinstance(values, list):
        return [tuple(value) if isinstance(value, list) else value for value in values]
    kind, tensor = next(iter(values.items()))
    tensors = {field.name for field in operator.fields if field.is_tensor}
    if not isinstance(operator, Operator) or tensor not in tensors:
        raise CaseError(("matrix", name, kind), f"{operator.name} has no tensor {tensor!r}")
    listed = data_types_of if kind == "data_types" else ranks_of
    return listed(operator, tensor)


def _expression(source: str, where: Sequence[str | int]) -> Expression:
    try:
        return Expression(source[1:])
    except ExpressionError as error:
        raise CaseError(where, str(error)) from error


def _evaluated(expression: Expression, row: Row, where: Sequence[str | int], steps: Budget) -> Any:
    try:
        return expression.evaluate(namespace(row), steps)
    except ExpressionError as error:
        raise CaseError(where, str(error)) from error


def pairwise(values: Mapping[str, Sequence[Any]]) -> Iterator[Row]:
    """Yield few rows that together contain every pair of values of any two parameters.

    Each row begins with a pair that no earlier row contains. Then each other parameter, in order,
    takes the first value that adds the most new pairs. Nothing is random.

    A single parameter has a row for each value. Without parameters there is one empty row.

    Args:
        values: the values of each parameter, at least one value each.
    """
    names = list(values)
    if len(names) < 2:
        yield from _products(values)
        return
    counts = [len(values[name]) for name in names]
    # Bit j of missing[a, i, b]: no row has value i of parameter a with value j of parameter b.
    missing = {
        (a, i, b): (1 << counts[b]) - 1
        for a in range(len(names))
        for b in range(len(names))
        if a != b
        for i in range(counts[a])
    }
    for a, b in combinations(range(len(names)), 2):
        for i in range(counts[a]):
            while left := missing[a, i, b]:
                chosen = {a: i, b: (left & -left).bit_length() - 1}
                _complete(chosen, counts, missing)
                for x, y in combinations(range(len(names)), 2):
                    missing[x, chosen[x], y] &= ~(1 << chosen[y])
                    missing[y, chosen[y], x] &= ~(1 << chosen[x])
                yield {name: values[name][chosen[k]] for k, name in enumerate(names)}


def _complete(
    chosen: dict[int, int], counts: Sequence[int], missing: Mapping[tuple[int, int, int], int]
) -> None:
    for parameter, count in enumerate(counts):
        if parameter in chosen:
            continue
        news = [
            sum(
                missing[other, value, parameter] >> candidate & 1 for other, value in chosen.items()
            )
            for candidate in range(count)
        ]
        chosen[parameter] = news.index(max(news))
