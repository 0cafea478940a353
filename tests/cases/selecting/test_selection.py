"""Cases are selected by keywords (`-k`), tags, operators and other options.

The tested code is in `dmlconf/cases/selecting/keywords.py` and
`dmlconf/cases/selecting/selection.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.keywords import KeywordError, keyword_matcher
from dmlconf.cases.selecting.selection import Selection, select
from dmlconf.catalogue.model import FeatureLevel

WORDS = st.sampled_from(["gather", "TILE", "Axis=1", "float16", "boundary/x", "zzz", "[A"])

Formula = tuple[str, Callable[[str], bool]]
"""A keyword expression, and a function that evaluates it for an identifier."""


def negated(inner: Formula, space: str) -> Formula:
    text, holds = inner
    return f"not {space}({text})", lambda t: not holds(t)


def joined(operator: str, left: Formula, right: Formula, space: str) -> Formula:
    (a, a_holds), (b, b_holds) = left, right
    text = f"({space}{a}) {space}{operator} ({b}{space})"
    if operator.lower() == "and":
        return text, lambda t: a_holds(t) and b_holds(t)
    return text, lambda t: a_holds(t) or b_holds(t)


SPACES = st.sampled_from(["", " ", "  "])
LEAVES = st.builds(
    lambda word, quote: (f"{quote}{word}{quote}", lambda text: word.lower() in text.lower()),
    WORDS,
    st.sampled_from(["", '"', "'"]),
)
FORMULAS: st.SearchStrategy[Formula] = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(negated, inner, SPACES)
        | st.builds(joined, st.sampled_from(["and", "or", "AND", "Or"]), inner, inner, SPACES)
    ),
    max_leaves=6,
)

IDENTIFIERS = st.lists(WORDS, max_size=4).map("/".join)


@given(FORMULAS, IDENTIFIERS)
def test_keyword_expressions_agree_with_a_naive_evaluation(
    formula: Formula, identifier: str
) -> None:
    text, holds = formula
    assert keyword_matcher(text)(identifier.casefold()) == holds(identifier)


@given(st.lists(st.tuples(st.sampled_from(["and", "or"]), st.booleans(), WORDS), max_size=6))
def test_the_operators_bind_in_the_order_not_and_or(
    terms: list[tuple[str, bool, str]],
) -> None:
    identifier = "gather/boundary/x[axis=1]"
    text = "gather"
    alternatives: list[list[bool]] = [[True]]
    for operator, negate, word in terms:
        text += f" {operator} {'not ' if negate else ''}{word}"
        if operator == "or":
            alternatives.append([])
        alternatives[-1].append((word.lower() in identifier) != negate)
    assert keyword_matcher(text)(identifier) == any(map(all, alternatives))


def test_quoted_text_may_hold_spaces_parentheses_and_operators() -> None:
    assert keyword_matcher("'a (b) and'")("x a (b) and y")
    assert not keyword_matcher("'a (b) and'")("a b")
    assert keyword_matcher("'and'")("x and y")
    assert not keyword_matcher("'and'")("x or y")


def test_double_negation_cancels_out() -> None:
    assert keyword_matcher("not not gather")("gather/x")
    assert not keyword_matcher("not not gather")("tile/x")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "-k : a word is missing at the end"),
        ("a and", "-k a and: a word is missing at the end"),
        ("not", "-k not: a word is missing at the end"),
        ("a b", "-k a b: `b` at column 3 is unexpected; words are joined by `and` or `or`"),
        ("a )", "-k a ): `)` at column 3 is unexpected; words are joined by `and` or `or`"),
        ("or a", "-k or a: `or` at column 1 is unexpected"),
        ("a and or b", "-k a and or b: `or` at column 7 is unexpected"),
        ("x and (a", "-k x and (a: the parenthesis at column 7 is not closed"),
        ("()", "-k (): `)` at column 2 is unexpected"),
        ("a and 'b", "-k a and 'b: the quote at column 7 is not closed"),
    ],
)
def test_a_wrong_keyword_expression_is_explained(expression: str, message: str) -> None:
    with pytest.raises(KeywordError, match=f"^{re.escape(message)}$"):
        keyword_matcher(expression)


TILE = """
operator: TILE
tags: [movement]
cases:
  - name: new
    tags: [wide, odd]
    desc:
      InputTensor: {Sizes: [1], DataType: INT64, values: [1]}
      OutputTensor: {Sizes: [2], DataType: INT64}
      Repeats: [2]
  - name: old
    desc:
      InputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}
      OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}
      Repeats: [1, 1, 1, 2]
  - name: unlisted
    desc: &desc
      InputTensor: {Sizes: [1], DataType: FLOAT64, values: [1]}
      OutputTensor: {Sizes: [2], DataType: FLOAT64}
      Repeats: [2]
  - name: twin  # A quick run takes one of two cases that differ only in name, the first.
    desc: *desc
"""
"""`new` needs feature level 4_1 and `old` 1_0; no support table lists FLOAT64 for TILE."""

ARGMIN = """
operator: ARGMIN
cases:
  - matrix: {DataType: [FLOAT32, INT64]}
    desc:
      InputTensor: {Sizes: [2], DataType: =DataType, fill: sequence}
      OutputTensor: {Sizes: [1], DataType: UINT32}
      Axes: [0]
      AxisDirection: INCREASING
"""
NEW, OLD = "tile/boundary/new", "tile/boundary/old"
UNLISTED, TWIN = "tile/boundary/unlisted", "tile/boundary/twin"
FLOAT, INT = "argmin/matrix[DataType=FLOAT32]", "argmin/matrix[DataType=INT64]"
ALL = [INT, FLOAT, NEW, OLD, UNLISTED, TWIN]


@pytest.fixture
def cases(tmp_path: Path) -> list[PlannedCase]:
    for name, text in (("boundary", TILE), ("matrix", ARGMIN)):
        (tmp_path / f"{name}.yaml").write_text(text, "utf-8")
    return list(load_suite([tmp_path]).plan())


@pytest.mark.parametrize(
    ("selection", "taken"),
    [
        (Selection(), ALL),
        (Selection(keywords="TILE and not old"), [NEW, UNLISTED, TWIN]),
        (Selection(keywords="datatype=int64"), [INT]),
        (Selection(operators=frozenset({"ARGMIN"})), [FLOAT, INT]),
        (Selection(operators=frozenset({"ARGMIN", "TILE"})), ALL),
        (Selection(operators=frozenset({"GATHER"})), []),
        (Selection(tags=frozenset({"boundary"})), [NEW, OLD, UNLISTED, TWIN]),
        (Selection(tags=frozenset({"movement"})), [NEW, OLD, UNLISTED, TWIN]),
        (Selection(tags=frozenset({"odd", "matrix"})), [FLOAT, INT, NEW]),
        (Selection(identifiers=frozenset({INT, OLD, "none"})), [INT, OLD]),
        (Selection(feature_level=FeatureLevel(1, 0)), [OLD, UNLISTED, TWIN]),
        (Selection(feature_level=FeatureLevel(3, 0)), [FLOAT, OLD, UNLISTED, TWIN]),
        (Selection(feature_level=FeatureLevel(4, 1)), ALL),
        (Selection("new or float32", tags=frozenset({"wide"})), [NEW]),
        (Selection(quick=True), [INT, FLOAT, NEW, OLD, UNLISTED]),
        (Selection("int64 or old or twin", quick=True), [INT, OLD, TWIN]),
        (Selection(feature_level=FeatureLevel(1, 0), quick=True), [OLD, UNLISTED]),
    ],
)
def test_selected_cases_keep_the_order_of_the_plan(
    cases: list[PlannedCase], selection: Selection, taken: list[str]
) -> None:
    actual = [case.identifier for case in select(cases, selection)]
    assert sorted(actual) == sorted(taken)
    order = [case.identifier for case in cases]
    assert actual == [identifier for identifier in order if identifier in taken]


def test_keywords_that_cannot_be_parsed_are_refused(cases: list[PlannedCase]) -> None:
    with pytest.raises(KeywordError):
        list(select(cases, Selection(keywords="a and")))
