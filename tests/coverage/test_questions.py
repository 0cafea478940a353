"""Coverage counts which questions a suite asks of each operator.

A question is whether an operator makes a mistake that was found in another operator or runtime.

The tested code is in `dmlconf/coverage/questions.py`, `dmlconf/coverage/data_classes.py`,
`dmlconf/reports/suites/questions.py`, `dmlconf/cli/commands/writing/coverage.py` and
`schemas/questions.yaml`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.coverage.data_classes import DATA_CLASSES
from dmlconf.coverage.questions import QuestionCoverage, measure_questions, read_questions
from dmlconf.excuses.known_fault_file import read_known_faults
from dmlconf.reports.suites.questions import render_markdown
from dmlconf.resources import cases_directory
from tests.cli.process import dmlconf_here

CASES = """
operator: ARGMIN
cases:
  - name: words
    desc:
      InputTensor: {Sizes: [1, 3], DataType: INT64, values: [2147483648, 1, 4294967296]}
      OutputTensor: {Sizes: [1, 1], DataType: UINT32}
      Axes: [1]
      AxisDirection: INCREASING
  - name: refused
    desc:
      InputTensor: {Sizes: [3], DataType: INT64, values: [127, 128, 255]}
      OutputTensor: {Sizes: [1], DataType: UINT32}
      Axes: [7]
      AxisDirection: DECREASING
    expect: {rejected: E_INVALIDARG, constraint: axes-in-range}
"""


def asked_questions(folder: Path, text: str = CASES, name: str = "ARGMIN") -> QuestionCoverage:
    path = folder / "few.yaml"
    path.write_text(text, encoding="utf-8")
    return measure_questions([operator(name)], map(build, load_suite([path]).plan()))[name]


def test_case_asks_only_what_its_data_can_answer(tmp_path: Path) -> None:
    row = asked_questions(tmp_path)
    ends = {part for (name, part), count in row.asked.items() if name == "ends-of-words" and count}
    assert ends == {"INT64: from 2^31", "INT64: from 2^32"}
    words = {part for (name, part), n in row.asked.items() if name == "words-of-64-bits" and n}
    low = "INT64: equal high words, and low words that differ in bit 31"
    assert words == {low, "INT64: low words in another order than the numbers"}
    assert ("ends-of-words", "UINT8: below 2^7") in row.missing


def test_each_class_of_data_recognises_its_parts() -> None:
    def parts(name: str, *values: float, dtype: type = np.float32) -> set[str]:
        return set(DATA_CLASSES[name].parts_in(np.array(values, dtype)))

    nan = np.nan
    assert parts("nan_around_the_extreme", nan, 1, 2) == {"NaN before the extreme"}
    assert parts("nan_around_the_extreme", 2, 1, nan) == {"NaN after the extreme"}
    assert parts("nan_around_the_extreme", 1, nan, 2) == set()
    assert parts("nan_around_the_extreme", nan, nan) == set()
    assert parts("words_of_64_bits", 1, 2, dtype=np.int64) == set()
    assert parts("words_of_64_bits", 1, 2**31, dtype=np.int64) == {
        "equal high words, and low words that differ in bit 31"
    }
    assert parts("ends_of_half_precision", -2048, 65503, dtype=np.float64) == {"2048"}


def test_question_about_descs_counts_cases_that_meet_it(tmp_path: Path) -> None:
    row = asked_questions(tmp_path)
    assert row.asked["each-place-of-the-axis", "last"] == 1
    assert row.asked["each-place-of-the-axis", "first"] == 0
    assert row.asked["every-number-of-dimensions", "2 dimensions"] == 1
    assert row.asked["every-number-of-dimensions", "1 dimensions"] == 0


def test_operator_is_asked_only_what_can_concern_it() -> None:
    parts = {part for each in read_questions() for part in each.parts(operator("GEMM"))}
    assert not any("INT" in part for part in parts)
    assert {"FLOAT16: 2048", "FLOAT16: 65504"} <= parts
    assert not any(part.startswith("FLOAT16: NaN") for part in parts)


def test_each_question_has_an_explanation_or_known_fault() -> None:
    known = {fault.name for fault in read_known_faults()}
    questions = read_questions()
    assert questions
    for question in questions:
        assert " " in question.because or question.because in known, question.name


def test_coverage_questions_lists_missing_parts_and_fails_below_a_share(tmp_path: Path) -> None:
    (tmp_path / "few.yaml").write_text(CASES, encoding="utf-8")
    done = dmlconf_here(
        tmp_path,
        "coverage",
        "few.yaml",
        "--questions",
        "-o",
        "ARGMIN",
        "--missing",
        "-q",
        "--fail-under",
        "100",
    )
    assert done.returncode == 1
    assert "ARGMIN: ends-of-words: UINT8: below 2^7" in done.stdout
    assert "is below 100%" in done.stderr


def test_closing_sentence_does_not_count_graphs_as_operator() -> None:
    rows = [QuestionCoverage("GEMM", {("a", "b"): 1}), QuestionCoverage(GRAPHS, {("c", "d"): 0})]
    assert "1 of 2 parts of questions to 1 operator and graphs asked (50.00%)" in (
        render_markdown(rows)
    )
    assert "1 of 1 parts of questions to 1 operator asked (100.00%)" in render_markdown(rows[:1])


@pytest.mark.whole
def test_the_suite_asks_every_question() -> None:
    plan = load_suite([cases_directory()]).plan()
    cases = (valid_case(each) for each in plan if "model" not in each.template.tags)
    rows = measure_questions(map(operator, operator_names()), cases)
    missing = [(name, part) for name, row in rows.items() for part in row.missing]
    assert missing == []
