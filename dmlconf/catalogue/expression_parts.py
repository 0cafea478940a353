"""The parts of an expression that a message about it can name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dmlconf.expressions import FUNCTIONS, Expression

__all__ = ["alternatives", "is_equation", "paths", "sides"]


def alternatives(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands of an `or`, in order; the expression alone if it is none."""
    body = _body(expression)
    if isinstance(body, ast.BoolOp) and isinstance(body.op, ast.Or):
        return tuple(_part(expression, operand) for operand in body.values)
    return (expression,)


def sides(expression: Expression) -> tuple[Expression, ...]:
    """Return what is compared, in order: the sides of a comparison, or what is to be `same`."""
    match _body(expression):
        case ast.Compare(left=left, comparators=others):
            return tuple(_part(expression, side) for side in (left, *others))
        case ast.Call(func=ast.Name(id="same"), args=[values]):
            return (Expression(f"tuple({ast.unparse(values)})"),)
    return ()


def is_equation(expression: Expression) -> bool:
    """Return whether the expression asks for two sides to be equal."""
    body = _body(expression)
    return isinstance(body, ast.Compare) and [type(op) for op in body.ops] == [ast.Eq]


def paths(expression: Expression) -> tuple[Expression, ...]:
    """Return the fields, and properties of fields, that an expression reads, in order."""
    names = expression.names - FUNCTIONS.keys()
    return tuple(dict.fromkeys(Expression(path) for path in _paths(_body(expression), names)))


def _paths(node: ast.AST, names: frozenset[str]) -> Iterator[str]:
    match node:
        case ast.Attribute(value=ast.Name(id=name)) | ast.Name(id=name) if name in names:
            yield ast.unparse(node)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _paths(child, names)


def _body(expression: Expression) -> ast.expr:
    return ast.parse(str(expression), mode="eval").body


def _part(expression: Expression, node: ast.expr) -> Expression:
    return Expression(ast.get_source_segment(str(expression), node) or ast.unparse(node))
