"""The small expression language of the catalogue's constraints and of matrix cases.

An expression is a restricted Python expression over named values, such as
`OutputTensor.Sizes[Axis] == 1`. It can read fields and compute with numbers, sizes and
names; it can call only the functions listed here, and reach nothing else. Work and results
are bounded, so that no expression hangs or exhausts memory.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any, Final

__all__ = [
    "FUNCTIONS",
    "Expression",
    "ExpressionError",
    "Namespace",
    "Steps",
    "namespace",
    "suggestion",
]

Namespace = dict[str, Any]

LONGEST_RANGE: Final = 4096
LONGEST_RESULT: Final = 65_536
"""Numbers and characters that a result may hold, including those of nested tuples."""
MOST_BITS: Final = 1024
MOST_STEPS: Final = 200_000
"""Items that the generators of one expression may iterate over."""


class ExpressionError(ValueError):
    """An expression that cannot be read or evaluated; the message says why."""


class Steps:
    """A number of steps that expressions may take, one for each item of a generator."""

    def __init__(self, limit: int = MOST_STEPS) -> None:
        """Allow this many steps."""
        self._limit = self._left = limit

    def counted(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield the values, and take a step for each.

        Raises:
            ExpressionError: there are no steps left.
        """
        for value in values:
            self.take()
            yield value

    def take(self) -> None:
        """Take one step.

        Raises:
            ExpressionError: there are no steps left.
        """
        self._left -= 1
        if self._left < 0:
            raise ExpressionError(f"more than {self._limit:,} steps; use shorter ranges")


def _range(*bounds: int) -> tuple[int, ...]:
    values = range(*bounds)
    if len(values) > LONGEST_RANGE:
        raise ExpressionError(f"range() of {len(values)} values; at most {LONGEST_RANGE}")
    return tuple(values)


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ExpressionError(f"a number of more than {MOST_BITS} bits")
    return value


def _product(values: Iterable[int]) -> Any:
    product = 1
    for value in values:
        product = _multiply(product, value)
    return product


def _sum(values: Iterable[Any], *others: Any) -> Any:
    if others:
        raise ExpressionError("sum() takes one argument")
    total: Any = 0
    for value in values:
        if not isinstance(value, int | float):
            raise ExpressionError("sum() takes numbers only")
        total += value
    return _bounded(total)


def _add(left: Any, right: Any) -> Any:
    total = left + right
    if isinstance(total, tuple | str | list):
        if len(total) > LONGEST_RESULT:
            raise ExpressionError(_too_long("+"))
        return total
    return _bounded(total)


def _too_long(what: str) -> str:
    return f"{what} gives more than {LONGEST_RESULT:,} values"


def _count(value: Any, limit: int) -> int:
    """Return the number of values that a result holds, or some number above the limit."""
    if isinstance(value, str):
        return len(value)
    count = 1
    if isinstance(value, tuple | list):
        for item in value:
            count += _count(item, limit - count)
            if count > limit:
                break
    return count


def _drop_leading_ones(sizes: tuple[int, ...]) -> tuple[int, ...]:
    first = 0
    while first < len(sizes) and sizes[first] == 1:
        first += 1
    return sizes[first:]


def _right_aligned(sizes: tuple[int, ...], count: int) -> tuple[int, ...]:
    return (*_ones(count - len(sizes)), *sizes)[len(sizes) - min(len(sizes), count) :]


def _ones(count: int) -> tuple[int, ...]:
    return (1,) * min(max(count, 0), LONGEST_RANGE)


def _present(*values: Any) -> tuple[Any, ...]:
    """Return the values that are not None."""
    return tuple(value for value in values if value is not None)


def _first_present(*values: Any) -> Any:
    """Return the first value that is not None; None if there is none."""
    return next(iter(_present(*values)), None)


def _exactly_one(*values: Any) -> bool:
    """Return whether exactly one of the values is not None."""
    return len(_present(*values)) == 1


def _same(values: Iterable[Any]) -> bool:
    """Return whether all values are equal."""
    first, *others = tuple(values) or (None,)
    return all(value == first for value in others)


def _numbers_only(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def guarded(left: Any, right: Any) -> Any:
        if isinstance(left, int | float) and isinstance(right, int | float):
            return _bounded(operation(left, right))
        raise ExpressionError("* and % take numbers only")

    return guarded


_multiply: Final = _numbers_only(operator.mul)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "drop_leading_ones": _drop_leading_ones,
    "enumerate": enumerate,
    "exactly_one": _exactly_one,
    "first_present": _first_present,
    "len": len,
    "max": max,
    "min": min,
    "ones": _ones,
    "present": _present,
    "product": _product,
    "range": _range,
    "right_aligned": _right_aligned,
    "reversed": lambda values: tuple(reversed(values)),
    "same": _same,
    "sorted": lambda values: tuple(sorted(values)),
    "starts_with": lambda values, beginning: values[: len(beginning)] == beginning,
    "sum": _sum,
    "tuple": tuple,
    "zip": zip,
}
"""The functions that an expression may call, by name."""

_ATTRIBUTES: Final = frozenset(
    {
        "Broadcast",
        "DataType",
        "DimensionCount",
        "ElementCount",
        "Flags",
        "GuaranteedBaseOffsetAlignment",
        "MinimumTensorSizeInBytes",
        "OverlappingStrides",
        "Packed",
        "Sizes",
        "Strides",
        "TotalTensorSizeInBytes",
    }
)

_NODES: Final = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd,
    ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
    ast.Is, ast.IsNot, ast.IfExp, ast.Call, ast.Attribute, ast.Subscript, ast.Slice,
    ast.Constant, ast.Tuple, ast.List, ast.GeneratorExp, ast.comprehension,
    ast.Name, ast.Load, ast.Store,
)  # fmt: skip


# On text and tuples these could exhaust memory.
_GUARDS: Final = {ast.Add: "_add", ast.Mult: "_multiply", ast.Mod: "_modulo"}


class _Checked(ast.NodeTransformer):
    """Reject what is not in the language, and guard operations whose results could grow."""

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, _NODES):
            raise ExpressionError(f"{type(node).__name__} is not part of the expression language")
        return super().visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
            called = ast.unparse(node.func)
            raise ExpressionError(
                f"cannot call {called}; the functions are {', '.join(FUNCTIONS)}"
                f"{suggestion(called, FUNCTIONS)}"
            )
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr not in _ATTRIBUTES:
            near = suggestion(node.attr, _ATTRIBUTES)
            raise ExpressionError(f"a tensor has no {node.attr}{near}")
        return self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = ast.Call(ast.Name("_counted", ast.Load()), [node.iter], [])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = _GUARDS.get(type(node.op))
        if name is None:
            return node
        guard = ast.Name(name, ast.Load())
        return ast.copy_location(ast.Call(guard, [node.left, node.right], []), node)


_INSIDE_PARENTHESES: Final = re.compile(r"(?<=[(\[]) | (?=[)\]])")


class Expression:
    """One compiled expression.

    Attributes:
        source: the text, as written.
        names: the names whose values it needs.
    """

    __slots__ = ("_code", "_loops", "names", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._code, self.names, self._loops = _compile(source)

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"

    def __str__(self) -> str:
        """Return the text in one line, without spaces inside parentheses."""
        return _INSIDE_PARENTHESES.sub("", " ".join(self.source.split()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and other.source == self.source

    def __hash__(self) -> int:
        return hash(self.source)

    def __reduce__(self) -> tuple[type[Expression], tuple[str]]:
        return Expression, (self.source,)

    def evaluate(self, names: Namespace, steps: Steps | None = None) -> Any:
        """Return the expression's value over named values from `namespace`.

        Args:
            names: the values.
            steps: the steps that this and other expressions may take together; by default this
                expression alone may take `MOST_STEPS`.

        Raises:
            ExpressionError: a name is unknown, the values do not fit the expression, or it needs
                too many steps or gives too many values.
        """
        if self._loops:
            names = {**names, "_counted": (steps or Steps()).counted}
        try:
            value = eval(self._code, names)
        except ExpressionError:
            raise
        except NameError as error:
            near = suggestion(str(error.name), names.keys())
            raise ExpressionError(f"{self}: {error}{near}") from error
        except Exception as error:
            raise ExpressionError(f"{self}: {error}") from error
        if isinstance(value, tuple | list | str) and _count(value, LONGEST_RESULT) > LONGEST_RESULT:
            raise ExpressionError(f"{self}: {_too_long('it')}")
        return value


_GLOBALS: Final[dict[str, Any]] = {
    "__builtins__": {},
    "_add": _add,
    "_multiply": _multiply,
    "_modulo": _numbers_only(operator.mod),
    **FUNCTIONS,
}


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?` with the known name most similar to `name`, or an empty string."""
    import difflib  # Only needed after a mistake, and slow to import.

    by_folded = {other.casefold(): other for other in known if not other.startswith("_")}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    return f"; did you mean {by_folded[near[0]]}?" if near else ""


def namespace(values: Mapping[str, Any]) -> Namespace:
    """Return the namespace for expressions: the values by name, and the functions."""
    return {**_GLOBALS, **values}


@lru_cache(maxsize=4096)
def _compile(source: str) -> tuple[CodeType, frozenset[str], bool]:
    if len(source) > 2000:
        raise ExpressionError(f"an expression of {len(source)} characters; at most 2000")
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ExpressionError(f"{source}: {reason}") from error
    if any(isinstance(node, ast.Name) and node.id.startswith("_") for node in ast.walk(tree)):
        raise ExpressionError(f"{source}: names do not begin with an underscore")
    bound = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    try:
        code = compile(ast.fix_missing_locations(_Checked().visit(tree)), "<expression>", "eval")
    except (RecursionError, MemoryError) as error:
        raise ExpressionError(f"{source}: nested too deeply") from error
    return code, frozenset(read - bound - FUNCTIONS.keys()), bool(bound)
