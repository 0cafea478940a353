"""The expression language of constraints, matrices and `--where`: its values, errors and limits.

The tested code is in `dmlconf/expressions.py`.
"""

from __future__ import annotations

import pickle
import re
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.expressions import (
    FUNCTIONS,
    Budget,
    BudgetError,
    Expression,
    ExpressionError,
    namespace,
)
from dmlconf.tensors.datatypes import DataType

TENSOR = TensorDesc(DataType.FLOAT32, (2, 1, 3), Strides=(0, 3, 1), Flags=("OWNED_BY_DML",))
"""Two rows that share 3 elements of 4 bytes, since their stride is 0: 12 bytes."""


def value(source: str, **names: Any) -> Any:
    return Expression(source).evaluate(namespace(names))


def test_text_of_an_expression_is_one_line() -> None:
    source = "max(\n  Sizes[ Axis ],\n  1) == (\n    2 if Axis  == 0 else 3)"
    assert str(Expression(source)) == "max(Sizes[Axis], 1) == (2 if Axis == 0 else 3)"
    assert Expression(source).source == source


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2 * 3 - -1", 8),
        ("7 // 2 + 7 % 2", 4),
        ("6 & 3", 2),
        ("1 / 2", 0.5),
        ("1 < 2 <= 2 != 3", True),
        ("9007199254740993 > 9007199254740992.0", True),
        ("9007199254740993 == 9007199254740992.0", False),
        ("9007199254740993 // 3 * 3 - 1 == 9007199254740992", True),
        ("9007199254740994 / 2", 4503599627370497.0),
        ("not 1 == 1 or 2 > 1 and 3 >= 3", True),
        ("'A' if None is None else 'B'", "A"),
        ("'B' in ('A', 'B') and 3 not in [1]", True),
        ("(1, 2, 3, 4)[1:3] + (9,)", (2, 3, 9)),
        ("(1, 2, 3)[-1]", 3),
        ("tuple(a * b for a, b in zip((1, 2), (3, 4)) if a != 1)", (8,)),
        ("tuple(size for size, other in ())", ()),
        ("any(1 for () in ((), ()))", True),
        ("  1 + 1 ", 2),
        ("range(3)", (0, 1, 2)),
        ("range(1, 7, 2)", (1, 3, 5)),
        ("ones(3)", (1, 1, 1)),
        ("ones(-2)", ()),
        ("product((2, 3, 4))", 24),
        ("product(())", 1),
        ("reversed((1, 2))", (2, 1)),
        ("sorted((3, 1, 2))", (1, 2, 3)),
        ("drop_leading_ones((1, 1, 2, 1))", (2, 1)),
        ("drop_leading_ones((1, 1))", ()),
        ("starts_with((1, 2, 3), (1, 2))", True),
        ("starts_with((1, 2), (1, 2, 3))", False),
        ("right_aligned((2, 3), 4)", (1, 1, 2, 3)),
        ("right_aligned((1, 2, 3), 2)", (2, 3)),
        ("right_aligned((2, 3), 0)", ()),
        ("len((1, 2)) + sum((3, 4)) + min(5, 6) + max((7, 8)) + abs(-9)", 31),
        ("all(x > 0 for x in (1, 2)) and any(x > 1 for x in (1, 2))", True),
        ("tuple(enumerate('ab'))", ((0, "a"), (1, "b"))),
        ("present(1, None, 0)", (1, 0)),
        ("first_present(None, 0, 1)", 0),
        ("first_present(None)", None),
        ("exactly_one(None, 0)", True),
        ("exactly_one(1, None, 0)", False),
        ("exactly_one(None)", False),
        ("same(size % 2 for size in (1, 3, 5))", True),
        ("same((1, 1, 2))", False),
        ("same(())", True),
    ],
)
def test_an_expression_has_the_expected_value(source: str, expected: Any) -> None:
    assert value(source) == expected


def test_the_expressions_with_expected_values_call_every_function() -> None:
    cases = next(
        m for m in test_an_expression_has_the_expected_value.pytestmark if m.name == "parametrize"
    ).args[1]
    called = {name for source, _ in cases for name in re.findall(r"(\w+)\(", source)}
    assert called >= FUNCTIONS.keys()


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(-9, 9).filter(bool))
def test_arithmetic_agrees_with_python(a: int, b: int, c: int) -> None:
    assert value("(a + b) * c - a // c + b % c", a=a, b=b, c=c) == (a + b) * c - a // c + b % c


def test_members_of_a_tensor_can_be_read() -> None:
    assert value("T.Sizes[0] * T.DimensionCount", T=TENSOR) == 2 * 3
    assert value("T.DataType == 'FLOAT32' and T.OverlappingStrides", T=TENSOR) is True
    assert value("T.TotalTensorSizeInBytes == T.MinimumTensorSizeInBytes == 12", T=TENSOR) is True
    assert value("T.Strides, T.Flags", T=TENSOR) == ((0, 3, 1), ("OWNED_BY_DML",))
    assert value("T.GuaranteedBaseOffsetAlignment", T=TENSOR) == 0


def test_names_of_an_expression_exclude_functions_and_bound_names() -> None:
    source = "all(axis < Input.DimensionCount for axis in Axes) and len(Sizes) == 1"
    assert Expression(source).names == {"Input", "Axes", "Sizes"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "invalid syntax"),
        ("1 +", "invalid syntax"),
        ("1; 2", "invalid syntax"),
        ("a = 1", "invalid syntax"),
        ("\x001", "null bytes"),
        ("lambda: 1", "Lambda is not part of the expression language"),
        ("[x for x in y]", "ListComp is not part"),
        ("{1: 2}", "Dict is not part"),
        ("{1}", "Set is not part"),
        ("2 ** 9", "Pow is not part"),
        ("1 << 9", "LShift is not part"),
        ("~1", "Invert is not part"),
        ("f'{1}'", "JoinedStr is not part"),
        ("(x := 1)", "NamedExpr is not part"),
        ("await x", "Await is not part"),
        ("(*a, 1)", "Starred is not part"),
        ("print(1)", "cannot call print; the functions are abs, all, "),
        ("open('f')", "cannot call open"),
        ("prodct((1, 2))", "; did you mean product?"),
        ("a.Size", "a tensor has no Size; did you mean Sizes?"),
        ("len(x=1)", "cannot call len"),
        ("len(*a)", "Starred is not part"),
        ("any(x for x in y for a[0] in z)", "a generator assigns to names only, not to a[0]"),
        ("any(x for x in y for a[0:1] in z)", "a generator assigns to names only, not to a[0:1]"),
        ("any(x for x, a.Sizes in z)", "a generator assigns to names only, not to a.Sizes"),
        ("a.Sizes.index(1)", "cannot call a.Sizes.index"),
        ("(1).real", "a tensor has no real"),
        ("().__class__", "a tensor has no __class__"),
        ("__builtins__", "names do not begin with an underscore"),
        ("_multiply", "names do not begin with an underscore"),
        ("1" * 2001, "an expression of 2001 characters; at most 2000"),
        ("(" * 900 + ")" * 900, "too many nested parentheses"),
        ("-" * 1900 + "1", "nested too deeply"),
        ("1" + "+1" * 990, "nested too deeply"),
    ],
)
def test_text_outside_the_language_is_refused(source: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(message)):
        Expression(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("Nope + 1", "Nope + 1: name 'Nope' is not defined"),
        ("(1, 2)[2]", "(1, 2)[2]: tuple index out of range"),
        ("1 // 0", "by zero"),
        ("1 + 'a'", "unsupported operand"),
        ("len(3)", "has no len()"),
        ("'a' * 3", "* and % take numbers only"),
        ("(1,) * 3", "* and % take numbers only"),
        ("'%099d' % 1", "* and % take numbers only"),
        ("range(5000)", "range() of 5000 values; at most 4096"),
        ("range(0, 5000)", "range() of 5000 values"),
        ("product(range(1, 1000))", "a number of more than 1024 bits"),
        ("9" * 300 + " * " + "9" * 300, "a number of more than 1024 bits"),
        ("9007199254740993 + 0.5", "9007199254740993 would be rounded to a floating-point"),
        ("0.5 - 9007199254740993", "would be rounded"),
        ("9007199254740993 * 1.0", "would be rounded"),
        ("9007199254740993 / 1", "integers alone, and with // instead of /"),
        ("9007199254740993 // 2.0", "would be rounded"),
        ("9007199254740993 % 2.0", "would be rounded"),
        ("sum((9007199254740993, 0.0))", "would be rounded"),
        ("product((9007199254740993, 1.0))", "would be rounded"),
        ("max()", "expected at least 1 argument"),
        ("str(1)", "cannot call str"),
    ],
)
def test_expression_without_a_value_is_refused(source: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(message)):
        value(source)


def test_ones_gives_at_most_4096_values() -> None:
    assert len(value("ones(10000000000)")) == 4096


def test_a_name_may_shadow_a_function() -> None:
    assert value("len", len=3) == 3


def test_text_of_a_name_cannot_be_multiplied() -> None:
    with pytest.raises(ExpressionError, match=re.escape("* and % take numbers only")):
        value("a * 2", a="text")


def test_evaluating_does_not_change_the_namespace() -> None:
    names = namespace({"a": 1})
    before = dict(names)
    Expression("sum(b for b in (a, a))").evaluate(names)
    assert names == before


def test_expressions_of_equal_text_are_equal_and_picklable() -> None:
    expression = Expression("a + 1")
    assert expression == Expression("a + 1")
    assert expression != Expression("a + 2")
    assert hash(expression) == hash(Expression("a + 1"))
    copy = pickle.loads(pickle.dumps(expression))
    assert copy == expression
    assert copy.evaluate(namespace({"a": 1})) == 2


def test_the_repr_of_an_expression_shows_its_text() -> None:
    assert repr(Expression("a + 1")) == "Expression('a + 1')"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("sum(1 for a in range(4096) for b in range(4096))", "more than 200,000 steps"),
        ("any(any(False for b in range(4096)) for a in range(4096))", "more than 200,000 steps"),
        ("sum((x for a in range(9)), ())", "sum() takes one argument"),
        ("sum((x, x))", "sum() takes numbers only"),
        ("len(x + x + x)", "+ gives more than 65,536 values"),
        ("text + text", "+ gives more than 65,536 values"),
        ("tuple(x for a in range(9))", "it gives more than 65,536 values"),
        ("(x, (x, x))", "it gives more than 65,536 values"),
        ("product(big for a in range(9))", "a number of more than 1024 bits"),
        ("big + big", "a number of more than 1024 bits"),
        ("sum((big, big))", "a number of more than 1024 bits"),
    ],
)
def test_too_many_steps_or_too_large_values_are_refused(source: str, message: str) -> None:
    # At most 65,536 values and 1,024 bits are permitted.
    names = namespace({"x": (1,) * 40_000, "text": "a" * 40_000, "big": 2**1024 - 1})
    with pytest.raises(ExpressionError, match=re.escape(message)):
        Expression(source).evaluate(names)


def test_a_budget_may_be_shared_by_several_expressions() -> None:
    budget = Budget(10)  # The expression takes 7 steps: one, and one more for each `a`.
    expression = Expression("sum(a for a in range(6))")
    assert expression.evaluate(namespace({}), budget) == 15
    with pytest.raises(BudgetError, match="more than 10 steps"):
        expression.evaluate(namespace({}), budget)


def test_namespace_may_have_a_budget_for_its_expressions() -> None:
    names = namespace({}, Budget(10))  # The expression takes 7 steps.
    expression = Expression("sum(a for a in range(6))")
    assert expression.evaluate(names) == 15
    with pytest.raises(BudgetError, match="more than 10 steps"):
        expression.evaluate(names)


@pytest.mark.parametrize(
    "source",
    [
        "tuple(ones(4096) for a in range(4096) for b in range(64))",
        pytest.param(
            "tuple(range(4096) for a in range(4096) for b in range(64))", marks=pytest.mark.slow
        ),
        "tuple(sorted(range(4096)) for a in range(4096) for b in range(3))",
        "sorted(tuple(reversed(numbers)) for a in range(4096))",
        "same(numbers[1:] for a in range(4096))",
        "tuple(numbers + numbers for a in range(4096))",
        pytest.param(
            "tuple((big + a, big - a, big // 2, big % 9) for a in range(4096) for b in range(64))",
            marks=pytest.mark.hostile,
        ),
        "tuple([" + "numbers, " * 200 + "] for a in range(4096) for b in range(64))",
        pytest.param(
            "tuple((" + "big - a, " * 17 + ") for a in range(4096) for b in range(64))",
            marks=pytest.mark.hostile,
        ),
        pytest.param(
            "tuple(present(" + "big - a, " * 17 + ") for a in range(4096) for b in range(64))",
            marks=pytest.mark.hostile,
        ),
        pytest.param(
            "tuple(tuple(zip(numbers, numbers)) for a in range(4096))", marks=pytest.mark.hostile
        ),
        pytest.param(
            "tuple(tuple(enumerate(numbers)) for a in range(4096))", marks=pytest.mark.hostile
        ),
        pytest.param(
            "len(tuple((b for b in range(2)) for a in range(4096) for c in range(200)))",
            marks=pytest.mark.hostile,
        ),
        pytest.param(
            "len(tuple(zip(range(2)) for a in range(4096) for c in range(200)))",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "len(tuple(big - a for a in range(4096) for b in range(4096)))",
            marks=pytest.mark.hostile,
        ),
    ],
)
def test_an_expression_with_many_steps_uses_at_most_256_mib(source: str) -> None:
    names = namespace({"numbers": tuple(range(4096)), "big": 2**1023})
    tracemalloc.start()
    with pytest.raises(ExpressionError, match=r"MiB|steps|more than 65,536 values"):
        Expression(source).evaluate(names, Budget(20_000_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 256 << 20  # Twice MOST_EXPRESSION_BYTES, since values are measured roughly.


def doubled(name: str, times: int) -> str:
    """Return loops that bind `NAME0` to a pair, and each next name to a pair of the one before."""
    pairs = (f"for {name}{n + 1} in (({name}{n}, {name}{n}),)" for n in range(times))
    return f"for {name}0 in ((x, 1),) {' '.join(pairs)}"


@pytest.mark.parametrize(
    ("source", "steps", "message"),
    [
        (f"any(a20 == b20 {doubled('a', 20)} {doubled('b', 20)})", 200_000, "200,000 steps"),
        (f"any(a20 == b20 {doubled('a', 20)} {doubled('b', 20)})", 20_000_000, "65,536 values"),
        ("any(a != a for a in (range(4096),) for b in range(4096))", 200_000, "200,000 steps"),
    ],
)
def test_comparing_long_tuples_of_a_generator_is_refused(
    source: str, steps: int, message: str
) -> None:
    names = namespace({"x": 1})
    with pytest.raises(ExpressionError, match=message):
        Expression(source).evaluate(names, Budget(steps))


def test_evaluation_takes_a_step_for_each_visited_pair() -> None:
    names = namespace({"x": (2, 3, 4), "y": (2, 3, 4)})
    equal = Expression("all(p[0] == p[1] for p in zip(x, y))")
    assert equal.evaluate(names, Budget(1 + 3)) is True
    with pytest.raises(BudgetError):
        equal.evaluate(names, Budget(3))


def test_comparing_two_tuples_of_4096_numbers_takes_513_steps() -> None:
    names = namespace({"a": tuple(range(4096)), "b": tuple(range(4096))})
    equal = Expression("a == b")
    # One step, and one for each 16 of the 2 * 4096 numbers.
    assert equal.evaluate(names, Budget(513)) is True
    with pytest.raises(BudgetError):
        equal.evaluate(names, Budget(512))
