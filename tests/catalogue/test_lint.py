"""Lint finds the mistakes in a file of the catalogue; the bundled files have none.

The tested code is in `dmlconf/catalogue/lint.py`, `dmlconf/catalogue/problems.py`,
`dmlconf/catalogue/special_cases.py`, `dmlconf/catalogue/loader.py` (shared constraints),
`dmlconf/documents/schema.py`, `dmlconf/documents/reader.py` (syntax of YAML),
`dmlconf/expressions.py`, `schemas/operators/` and `schemas/common.yaml`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import yaml

import dmlconf
from dmlconf.catalogue.lint import lint_catalogue, lint_common, lint_operator
from dmlconf.catalogue.loader import operator_files
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.resources import schemas_directory
from tests.cases.suites import replace_once
from tests.cli.process import printed_by
from tests.documents.refusals import shown, write
from tests.each import for_each

OPERATOR = """\
operator: FROB
aliases: [FROB_OLD]
type: 1
struct: DML_FROB_OPERATOR_DESC
since: 1_0
page: ns-directml-dml_frob_operator_desc
family: frobbing
summary: Frobs the input.
fields:
  - {name: InputTensor, kind: input, c_type: const DML_TENSOR_DESC*}
  - {name: OutputTensor, kind: output, c_type: const DML_TENSOR_DESC*}
  - {name: AxisCount, kind: attribute, c_type: UINT}
  - {name: Axes, kind: attribute, c_type: const UINT*, count: AxisCount}
  - {name: Direction, kind: attribute, c_type: DML_AXIS_DIRECTION}
  - {name: Type, kind: attribute, c_type: DML_TENSOR_DATA_TYPE}
  - {name: Value, kind: attribute, c_type: DML_SCALAR_UNION, type_field: Type}
support:
  - since: 2_0
    when: Direction == 'INCREASING'
    tensors:
      InputTensor: {ranks: [1, 8], data_types: [FLOAT32, FLOAT16]}
      OutputTensor: {ranks: [1, 8], data_types: [FLOAT32]}
  - since: 1_0
    tensors:
      InputTensor: {ranks: [4, 4], data_types: [FLOAT32]}
      OutputTensor: {ranks: [4, 4], data_types: [FLOAT32]}
undocumented_data_types:
  InputTensor: [FLOAT64]
constraints:
  - name: axes-in-range
    require: all(axis < InputTensor.DimensionCount for axis in Axes)
    source: page
  - {name: same-sizes, require: InputTensor.Sizes == OutputTensor.Sizes, source: measured}
in_place:
  - {output: OutputTensor, input: InputTensor}
precision:
  OutputTensor: {kind: ulp, limit: 2, source: "the page"}
page_errors:
  - {says: this, right: that, why: so}
level_requirements:
  - {since: 3_0, when: Direction != 'INCREASING', part: a fall, source: page}
"""
"""A valid file of an invented operator."""

MISTAKES: dict[str, dict[str, str]] = yaml.safe_load(
    (Path(__file__).parent / "lint_problems.yaml").read_text("utf-8")
)
"""For each mistake: the text in OPERATOR that is replaced, its replacement, and the message."""


def lint(directory: Path, text: str) -> str:
    error = InvalidFilesError(lint_operator(write(directory, text, "frob.yaml")))
    return str(error).replace(f"{directory}/", "").replace(f"{directory}\\", "")


def test_the_bundled_catalogue_has_no_problem() -> None:
    assert lint_catalogue() == []


@for_each(operator_files(), name=lambda path: path.stem)
def test_no_bundled_operator_has_a_problem(path: Path) -> None:
    assert lint_operator(path) == []


def test_a_sound_operator_has_no_problem(tmp_path: Path) -> None:
    assert lint(tmp_path, OPERATOR) == ""


def test_terms_are_known_in_bounds_constraints_and_rules(
    tmp_path: Path,
) -> None:
    text = OPERATOR
    for old, new in (
        (
            "constraints:\n",
            "terms: {Rank: InputTensor.DimensionCount, Last: Rank - 1, Top: Last}\nconstraints:\n",
        ),
        ("name: InputTensor, kind: input,", "name: InputTensor, kind: input, bounds: {high: Top},"),
        ("axis < InputTensor.DimensionCount", "axis <= Last"),
        ("when: Direction == 'INCREASING'", "when: Rank > 4"),
        ("kind: ulp, limit: 2", "kind: accumulate, products: Rank"),
    ):
        text = replace_once(text, old, new)
    assert lint(tmp_path, text) == ""


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_reported_with_its_line_and_column(tmp_path: Path, name: str) -> None:
    mistake = MISTAKES[name]
    assert (
        lint(tmp_path, replace_once(OPERATOR, mistake["replace"], mistake["by"]))
        == mistake["message"]
    )


def test_a_syntax_error_of_yaml_is_reported(tmp_path: Path) -> None:
    assert lint(tmp_path, "operator: ]") == shown(
        """
        frob.yaml:1:11: while parsing a block node: did not find expected node content
             1 | operator: ]
               |           ^
        """
    )


def test_three_problems_of_one_check_are_reported_at_once(tmp_path: Path) -> None:
    text = OPERATOR
    for name in (
        "a count that is no field",
        "an unknown enum",
        "ranks from the greatest to the least",
    ):
        text = replace_once(text, MISTAKES[name]["replace"], MISTAKES[name]["by"])
    problems = lint_operator(write(tmp_path, text, "frob.yaml"))
    assert [problem.line for problem in problems] == [13, 14, 21]


def test_an_output_declared_as_input_is_reported(
    tmp_path: Path,
) -> None:
    unnoticed = []
    assert operator_files()
    for path in operator_files():
        text = path.read_text("utf-8").replace("kind: output", "kind: input", 1)
        if not lint_operator(write(tmp_path, text, path.name)):
            unnoticed.append(path.name)
    assert unnoticed == []


def catalogue_problems(directory: Path) -> list[str]:
    script = "from dmlconf.catalogue.lint import lint_catalogue as lint; print(*lint(), sep='\\n')"
    lines = (
        printed_by(script, directory).replace(str(directory / "schemas"), "schemas").splitlines()
    )
    return [line for line in lines if line.startswith("schemas")]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    package = Path(dmlconf.__file__).parent
    shutil.copytree(package, tmp_path / "dmlconf", ignore=shutil.ignore_patterns("bundled"))
    shutil.copytree(schemas_directory(), tmp_path / "schemas")
    return tmp_path


def test_a_name_that_two_operators_have_is_reported(copy: Path) -> None:
    tile = copy / "schemas" / "operators" / "tile.yaml"
    text = replace_once(
        tile.read_text("utf-8"), "operator: TILE", "operator: TILE\naliases: [SCATTER]"
    )
    tile.write_text(text, "utf-8")
    assert catalogue_problems(copy) == [
        f"schemas{os.sep}operators: SCATTER names more than one operator"
    ]


def test_only_mistakes_in_common_yaml_are_reported(tmp_path: Path) -> None:
    text = (schemas_directory() / "common.yaml").read_text("utf-8")
    assert not lint_common(write(tmp_path, text, "common.yaml"))
    for old, new, message in (
        ("Tensor.Sizes)", "Tensor.Sizes", "'(' was never closed"),
        ("in Tensor.Sizes)", "in Tenser.Sizes)", "only Tensor is known here, not Tenser"),
        ("name: sizes-not-zero", "name: strides-per-dimension", "is listed twice"),
        ("source: header", "source: rumour", 'cannot be "rumour"'),
        ("WRAP: 6_4}", "WARP: 6_4}", "DML_PADDING_MODE has no constant WARP"),
        ("WRAP: 6_4}", "WRAP: 6_5}", "6_5 is not a feature level"),
    ):
        assert old in text
        (problem,) = lint_common(write(tmp_path, text.replace(old, new, 1), "common.yaml"))
        assert problem.line
        assert message in problem.message
