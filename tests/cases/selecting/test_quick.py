"""`--quick` chooses a few cases that together cover data types, layouts and attribute values.

The tested code is in `dmlconf/cases/selecting/quick.py` and
`dmlconf/cases/selecting/selection.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.quick import quick_cases
from dmlconf.cases.selecting.selection import Selection, select
from tests.bundled import bundled

MATRIX = """
operator: TILE
cases:
  - matrix: {Type: [FLOAT32, FLOAT16, INT32], Count: [1, 2, 3, 4], Layout: [packed, padded]}
    desc:
      InputTensor: {Sizes: "=(Count,)", DataType: =Type, fill: sequence, layout: =Layout}
      OutputTensor: {Sizes: "=(2 * Count,)", DataType: =Type}
      Repeats: [2]
"""

ATTRIBUTES = """
operator: CUMULATIVE_SUMMATION
cases:
  - matrix: {Direction: [INCREASING, DECREASING], Exclusive: [true, false]}
    desc:
      InputTensor: {Sizes: [4], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Axis: 0
      AxisDirection: =Direction
      HasExclusiveSum: =Exclusive
"""

CASE = """
  - name: {name}
    desc:
      InputTensor: {{Sizes: [1], DataType: {data_type}, values: [{value}]}}
      OutputTensor: {{Sizes: [2], DataType: {data_type}}}
      Repeats: [2]
    expect: {{OutputTensor: [{value}, {value}]}}
"""


def planned(path: Path, text: str) -> list[PlannedCase]:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return list(load_suite([path]).plan())


def tiles(*rows: tuple[str, str, str]) -> str:
    return "operator: TILE\ncases:\n" + "".join(
        CASE.format(name=n, data_type=t, value=v) for n, t, v in rows
    )


def test_three_cases_cover_types_layouts_and_the_greatest_size(
    tmp_path: Path,
) -> None:
    cases = planned(tmp_path / "matrix.yaml", MATRIX)
    chosen = quick_cases(cases)
    values = {name: {case.parameters[name] for case in chosen} for name in chosen[0].parameters}
    assert values["Type"] == {"FLOAT32", "FLOAT16", "INT32"}
    assert values["Layout"] == {"packed", "padded"}
    assert values["Count"] == {4}
    assert len(chosen) == 3


def test_every_value_of_an_attribute_is_covered(tmp_path: Path) -> None:
    chosen = quick_cases(planned(tmp_path / "attributes.yaml", ATTRIBUTES))
    assert {case.parameters["Direction"] for case in chosen} == {"INCREASING", "DECREASING"}
    assert {case.parameters["Exclusive"] for case in chosen} == {True, False}
    assert len(chosen) == 2


def test_nan_and_infinity_are_covered_in_each_data_type(tmp_path: Path) -> None:
    rows = [
        ("plain", "FLOAT32", "1"),
        ("other", "FLOAT32", "2"),
        ("nan", "FLOAT32", ".nan"),
        ("infinite", "FLOAT32", ".inf"),
        ("half-nan", "FLOAT16", ".nan"),
    ]
    cases = planned(tmp_path / "boundary.yaml", tiles(*rows))
    names = {case.identifier.rpartition("/")[2] for case in quick_cases(cases)}
    assert names == {"nan", "infinite", "half-nan"}


def test_a_plain_zero_does_not_take_the_place_of_a_subnormal_number(tmp_path: Path) -> None:
    rows = [("zero", "FLOAT32", "0"), ("tiny", "FLOAT32", "1.0e-40"), ("one", "FLOAT32", "1")]
    cases = planned(tmp_path / "boundary.yaml", tiles(*rows))
    assert [case.identifier for case in quick_cases(cases)] == ["tile/boundary/tiny"]


def test_slow_cases_are_chosen_only_without_fast_ones(tmp_path: Path) -> None:
    text = tiles(("a", "FLOAT32", "1"), ("b", "FLOAT16", "1"))
    slow = planned(tmp_path / "slow.yaml", text.replace("    desc:", "    tags: [slow]\n    desc:"))
    fast = planned(tmp_path / "fast.yaml", text)
    assert quick_cases([*slow, *fast]) == fast
    assert quick_cases(slow) == slow


@pytest.mark.parametrize("operator", ["GATHER", "CAST"])
def test_the_choice_does_not_depend_on_other_operators(operator: str) -> None:
    plan = list(bundled("gather", "cast").plan())
    alone = list(select(plan, Selection(operators=frozenset({operator}), quick=True)))
    together = list(select(plan, Selection(quick=True)))
    assert [case for case in together if case.template.operator_name == operator] == alone
    assert 2 < len(alone) < len(plan) / 10


def test_fast_cases_of_another_operator_replace_no_slow_cases(tmp_path: Path) -> None:
    text = tiles(("a", "FLOAT32", "1")).replace("    desc:", "    tags: [slow]\n    desc:")
    slow = planned(tmp_path / "slow.yaml", text)
    assert quick_cases([*bundled("cast").plan(), *slow])[-1:] == slow
