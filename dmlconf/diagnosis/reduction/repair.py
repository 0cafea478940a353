"""Make a changed desc valid again, by solving broken constraints.

If `OutputTensor.Sizes[1] == FilterTensor.Sizes[0]` is broken, one side is set to the value of the
other. In this way, a change of a size reaches all sizes that depend on it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from dmlconf.catalogue.constraints import violations
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.explanations import syntax_tree
from dmlconf.catalogue.loader import operator_sets
from dmlconf.catalogue.model import Operator
from dmlconf.catalogue.support import desc_values
from dmlconf.diagnosis.reduction.number_ref import NumberRef, with_counts, with_sizes
from dmlconf.expressions import Expression, ExpressionError, Namespace

__all__ = ["repaired"]

_MOST_STEPS: Final = 24
"""The most changes that are made to repair a desc."""

_Assignment = tuple[ast.expr, Any]


def repaired(
    operator: Operator,
    desc: Desc,
    fixed: frozenset[NumberRef],
    permitted: frozenset[str] = frozenset(),
) -> Desc | None:
    """Return the desc, changed until it breaks only permitted constraints; None if that fails.

    Args:
        fixed: the numbers that must not change.
        permitted: names of constraints that may be broken.
    """
    current: Desc = desc
    for _ in range(_MOST_STEPS):
        broken = violations(operator, current, documented=True)
        if permitted.issuperset(broken):
            return current
        change = _first_change(operator, current, frozenset(broken) - permitted, fixed)
        if change is None:
            return None
        current, assigned = change
        fixed |= assigned
    return None


_Change = tuple[Desc, frozenset[NumberRef]]


def _first_change(
    operator: Operator, desc: Desc, broken: frozenset[str], fixed: frozenset[NumberRef]
) -> _Change | None:
    names = operator.names({**operator_sets(), **desc_values(operator, desc)})
    scope = _Scope(operator, desc, names, fixed)
    for constraint in operator.constraints:
        if constraint.name in broken:
            for target, value in _assignments(syntax_tree(constraint.require.source), scope):
                change = scope.assigned(target, value)
                if change is not None:
                    return change
    return None


class _Scope:
    """The desc that is repaired, and the names in its constraints."""

    def __init__(
        self, operator: Operator, desc: Desc, names: Namespace, fixed: frozenset[NumberRef]
    ) -> None:
        self.operator, self.desc, self.names, self.fixed = operator, desc, names, fixed

    def value(self, node: ast.expr) -> Any:
        try:
            return Expression(ast.unparse(node)).evaluate(self.names)
        except ExpressionError:
            return None

    def assigned(self, target: ast.expr, value: Any) -> _Change | None:
        if value is None:
            return None
        if isinstance(target, ast.Name) and target.id in self.operator.terms:
            return self.assigned(syntax_tree(self.operator.terms[target.id].source), value)
        if isinstance(target, ast.BinOp):
            for side, solved in self._inverted(target, value):
                change = self.assigned(side, solved)
                if change is not None:
                    return change
            return None
        if isinstance(target, ast.Attribute):
            return self._with_member(target, value)
        if isinstance(target, ast.Subscript):
            return self._with_items(target, value)
        if isinstance(target, ast.Tuple):
            return self._with_each(target.elts, value)
        return self._with_attribute(target, value)

    def _with_each(self, targets: list[ast.expr], value: Any) -> _Change | None:
        if not isinstance(value, tuple) or len(targets) != len(value):
            return None
        desc, refs = self.desc, frozenset[NumberRef]()
        for target, item in zip(targets, value, strict=True):
            if self.value(target) != item:
                fixed = self.fixed | refs
                change = _Scope(self.operator, desc, self.names, fixed).assigned(target, item)
                if change is None:
                    return None
                desc, refs = change[0], refs | change[1]
        return (desc, refs) if refs else None

    def _inverted(self, node: ast.BinOp, value: Any) -> Iterator[_Assignment]:
        """Yield assignments to one operand with which the operation has this value."""
        left, right = self.value(node.left), self.value(node.right)
        if not all(isinstance(each, int) for each in (left, right, value)):
            return
        match node.op:
            case ast.Mult():
                for side, other in ((node.left, right), (node.right, left)):
                    if other and value % other == 0:
                        yield side, value // other
            case ast.Add():
                yield node.left, value - right
                yield node.right, value - left
            case ast.Sub():
                yield node.left, value + right
                yield node.right, left - value
            case ast.FloorDiv():
                yield node.left, value * right

    def _with_member(self, target: ast.Attribute, value: Any) -> _Change | None:
        resolved = self._tensor(target.value)
        if resolved is None:
            return None
        field, index, tensor = resolved
        if target.attr == "DataType" and isinstance(value, str):
            changed = replace(tensor, DataType=type(tensor.DataType)(value))
            return self._with_tensor(field, index, tensor, changed)
        if target.attr == "Sizes" and isinstance(value, tuple):
            return self._with_sizes(field, index, tensor, value)
        return None

    def _with_items(self, target: ast.Subscript, value: Any) -> _Change | None:
        base = target.value
        if isinstance(base, ast.Attribute) and base.attr == "Sizes":
            resolved = self._tensor(base.value)
            if resolved is None:
                return None
            field, index, tensor = resolved
            sizes = list(tensor.Sizes)
            if not self._put(sizes, target.slice, value):
                return None
            return self._with_sizes(field, index, tensor, tuple(sizes))
        if isinstance(base, ast.Name) and isinstance(self.desc.get(base.id), tuple):
            items = list(self.desc[base.id])
            if items and isinstance(items[0], int) and self._put(items, target.slice, value):
                return self._with_attribute(base, tuple(items))
        return None

    def _put(self, items: list[Any], where: ast.expr, value: Any) -> bool:
        if isinstance(where, ast.Slice):
            parts = (where.lower, where.upper, where.step)
            bounds = [None if part is None else self.value(part) for part in parts]
            indices = range(len(items))[slice(*bounds)]
            if not isinstance(value, tuple) or len(indices) != len(value):
                return False
            for index, item in zip(indices, value, strict=True):
                items[index] = item
            return True
        index = self.value(where)
        if not isinstance(index, int) or not -len(items) <= index < len(items):
            return False
        items[index] = value
        return True

    def _tensor(self, node: ast.expr) -> tuple[str, int | None, TensorDesc] | None:
        index: int | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            index, node = self.value(node.slice), node.value
        value = self.desc.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(value, tuple) and isinstance(index, int) and index < len(value):
            value = value[index]
        if not isinstance(node, ast.Name) or not isinstance(value, TensorDesc):
            return None
        return node.id, index, value

    def _with_sizes(
        self, field: str, index: int | None, tensor: TensorDesc, sizes: tuple[Any, ...]
    ) -> _Change | None:
        if not all(isinstance(size, int) and size > 0 for size in sizes):
            return None
        return self._with_tensor(field, index, tensor, with_sizes(tensor, sizes))

    def _with_tensor(
        self, field: str, index: int | None, tensor: TensorDesc, changed: TensorDesc
    ) -> _Change | None:
        if changed == tensor:
            return None
        assigned = {
            NumberRef(field, index, dimension)
            for dimension, size in enumerate(changed.Sizes)
            if dimension >= len(tensor.Sizes) or size != tensor.Sizes[dimension]
        }
        if changed.DataType is not tensor.DataType:
            assigned.add(NumberRef(field, index))
        if assigned & self.fixed:
            return None
        value: Any = changed
        if index is not None:
            items = list(self.desc[field])
            items[index] = changed
            value = tuple(items)
        return {**self.desc, field: value}, frozenset(assigned)

    def _with_attribute(self, target: ast.expr, value: Any) -> _Change | None:
        if not isinstance(target, ast.Name) or NumberRef(target.id) in self.fixed:
            return None
        old = self.desc.get(target.id)
        if old is None or isinstance(old, TensorDesc) or type(old) is not type(value):
            return None
        if isinstance(old, tuple) and len(old) != len(value):
            return None
        if old == value or _becomes_negative(old, value):
            return None
        desc = with_counts(self.operator, {**self.desc, target.id: value})
        return desc, frozenset({NumberRef(target.id)})


def _becomes_negative(old: Any, new: Any) -> bool:
    if isinstance(old, tuple):
        return any(map(_becomes_negative, old, new))
    return isinstance(old, int) and isinstance(new, int) and new < 0 <= old


def _assignments(node: ast.expr, scope: _Scope) -> Iterator[_Assignment]:
    """Yield assignments that may make a condition true."""
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                if not scope.value(value):
                    yield from _assignments(value, scope)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _assignments(value, scope)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield from _assignments(body if scope.value(test) else orelse, scope)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [left, *comparators]
            for (a, b), comparison in zip(pairwise(sides), ops, strict=True):
                yield from _of_comparison(a, comparison, b, scope)
        case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp() as each]):
            for element in _elements(each, scope):
                if not scope.value(element):
                    yield from _assignments(element, scope)
        case ast.Call(func=ast.Name(id="same"), args=[ast.GeneratorExp() as each]):
            first, *others = list(_elements(each, scope)) or [ast.Constant(None)]
            for other in others:
                yield from _of_comparison(first, ast.Eq(), other, scope)
        case ast.Name(id=name) if name in scope.operator.terms:
            yield from _assignments(syntax_tree(scope.operator.terms[name].source), scope)


def _of_comparison(
    left: ast.expr, comparison: ast.cmpop, right: ast.expr, scope: _Scope
) -> Iterator[_Assignment]:
    a, b = scope.value(left), scope.value(right)
    match comparison:
        case ast.Eq() if a != b:
            yield right, a
            yield left, b
        case ast.In() if isinstance(b, tuple):
            for value in b:
                yield left, value
        case ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE():
            if not isinstance(a, int) or not isinstance(b, int):
                return
            strict = isinstance(comparison, ast.Lt | ast.Gt)
            less = isinstance(comparison, ast.Lt | ast.LtE)
            if (a < b or (a == b and not strict)) if less else (a > b or (a == b and not strict)):
                return
            gap = strict if less else -strict
            yield left, b - gap
            yield right, a + gap


def _elements(each: ast.GeneratorExp, scope: _Scope) -> Iterator[ast.expr]:
    """Yield a generator's expression for each item that meets the generator's conditions."""
    if len(each.generators) != 1:
        return
    loop = each.generators[0]
    for bound in _bindings(loop.target, loop.iter, scope):
        if all(scope.value(_bound(test, bound)) for test in loop.ifs):
            yield _bound(each.elt, bound)


def _bindings(
    target: ast.expr, values: ast.expr, scope: _Scope
) -> Iterator[Mapping[str, ast.expr]]:
    """Yield the expressions for which a loop's names stand in each iteration."""
    match values:
        case ast.Call(func=ast.Name(id="zip"), args=sources) if isinstance(target, ast.Tuple):
            lengths = [_count(scope.value(source)) for source in sources]
            for step in range(min(lengths, default=0)):
                pairs = zip(target.elts, sources, strict=True)
                yield {
                    name: item
                    for part, source in pairs
                    for name, item in _named(part, _item(source, step)).items()
                }
        case ast.Call(func=ast.Name(id="enumerate"), args=[source]) if isinstance(
            target, ast.Tuple
        ):
            for step, bound in enumerate(_bindings(target.elts[1], source, scope)):
                yield _named(target.elts[0], ast.Constant(step)) | dict(bound)
        case ast.Call(func=ast.Name(id="range")):
            for number in scope.value(values) or ():
                yield _named(target, ast.Constant(number))
        case _:
            items = scope.value(values)
            for step in range(len(items) if isinstance(items, tuple) else 0):
                yield _named(target, _item(values, step))


def _count(items: Any) -> int:
    return len(items) if isinstance(items, tuple | list | range) else 0


def _item(source: ast.expr, step: int) -> ast.expr:
    """Return the expression of item `step`; `A[2:][0]` becomes `A[2]`."""
    if isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Slice):
        lower = source.slice.lower
        first = 0 if lower is None else getattr(lower, "value", None)
        if isinstance(first, int):
            return ast.Subscript(source.value, ast.Constant(first + step), ast.Load())
    return ast.Subscript(source, ast.Constant(step), ast.Load())


def _named(target: ast.expr, value: ast.expr) -> dict[str, ast.expr]:
    return {target.id: value} if isinstance(target, ast.Name) else {}


class _Bound(ast.NodeTransformer):
    def __init__(self, bound: Mapping[str, ast.expr]) -> None:
        self._bound = bound

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._bound.get(node.id, node)


def _bound(node: ast.expr, bound: Mapping[str, ast.expr]) -> ast.expr:
    tree: ast.expr = _Bound(bound).visit(copy.deepcopy(node))
    return tree
