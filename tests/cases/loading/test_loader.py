"""Case files are loaded, and all their problems are reported at once, each with its line.

The tested code is in `dmlconf/cases/loading/loader.py`, `dmlconf/cases/loading/schema.py`,
`dmlconf/cases/loading/expansion.py`, `dmlconf/cases/building/operator_build.py`,
`dmlconf/cases/building/values.py`, `dmlconf/documents/problems.py`, `dmlconf/documents/schema.py`,
`dmlconf/documents/reader.py` and `dmlconf/catalogue/loader.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cases.model import ExpectedOutputs, Provenance
from dmlconf.documents.problems import InvalidFilesError
from tests.cases.suites import MATRIX, TILE, plan, replace_once
from tests.documents.refusals import refusal, shown, write

PAGE_OF_JOIN = "ns-directml-dml_join_operator_desc"


REFUSED: dict[str, tuple[str, str, str]] = {
    "an unknown operator": (
        "TILE",
        "TIEL",
        """
        f.yaml:1:11: the catalogue has no operator TIEL
             1 | operator: TIEL
               |           ^^^^
            hint: did you mean TILE?
        """,
    ),
    "a page that does not exist": (
        "cases:",
        "page: ns-directml-dml_tle_operator_desc\ncases:",
        """
        f.yaml:2:7: there is no page ns-directml-dml_tle_operator_desc
             2 | page: ns-directml-dml_tle_operator_desc
               |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: ns-directml-dml_tile_operator_desc describes TILE
        """,
    ),
    "a page of an enum in upper case": (
        "cases:",
        "page: ne-directml-DML_ROUNDING_MODE\ncases:",
        """
        f.yaml:2:7: there is no page ne-directml-DML_ROUNDING_MODE
             2 | page: ne-directml-DML_ROUNDING_MODE
               |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: ns-directml-dml_tile_operator_desc describes TILE
        """,
    ),
    "an operator that resembles no other": (
        "TILE",
        "FROBNICATE",
        """
        f.yaml:1:11: the catalogue has no operator FROBNICATE
             1 | operator: FROBNICATE
               |           ^^^^^^^^^^
            hint: `dmlconf operators` lists all
        """,
    ),
    "an operator that is no text": (
        "TILE",
        "5",
        """
        f.yaml:1:11: `operator` must be text, not 5
             1 | operator: 5
               |           ^
        """,
    ),
    "an unknown field of the desc": (
        "Repeats: [2]",
        "Repeat: [2]",
        """
        f.yaml:7:7: unknown field `Repeat` in the desc of TILE
             7 |       Repeat: [2]
               |       ^^^^^^
            hint: did you mean `Repeats`?
        """,
    ),
    "an unknown field of a case": (
        "expect:",
        "expects:",
        """
        f.yaml:8:5: unknown field `expects` in a case
             8 |     expects: {OutputTensor: [1, 2, 1, 2]}
               |     ^^^^^^^
            hint: did you mean `expect`?
        """,
    ),
    "an unknown field in place of a required field of a tensor": (
        "Sizes: [4]",
        "Size: [4]",
        """
        f.yaml:6:7: `cases[0].desc.OutputTensor` lacks `Sizes`
             6 |       OutputTensor: {Size: [4], DataType: FLOAT32}
               |       ^^^^^^^^^^^^
            hint: elements along each dimension
        f.yaml:6:22: unknown field `Size` in OutputTensor
             6 |       OutputTensor: {Size: [4], DataType: FLOAT32}
               |                      ^^^^
            hint: did you mean `Sizes`?
        """,
    ),
    "a name from another format": (
        "values: [1, 2]}",
        "data: [1, 2]}",
        """
        f.yaml:5:52: unknown field `data` in InputTensor
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, data: [1, 2]}
               |                                                    ^^^^
            hint: did you mean `values`?
        """,
    ),
    "an output with values": (
        "{Sizes: [4], DataType: FLOAT32}",
        "{Sizes: [4], DataType: FLOAT32, values: [1]}",
        """
        f.yaml:6:53: unknown field `values` in OutputTensor
             6 |       OutputTensor: {Sizes: [4], DataType: FLOAT32, values: [1]}
               |                                                     ^^^^^^
            hint: known here: Sizes, DataType, DimensionCount, Strides, layout, Flags, \
TotalTensorSizeInBytes, GuaranteedBaseOffsetAlignment
        """,
    ),
    "values and a fill": (
        "values: [1, 2]}",
        "values: [1, 2], fill: sequence}",
        """
        f.yaml:5:20: `cases[0].desc.InputTensor` cannot have `values` and `fill`
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2], fill: sequence}
               |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: keep one of them
        """,
    ),
    "values that do not match Sizes": (
        "values: [1, 2]",
        "values: [1, 2, 3]",
        """
        f.yaml:5:60: 3 values are given where Sizes {2} ask for 2
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2, 3]}
               |                                                            ^^^^^^^^^
        """,
    ),
    "values nested unlike Sizes": (
        "values: [1, 2]",
        "values: [[1, 2]]",
        """
        f.yaml:5:60: values are nested as {1, 2} where Sizes are {2}
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, values: [[1, 2]]}
               |                                                            ^^^^^^^^
            hint: nest the lists like Sizes, or give one flat list
        """,
    ),
    "256 in UINT8": (
        "FLOAT32, values: [1, 2]",
        "UINT8, values: [1, 256]",
        """
        f.yaml:5:62: 256 does not fit UINT8
             5 |       InputTensor: {Sizes: [2], DataType: UINT8, values: [1, 256]}
               |                                                              ^^^
            hint: it holds 0 to 255
        """,
    ),
    "1.5 in INT32": (
        "FLOAT32, values: [1, 2]",
        "INT32, values: [1, 1.5]",
        """
        f.yaml:5:62: 1.5 is not a whole number, as INT32 asks
             5 |       InputTensor: {Sizes: [2], DataType: INT32, values: [1, 1.5]}
               |                                                              ^^^
        """,
    ),
    "70000 in FLOAT16": (
        "FLOAT32, values: [1, 2]",
        "FLOAT16, values: [70000, 2]",
        """
        f.yaml:5:61: 70000 does not fit FLOAT16
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT16, values: [70000, 2]}
               |                                                             ^^^^^
            hint: its largest is 65504; infinity is written .inf
        """,
    ),
    "an infinity in a wrong spelling": (
        "values: [1, 2]",
        "values: [1, -inf]",
        """
        f.yaml:5:64: '-inf' is not a number
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, -inf]}
               |                                                                ^^^^
            hint: infinities and NaN are written .inf, -.inf and .nan
        """,
    ),
    "a merge key": (
        "Repeats: [2]",
        "<<: {Repeats: [2]}",
        """
        f.yaml:7:7: merge keys are not allowed
             7 |       <<: {Repeats: [2]}
               |       ^^
            hint: write out the keys that it stands for
        """,
    ),
    "a size below 0": (
        "Sizes: [4]",
        "Sizes: [-4]",
        """
        f.yaml:6:30: `cases[0].desc.OutputTensor.Sizes[0]` must be at least 0, not -4
             6 |       OutputTensor: {Sizes: [-4], DataType: FLOAT32}
               |                              ^^
        """,
    ),
    "a size that is no whole number": (
        "Sizes: [4]",
        "Sizes: [4.5]",
        """
        f.yaml:6:30: `cases[0].desc.OutputTensor.Sizes[0]` must be a whole number or text, not 4.5
             6 |       OutputTensor: {Sizes: [4.5], DataType: FLOAT32}
               |                              ^^^
        """,
    ),
    "an attribute of another type": (
        "Repeats: [2]",
        "Repeats: 2",
        """
        f.yaml:7:16: `cases[0].desc.Repeats` must be a list or nothing, not 2
             7 |       Repeats: 2
               |                ^
        """,
    ),
    "an unknown output": (
        "expect: {OutputTensor",
        "expect: {OutputTenser",
        """
        f.yaml:8:14: unknown field `OutputTenser` in the outputs of TILE
             8 |     expect: {OutputTenser: [1, 2, 1, 2]}
               |              ^^^^^^^^^^^^
            hint: did you mean `OutputTensor`?
        """,
    ),
    "a rejection with text that is no HRESULT": (
        "{OutputTensor: [1, 2, 1, 2]}",
        "{rejected: INVALIDARG}",
        """
        f.yaml:8:24: `cases[0].expect.rejected` is "INVALIDARG": \
the name of an HRESULT such as E_INVALIDARG
             8 |     expect: {rejected: INVALIDARG}
               |                        ^^^^^^^^^^
        """,
    ),
    "a rejection with outputs": (
        "{OutputTensor: [1, 2, 1, 2]}",
        "{rejected: E_INVALIDARG, OutputTensor: [1]}",
        """
        f.yaml:8:38: unknown field `OutputTensor` in a rejection
             8 |     expect: {rejected: E_INVALIDARG, OutputTensor: [1]}
               |                                      ^^^^^^^^^^^^
            hint: known here: rejected, constraint
        """,
    ),
    "a name with a control character": (
        "name: a",
        'name: "a\\e[31m b"',
        r"""
        f.yaml:3:11: `cases[0].name` is "a\u001b[31m b": a name has letters, digits, and . _ -
             3 |   - name: "a\e[31m b"
               |           ^^^^^^^^^^^
        """,
    ),
    "a name that ends in a line feed": (
        "name: a",
        'name: "a\\n"',
        r"""
        f.yaml:3:11: `cases[0].name` is "a\n": a name has letters, digits, and . _ -
             3 |   - name: "a\n"
               |           ^^^^^
        """,
    ),
    "a field with a character that reorders text": (
        "name: a",
        "na\u202eme: a",
        r"""
        f.yaml:3:5: unknown field `na\u202eme` in a case
             3 |   - na\u202eme: a
               |     ^^^^^
            hint: did you mean `name`?
        """,
    ),
    "no cases": (
        TILE[TILE.index("cases") :],
        "",
        """
        f.yaml:1:1: `cases` is missing
             1 | operator: TILE
               | ^
        """,
    ),
    "an empty list of cases": (
        TILE[TILE.index("cases") :],
        "cases: []\n",
        """
        f.yaml:2:8: `cases` must have at least one item, not []
             2 | cases: []
               |        ^^
        """,
    ),
    "null in place of a case": (
        "  - name: a",
        "  - ~\n  - name: a",
        """
        f.yaml:3:5: `cases[0]` must be a mapping, not null
             3 |   - ~
               |     ^
        """,
    ),
    "`let` without a matrix": (
        "    desc",
        "    let: {a: 1}\n    desc",
        """
        f.yaml:3:5: `let` and `where` need a `matrix`
             3 |   - name: a
               |     ^
        """,
    ),
}
"""For each mistake: the text in TILE that is replaced, its replacement, and the message."""


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_points_at_the_mistake_in_a_case_file(tmp_path: Path, name: str) -> None:
    old, new, message = REFUSED[name]
    path = write(tmp_path, replace_once(TILE, old, new))
    assert refusal(lambda: load_suite([path]), tmp_path) == shown(message)


def test_all_problems_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    write(
        tmp_path, replace_once(replace_once(TILE, "name: a", "nam: a"), "Repeats", "Reps"), "a.yaml"
    )
    write(tmp_path, "operator: TILE\ncases: [1, 2\nx: 3\n", "b.yaml")
    write(tmp_path, TILE, "c.yaml")
    write(tmp_path, replace_once(TILE, "values: [1, 2]", "values: [1]"), "d.yaml")
    assert refusal(lambda: load_suite([tmp_path]), tmp_path) == shown(
        """
        a.yaml:3:5: unknown field `nam` in a case
             3 |   - nam: a
               |     ^^^
            hint: did you mean `name`?
        a.yaml:7:7: unknown field `Reps` in the desc of TILE
             7 |       Reps: [2]
               |       ^^^^
            hint: did you mean `Repeats`?
        b.yaml:3:2: while parsing a flow sequence: did not find expected ',' or ']'
             3 | x: 3
               |  ^
        d.yaml:5:60: 1 value is given where Sizes {2} ask for 2
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1]}
               |                                                            ^^^
        """
    )


def test_every_case_that_cannot_be_built_is_reported(tmp_path: Path) -> None:
    text = TILE + replace_once(TILE, "name: a", "name: b")[len("operator: TILE\ncases:\n") :]
    path = write(tmp_path, text.replace("values: [1, 2]", "values: [1]"))
    with pytest.raises(InvalidFilesError) as caught:
        load_suite([path])
    assert [problem.line for problem in caught.value.problems] == [5, 11]


def test_every_problem_of_a_case_is_reported(tmp_path: Path) -> None:
    text = replace_once(TILE, "values: [1, 2]", "values: [1]")
    text = replace_once(text, "Sizes: [4]", "Sizes: [4], Flags: [OWNED]")
    path = write(
        tmp_path,
        replace_once(
            text, "{OutputTensor: [1, 2, 1, 2]}", "{rejected: E_INVALIDARG, constraint: nope}"
        ),
    )
    with pytest.raises(InvalidFilesError) as caught:
        load_suite([path])
    assert [problem.line for problem in caught.value.problems] == [5, 6, 8]


def test_schema_and_building_problems_are_sorted_by_line(
    tmp_path: Path,
) -> None:
    broken = replace_once(TILE, "values: [1, 2]", "values: [1]")
    path = write(tmp_path, broken + replace_once(TILE, "expect", "expects")[TILE.index("  - ") :])
    with pytest.raises(InvalidFilesError) as caught:
        load_suite([path])
    assert [problem.line for problem in caught.value.problems] == [5, 14]


@pytest.mark.parametrize(
    ("operator", "file", "name", "identifier"),
    [
        ("TILE", "f.yaml", "name: a", "tile/f/a"),
        ("TILE", "f.yaml", "note: unnamed", "tile/f"),
        ("TILE", "f.yaml", "name: f", "tile/f"),
        ("DML_OPERATOR_TILE", "boundary.yaml", "name: B.2_x-y", "tile/boundary/B.2_x-y"),
        ("tile", "f.yaml", "name: a", "tile/f/a"),
    ],
)
def test_an_identifier_joins_operator_file_and_name(
    tmp_path: Path, operator: str, file: str, name: str, identifier: str
) -> None:
    text = replace_once(replace_once(TILE, "TILE", operator), "name: a", name)
    (planned,) = plan(tmp_path, text, file)
    assert planned.identifier == identifier
    assert build(planned).identifier == identifier
    assert planned.template.operator_name == "TILE"


def test_a_case_of_an_alias_belongs_to_the_operator(tmp_path: Path) -> None:
    text = """
    operator: SCATTER
    cases:
      - desc:
          InputTensor: {Sizes: [1], DataType: FLOAT32, values: 1}
          IndicesTensor: {Sizes: [1], DataType: UINT32, values: 0}
          UpdatesTensor: {Sizes: [1], DataType: FLOAT32, values: 2}
          OutputTensor: {Sizes: [1], DataType: FLOAT32}
          Axis: 0
    """
    (planned,) = plan(tmp_path, text)
    assert planned.identifier == "scatter_elements/f"


@pytest.mark.parametrize("tags", ["[[[a]]]", "5", "{a: 1}", "[1, x]"])
def test_tags_that_are_not_texts_are_reported(tmp_path: Path, tags: str) -> None:
    path = write(tmp_path, replace_once(TILE, "cases:", f"tags: {tags}\ncases:"))
    refused = refusal(lambda: load_suite([path]), tmp_path)
    assert refused.startswith("f.yaml:2:")
    assert "`tags" in refused


def test_tags_are_file_name_file_tags_and_own_tags(tmp_path: Path) -> None:
    text = replace_once(TILE, "cases:", "tags: [two, one]\ncases:")
    text = replace_once(text, "  - name: a", "  - tags: [three, two]\n    name: a")
    (planned,) = plan(tmp_path, text)
    assert planned.template.tags == ("f", "two", "one", "three")
    assert build(planned).tags == planned.template.tags


@pytest.mark.parametrize(
    "page",
    [
        "ns-directml-dml_tile_operator_desc",
        "ns-directml-dml_average_pooling_grad_operator_desc",
        "ns-directml-dml_scatter_operator_desc",
        "ne-directml-dml_rounding_mode",
    ],
)
def test_a_file_may_name_any_operators_or_enums_page(tmp_path: Path, page: str) -> None:
    (planned,) = plan(tmp_path, replace_once(TILE, "cases:", f"page: {page}\ncases:"))
    assert build(planned).about.page == page


def test_a_case_keeps_page_example_note_recording_and_line(
    tmp_path: Path,
) -> None:
    members = (
        "  - example: 2\n    note: text\n    recorded: DirectML 1.15.4\n    documented: {why: x}\n"
    )
    text = replace_once(TILE, "  - name: a\n", members + "    name: a\n")
    (planned,) = plan(tmp_path, replace_once(text, "cases:", f"page: {PAGE_OF_JOIN}\ncases:"))
    about = build(planned).about
    assert (about.page, about.example, about.note) == (PAGE_OF_JOIN, "2", "text")
    assert (about.recorded, about.documented) == ("DirectML 1.15.4", {"why": "x"})
    assert str(about.location) == f"{tmp_path / 'f.yaml'}:4"
    expectation = build(planned).expectation
    assert isinstance(expectation, ExpectedOutputs)
    assert expectation.provenance is Provenance.RECORDED


def test_a_case_without_a_page_has_its_operators_page(tmp_path: Path) -> None:
    (planned,) = plan(tmp_path, TILE)
    assert planned.template.about.page == "ns-directml-dml_tile_operator_desc"


def test_the_location_of_a_case_is_its_line(tmp_path: Path) -> None:
    text = TILE + "\n  # more\n" + replace_once(TILE[TILE.index("  - ") :], "name: a", "name: b")
    lines = [case.template.about.location.line for case in plan(tmp_path, text)]
    assert lines == [3, 11]


def test_a_second_case_of_the_same_name_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, TILE + TILE[TILE.index("  - ") :])
    assert refusal(lambda: load_suite([path]), tmp_path) == shown(
        """
        f.yaml:9:5: tile/f/a also names the case at f.yaml:3
             9 |   - name: a
               |     ^
            hint: give each case its own `name`
        """
    )


def test_an_equal_identifier_in_another_folder_is_refused(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, TILE)
    message = refusal(lambda: load_suite([tmp_path]), tmp_path).replace("\\", "/")
    assert message.startswith("y/f.yaml:3:5: tile/f/a also names the case at x/f.yaml:3\n")


def suite(*paths: Path) -> Suite:
    return load_suite(paths)


def test_the_digest_changes_when_a_file_changes(tmp_path: Path) -> None:
    path = write(tmp_path, TILE)
    before = suite(path).digest
    write(tmp_path, replace_once(TILE, "[1, 2, 1, 2]", "[1, 2, 1, 3]"))
    assert suite(path).digest != before
    write(tmp_path, TILE + "# a comment counts as well\n")
    assert suite(path).digest != before
    write(tmp_path, TILE)
    assert suite(path).digest == before


def test_adding_or_renaming_a_file_changes_the_digest(tmp_path: Path) -> None:
    write(tmp_path, TILE)
    before = suite(tmp_path).digest
    other = write(tmp_path, MATRIX, "g.yaml")
    assert suite(tmp_path).digest != before
    with_other = suite(tmp_path).digest
    other.rename(tmp_path / "h.yaml")
    assert suite(tmp_path).digest != with_other


def test_the_digest_does_not_change_when_another_file_changes(tmp_path: Path) -> None:
    path, other = write(tmp_path, TILE), write(tmp_path, MATRIX, "g.yaml")
    before = suite(path).digest
    write(tmp_path, replace_once(MATRIX, "[1, 2]", "[1]"), "g.yaml")
    assert suite(other).digest != before
    assert suite(path).digest == before


def test_the_digest_is_the_same_in_another_folder(tmp_path: Path) -> None:
    digests = set()
    for name in ("one", "two"):
        folder = tmp_path / name / "tile"
        folder.mkdir(parents=True)
        digests.add(suite(write(folder, TILE)).digest)
    assert len(digests) == 1


@pytest.mark.whole
def test_identifiers_of_the_bundled_suite_are_unique(bundled_suite: Suite) -> None:
    identifiers = [case.identifier for case in bundled_suite.plan()]
    assert len(set(identifiers)) == len(identifiers) > 1000


def test_the_plan_shows_where_a_matrix_cannot_be_expanded(tmp_path: Path) -> None:
    # load_suite builds only the first case of a matrix.
    text = replace_once(MATRIX, "B: [x, y]", 'B: "=range(6 // (2 - A))"')
    loaded = suite(write(tmp_path, text))
    assert refusal(lambda: list(loaded.plan()), tmp_path) == shown(
        """
        f.yaml:5:10: range(6 // (2 - A)): division by zero
             5 |       B: "=range(6 // (2 - A))"
               |          ^^^^^^^^^^^^^^^^^^^^^^
        """
    )
