"""Evaluate the catalogue's expressions to trees of terms: each has a value and its operands.

`solving` searches a tree for values of the desc to change. To make
`OutputTensor.Sizes[1] == 2 * Axis` true with an Axis of 3, it may set the size to 6.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.explanations import syntax_tree
from dmlconf.expressions import FUNCTIONS, Expression

__all__ = [
    "Change",
    "Changes",
    "Path",
    "Scope",
    "Term",
    "TermError",
    "condition_of",
    "items_of",
    "trace",
]

Path = tuple[str | int, ...]
"""Where a value is in a desc, such as `("InputTensor", "Sizes", 1)` or `("Axis",)`."""

Change = tuple[Path, Any]
"""The path of a value in a desc, and its new value."""

Changes = tuple[Change, ...]
"""Changes that are applied together."""


class TermError(Exception):
    """A value that cannot be computed, such as the size of an axis that does not exist.

    Attributes:
        missing: the path of an absent or unfit operand, such as a tensor that is left out or a
            divisor of 0; None if it has no path.
        operands: terms of the failed computation, such as an index and the tuple that it exceeds.
    """

    def __init__(self, missing: Path | None = None, operands: tuple[Term, ...] = ()) -> None:
        self.missing, self.operands = missing, operands
        super().__init__(missing)


@dataclass(frozen=True, slots=True)
class Term:
    """A value and what it is computed from.

    Attributes:
        kind: `constant`, `field`, `tuple`, `slice`, `concatenation`, `member` (a computed property
            of a tensor, such as `Packed`), `if`, `negative`, `error`, an operator such as `==`, or
            a function's name.
        parts: the terms from which the value is computed; for a tuple its items; for a slice the
            whole tuple, then the items.
        path: where in the desc the value is; None for constants, and for computed values except
            members.
    """

    value: Any
    kind: str = "constant"
    parts: tuple[Term, ...] = ()
    path: Path | None = None

    @property
    def is_constant(self) -> bool:
        """Whether neither the value nor a part of it has a path in the desc."""
        return self.path is None and all(part.is_constant for part in self.parts)


class Scope:
    """What names stand for: a desc's fields, an operator's terms, constants, and variables."""

    def __init__(
        self,
        desc: Mapping[str, Any],
        terms: Mapping[str, Expression],
        constants: Mapping[str, Any],
        names: Mapping[str, Term] | None = None,
    ) -> None:
        self._desc, self._terms, self._constants = desc, terms, constants
        self._names = names or {}
        self._cache: dict[str, Term] = {}

    def within(self, names: Mapping[str, Term]) -> Scope:
        """Return the scope with additional variables."""
        inner = Scope(self._desc, self._terms, self._constants, {**self._names, **names})
        inner._cache = self._cache
        return inner

    def term(self, name: str) -> Term:
        """Return the term of a name.

        Raises:
            KeyError: nothing has the name.
            TermError: a term of the operator cannot be computed.
        """
        if name in self._names:
            return self._names[name]
        if name not in self._cache:
            self._cache[name] = self._resolved(name)
        return self._cache[name]

    def _resolved(self, name: str) -> Term:
        if name in self._desc:
            return _of_value(self._desc[name], (name,))
        if name in self._terms:
            outer = Scope(self._desc, self._terms, self._constants)
            outer._cache = self._cache
            return trace(self._terms[name], outer)
        return _of_value(self._constants[name])


def _of_value(value: Any, path: Path | None = None) -> Term:
    if isinstance(value, tuple | list):
        items = tuple(
            _of_value(item, None if path is None else (*path, index))
            for index, item in enumerate(value)
        )
        return Term(value if isinstance(value, tuple) else tuple(value), "tuple", items, path)
    return Term(value, "constant" if path is None else "field", (), path)


def trace(expression: Expression, scope: Scope) -> Term:
    """Return the term of an expression.

    Raises:
        TermError: it cannot be computed.
    """
    return _trace(syntax_tree(expression.source), scope)


def condition_of(expression: Expression, scope: Scope) -> Term:
    """Return the term of a condition; its value is False if the condition cannot be computed."""
    return _condition(syntax_tree(expression.source), scope)


def _trace(node: ast.expr, scope: Scope) -> Term:
    return _TRACERS[type(node)](node, scope)


def _constant(node: ast.Constant, scope: Scope) -> Term:
    return Term(node.value)


def _name(node: ast.Name, scope: Scope) -> Term:
    return scope.term(node.id)


def _sequence(node: ast.Tuple | ast.List, scope: Scope) -> Term:
    return _tuple(tuple(_trace(item, scope) for item in node.elts))


def _tuple(items: tuple[Term, ...]) -> Term:
    return Term(tuple(item.value for item in items), "tuple", items)


def _attribute(node: ast.Attribute, scope: Scope) -> Term:
    owner = _trace(node.value, scope)
    tensor = owner.value
    if not isinstance(tensor, TensorDesc):
        raise TermError(owner.path if tensor is None else None)
    path = None if owner.path is None else (*owner.path, node.attr)
    if node.attr in ("DataType", "Sizes", "Strides", "Flags", "GuaranteedBaseOffsetAlignment"):
        return _of_value(getattr(tensor, node.attr), path)
    sizes = _of_value(tensor.Sizes, None if owner.path is None else (*owner.path, "Sizes"))
    if node.attr == "DimensionCount":
        return Term(tensor.DimensionCount, "len", (sizes,))
    if node.attr == "ElementCount":
        return Term(tensor.ElementCount, "product", sizes.parts)
    return Term(getattr(tensor, node.attr), "member", (), path)


def _subscript(node: ast.Subscript, scope: Scope) -> Term:
    base = _trace(node.value, scope)
    if base.value is None:
        raise TermError(base.path)
    if isinstance(node.slice, ast.Slice):
        parts = (node.slice.lower, node.slice.upper, node.slice.step)
        ends = [None if part is None else _trace(part, scope) for part in parts]
        values = slice(*(None if end is None else end.value for end in ends))
        items = items_of(base)[values]
        return Term(base.value[values], "slice", (base, *items))
    index = _trace(node.slice, scope)
    try:
        if isinstance(base.value, tuple):
            item: Term = items_of(base)[index.value]
            return item
        path = None if base.path is None else (*base.path, index.value)
        return _of_value(base.value[index.value], path)
    except (LookupError, TypeError) as error:
        raise TermError(operands=(index, base)) from error


def items_of(term: Term) -> tuple[Term, ...]:
    """Return the items of a term whose value is a tuple.

    Raises:
        TermError: the value is no tuple, such as that of an absent field.
    """
    match term.kind:
        case "tuple":
            return term.parts
        case "slice":
            return term.parts[1:]
        case "concatenation":
            return tuple(item for part in term.parts for item in items_of(part))
        case "reversed":
            return tuple(reversed(items_of(term.parts[0])))
        case "drop_leading_ones" | "right_aligned":
            count = len(term.value)
            items = items_of(term.parts[0])[-count:] if count else ()
            return (*(Term(1) for _ in range(count - len(items))), *items)
        case "if":
            return items_of(term.parts[1])
        case _ if isinstance(term.value, Iterable):
            return tuple(map(_of_value, term.value))
        case _:
            raise TermError(term.path)


_OPERATIONS: Final[Mapping[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.BitAnd: ("&", operator.and_),
}


def _binary(node: ast.BinOp, scope: Scope) -> Term:
    left, right = _trace(node.left, scope), _trace(node.right, scope)
    kind, operation = _OPERATIONS[type(node.op)]
    try:
        value = operation(left.value, right.value)
    except (TypeError, ZeroDivisionError, OverflowError) as error:
        raise TermError(left.path if left.value is None else right.path, (right, left)) from error
    return Term(value, "concatenation" if isinstance(value, tuple) else kind, (left, right))


def _unary(node: ast.UnaryOp, scope: Scope) -> Term:
    part = _trace(node.operand, scope)
    if isinstance(node.op, ast.Not):
        return Term(not part.value, "not", (part,))
    try:
        return Term(-part.value, "negative", (part,))
    except TypeError as error:
        raise TermError(part.path) from error


def _boolean(node: ast.BoolOp, scope: Scope) -> Term:
    is_and = isinstance(node.op, ast.And)
    parts: list[Term] = []
    for value in node.values:
        parts.append(_condition(value, scope))
        if bool(parts[-1].value) is not is_and:
            break
    return Term(parts[-1].value, "and" if is_and else "or", tuple(parts))


def _condition(node: ast.expr, scope: Scope) -> Term:
    try:
        return _trace(node, scope)
    except TermError as error:
        missing = () if error.missing is None else (Term(None, "field", (), error.missing),)
        return Term(False, "error", (*missing, *error.operands))


_COMPARISONS: Final[Mapping[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", lambda left, right: left in right),
    ast.NotIn: ("not in", lambda left, right: left not in right),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
}


def _compare(node: ast.Compare, scope: Scope) -> Term:
    terms = [_trace(each, scope) for each in (node.left, *node.comparators)]
    parts = []
    for left, operation, right in zip(terms, node.ops, terms[1:], strict=False):
        kind, compare = _COMPARISONS[type(operation)]
        try:
            value = compare(left.value, right.value)
        except TypeError as error:
            raise TermError(left.path if left.value is None else right.path) from error
        parts.append(Term(value, kind, (left, right)))
    if len(parts) == 1:
        return parts[0]
    return Term(all(part.value for part in parts), "and", tuple(parts))


def _choice(node: ast.IfExp, scope: Scope) -> Term:
    test = _trace(node.test, scope)
    branch = _trace(node.body if test.value else node.orelse, scope)
    return Term(branch.value, "if", (test, branch))


_OF_CONDITIONS: Final = frozenset({"all", "any"})
"""Functions of conditions; a condition that cannot be computed counts as False."""


def _call(node: ast.Call, scope: Scope) -> Term:
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    if name in _OF_CONDITIONS and isinstance(node.args[0], ast.GeneratorExp):
        items = _generated(node.args[0], scope, _condition)
        return Term(FUNCTIONS[name](item.value for item in items), name, items)
    arguments = [_trace(argument, scope) for argument in node.args]
    if name in ("zip", "enumerate"):
        return _rows(name, arguments)
    try:
        value = FUNCTIONS[name](*(argument.value for argument in arguments))
    except (TypeError, ValueError) as error:
        missing = next((each.path for each in arguments if each.value is None), None)
        raise TermError(missing, tuple(arguments)) from error
    if name == "tuple":
        return arguments[0]
    if name == "present":
        kept = tuple(argument for argument in arguments if argument.value is not None)
        return Term(value, "tuple", kept)
    if name == "first_present":
        return next((each for each in arguments if each.value is not None), Term(None))
    many = name in ("all", "any", "sum", "product", "same", "sorted", "min", "max")
    if many and len(arguments) == 1:
        return Term(value, name, items_of(arguments[0]))
    return Term(value, name, tuple(arguments))


def _rows(name: str, arguments: Sequence[Term]) -> Term:
    columns = [items_of(argument) for argument in arguments]
    if name == "enumerate":
        columns.insert(0, tuple(Term(index) for index in range(len(columns[0]))))
    return _tuple(tuple(_tuple(row) for row in zip(*columns, strict=False)))


def _generator(node: ast.GeneratorExp, scope: Scope) -> Term:
    return _tuple(_generated(node, scope, _trace))


def _generated(
    node: ast.GeneratorExp, scope: Scope, trace_item: Callable[[ast.expr, Scope], Term]
) -> tuple[Term, ...]:
    scopes = [scope]
    for clause in node.generators:
        scopes = [
            inner
            for outer in scopes
            for item in items_of(_trace(clause.iter, outer))
            for inner in [outer.within(_bound(clause.target, item))]
            if all(_trace(test, inner).value for test in clause.ifs)
        ]
    return tuple(trace_item(node.elt, inner) for inner in scopes)


def _bound(target: ast.expr, item: Term) -> Mapping[str, Term]:
    if isinstance(target, ast.Name):
        return {target.id: item}
    assert isinstance(target, ast.Tuple)
    names: dict[str, Term] = {}
    for part, value in zip(target.elts, items_of(item), strict=True):
        names |= _bound(part, value)
    return names


_TRACERS: Final[Mapping[type[ast.expr], Callable[[Any, Scope], Term]]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _choice,
    ast.Call: _call,
    ast.GeneratorExp: _generator,
}
