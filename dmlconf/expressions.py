"""The expression language of constraints, matrices, and conditions such as those of `--where`.

An expression is a restricted Python expression over named values, such as
`OutputTensor.Sizes[Axis] == 1`. It can compute with numbers, tuples and text, read the fields of
tensors, and call the functions of `FUNCTIONS`, but nothing else. The steps and the memory of an
expression are limited (`dmlconf.limits`).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from sys import getsizeof
from types import CodeType
from typing import Any, Final, NamedTuple

from dmlconf.arithmetic import (
    ExpressionError,
    bounded,
    divide,
    exact,
    floor_divide,
    modulo,
    multiply,
    subtract,
)
from dmlconf.limits import (
    LONGEST_EXPRESSION,
    LONGEST_RANGE,
    LONGEST_VALUE,
    MOST_CONDITION_STEPS,
    MOST_EXPRESSION_BYTES,
)

__all__ = [
    "FUNCTIONS",
    "Budget",
    "BudgetError",
    "Expression",
    "ExpressionError",
    "Namespace",
    "namespace",
    "suggestion",
]

Namespace = dict[str, Any]


class BudgetError(ExpressionError):
    """One or more expressions need more steps or memory than is permitted."""


class Budget:
    """The steps that one or more expressions may take together.

    An evaluation takes one step, and so does each item that a generator visits. Both take one more
    for every 16 items of the tuples and texts that names stand for. Making a tuple or text takes
    one step for every 16 of its items: `any(a == 1 for a in range(4096))` takes up to 1 + 4,096 +
    256 = 4,353 steps. `namespace` says which evaluations take none.
    """

    __slots__ = ("_left", "_limit", "_whole")

    def __init__(self, steps: int = MOST_CONDITION_STEPS, whole: Budget | None = None) -> None:
        """`whole` is another budget, from which the same steps are taken as well."""
        self._limit = self._left = steps
        self._whole = whole

    def take(self, steps: int = 1) -> None:
        """Take steps; raise `BudgetError` if too few are left."""
        self._left -= steps
        if self._left < 0:
            raise BudgetError(f"more than {self._limit:,} steps; use shorter ranges")
        if self._whole is not None:
            self._whole.take(steps)


_ITEMS_PER_STEP: Final = 16
_POINTER_BYTES: Final = 8
_NUMBER_BYTES: Final = 32
_ITERATOR_BYTES: Final = 640  # A generator with its frame takes about 600.


class _Evaluation:
    """Counts the steps of one evaluation and the memory of the values that it makes."""

    __slots__ = ("_bound_reads", "_budget", "_bytes_left", "_ranges", "_weight", "_weight_of_names")

    def __init__(self, budget: Budget, weight: int, bound_reads: int) -> None:
        """Each item that a generator visits takes `weight` steps; more once one was a long tuple.

        `bound_reads` is how often the expression reads names that its generators bind.
        """
        self._budget, self._bound_reads = budget, bound_reads
        self._weight = self._weight_of_names = weight
        self._bytes_left = MOST_EXPRESSION_BYTES
        self._ranges: dict[tuple[int, ...], tuple[int, ...]] = {}

    def helpers(self) -> dict[str, Callable[..., Any]]:
        """Return by name the functions that `_Checked` puts into an expression to count memory."""
        return {
            "_composed": self.composed,
            "_counted": self.counted,
            "_enumerate": lambda *values: map(self.composed, enumerate(*values)),
            "_made": self.made,
            "_present": lambda *values: self.composed(_present(*values)),
            "_range": self.range,
            "_same": lambda values: _same(self.collected(values)),
            "_sorted": lambda values: self.made(tuple(sorted(self.collected(values)))),
            "_tuple": self.collected,
            "_zip": lambda *values: map(self.composed, zip(*values, strict=False)),
        }

    def counted(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self._budget.take(self._weight)
            if isinstance(value, tuple | list):
                self._weigh(value)
            yield value

    def _weigh(self, value: Sequence[Any]) -> None:
        """Let later visits take more steps if `value` is the longest tuple visited so far.

        A tuple of up to 16 numbers changes nothing. An inner tuple counts as often as it occurs.
        """
        if len(value) <= _ITEMS_PER_STEP and _PLAIN.issuperset(map(type, value)):
            return
        items = _count(value, LONGEST_VALUE)
        if items > LONGEST_VALUE:
            raise ExpressionError(_too_long("a generator"))
        steps = self._bound_reads * items // _ITEMS_PER_STEP
        self._weight = max(self._weight, self._weight_of_names + steps)

    def made(self, value: Any) -> Any:
        """Charge for a tuple or text made of others, but not for its numbers; return the value."""
        if isinstance(value, tuple | list | str):
            self._charge(getsizeof(value), len(value))
        return value

    def composed(self, values: Sequence[Any]) -> Sequence[Any]:
        """Charge for a tuple and for its numbers, which may be new; return the tuple."""
        self._charge(getsizeof(values) + sum(map(_item_bytes, values)), len(values))
        return values

    def range(self, *bounds: int) -> tuple[int, ...]:
        """Return the numbers of `range(*bounds)`, the same tuple for equal bounds."""
        values = self._ranges.get(bounds)
        if values is None:
            values = self._ranges[bounds] = _range(*bounds)
            self._charge((_POINTER_BYTES + _NUMBER_BYTES) * len(values), len(values))
        return values

    def collected(self, values: Iterable[Any] = ()) -> tuple[Any, ...]:
        """Return the values as a tuple; a generator is stopped before it fills the memory."""
        if isinstance(values, tuple):
            return values
        kept = []
        for value in values:
            self._charge(_POINTER_BYTES + _item_bytes(value))
            kept.append(value)
        return tuple(kept)

    def _charge(self, size: int, items: int = 0) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise BudgetError(
                f"its values take more than {MOST_EXPRESSION_BYTES >> 20} MiB; use shorter ranges"
            )
        if items >= _ITEMS_PER_STEP:
            self._budget.take(items // _ITEMS_PER_STEP)


def _item_bytes(value: Any) -> int:
    """Return the memory of a number or generator; tuples and texts are counted when made."""
    of_others = _ITERATOR_BYTES if hasattr(value, "__next__") else 0
    return getsizeof(value) if isinstance(value, int | float) else of_others


def _range(*bounds: int) -> tuple[int, ...]:
    values = range(*bounds)
    if len(values) > LONGEST_RANGE:
        raise ExpressionError(f"range() of {len(values)} values; at most {LONGEST_RANGE}")
    return tuple(values)


def _product(values: Iterable[int]) -> Any:
    return reduce(multiply, values, 1)


def _sum(values: Iterable[Any], *others: Any) -> Any:
    if others:
        raise ExpressionError("sum() takes one argument")
    total: Any = 0
    for value in values:
        if not isinstance(value, int | float):
            raise ExpressionError("sum() takes numbers only")
        total = exact(total + value, total, value)
    return bounded(total)


def _add(left: Any, right: Any) -> Any:
    total = left + right
    if isinstance(total, tuple | str | list):
        if len(total) > LONGEST_VALUE:
            raise ExpressionError(_too_long("+"))
        return total
    return bounded(exact(total, left, right))


def _too_long(what: str) -> str:
    return f"{what} gives more than {LONGEST_VALUE:,} values"


_PLAIN: Final = frozenset({int, float, bool, type(None)})
"""Types of values that hold no other values."""


def _count(value: Any, limit: int) -> int:
    """Count numbers, characters and tuples: 4 in `(5, 6, 7)`. Above `limit`, any number will do."""
    if isinstance(value, str):
        return len(value)
    count = 1
    if isinstance(value, tuple | list):
        if _PLAIN.issuperset(map(type, value)):
            return 1 + len(value)
        for item in value:
            count += _count(item, limit - count)
            if count > limit:
                break
    return count


def _drop_leading_ones(sizes: tuple[int, ...]) -> tuple[int, ...]:
    first = next((at for at, size in enumerate(sizes) if size != 1), len(sizes))
    return sizes[first:]


def _right_aligned(sizes: tuple[int, ...], count: int) -> tuple[int, ...]:
    return (*_ones(count - len(sizes)), *sizes)[len(sizes) - min(len(sizes), count) :]


def _ones(count: int) -> tuple[int, ...]:
    return (1,) * min(max(count, 0), LONGEST_RANGE)


def _present(*values: Any) -> tuple[Any, ...]:
    return tuple(value for value in values if value is not None)


def _first_present(*values: Any) -> Any:
    return next(iter(_present(*values)), None)


def _exactly_one(*values: Any) -> bool:
    return len(_present(*values)) == 1


def _same(values: Iterable[Any]) -> bool:
    first, *others = tuple(values) or (None,)
    return all(value == first for value in others)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "drop_leading_ones": _drop_leading_ones,  # (2, 1, 3) for (1, 1, 2, 1, 3)
    "enumerate": enumerate,
    "exactly_one": _exactly_one,  # Whether exactly one argument is not None.
    "first_present": _first_present,  # The first argument that is not None, or None.
    "len": len,
    "max": max,
    "min": min,
    "ones": _ones,  # (1, 1, 1) for 3
    "present": _present,  # The arguments that are not None.
    "product": _product,
    "range": _range,
    "right_aligned": _right_aligned,  # (1, 1, 2, 3) for (2, 3), 4; (2, 3) for (5, 2, 3), 2
    "reversed": lambda values: tuple(reversed(values)),
    "same": _same,  # Whether all values are equal; true for none.
    "sorted": lambda values: tuple(sorted(values)),
    "starts_with": lambda values, beginning: values[: len(beginning)] == beginning,
    "sum": _sum,
    "tuple": tuple,
    "zip": zip,
}
"""The functions that an expression may call, by name; docs/writing-cases.md explains some."""

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
    ast.Expression,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.Not,
    ast.USub,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
    ast.BitAnd,
    ast.Compare,
    ast.Eq,
    ast.NotEq,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.In,
    ast.NotIn,
    ast.Is,
    ast.IsNot,
    ast.IfExp,
    ast.Call,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.GeneratorExp,
    ast.comprehension,
    ast.Name,
    ast.Load,
    ast.Store,
)

# Operators that could exhaust memory or round large integers, and the functions called instead.
_GUARDS: Final = {
    ast.Add: "_add",
    ast.Div: "_divide",
    ast.FloorDiv: "_floor_divide",
    ast.Mod: "_modulo",
    ast.Mult: "_multiply",
    ast.Sub: "_subtract",
}

# If memory is counted, `_Evaluation.helpers` replace the functions in `_REPLACED`, and what those
# in `_MAKING` return is counted.
_REPLACED: Final = ("enumerate", "present", "range", "same", "sorted", "tuple", "zip")
_MAKING: Final = frozenset({"drop_leading_ones", "ones", "reversed", "right_aligned"})


class _Checked(ast.NodeTransformer):
    """Reject what is not in the language; replace operations whose results could be too large."""

    def __init__(self, *, budgeted: bool) -> None:
        self._budgeted = budgeted

    def _charged(self, node: ast.expr, helper: str = "_made") -> ast.expr:
        call = ast.Call(ast.Name(helper, ast.Load()), [node], [])
        return ast.copy_location(call, node) if self._budgeted else node

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, _NODES):
            raise ExpressionError(f"{type(node).__name__} is not part of the expression language")
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            raise ExpressionError(f"a generator assigns to names only, not to {ast.unparse(node)}")
        return super().visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
            called = ast.unparse(node.func)
            raise ExpressionError(
                f"cannot call {called}; the functions are {', '.join(FUNCTIONS)}"
                f"{suggestion(called, FUNCTIONS)}"
            )
        name = node.func.id
        self.generic_visit(node)
        if self._budgeted and name in _REPLACED:
            node.func = ast.copy_location(ast.Name(f"_{name}", ast.Load()), node.func)
        return self._charged(node) if name in _MAKING else node

    def visit_Tuple(self, node: ast.Tuple | ast.List) -> ast.AST:
        self.generic_visit(node)
        return self._charged(node, "_composed") if isinstance(node.ctx, ast.Load) else node

    visit_List = visit_Tuple

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        return self._charged(node) if isinstance(node.slice, ast.Slice) else node

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
        call = ast.copy_location(ast.Call(guard, [node.left, node.right], []), node)
        return self._charged(call) if isinstance(node.op, ast.Add) else call


_INSIDE_PARENTHESES: Final = re.compile(r"(?<=[(\[]) | (?=[)\]])")


class Expression:
    """One compiled expression; `names` are the names whose values it needs."""

    __slots__ = ("_compiled", "names", "source")

    def __init__(self, source: str) -> None:
        """Compile a text; raise `ExpressionError` if it is too long or not in the language."""
        self.source = source
        self._compiled = _compile(source)
        self.names = frozenset(self._compiled.uses)

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"

    def __str__(self) -> str:
        """Return the text in one line, without spaces just within brackets."""
        return _INSIDE_PARENTHESES.sub("", " ".join(self.source.split()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and other.source == self.source

    def __hash__(self) -> int:
        return hash(self.source)

    def __reduce__(self) -> tuple[type[Expression], tuple[str]]:
        return Expression, (self.source,)

    def evaluate(self, names: Namespace, budget: Budget | None = None) -> Any:
        """Return the expression's value over named values from `namespace`.

        Args:
            budget: the steps that this and other expressions may take together; None means the
                namespace's budget or, without one, `MOST_CONDITION_STEPS` for this evaluation.

        Raises:
            BudgetError: the expression needs too many steps or too much memory.
            ExpressionError: a name is unknown, the values do not fit the expression, or its result
                has too many values.
        """
        compiled = self._compiled
        if compiled.budgeted or budget is not None:
            budget = budget or names.get(_BUDGET) or Budget()
            weight = 1 + compiled.items_in(names) // _ITEMS_PER_STEP
            budget.take(weight)
            if compiled.budgeted:
                names = {**names, **_Evaluation(budget, weight, compiled.bound_reads).helpers()}
        try:
            value = eval(compiled.code, names)
        except ExpressionError:
            raise
        except NameError as error:
            near = suggestion(str(error.name), names.keys())
            raise ExpressionError(f"{self}: {error}{near}") from error
        except ZeroDivisionError as error:  # Its text depends on Python's version.
            raise ExpressionError(f"{self}: division by zero") from error
        except Exception as error:
            raise ExpressionError(f"{self}: {error or type(error).__name__}") from error
        if isinstance(value, tuple | list | str) and _count(value, LONGEST_VALUE) > LONGEST_VALUE:
            raise ExpressionError(f"{self}: {_too_long('it')}")
        return value

    def holds(self, names: Namespace, budget: Budget | None = None) -> bool:
        """Return whether the expression is true.

        An expression that cannot be evaluated, or takes too many steps, counts as false, such as
        `InputTensor.Sizes[9] == 1` for a tensor of 4 dimensions.
        """
        try:
            return bool(self.evaluate(names, budget))
        except ExpressionError:
            return False


_BUDGET: Final = "_budget"

_GLOBALS: Final[dict[str, Any]] = {
    "__builtins__": {},
    "_add": _add,
    "_divide": divide,
    "_floor_divide": floor_divide,
    "_modulo": modulo,
    "_multiply": multiply,
    "_subtract": subtract,
    **FUNCTIONS,
}


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?`, where X is the known name most like `name`; "" if none is.

    Known names that begin with an underscore are never suggested.
    """
    import difflib  # Only needed after a mistake, and slow to import.

    by_folded = {other.casefold(): other for other in known if not other.startswith("_")}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    return f"; did you mean {by_folded[near[0]]}?" if near else ""


def namespace(values: Mapping[str, Any], budget: Budget | None = None) -> Namespace:
    """Return the namespace for expressions: the values by name, and the functions.

    The expressions over it share the steps of `budget`, unless `evaluate` gets another one. They
    take steps only if they have a generator or call a function that makes a long tuple (`_LONG`).
    """
    names = {**_GLOBALS, **values}
    if budget is not None:
        names[_BUDGET] = budget
    return names


class _Compiled(NamedTuple):
    """A compiled expression.

    Attributes:
        uses: how often it reads each name that the namespace must have.
        bound_reads: how often it reads names that its generators bind.
        budgeted: whether steps and memory are always counted, as for a generator or one of `_LONG`.
    """

    code: CodeType
    uses: Mapping[str, int]
    bound_reads: int
    budgeted: bool

    def items_in(self, names: Namespace) -> int:
        """Return how many numbers, characters and tuples its names stand for.

        Only names of tuples and text of at least 2 items count, each as often as it is read.
        """
        items = 0
        for name, count in self.uses.items():
            value = names.get(name)
            if isinstance(value, tuple | list | str) and len(value) > 1:
                items += count * _count(value, LONGEST_VALUE)
        return items


_LONG: Final = frozenset({"ones", "range", "right_aligned"})
"""The functions that make a long tuple from a number."""


@lru_cache(maxsize=4096)
def _compile(source: str) -> _Compiled:
    if len(source) > LONGEST_EXPRESSION:
        raise ExpressionError(
            f"an expression of {len(source)} characters; at most {LONGEST_EXPRESSION}"
        )
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ExpressionError(f"{source}: {reason}") from error
    if any(isinstance(node, ast.Name) and node.id.startswith("_") for node in ast.walk(tree)):
        raise ExpressionError(f"{source}: names do not begin with an underscore")
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in named if isinstance(node.ctx, ast.Store)}
    read = Counter(node.id for node in named if isinstance(node.ctx, ast.Load))
    loops = any(isinstance(node, ast.comprehension) for node in ast.walk(tree))
    budgeted = loops or not _LONG.isdisjoint(read)
    try:
        checked = _Checked(budgeted=budgeted).visit(tree)
        code = compile(ast.fix_missing_locations(checked), "<expression>", "eval")
    except (RecursionError, MemoryError) as error:
        raise ExpressionError(f"{source}: nested too deeply") from error
    uses = {name: n for name, n in read.items() if name not in bound and name not in FUNCTIONS}
    return _Compiled(code, uses, sum(read[name] for name in bound), budgeted)
