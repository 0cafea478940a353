from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dmlconf
from dmlconf.catalogue.lint import lint_catalogue, lint_common, lint_operator
from dmlconf.catalogue.loader import operator_files
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.resources import schemas_directory
from tests.cases.suites import changed
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

LAST_FIELD = "type_field: Type}\n"

FAULTS: dict[str, tuple[str, str, str]] = {
    "a field that no operator has": (
        "family:", "famly:",
        """
        frob.yaml:7:1: unknown field `famly` in an operator
             7 | famly: frobbing
               | ^^^^^
            hint: did you mean `family`?
        """,
    ),
    "neither a function nor a more general operator": (
        "family: frobbing\n", "",
        """
        frob.yaml:1:1: needs a `family`, or `specialises` if it is a special case
             1 | operator: FROB
               | ^
        """,
    ),
    "a special case of an operator that is none": (
        "family: frobbing", "specialises: {operator: GATHR}",
        """
        frob.yaml:7:25: the catalogue has no operator GATHR; did you mean GATHER?
             7 | specialises: {operator: GATHR}
               |                         ^^^^^
        """,
    ),
    "a special case without some fields of the general operator": (
        "family: frobbing", "specialises: {operator: ELEMENT_WISE_CLIP, with: {Min: 0, Max: 1}}",
        """
        frob.yaml:7:14: ScaleBias of ELEMENT_WISE_CLIP needs a value
             7 | specialises: {operator: ELEMENT_WISE_CLIP, with: {Min: 0, Max: 1}}
               |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        frob.yaml:7:14: ELEMENT_WISE_CLIP ignores Axes, Direction, Type, Value
             7 | specialises: {operator: ELEMENT_WISE_CLIP, with: {Min: 0, Max: 1}}
               |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a special case with a value of a field that is none": (
        "family: frobbing",
        "specialises: {operator: ACTIVATION_RELU, computed: {Axis: Axes + Top}}",
        """
        frob.yaml:7:59: ACTIVATION_RELU has no field Axis that needs a value
             7 | specialises: {operator: ACTIVATION_RELU, computed: {Axis: Axes + Top}}
               |                                                           ^^^^^^^^^^
        frob.yaml:7:14: ACTIVATION_RELU ignores Direction, Type, Value
             7 | specialises: {operator: ACTIVATION_RELU, computed: {Axis: Axes + Top}}
               |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        frob.yaml:7:59: FROB has no field Top
             7 | specialises: {operator: ACTIVATION_RELU, computed: {Axis: Axes + Top}}
               |                                                           ^^^^^^^^^^
        """,
    ),
    "a special case of itself": (
        "family: frobbing", "specialises: {operator: FROB}",
        """
        frob.yaml:7:25: FROB is a special case of itself
             7 | specialises: {operator: FROB}
               |                         ^^^^
        """,
    ),
    "a name of another form": (
        "struct: DML_FROB_OPERATOR_DESC", "struct: FROB_DESC",
        """
        frob.yaml:4:9: `struct` is "FROB_DESC": the name of its desc structure
             4 | struct: FROB_DESC
               |         ^^^^^^^^^
        """,
    ),
    "a feature level that is none": (
        "since: 1_0\npage", "since: 1.0\npage",
        """
        frob.yaml:5:8: `since` must be text, not 1.0
             5 | since: 1.0
               |        ^^^
        """,
    ),
    "a table of a feature level that does not exist": (
        "- since: 2_0", "- since: 2_7",
        """
        frob.yaml:18:12: 2_7 is not a feature level; they are 1_0, 2_0, 2_1, 3_0, 3_1, 4_0, 4_1, \
5_0, 5_1, 5_2, 6_0, 6_1, 6_2, 6_3, 6_4
            18 |   - since: 2_7
               |            ^^^
        """,
    ),
    "a requirement of the operator's own level": (
        "{since: 3_0", "{since: 1_0",
        """
        frob.yaml:41:13: must be above 1_0, which introduced FROB
            41 |   - {since: 1_0, when: Direction != 'INCREASING', part: a fall, source: page}
               |             ^^^
        """,
    ),
    "a requirement over a field that is none": (
        "when: Direction != ", "when: Richtung != ",
        """
        frob.yaml:41:24: FROB has no field Richtung
            41 |   - {since: 3_0, when: Richtung != 'INCREASING', part: a fall, source: page}
               |                        ^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a requirement that cannot be read": (
        "when: Direction != 'INCREASING'", "when: Direction !=",
        """
        frob.yaml:41:24: Direction !=: invalid syntax
            41 |   - {since: 3_0, when: Direction !=, part: a fall, source: page}
               |                        ^^^^^^^^^^^^
        """,
    ),
    "a requirement without a part": (
        ", part: a fall", "",
        """
        frob.yaml:41:5: `level_requirements[0]` lacks `part`
            41 |   - {since: 3_0, when: Direction != 'INCREASING', source: page}
               |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: the part's name, as it follows 'needs feature level 5_2 for'
        """,
    ),
    "an unknown data type": (
        "data_types: [FLOAT32, FLOAT16]", "data_types: [FLOAT32, FLOAT17]",
        """
        frob.yaml:21:58: `support[0].tensors.InputTensor.data_types[1]` cannot be "FLOAT17"
            21 |       InputTensor: {ranks: [1, 8], data_types: [FLOAT32, FLOAT17]}
               |                                                          ^^^^^^^
            hint: did you mean FLOAT16?
        """,
    ),
    "a rank beyond 8": (
        "InputTensor: {ranks: [1, 8]", "InputTensor: {ranks: [1, 9]",
        """
        frob.yaml:21:32: `support[0].tensors.InputTensor.ranks[1]` \
must be at most 8, not 9
            21 |       InputTensor: {ranks: [1, 9], data_types: [FLOAT32, FLOAT16]}
               |                                ^
        """,
    ),
    "a precision rule that is exact, with a limit": (
        "kind: ulp", "kind: exact",
        """
        frob.yaml:37:17: `precision.OutputTensor` cannot have `limit`
            37 |   OutputTensor: {kind: exact, limit: 2, source: "the page"}
               |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a precision rule without its limit": (
        "limit: 2, ", "",
        """
        frob.yaml:37:3: `precision.OutputTensor` lacks `limit`
            37 |   OutputTensor: {kind: ulp, source: "the page"}
               |   ^^^^^^^^^^^^
        """,
    ),
    "the name of another file": (
        "operator: FROB", "operator: FROBS",
        """
        frob.yaml:1:11: FROBS belongs in frobs.yaml
             1 | operator: FROBS
               |           ^^^^^
        """,
    ),
    "a field that is listed twice": (
        LAST_FIELD, LAST_FIELD + "  - {name: AxisCount, kind: attribute, c_type: UINT}\n",
        """
        frob.yaml:10:3: AxisCount is listed twice
            10 |   - {name: InputTensor, kind: input, c_type: const DML_TENSOR_DESC*}
               |   ^
        """,
    ),
    "a tensor that is an attribute": (
        LAST_FIELD, LAST_FIELD + "  - {name: T, kind: attribute, c_type: const DML_TENSOR_DESC*}\n",
        """
        frob.yaml:17:5: T is of kind attribute, but its type is const DML_TENSOR_DESC*
            17 |   - {name: T, kind: attribute, c_type: const DML_TENSOR_DESC*}
               |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        frob.yaml:17:5: DML_TENSOR_DESC is not an enum in common.yaml
            17 |   - {name: T, kind: attribute, c_type: const DML_TENSOR_DESC*}
               |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a count of what is no array": (
        "c_type: const UINT*, count", "c_type: UINT, count",
        """
        frob.yaml:13:5: Axes has a count, but its type is not a pointer
            13 |   - {name: Axes, kind: attribute, c_type: UINT, count: AxisCount}
               |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a count that is no field": (
        "count: AxisCount", "count: AxesCount",
        """
        frob.yaml:13:5: Axes has the count AxesCount, which is not a UINT field
            13 |   - {name: Axes, kind: attribute, c_type: const UINT*, count: AxesCount}
               |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a count that is no number": (
        "count: AxisCount", "count: Direction",
        """
        frob.yaml:13:5: Axes has the count Direction, which is not a UINT field
            13 |   - {name: Axes, kind: attribute, c_type: const UINT*, count: Direction}
               |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "an unknown enum": (
        "c_type: DML_AXIS_DIRECTION", "c_type: DML_AXIS_DIREKTION",
        """
        frob.yaml:14:5: DML_AXIS_DIREKTION is not an enum in common.yaml
            14 |   - {name: Direction, kind: attribute, c_type: DML_AXIS_DIREKTION}
               |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a scalar of unknown type": (
        ", type_field: Type", "",
        """
        frob.yaml:16:5: Value needs a type_field of type DML_TENSOR_DATA_TYPE
            16 |   - {name: Value, kind: attribute, c_type: DML_SCALAR_UNION}
               |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a scalar whose type is told by what is no type": (
        "type_field: Type", "type_field: Direction",
        """
        frob.yaml:16:5: Value needs a type_field of type DML_TENSOR_DATA_TYPE
            16 |   - {name: Value, kind: attribute, c_type: DML_SCALAR_UNION, type_field: Direction}
               |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a table without one of the tensors": (
        "      OutputTensor: {ranks: [1, 8], data_types: [FLOAT32]}\n", "",
        """
        frob.yaml:18:5: must list InputTensor, OutputTensor
            18 |   - since: 2_0
               |     ^
        """,
    ),
    "ranks from the greatest to the least": (
        "InputTensor: {ranks: [1, 8]", "InputTensor: {ranks: [8, 1]",
        """
        frob.yaml:21:28: must have the lowest rank first
            21 |       InputTensor: {ranks: [8, 1], data_types: [FLOAT32, FLOAT16]}
               |                            ^^^^^^
        """,
    ),
    "a newer table below an older one": (
        "since: 2_0\n    when: Direction == 'INCREASING'\n", "since: 0_0\n".replace("0_0", "1_0"),
        """
        frob.yaml:18:3: must list each feature level once, the newest first
            18 |   - since: 1_0
               |   ^
        """,
    ),
    "a table for a field that is none": (
        "when: Direction ==", "when: Richtung ==",
        """
        frob.yaml:19:11: FROB has no field Richtung
            19 |     when: Richtung == 'INCREASING'
               |           ^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a table for what cannot be read": (
        "when: Direction == 'INCREASING'", "when: Direction ==",
        """
        frob.yaml:19:11: Direction ==: invalid syntax
            19 |     when: Direction ==
               |           ^^^^^^^^^^^^
        """,
    ),
    "data types of a tensor that is none": (
        "InputTensor: [FLOAT64]", "InputTensr: [FLOAT64]",
        """
        frob.yaml:28:15: FROB has no tensor InputTensr
            28 |   InputTensr: [FLOAT64]
               |               ^^^^^^^^^
        """,
    ),
    "a constraint that is listed twice": (
        "name: same-sizes", "name: axes-in-range",
        """
        frob.yaml:30:3: axes-in-range is listed twice
            30 |   - name: axes-in-range
               |   ^
        """,
    ),
    "a constraint on a field that is none": (
        "require: InputTensor.Sizes == OutputTensor.Sizes", "require: 'InputTenser.Sizes == (1,)'",
        """
        frob.yaml:33:33: FROB has no field InputTenser; did you mean InputTensor?
            33 |   - {name: same-sizes, require: 'InputTenser.Sizes == (1,)', source: measured}
               |                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a shared constraint that is none": (
        "  - {name: same-sizes,", "  - same-size\n  - {name: same-sizes,",
        """
        frob.yaml:33:5: common.yaml has no shared constraint same-size for these fields; \
did you mean same-sizes?
            33 |   - same-size
               |     ^^^^^^^^^
        """,
    ),
    "a row like one below it": (
        "InputTensor: {ranks: [4, 4], data_types: [FLOAT32]}", "InputTensor: {like: OutputTensor}",
        """
        frob.yaml:25:27: no tensor OutputTensor is above InputTensor in this table
            25 |       InputTensor: {like: OutputTensor}
               |                           ^^^^^^^^^^^^
        """,
    ),
    "an expression that is too long to read": (
        "for axis in Axes)",
        "for axis in Axes) and " + " and ".join(f"AxisCount != {n}" for n in range(10, 20)),
        """
        frob.yaml:31:14: an expression of 255 characters; at most 200: name a part of it \
under `terms`
            31 |     require: all(axis < InputTensor.DimensionCount for axis in Axes) \
and AxisCount != 10 and AxisCou
               |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\
^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a constraint that cannot be read": (
        "for axis in Axes)", "for axis in Axes",
        """
        frob.yaml:31:14: all(axis < InputTensor.DimensionCount for axis in Axes: \
'(' was never closed
            31 |     require: all(axis < InputTensor.DimensionCount for axis in Axes
               |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a constraint beyond the language": (
        "for axis in Axes)", "for axis in set(Axes))",
        """
        frob.yaml:31:14: cannot call set; the functions are abs, all, any, drop_leading_ones, \
enumerate, exactly_one, first_present, len, max, min, ones, present, product, range, \
right_aligned, reversed, same, sorted, starts_with, sum, tuple, zip
            31 |     require: all(axis < InputTensor.DimensionCount for axis in set(Axes))
               |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "an output that is shared with what is no input": (
        "input: InputTensor}", "input: Axes}",
        """
        frob.yaml:35:35: Axes is not an input tensor
            35 |   - {output: OutputTensor, input: Axes}
               |                                   ^^^^
        """,
    ),
    "an input that is shared as an output": (
        "output: OutputTensor,", "output: InputTensor,",
        """
        frob.yaml:35:14: InputTensor is not an output tensor
            35 |   - {output: InputTensor, input: InputTensor}
               |              ^^^^^^^^^^^
        """,
    ),
    "a precision rule of what is no output": (
        "  OutputTensor: {kind: ulp", "  InputTensor: {kind: ulp",
        """
        frob.yaml:37:3: must have one rule for each of OutputTensor
            37 |   InputTensor: {kind: ulp, limit: 2, source: "the page"}
               |   ^
        """,
    ),
    "subnormal numbers flushed by what is no input": (
        "limit: 2, ", "limit: 2, flushed_by: OutputTensor, ",
        """
        frob.yaml:37:51: FROB has no input tensor OutputTensor
            37 |   OutputTensor: {kind: ulp, limit: 2, flushed_by: OutputTensor, source: "the page"}
               |                                                   ^^^^^^^^^^^^
        """,
    ),
    "a typical error under an unknown condition": (
        "limit: 2, ",
        "limit: 2, typical: {share: {FLOAT32: 0.01}, when: Frob == 1, measured: here}, ",
        """
        frob.yaml:37:79: FROB has no field Frob
            37 | limit: 2, typical: {share: {FLOAT32: 0.01}, when: Frob == 1, measured: here}, \
source: "the page"}
               |                                                   ^^^^^^^^^
        """,
    ),
    "a typical error that is no less than the limit": (
        "limit: 2, ", "limit: 2, typical: {share: {FLOAT32: 0.5}, measured: here}, ",
        """
        frob.yaml:37:66: `precision.OutputTensor.typical.share.FLOAT32` \
must be less than 0.1, not 0.5
            37 |  {kind: ulp, limit: 2, typical: {share: {FLOAT32: 0.5}, measured: here}, \
source: "the page"}
               |                                                   ^^^
        """,
    ),
    "a term that nothing uses": (
        "constraints:\n", "terms: {BatchSize: 'InputTensor.Sizes[0]'}\nconstraints:\n",
        """
        frob.yaml:29:20: no expression uses BatchSize
            29 | terms: {BatchSize: 'InputTensor.Sizes[0]'}
               |                    ^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a term of a field's name": (
        "constraints:\n", "terms:\n  Axes: InputTensor.Sizes[0]\nconstraints:\n",
        """
        frob.yaml:30:9: Axes is the name of a field
            30 |   Axes: InputTensor.Sizes[0]
               |         ^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a term whose name is of another form": (
        "constraints:\n", "terms:\n  batchSize: AxisCount\nconstraints:\n",
        """
        frob.yaml:30:3: `terms` is "batchSize": must match ^[A-Z][A-Za-z0-9]*$
            30 |   batchSize: AxisCount
               |   ^
        """,
    ),
    "a term that uses a later one": (
        "constraints:\n  - name: axes-in-range\n    require: all(axis < InputTensor.DimensionCount",
        "terms: {Half: Whole // 2, Whole: 'InputTensor.Sizes[0]'}\n"
        "constraints:\n  - name: axes-in-range\n    require: all(axis < Half",
        """
        frob.yaml:29:15: FROB has no field or term Whole above it
            29 | terms: {Half: Whole // 2, Whole: 'InputTensor.Sizes[0]'}
               |               ^^^^^^^^^^
        """,
    ),
    "a term that cannot be read": (
        "constraints:\n", "terms:\n  BatchSize: InputTensor.Sizes[0\nconstraints:\n",
        """
        frob.yaml:30:14: InputTensor.Sizes[0: '[' was never closed
            30 |   BatchSize: InputTensor.Sizes[0
               |              ^^^^^^^^^^^^^^^^^^^
        """,
    ),
}  # fmt: skip


def lint(directory: Path, text: str) -> str:
    error = InvalidFilesError(lint_operator(write(directory, text, "frob.yaml")))
    return str(error).replace(f"{directory}/", "").replace(f"{directory}\\", "")


def test_bundled_catalogue_has_no_problem() -> None:
    assert lint_catalogue() == []


@for_each(operator_files(), name=lambda path: path.stem)
def test_bundled_operator_has_no_problem(path: Path) -> None:
    assert lint_operator(path) == []


def test_operator_without_a_fault_has_no_problem(tmp_path: Path) -> None:
    assert lint(tmp_path, OPERATOR) == ""


def test_terms_stand_for_what_all_expressions_share(tmp_path: Path) -> None:
    text = OPERATOR
    for old, new in (
        (
            "constraints:\n",
            "terms: {Rank: InputTensor.DimensionCount, Last: Rank - 1}\nconstraints:\n",
        ),
        ("axis < InputTensor.DimensionCount", "axis <= Last"),
        ("when: Direction == 'INCREASING'", "when: Rank > 4"),
        ("kind: ulp, limit: 2", "kind: accumulate, products: Rank"),
    ):
        text = changed(text, old, new)
    assert lint(tmp_path, text) == ""


@pytest.mark.parametrize("name", FAULTS)
def test_finds(tmp_path: Path, name: str) -> None:
    old, new, message = FAULTS[name]
    assert lint(tmp_path, changed(OPERATOR, old, new)) == shown(message)


def test_finds_what_is_no_yaml(tmp_path: Path) -> None:
    assert lint(tmp_path, "operator: ]") == shown(
        """
        frob.yaml:1:11: while parsing a block node: did not find expected node content
             1 | operator: ]
               |           ^
        """
    )


def test_finds_every_fault_at_once(tmp_path: Path) -> None:
    text = OPERATOR
    for name in (
        "an unknown enum",
        "ranks from the greatest to the least",
        "a count that is no field",
    ):
        old, new, _ = FAULTS[name]
        text = changed(text, old, new)
    assert [problem.line for problem in lint_operator(write(tmp_path, text, "frob.yaml"))] == [
        13, 14, 21,
    ]  # fmt: skip


def test_finds_each_broken_copy_of_a_bundled_operator(tmp_path: Path) -> None:
    unnoticed = []
    for path in operator_files():
        text = path.read_text("utf-8").replace("kind: output", "kind: input", 1)
        if not lint_operator(write(tmp_path, text, path.name)):
            unnoticed.append(path.name)
    assert unnoticed == []


def catalogue_problems(directory: Path) -> list[str]:
    """The problems of a copy of the catalogue, as a process finds them that uses the copy."""
    script = "from dmlconf.catalogue.lint import lint_catalogue as lint; print(*lint(), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, check=True, cwd=directory,
        env={**os.environ, "PYTHONPATH": str(directory)},
    )  # fmt: skip
    lines = done.stdout.replace(str(directory / "schemas"), "schemas").splitlines()
    return [line for line in lines if line.startswith("schemas")]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    package = Path(dmlconf.__file__).parent
    shutil.copytree(package, tmp_path / "dmlconf", ignore=shutil.ignore_patterns("bundled"))
    shutil.copytree(schemas_directory(), tmp_path / "schemas")
    return tmp_path


def test_finds_a_name_of_two_operators(copy: Path) -> None:
    tile = copy / "schemas" / "operators" / "tile.yaml"
    text = changed(tile.read_text("utf-8"), "operator: TILE", "operator: TILE\naliases: [SCATTER]")
    tile.write_text(text, "utf-8")
    assert catalogue_problems(copy) == [
        f"schemas{os.sep}operators: SCATTER names more than one operator"
    ]


def test_finds_faults_of_what_all_operators_share(tmp_path: Path) -> None:
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
