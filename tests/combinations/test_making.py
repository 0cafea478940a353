"""Made cases load again, cover what they were made for, and are the same each time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.catalogue.loader import operator
from dmlconf.coverage.combinations.measure import measure_combinations
from dmlconf.coverage.combinations.parameters import parameters_of, values_of
from tests.combinations.drafts import bases, case_of
from tests.combinations.noticing import notices
from tests.combinations.search import covering
from tests.combinations.windows import with_other_windows
from tests.combinations.writing import case_entries

ADD = """operator: ELEMENT_WISE_ADD
cases:
  - desc:
      ATensor: {Sizes: [2, 3], DataType: FLOAT32, fill: sequence}
      BTensor: {Sizes: [2, 3], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [2, 3], DataType: FLOAT32}
"""

POOLING = """operator: AVERAGE_POOLING1
cases:
  - desc:
      InputTensor: {Sizes: [1, 2, 5, 5], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [1, 2, 4, 4], DataType: FLOAT32}
      Strides: [1, 1]
      WindowSize: [2, 2]
      StartPadding: [0, 0]
      EndPadding: [0, 0]
      Dilations: [1, 1]
      IncludePadding: false
"""


def test_sizes_of_outputs_follow_from_other_windows(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(POOLING, encoding="utf-8")
    [case] = [valid_case(each) for each in load_suite([path]).plan()]
    parameters = parameters_of(case.operator)
    for change in (
        {"window": "as large as the input", "padding": "uneven"},
        {"strides": "different", "last size": "tile + 1"},
        {"padding": "even", "last size": "tile"},
        {"dimensions": "5", "dilations": "the same"},
    ):
        made = case
        for name, value in change.items():
            descs = with_other_windows(case.operator, made.desc, name, value)
            made = replace(case, desc=next(descs))
            assert not made.documented_violations()
        names = [each.name for each in parameters]
        values = zip(names, values_of(made, parameters), strict=True)
        assert change.items() <= set(values)


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


QUANTIZE = """operator: DYNAMIC_QUANTIZE_LINEAR
cases:
  - matrix: {Value: [-2.5, -.inf]}
    desc:
      InputTensor: {Sizes: [4], DataType: FLOAT32, fill: {constant: {value: =Value}}}
      OutputTensor: {Sizes: [4], DataType: UINT8}
      OutputScaleTensor: {Sizes: [1], DataType: FLOAT32}
      OutputZeroPointTensor: {Sizes: [1], DataType: UINT8}
"""


def test_data_that_leave_outputs_open_make_no_case(tmp_path: Path) -> None:
    """A range that is infinite has a scale, and no zero point."""
    path = tmp_path / "one.yaml"
    path.write_text(QUANTIZE, encoding="utf-8")
    finite, infinite = (valid_case(each) for each in load_suite([path]).plan())
    assert notices(finite)
    assert not notices(infinite)


def test_mild_data_are_of_the_same_class(tmp_path: Path) -> None:
    entry = operator("ELEMENT_WISE_ADD")
    path = tmp_path / "few.yaml"
    path.write_text(ADD.replace("[2, 3]", "[40, 3]"), encoding="utf-8")
    [draft], _ = bases(entry, [valid_case(each) for each in load_suite([path]).plan()])
    for kind in ("whole", "fractions", "small", "large", "special"):
        case = case_of(entry, replace(draft, data_class=kind, mild=True))
        names = [each.name for each in parameters_of(entry)]
        values = dict(zip(names, values_of(case, parameters_of(entry)), strict=True))
        assert values["data"] == kind
