"""A matrix expands to the combinations of its parameters that meet `where`, all or pairwise.

The tested code is in `dmlconf/cases/loading/matrix.py`, `dmlconf/cases/loading/expansion.py` (the
text in identifiers), `dmlconf/cases/building/operator_build.py` (`let`),
`dmlconf/cases/building/formulas.py`, `dmlconf/cases/building/tensor_entry.py`,
`dmlconf/expressions.py`, `dmlconf/documents/schema.py` and `dmlconf/limits.py`.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dmlconf
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cases.loading.matrix import pairwise
from dmlconf.cases.model import ExpectedOutputs
from dmlconf.catalogue.loader import operator
from dmlconf.catalogue.support import data_types_of
from dmlconf.limits import MOST_COMBINATIONS
from tests.cases.suites import MATRIX, plan, replace_once
from tests.cli.process import printed_by
from tests.documents.refusals import refusal, shown, write

TILE = operator("TILE")
VALUES = "A: [1, 2]\nB: [x, y]"


def indented(parameters: str) -> str:
    return parameters.replace("\n", "\n      ")


def matrix(parameters: str, **entry: str) -> str:
    """Return MATRIX with other parameters and with these fields."""
    more = "".join(f"    {key}: {value}\n" for key, value in entry.items())
    text = replace_once(MATRIX, indented(VALUES), indented(parameters))
    return replace_once(text, "    desc", f"{more}    desc")


def identifiers(directory: Path, parameters: str, **entry: str) -> list[str]:
    """Return the text in brackets of each case's identifier, such as `A=1,B=x`."""
    path = write(directory, matrix(parameters, **entry))
    result = [case.identifier for case in load_suite([path]).plan()]
    assert all(name.startswith("tile/f[") and name.endswith("]") for name in result)
    return [name[len("tile/f[") : -1] for name in result]


def test_the_first_parameter_of_a_matrix_changes_slowest(tmp_path: Path) -> None:
    assert identifiers(tmp_path, VALUES) == ["A=1,B=x", "A=1,B=y", "A=2,B=x", "A=2,B=y"]


def test_cases_of_a_matrix_have_parameters_and_identifiers(tmp_path: Path) -> None:
    cases = plan(tmp_path, MATRIX)
    assert [case.parameters for case in cases] == [
        {"A": a, "B": b} for a, b in itertools.product([1, 2], ["x", "y"])
    ]
    for case in cases:
        actual = build(case)
        assert actual.identifier == case.identifier
        assert actual.desc["InputTensor"].Sizes == (case.parameters["A"],)


def test_a_plan_made_twice_has_the_same_cases(tmp_path: Path) -> None:
    suite = load_suite([write(tmp_path, MATRIX)])
    assert list(suite.plan()) == list(suite.plan())


def test_a_parameter_may_be_the_catalogues_types_or_ranks(tmp_path: Path) -> None:
    types = identifiers(tmp_path, "A: [1]\nT: {data_types: InputTensor}")
    assert types == [f"A=1,T={name}" for name in data_types_of(TILE, "InputTensor")]
    assert identifiers(tmp_path, "A: {ranks: OutputTensor}") == [f"A={n}" for n in range(1, 9)]


def test_values_may_depend_on_earlier_and_later_parameters(tmp_path: Path) -> None:
    names = identifiers(tmp_path, "B: =range(A)\nA: [1, 2]")
    assert names == ["B=0,A=1", "B=0,A=2", "B=1,A=2"]
    names = identifiers(tmp_path, "A: [2]\nB: =range(A)\nC: =ones(B) + (5,)")
    assert names == ["A=2,B=0,C=5", "A=2,B=1,C=1", "A=2,B=1,C=5"]


def test_where_keeps_only_combinations_that_meet_it(tmp_path: Path) -> None:
    assert identifiers(tmp_path, VALUES, where="=A == 2 or B == 'x'") == [
        "A=1,B=x",
        "A=2,B=x",
        "A=2,B=y",
    ]


def test_lists_in_identifiers_are_joined_with_x(tmp_path: Path) -> None:
    names = identifiers(tmp_path, "A: [1]\nB: [[2, 3], [4], [], [[1, 2], 3]]")
    assert names == ["A=1,B=2x3", "A=1,B=4", "A=1,B=none", "A=1,B=1x2x3"]


def test_lists_are_tuples_in_expressions(tmp_path: Path) -> None:
    assert identifiers(tmp_path, "A: [1]\nB: [[2], [3]]", where="=B + (1,) == (3, 1)") == [
        "A=1,B=3"
    ]


def test_let_computes_values_for_the_desc(tmp_path: Path) -> None:
    text = replace_once(
        matrix("X: [1, 3]", let='{B: 2, A: "=X * B"}'), '"=(2 * A,)"', '"=(A * B,)"'
    )
    sizes = [build(case).desc["OutputTensor"].Sizes for case in plan(tmp_path, text)]
    assert sizes == [(4,), (12,)]


def test_desc_and_expectation_may_contain_expressions(tmp_path: Path) -> None:
    text = """
    operator: TILE
    cases:
      - matrix: {A: [1, 2], Type: [INT8, FLOAT32], Layout: [packed], Flag: [OWNED_BY_DML]}
        desc:
          InputTensor:
            {Sizes: [=A, 1], DataType: =Type, values: "=tuple(range(A))", Flags: [=Flag]}
          OutputTensor: {Sizes: [=A, 2], DataType: =Type, layout: =Layout}
          Repeats: "=(1, 2)"
        expect: {OutputTensor: "=tuple(i for i in range(A) for j in range(2))"}
    """
    cases = [build(case) for case in plan(tmp_path, text)]
    assert [case.desc["OutputTensor"].Sizes for case in cases] == [(1, 2)] * 2 + [(2, 2)] * 2
    assert cases[0].desc["OutputTensor"].Strides == (2, 1)
    assert cases[0].desc["InputTensor"].Flags == ("OWNED_BY_DML",)
    assert cases[0].desc["Repeats"] == (1, 2)
    assert [case.desc["InputTensor"].DataType for case in cases[:2]] == ["INT8", "FLOAT32"]
    last = cases[-1]
    assert last.inputs()["InputTensor"].tolist() == [[0], [1]]
    assert isinstance(last.expectation, ExpectedOutputs)
    assert last.expectation.outputs["OutputTensor"].tolist() == [[0, 0], [1, 1]]


REFUSED: dict[str, tuple[str, dict[str, str], str]] = {
    "`where` that no combination meets": (
        "A: [1, 2]",
        {"where": "=A > 5"},
        """
        f.yaml:4:7: no combination is left
             4 |       A: [1, 2]
               |       ^
            hint: check `where`
        """,
    ),
    "two cases of one identifier": (
        "A: [1, 2]\nB: [3, '3']",
        {},
        """
        f.yaml:4:7: two combinations are written [A=1,B=3]
             4 |       A: [1, 2]
               |       ^
            hint: list each value of a parameter once
        """,
    ),
    "an empty list": (
        "A: []",
        {},
        """
        f.yaml:4:10: `cases[0].matrix.A` must have at least one item, not []
             4 |       A: []
               |          ^^
        """,
    ),
    "text that is no expression": (
        "A: abc",
        {},
        """
        f.yaml:4:10: `cases[0].matrix.A` is "abc": an expression begins with =
             4 |       A: abc
               |          ^^^
        """,
    ),
    "an expression that cannot be read": (
        "A: =range(3",
        {},
        """
        f.yaml:4:10: range(3: '(' was never closed
             4 |       A: =range(3
               |          ^^^^^^^^
        """,
    ),
    "an expression that gives no list": (
        "A: =3",
        {},
        """
        f.yaml:4:10: must give a list of values, not 3
             4 |       A: =3
               |          ^^
        """,
    ),
    "an expression that gives a generator": (
        "A: =present(n for n in range(3))",
        {},
        """
        f.yaml:4:10: must give numbers, texts and lists of these, not a generator
             4 |       A: =present(n for n in range(3))
               |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: write `tuple(...)` around what is computed
        """,
    ),
    "an unknown name": (
        "A: =nope",
        {},
        """
        f.yaml:4:10: nope: name 'nope' is not defined
             4 |       A: =nope
               |          ^^^^^
        """,
    ),
    "a tensor that the operator lacks": (
        "A: {ranks: InputTenso}",
        {},
        """
        f.yaml:4:18: TILE has no tensor 'InputTenso'
             4 |       A: {ranks: InputTenso}
               |                  ^^^^^^^^^^
        """,
    ),
    "a list of something else": (
        "A: {rank: InputTensor}",
        {},
        """
        f.yaml:4:11: unknown field `rank` in a parameter
             4 |       A: {rank: InputTensor}
               |           ^^^^
            hint: did you mean `ranks`?
        """,
    ),
    "an unknown name in where": (
        "A: [1]",
        {"where": "=C > 5"},
        """
        f.yaml:5:12: C > 5: name 'C' is not defined
             5 |     where: =C > 5
               |            ^^^^^^
        """,
    ),
    "where that is no expression": (
        "A: [1]",
        {"where": "A > 5"},
        """
        f.yaml:5:12: `cases[0].where` is "A > 5": an expression begins with =
             5 |     where: A > 5
               |            ^^^^^
        """,
    ),
    "an unknown way to combine": (
        "A: [1]",
        {"combine": "pairwse"},
        """
        f.yaml:5:14: `cases[0].combine` cannot be "pairwse"
             5 |     combine: pairwse
               |              ^^^^^^^
            hint: did you mean pairwise?
        """,
    ),
    "let that cannot be read": (
        "A: [1]",
        {"let": "{C: =A.x}"},
        """
        f.yaml:5:14: a tensor has no x
             5 |     let: {C: =A.x}
               |              ^^^^
        """,
    ),
    "where that takes too many steps": (
        "A: =range(4096)",
        {"where": "=sum(b for c in range(4) for b in range(4000)) < 0"},
        """
        f.yaml:5:12: more than 20,000,000 steps; use shorter ranges
             5 |     where: =sum(b for c in range(4) for b in range(4000)) < 0
               |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "let that builds too long a list": (
        "A: [1]",
        {"let": "{B: =range(4096), C: '=(B, B, B, B)', D: '=(C, C, C, C, C)'}"},
        """
        f.yaml:5:51: (C, C, C, C, C): it gives more than 65,536 values
             5 |     let: {B: =range(4096), C: '=(B, B, B, B)', D: '=(C, C, C, C, C)'}
               |                                                   ^^^^^^^^^^^^^^^^^^
        """,
    ),
    "let with too large a number": (
        "A: [1]",
        {"let": '{C: "=product(range(1, 4000))"}'},
        """
        f.yaml:5:14: a number of more than 1024 bits
             5 |     let: {C: "=product(range(1, 4000))"}
               |              ^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
}
"""For each mistake: the parameters, other fields of the entry, and the message."""

SLOW: Final = {"where that takes too many steps"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.hostile] * (name in SLOW)) for name in REFUSED],
)
def test_an_error_points_at_the_mistake_in_a_matrix(tmp_path: Path, name: str) -> None:
    parameters, entry, message = REFUSED[name]
    path = write(tmp_path, matrix(parameters, **entry))
    assert refusal(lambda: load_suite([path], every_case=True), tmp_path) == shown(message)


MANY = "[" + ", ".join(map(str, range(1001))) + "]"
"""1,001 values; two such parameters have 1001 * 1001 = 1,002,001 combinations."""


@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        (f"A: {MANY}\nB: {MANY}\nC: {MANY}", "=True"),
        (f"A: {MANY}\nB: {MANY}\nC: {MANY}", "=False"),
        pytest.param(
            "A: [1]\nB: =range(4096)\nC: =range(4096)", "=False", marks=pytest.mark.hostile
        ),
    ],
)
def test_more_combinations_than_the_limit_are_refused(
    tmp_path: Path, parameters: str, where: str
) -> None:
    path = write(tmp_path, matrix(parameters, where=where))
    message = refusal(lambda: load_suite([path]), tmp_path)
    assert message.startswith("f.yaml:4:7: more than 1,000,000 combinations\n")


def test_too_many_pairs_of_values_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, matrix(f"A: {MANY}\nB: {MANY}", combine="pairwise"))
    message = refusal(lambda: load_suite([path]), tmp_path)
    assert message.startswith("f.yaml:4:7: 1,002,001 pairs of values\n")


def test_an_expression_giving_an_unknown_type_is_refused(tmp_path: Path) -> None:
    text = replace_once(
        matrix("T: [FLOAT31]\nA: [1]"), '(A,)", DataType: FLOAT32', '(A,)", DataType: =T'
    )
    path = write(tmp_path, text)
    assert refusal(lambda: load_suite([path]), tmp_path) == shown(
        """
        f.yaml:7:47: 'FLOAT31' is not a data type
             7 |       InputTensor: {Sizes: "=(A,)", DataType: =T, fill: sequence}
               |                                               ^^
            hint: did you mean FLOAT32?
        """
    )


def test_an_expression_without_a_matrix_is_text(tmp_path: Path) -> None:
    text = replace_once(MATRIX, f"  - matrix:\n      {indented(VALUES)}\n    desc", "  - desc")
    path = write(tmp_path, text)
    message = refusal(lambda: load_suite([path]), tmp_path)
    assert message.startswith("f.yaml:4:28: must be a list, not '=(A,)'\n")


@pytest.mark.whole
def test_the_bundled_suite_is_smaller_than_a_matrix_may_be(bundled_suite: Suite) -> None:
    count = sum(1 for _ in bundled_suite.plan())
    assert 1000 < count < MOST_COMBINATIONS


COUNTS = st.lists(st.integers(1, 6), min_size=1, max_size=6)


def values_of(counts: list[int]) -> dict[str, list[int]]:
    return {f"P{index}": list(range(count)) for index, count in enumerate(counts)}


def pairs_of(row: dict[str, Any]) -> set[Any]:
    return set(itertools.combinations(row.items(), 2))


@pytest.mark.slow
@given(COUNTS)
def test_pairwise_rows_contain_every_pair_of_values(
    counts: list[int],
) -> None:
    values = values_of(counts)
    rows = list(pairwise(values))
    pairs_in_rows = set().union(*map(pairs_of, rows))
    for a, b in itertools.combinations(values, 2):
        for pair in itertools.product(values[a], values[b]):
            assert ((a, pair[0]), (b, pair[1])) in pairs_in_rows
    assert all(list(row) == list(values) for row in rows)


@given(COUNTS)
def test_each_pairwise_row_contains_a_new_pair(counts: list[int]) -> None:
    pairs_in_rows: set[Any] = set()
    for row in pairwise(values_of(counts)):
        assert len(counts) < 2 or not pairs_of(row) <= pairs_in_rows
        pairs_in_rows |= pairs_of(row)


@pytest.mark.slow
def test_pairwise_gives_the_same_rows_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """With another hash seed, sets of text have another order."""
    values = values_of([5] * 6)
    expected = list(pairwise(values))
    script = f"from dmlconf.cases.loading.matrix import pairwise; print(list(pairwise({values})))"
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        assert printed_by(script, Path(dmlconf.__file__).parents[1]) == f"{expected}\n"


@given(st.lists(st.integers(3, 8), min_size=4, max_size=7))
def test_pairwise_of_many_parameters_takes_few_rows(counts: list[int]) -> None:
    rows = list(pairwise(values_of(counts)))
    # Each pair of values of the two longest parameters needs a row of its own.
    first, second = sorted(counts)[-2:]
    assert first * second <= len(rows) <= 3 * first * second
    assert len(rows) * 2 <= math.prod(counts)


@pytest.mark.parametrize(
    ("counts", "rows"), [([3] * 4, 10), ([5] * 6, 39), ([2] * 10, 12), ([8, 7, 6, 5, 4], 58)]
)
def test_pairwise_keeps_its_number_of_rows(counts: list[int], rows: int) -> None:
    # Waivers and recordings name the cases that these rows become.
    assert len(list(pairwise(values_of(counts)))) == rows


@pytest.mark.parametrize("counts", [[], [1], [4], [3, 2]])
def test_pairwise_of_few_parameters_gives_every_combination(
    counts: list[int],
) -> None:
    rows = list(pairwise(values_of(counts)))
    assert len({tuple(row.items()) for row in rows}) == len(rows) == math.prod(counts)


def test_pairwise_rows_get_all_values_of_computed_parameters(tmp_path: Path) -> None:
    three = "A: [1, 2]\nB: [1, 2]\nC: [1, 2]"
    few = identifiers(tmp_path, three, combine="pairwise")
    assert len(few) < 8
    more = identifiers(tmp_path, f"{three}\nD: =range(A)", combine="pairwise")
    # D is 0 where A is 1, and 0 or 1 where A is 2.
    assert len(more) == sum(int(name[len("A=")]) for name in few)


def test_where_leaves_out_pairwise_rows(tmp_path: Path) -> None:
    three = "A: [1, 2]\nB: [1, 2]\nC: [1, 2]"
    rows = identifiers(tmp_path, three, combine="pairwise")
    kept = identifiers(tmp_path, three, combine="pairwise", where="=A == 2")
    assert kept == [row for row in rows if row.startswith("A=2,")]
    assert 0 < len(kept) < len(rows)
