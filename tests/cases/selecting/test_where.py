"""Cases are selected by conditions on their descs (`--where`).

The tested code is in `dmlconf/cases/selecting/where.py`, `dmlconf/cases/selecting/selection.py`,
`dmlconf/cases/conditions.py` and `dmlconf/expressions.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.selection import Selection, select
from dmlconf.cases.selecting.where import Condition, ConditionError

TILE = """
operator: TILE
cases:
  - name: twice
    matrix:
      Type: [FLOAT16, FLOAT32]
      Count: [1, 2]
    desc:
      InputTensor: {Sizes: [2], DataType: =Type, values: [1, 2]}
      OutputTensor: {Sizes: "=(2 * Count,)", DataType: =Type}
      Repeats: "=(Count,)"
"""

ARGMIN = """
operator: ARGMIN
cases:
  - name: least
    desc:
      InputTensor: {Sizes: [1, 2], DataType: FLOAT32, values: [[1, 2]]}
      OutputTensor: {Sizes: [1, 1], DataType: UINT32}
      Axes: [1]
      AxisDirection: INCREASING
"""

IDENTITY = """
operator: ELEMENT_WISE_IDENTITY
cases:
  - name: lowest
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [2], DataType: FLOAT32}
      ScaleBias: {Scale: 1, Bias: -.inf}
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> list[PlannedCase]:
    folder = tmp_path_factory.mktemp("where")
    (folder / "tile.yaml").write_text(TILE, encoding="utf-8")
    (folder / "argmin.yaml").write_text(ARGMIN, encoding="utf-8")
    return list(load_suite([folder]).plan())


def chosen(plan: list[PlannedCase], where: str) -> list[str]:
    return [case.identifier for case in select(plan, Selection(where=where))]


@pytest.mark.parametrize(
    ("where", "cases"),
    [
        (
            "DataType == FLOAT16",
            ["tile/tile/twice[Type=FLOAT16,Count=1]", "tile/tile/twice[Type=FLOAT16,Count=2]"],
        ),
        ("Repeats == (2,) and DataType == FLOAT32", ["tile/tile/twice[Type=FLOAT32,Count=2]"]),
        ("UINT32 in DataTypes", ["argmin/argmin/least"]),
        ("AxisDirection == INCREASING", ["argmin/argmin/least"]),
        (
            "OutputTensor.Sizes[0] > 3",
            ["tile/tile/twice[Type=FLOAT16,Count=2]", "tile/tile/twice[Type=FLOAT32,Count=2]"],
        ),
    ],
)
def test_cases_whose_desc_meets_the_condition_are_selected(
    plan: list[PlannedCase], where: str, cases: list[str]
) -> None:
    assert sorted(chosen(plan, where)) == cases


def test_a_case_lacking_a_name_is_not_selected(plan: list[PlannedCase]) -> None:
    assert len(chosen(plan, "len(Repeats) == 1 or True")) == 4


def test_a_condition_that_no_case_meets_selects_nothing(
    plan: list[PlannedCase],
) -> None:
    assert chosen(plan, "Rank == 7") == []


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("Datatype == FLOAT16", "no case has Datatype; did you mean DataType?"),
        ("GroupCount > 1", "none of the cases has GroupCount; CONVOLUTION"),
        ("DataType == FLOAT61", "no case has FLOAT61; did you mean FLOAT64?"),
        ("Repeats == (1,) and Axes == (1,)", "no case has all of Axes, Repeats"),
        ("DataType > 1", "not supported between"),
        ("DataType = FLOAT16", "`=` at column 10 is unexpected; did you mean ==?"),
        ("Rank >", "Rank >: it ends too early; a condition is such as DataType == FLOAT16"),
        ("Rank > 1 && Rank < 3", "`&&` at column 10 is unexpected; did you mean and?"),
        ("Rank > 1 and (DataType = INT8)", "`=` at column 24 is unexpected; did you mean ==?"),
        ("Rank > 1 and NOT X", "`NOT` at column 14 is unexpected; did you mean not?"),
        ("Rank > 1 Rank", "`Rank` at column 10 is unexpected; a condition is such as"),
        ("Rank > 1, Rank < 3", "a comma makes a tuple; conditions are joined by `and`"),
        ("(Rank > 1", "'(' was never closed, at column 1; a condition is such as"),
        ("Rank\n> 1", "it ends too early, with its first line; write it in one line"),
        ("Zyxw > 1 or Rank > 1", "no case has Zyxw; `dmlconf operators NAME` lists the fields"),
        ("open('x')", "cannot call open"),
    ],
)
def test_invalid_conditions_and_unknown_names_are_refused(
    plan: list[PlannedCase], where: str, message: str
) -> None:
    with pytest.raises(ConditionError) as raised:
        chosen(plan, where)
    assert message in str(raised.value)


def test_a_condition_on_no_case_is_no_error(plan: list[PlannedCase]) -> None:
    Condition("NoSuchName == 1").check()
    # The keyword leaves no case to evaluate the condition for.
    selection = Selection(keywords="no-such-case", where="NoSuchName == 1")
    assert list(select(plan, selection)) == []


def test_an_infinite_bias_is_compared_as_a_number(tmp_path: Path) -> None:
    (tmp_path / "identity.yaml").write_text(IDENTITY, encoding="utf-8")
    own = list(load_suite([tmp_path]).plan())
    lowest = ["element_wise_identity/identity/lowest"]
    assert chosen(own, 'ScaleBias["Bias"] < 0') == lowest
    assert chosen(own, 'ScaleBias["Bias"] > 0') == []
