"""`varied` gives a case other inputs, for runs that dispatch its operator several times.

Generated inputs get other numbers, and the reference says what is right. If all inputs are listed,
their elements are rotated, and the outputs are not judged.

The tested code is in `dmlconf/cases/variation.py` and `dmlconf/cases/model.py` (`most_variations`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.cases.variation import is_judged, varied

SUITE: Final = """
operator: ELEMENT_WISE_ADD
cases:
  - name: generated
    desc:
      ATensor: {Sizes: [7], DataType: FLOAT32, fill: {uniform: {low: -1, high: 1, seed: 3}}}
      BTensor: {Sizes: [7], DataType: FLOAT32, values: [1, 2, 3, 4, 5, 6, 7]}
      OutputTensor: {Sizes: [7], DataType: FLOAT32}
  - name: stated
    desc:
      ATensor: {Sizes: [3], DataType: FLOAT32, values: [1, 2, 3]}
      BTensor: {Sizes: [3], DataType: FLOAT32, values: [4, 5, 6]}
      OutputTensor: {Sizes: [3], DataType: FLOAT32}
    expect: {OutputTensor: [5, 7, 9]}
  - name: constant
    desc:
      ATensor: {Sizes: [3], DataType: FLOAT32, fill: {constant: {value: 1}}}
      BTensor: {Sizes: [3], DataType: FLOAT32, values: [4, 5, 6]}
      OutputTensor: {Sizes: [3], DataType: FLOAT32}
"""


@pytest.fixture
def cases(tmp_path: Path) -> dict[str, Case]:
    (tmp_path / "add.yaml").write_text(SUITE, encoding="utf-8")
    plan = load_suite([tmp_path]).plan()
    return {planned.identifier.rpartition("/")[2]: valid_case(planned) for planned in plan}


def test_generated_inputs_change_and_listed_ones_stay(
    cases: dict[str, Case],
) -> None:
    case = cases["generated"]
    inputs = [varied(case, number).inputs() for number in range(case.most_variations)]
    assert len({each["ATensor"].tobytes() for each in inputs}) == case.most_variations > 1
    assert len({each["BTensor"].tobytes() for each in inputs}) == 1
    assert is_judged(case)
    assert varied(case, 0) is case
    assert varied(case, 1).identifier != case.identifier


def test_an_input_filled_with_a_constant_counts_as_listed(cases: dict[str, Case]) -> None:
    rotated = varied(cases["constant"], 1)
    assert rotated.inputs()["ATensor"].tolist() == [1, 1, 1]
    assert rotated.inputs()["BTensor"].tolist() == [6, 4, 5]
    assert not is_judged(cases["constant"])


def test_listed_inputs_are_rotated_and_not_judged(
    cases: dict[str, Case],
) -> None:
    case = cases["stated"]
    rotated = varied(case, 1)
    assert rotated.inputs()["ATensor"].tolist() == [3, 1, 2]
    assert rotated.expectation is None
    assert not is_judged(case)
    np.testing.assert_array_equal(case.inputs()["ATensor"], [1, 2, 3])
