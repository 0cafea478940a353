"""Made cases load again, cover what they were made for, and are the same each time."""

from __future__ import annotations

from pathlib import Path

from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.catalogue.loader import operator
from dmlconf.coverage.combinations.measure import measure_combinations
from tests.combinations.drafts import bases
from tests.combinations.search import covering
from tests.combinations.writing import case_entries

ADD = """operator: ELEMENT_WISE_ADD
cases:
  - desc:
      ATensor: {Sizes: [2, 3], DataType: FLOAT32, fill: sequence}
      BTensor: {Sizes: [2, 3], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [2, 3], DataType: FLOAT32}
"""


def test_made_cases_cover_missing_pairs(tmp_path: Path) -> None:
    entry = operator("ELEMENT_WISE_ADD")
    path = tmp_path / "few.yaml"
    path.write_text(ADD, encoding="utf-8")
    cases = [valid_case(each) for each in load_suite([path]).plan()]
    before = measure_combinations([entry], cases)[entry.name]
    made, failed = covering(before, *bases(entry, cases), most=2)
    text = case_entries(entry, made, 1)
    assert text == case_entries(entry, covering(before, *bases(entry, cases), most=2)[0], 1)
    path.write_text(ADD + text, encoding="utf-8")
    plan = list(load_suite([path]).plan())
    assert len(plan) == 3
    after = measure_combinations([entry], map(valid_case, plan))[entry.name]
    assert len(after.missing) < len(before.missing) - 2 * 20
    assert set(failed) <= set(after.missing)
    first = next(pair for pair in before.missing if pair not in failed)
    assert first not in after.missing
