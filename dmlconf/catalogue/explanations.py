"""Why a desc breaks its operator's constraints: what each requires, and what the desc has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dmlconf.catalogue.constraints import broken_by_tensor, violations
from dmlconf.catalogue.desc import Desc, tensors_of
from dmlconf.catalogue.loader import operator_sets, tensor_constraints
from dmlconf.catalogue.model import Constraint, Operator
from dmlconf.catalogue.support import desc_values, tables_that_hold
from dmlconf.expressions import FUNCTIONS, Expression, ExpressionError, Namespace, namespace

__all__ = [
    "Explanation",
    "alternatives",
    "explanations",
    "is_equation",
    "paths",
    "sides",
    "syntax_tree",
]


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a desc breaks a constraint.

    Attributes:
        field: the wrong tensor or attribute, such as `InputTensors[0]`; empty for the whole desc.
        text: what is wrong, as a clause such as `Axis is 4, not 1`.
    """

    constraint: str
    field: str
    text: str


def explanations(operator: Operator, desc: Desc) -> list[Explanation]:
    """Return explanations of the enforced constraints that a desc breaks.

    If a required field is missing, the operator's own constraints that read it or that cannot be
    evaluated are left out.
    """
    names = operator.names({**operator_sets(), **desc_values(operator, desc)})
    return [
        explanation
        for constraint in violations(operator, desc)
        for explanation in _of_constraint(constraint, operator, desc, names)
    ]


def _of_constraint(
    name: str, operator: Operator, desc: Desc, names: Namespace
) -> Iterator[Explanation]:
    missing = [
        field.name
        for field in operator.fields
        if not field.optional and desc.get(field.name) is None
    ]
    own = next((each for each in operator.constraints if each.name == name), None)
    if name == "required-field":
        verb = "is" if len(missing) == 1 else "are"
        yield Explanation(name, missing[0], f"{', '.join(missing)} {verb} missing")
    elif own is None:
        yield from _of_tensors(name, operator, desc, names)
    elif not (missing and (_reads(own, missing, operator) or _cannot_be_evaluated(own, names))):
        present = [field.name for field in operator.fields if desc.get(field.name) is not None]
        field = _written(operator, _first_named(own.require, present))
        yield Explanation(name, field, _unmet(own.require, names))


def _of_tensors(
    name: str, operator: Operator, desc: Desc, names: Namespace
) -> Iterator[Explanation]:
    """Yield an explanation for each tensor that breaks a constraint that all operators have."""
    tables = tables_that_hold(operator, desc, names)
    for label, field, tensor in tensors_of(operator, desc):
        rows = [table.tensors[field.name] for table in tables if field.name in table.tensors]
        if name == "supported-data-type":
            listed = [data_type for row in rows for data_type in row.data_types]
            others = operator.undocumented_data_types.get(field.name, ())
            if not rows or tensor.DataType not in {*listed, *others}:
                text = f"{label} is {tensor.DataType}{_listed(listed)}"
                accepted = f"; DirectML accepts {', '.join(others)} as well" if others else ""
                yield Explanation(name, label, text + accepted)
        elif name == "supported-dimension-count":
            if not any(row.has_rank(tensor.DimensionCount) for row in rows):
                count = tensor.DimensionCount
                text = f"{label} has {count} dimension{'' if count == 1 else 's'}"
                listed_counts = _listed(_spans(row.ranks for row in rows))
                yield Explanation(name, label, f"{text}{listed_counts}")
        elif name in broken_by_tensor(field.kind, tensor):
            constraint = next(each for each in tensor_constraints() if each.name == name)
            text = _unmet(constraint.require, namespace({"Tensor": tensor}))
            yield Explanation(name, label, text.replace("Tensor.", f"{label}."))


def _listed(listed: Iterable[object]) -> str:
    """Return the end of a sentence, with the data types or ranks that support tables list."""
    names = dict.fromkeys(map(str, listed))
    if not names:
        return ", and no support table applies to these attributes"
    return f"; the documentation lists {', '.join(names)}"


def _spans(ranks: Iterable[tuple[int, int]]) -> Iterator[str]:
    """Yield the dimension counts that tables list; 1 to 4 is left out if 1 to 8 is there."""
    spans = set(ranks)
    for least, most in sorted(spans):
        if not any(a <= least and most <= b for a, b in spans - {(least, most)}):
            yield f"{least} to {most}" if least < most else f"{least}"


def _written(operator: Operator, field: str) -> str:
    """Return the field, or for a count field, which case files leave out, its array."""
    arrays = (each.name for each in operator.fields if each.count == field)
    return next(arrays, field) if field else ""


def _first_named(expression: Expression, fields: Iterable[str]) -> str:
    """Return the field that an expression names first; empty if it names none."""
    offsets = {
        found.start(): field
        for field in fields
        if (found := re.search(rf"\b{field}\b", expression.source))
    }
    return offsets[min(offsets)] if offsets else ""


def _reads(constraint: Constraint, fields: Iterable[str], operator: Operator) -> bool:
    counts = {field.name: field.count for field in operator.fields}
    return any({field, counts[field]} & constraint.require.names for field in fields)


def _cannot_be_evaluated(constraint: Constraint, names: Namespace) -> bool:
    try:
        constraint.require.evaluate(names)
    except ExpressionError:
        return True
    return False


_LONGEST_SIDE: Final = 60
"""The most characters of an operand or a value in a message, except for `==` and `same`."""


def _unmet(require: Expression, names: Namespace) -> str:
    """Return why a requirement is not met: its text, and the values that it compares."""
    # `BiasTensor is None or ...`: a case that has the tensor breaks only what follows `or`.
    asked = [each for each in alternatives(require) if not str(each).endswith(" is None")]
    if len(asked) == 1:
        require = asked[0]
    compared = [(side, *_value(side, names)) for side in sides(require)]
    if is_equation(require) and all(known for _, known, _ in compared):
        (left, _, value), (right, _, other) = compared
        named = right.names and len(str(right)) <= _LONGEST_SIDE
        return f"{left} is {_shown(value)}, {f'but {right} is' if named else 'not'} {_shown(other)}"
    if len(compared) == 1 and compared[0][1]:  # `same` compares the items of one tuple.
        return f"`{require}` does not hold: {_shown(compared[0][2])}"
    if not compared or any(isinstance(value, bool) for _, _, value in compared):
        compared = [(path, *_value(path, names)) for path in paths(require)]
    shown = [
        f"{side} is {_shown(value)}"
        for side, known, value in compared
        if known and side.names and max(len(str(side)), len(_shown(value))) <= _LONGEST_SIDE
    ]
    return f"`{require}` does not hold{': ' if shown else ''}{', '.join(shown)}"


def _value(expression: Expression, names: Namespace) -> tuple[bool, object]:
    """Return whether an expression has a value that a message can show, and that value."""
    try:
        value = expression.evaluate(names)
    except ExpressionError:
        return False, None
    return isinstance(value, bool | int | float | str | tuple | list), value


def _shown(value: object) -> str:
    """Return a value for a message; lists and Booleans as in a case file."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


@lru_cache(maxsize=8192)
def syntax_tree(source: str) -> ast.expr:
    """Return the syntax tree of a valid expression, which must not be changed: it is cached."""
    return ast.parse(source.strip(), mode="eval").body


def alternatives(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands of an `or`, in order; of another expression, the expression itself."""
    body = syntax_tree(str(expression))
    if isinstance(body, ast.BoolOp) and isinstance(body.op, ast.Or):
        return tuple(_part(expression, operand) for operand in body.values)
    return (expression,)


def sides(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands of a comparison, or the argument of `same` as a tuple; else nothing."""
    match syntax_tree(str(expression)):
        case ast.Compare(left=left, comparators=others):
            return tuple(_part(expression, side) for side in (left, *others))
        case ast.Call(func=ast.Name(id="same"), args=[values]):
            return (Expression(f"tuple({ast.unparse(values)})"),)
    return ()


def is_equation(expression: Expression) -> bool:
    """Return whether the expression compares two operands by `==`."""
    body = syntax_tree(str(expression))
    return isinstance(body, ast.Compare) and [type(op) for op in body.ops] == [ast.Eq]


def paths(expression: Expression) -> tuple[Expression, ...]:
    """Return what an expression reads, such as `Axis` and `InputTensor.Sizes`, in order."""
    names = expression.names - FUNCTIONS.keys()
    found = _paths(syntax_tree(str(expression)), names)
    return tuple(dict.fromkeys(map(Expression, found)))


def _paths(node: ast.AST, names: frozenset[str]) -> Iterator[str]:
    match node:
        case ast.Attribute(value=ast.Name(id=name)) | ast.Name(id=name) if name in names:
            yield ast.unparse(node)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _paths(child, names)


def _part(expression: Expression, node: ast.expr) -> Expression:
    return Expression(ast.get_source_segment(str(expression), node) or ast.unparse(node))
