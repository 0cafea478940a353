"""A case file is refused if an entry of one operator is wrong; the message names the place.

The tested code is in `operator_build.py`, `tensor_entry.py`, `attributes.py` and `values.py` in
`dmlconf/cases/building/`, in `dmlconf/cases/loading/loader.py`, in `dmlconf/tensors/fills.py` and,
for unknown constants, in `dmlconf/documents/schema.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.errors import CaseError
from dmlconf.cases.loading.loader import load_suite
from dmlconf.documents.problems import InvalidFilesError
from tests.cases.suites import ARGMIN, JOIN, JOIN_MATRIX, TILE, replace_once
from tests.documents.refusals import refusal, shown, write

VALUES = "values: [1, 2]"
REFUSED: dict[str, tuple[str, str, str]] = {
    "an unknown data type": (
        "[2], DataType: FLOAT32",
        "[2], DataType: FLOAT31",
        """
        f.yaml:5:43: `cases[0].desc.InputTensor.DataType` cannot be "FLOAT31"
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT31, values: [1, 2]}
               |                                           ^^^^^^^
            hint: did you mean FLOAT32?
        """,
    ),
    "an unknown fill": (
        VALUES,
        "fill: sequnce",
        """
        f.yaml:5:58: there is no fill 'sequnce'
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, fill: sequnce}
               |                                                          ^^^^^^^
            hint: did you mean sequence?
        """,
    ),
    "a fill of two names": (
        VALUES,
        "fill: {sequence: , constant: }",
        """
        f.yaml:5:58: a fill has one name
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, fill: {sequence: , constant: }}
               |                                                          ^^^^^^^^^^^^^^^^^^^^^^^^
            hint: write `fill: {uniform: {low: -1, high: 1}}`
        """,
    ),
    "a fill that lacks an argument": (
        VALUES,
        "fill: {integers: {low: 0}}",
        """
        f.yaml:5:58: fill integers: missing 1 required keyword-only argument: 'high'
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, fill: {integers: {low: 0}}}
               |                                                          ^^^^^^^^^^^^^^^^^^^^
            hint: write `fill: {integers: {low: -1, high: 1}}` (optional: seed)
        """,
    ),
    "a fill with an argument of another fill": (
        VALUES,
        "fill: {sequence: {seed: 1}}",
        """
        f.yaml:5:58: fill sequence: got an unexpected keyword argument 'seed'
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, fill: {sequence: {seed: 1}}}
               |                                                          ^^^^^^^^^^^^^^^^^^^^^
            hint: `fill: sequence` (optional: start, step, period, shift)
        """,
    ),
    "a fill's argument that is text": (
        VALUES,
        "fill: {constant: {value: a}}",
        """
        f.yaml:5:58: fill constant: its arguments are numbers by name
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, fill: {constant: {value: a}}}
               |                                                          ^^^^^^^^^^^^^^^^^^^^^^
            hint: write `fill: {uniform: {low: -1, high: 1}}`
        """,
    ),
    "a fill's argument that is no whole number": (
        VALUES,
        "fill: {sequence: {step: 1.5}}",
        """
        f.yaml:5:76: fill sequence: step is 1.5, but must be a whole number
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, fill: {sequence: {step: 1.5}}}
               |                                                                            ^^^
        """,
    ),
    "a range that ends before it begins": (
        "[2], DataType: FLOAT32, values: [1, 2]",
        "[], DataType: INT8, fill: {integers: {low: 3, high: 1}}",
        """
        f.yaml:5:54: fill integers: low is 3, above high, which is 1
             5 |       InputTensor: {Sizes: [], DataType: INT8, fill: {integers: {low: 3, high: 1}}}
               |                                                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a fill of values that the data type cannot hold": (
        "FLOAT32, values: [1, 2]",
        "UINT8, fill: {sequence: {start: 300}}",
        """
        f.yaml:5:56: fill sequence: UINT8 cannot hold 300
             5 |       InputTensor: {Sizes: [2], DataType: UINT8, fill: {sequence: {start: 300}}}
               |                                                        ^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a fill of integers whose mean is NaN": (
        "FLOAT32, values: [1, 2]",
        "INT32, fill: {normal: {mean: .nan}}",
        """
        f.yaml:5:56: fill normal: mean: INT32 cannot hold nan
             5 |       InputTensor: {Sizes: [2], DataType: INT32, fill: {normal: {mean: .nan}}}
               |                                                        ^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "a constant that the data type cannot hold": (
        "FLOAT32, values: [1, 2]",
        "UINT8, fill: {constant: {value: .nan}}",
        """
        f.yaml:5:56: fill constant: nan does not fit UINT8
             5 |       InputTensor: {Sizes: [2], DataType: UINT8, fill: {constant: {value: .nan}}}
               |                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    "an input without data": (
        ", values: [1, 2]",
        "",
        """
        f.yaml:5:20: `InputTensor` has no data
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32}
               |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: give it `values` or a `fill`
        """,
    ),
    "fewer values than a large tensor has": (
        "Sizes: [2]",
        "Sizes: [100000, 100000]",
        """
        f.yaml:5:73: 2 values are given where Sizes {100000, 100000} ask for 10,000,000,000
             5 |       InputTensor: {Sizes: [100000, 100000], DataType: FLOAT32, values: [1, 2]}
               |                                                                         ^^^^^^
        """,
    ),
    "an unknown layout": (
        VALUES,
        "values: [1, 2], layout: paded",
        """
        f.yaml:5:76: 'paded' is not a layout
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2], layout: paded}
               |                                                                            ^^^^^
            hint: did you mean padded?
        """,
    ),
    "a layout and strides": (
        VALUES,
        "layout: packed, Strides: [1]",
        """
        f.yaml:5:60: `layout` and `Strides` both say where the elements are
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, layout: packed, Strides: [1]}
               |                                                            ^^^^^^
            hint: keep one of them
        """,
    ),
    "different values at one offset": (
        VALUES,
        "Strides: [0], values: [1, 2]",
        """
        f.yaml:5:74: elements that share an offset in the buffer, by Strides, have different values
             5 |       InputTensor: {Sizes: [2], DataType: FLOAT32, Strides: [0], values: [1, 2]}
               |                                                                          ^^^^^^
            hint: give equal values along a stride of 0
        """,
    ),
    "a DimensionCount that Sizes does not have": (
        "Sizes: [4]",
        "Sizes: [4], DimensionCount: 2",
        """
        f.yaml:6:50: DimensionCount is 2, but Sizes has 1
             6 |       OutputTensor: {Sizes: [4], DimensionCount: 2, DataType: FLOAT32}
               |                                                  ^
            hint: leave DimensionCount out
        """,
    ),
    "text as a number of bytes": (
        "Sizes: [4]",
        "Sizes: [4], TotalTensorSizeInBytes: abc",
        """
        f.yaml:6:58: 'abc' is not a whole number of at least 0
             6 |       OutputTensor: {Sizes: [4], TotalTensorSizeInBytes: abc, DataType: FLOAT32}
               |                                                          ^^^
        """,
    ),
    "text as an alignment": (
        "Sizes: [4], DataType: FLOAT32",
        "Sizes: [], DataType: INT8, GuaranteedBaseOffsetAlignment: abc",
        """
        f.yaml:6:80: 'abc' is not a whole number of at least 0
             6 |       OutputTensor: {Sizes: [], DataType: INT8, GuaranteedBaseOffsetAlignment: abc}
               |                                                                                ^^^
        """,
    ),
    "text as a size": (
        "Sizes: [4]",
        "Sizes: [4, =A]",
        """
        f.yaml:6:33: '=A' is not a whole number of at least 0
             6 |       OutputTensor: {Sizes: [4, =A], DataType: FLOAT32}
               |                                 ^^
        """,
    ),
    "text as sizes": (
        "Sizes: [4]",
        "Sizes: abc",
        """
        f.yaml:6:29: must be a list, not 'abc'
             6 |       OutputTensor: {Sizes: abc, DataType: FLOAT32}
               |                             ^^^
        """,
    ),
    "an unknown flag": (
        "Sizes: [4]",
        "Sizes: [4], Flags: [OWNED]",
        """
        f.yaml:6:41: 'OWNED' is not a flag
             6 |       OutputTensor: {Sizes: [4], Flags: [OWNED], DataType: FLOAT32}
               |                                         ^^^^^^^
            hint: one of NONE, OWNED_BY_DML
        """,
    ),
    "a count that the list does not have": (
        "Repeats: [2]",
        "Repeats: [2]\n      RepeatsCount: 3",
        """
        f.yaml:8:21: lengths differ: RepeatsCount says 3, Repeats says 1
             8 |       RepeatsCount: 3
               |                     ^
            hint: RepeatsCount may be left out
        """,
    ),
    "an output in place of an input that may not be shared": (
        "    expect",
        "    in_place: {OutputTensor: InputTensor}\n    expect",
        """
        f.yaml:8:30: TILE may not write OutputTensor in place of InputTensor
             8 |     in_place: {OutputTensor: InputTensor}
               |                              ^^^^^^^^^^^
        """,
    ),
    "an unknown constraint": (
        "{OutputTensor: [1, 2, 1, 2]}",
        "{rejected: E_INVALIDARG, constraint: ouput-sizes}",
        """
        f.yaml:8:50: TILE has no constraint 'ouput-sizes'
             8 |     expect: {rejected: E_INVALIDARG, constraint: ouput-sizes}
               |                                                  ^^^^^^^^^^^
            hint: did you mean output-sizes?
        """,
    ),
    "expected values of another count": (
        "[1, 2, 1, 2]",
        "[1, 2, 1]",
        """
        f.yaml:8:28: 3 values are given where Sizes {4} ask for 4
             8 |     expect: {OutputTensor: [1, 2, 1]}
               |                            ^^^^^^^^^
        """,
    ),
    "an expected value that is no number": (
        "[1, 2, 1, 2]",
        "[1, 2, x, 2]",
        """
        f.yaml:8:35: 'x' is not a number
             8 |     expect: {OutputTensor: [1, 2, x, 2]}
               |                                   ^
        """,
    ),
    "an expectation of an output that the desc lacks": (
        "OutputTensor: {Sizes: [4], DataType: FLOAT32}",
        "OutputTensor: ~",
        """
        f.yaml:8:28: the desc has no output OutputTensor
             8 |     expect: {OutputTensor: [1, 2, 1, 2]}
               |                            ^^^^^^^^^^^^
        """,
    ),
}
"""By what is wrong: a part of TILE, the wrong text that replaces it, and the message."""


@pytest.mark.parametrize("name", REFUSED)
def test_file_with_an_invalid_case_is_refused(tmp_path: Path, name: str) -> None:
    old, new, message = REFUSED[name]
    path = write(tmp_path, replace_once(TILE, old, new))
    assert refusal(lambda: load_suite([path]), tmp_path) == shown(message)


@pytest.mark.parametrize("value", ["=5", "=[1]", "=1.5", "=True"])
@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("layout", "is not a layout"),
        ("Flags", "must be a list|is not a flag"),
        ("fill", "must be a fill"),
    ],
)
def test_an_expression_whose_value_has_another_type_is_refused(
    tmp_path: Path, key: str, message: str, value: str
) -> None:
    text = JOIN_MATRIX.replace("fill: {constant: {value: =Index}}", f"{key}: '{value}'")
    with pytest.raises(InvalidFilesError, match=rf"f\.yaml:6:.*({message})"):
        load_suite([write(tmp_path, text)])


def test_data_beyond_numpys_64_dimensions_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, replace_once(TILE, "Sizes: [2]", "Sizes: [2" + ", 1" * 70 + "]"))
    with pytest.raises(InvalidFilesError, match=r"f\.yaml:5:28: data of 71 dimensions"):
        load_suite([path])


def test_an_enum_constant_that_the_header_lacks_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, replace_once(ARGMIN, "INCREASING", "INCREASINK"))
    assert refusal(lambda: load_suite([path]), tmp_path) == shown(
        """
        f.yaml:7:22: `cases[0].desc.AxisDirection` cannot be "INCREASINK"
             7 |       AxisDirection: INCREASINK
               |                      ^^^^^^^^^^
            hint: did you mean INCREASING?
        """
    )


def test_error_points_at_the_tensor_without_data(tmp_path: Path) -> None:
    path = write(tmp_path, replace_once(JOIN, ", fill: sequence", ""))
    assert refusal(lambda: load_suite([path]), tmp_path) == shown(
        """
        f.yaml:6:11: `InputTensors[1]` has no data
             6 |         - {Sizes: [2], DataType: INT8}
               |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: give it `values` or a `fill`
        """
    )


@pytest.mark.parametrize("repeat", ["=-1", "1025", "=1.5", "='a'"])
def test_count_of_repeated_tensors_is_from_0_to_1024(tmp_path: Path, repeat: str) -> None:
    path = write(tmp_path, replace_once(JOIN_MATRIX, "=Count", repeat))
    message = refusal(lambda: load_suite([path]), tmp_path)
    assert message.startswith("f.yaml:6:17: ")
    assert "is not a number from 0 to 1024\n" in message


def test_error_says_which_field_is_wrong(tmp_path: Path) -> None:
    text = """
    operator: TILE
    cases:
      - matrix: {A: [1, 2]}
        desc:
          InputTensor: {Sizes: [1], DataType: FLOAT32, fill: sequence}
          OutputTensor: {Sizes: [1, "=4 - 3 * A"], DataType: FLOAT32}
          Repeats: [1]
    """
    path = write(tmp_path, text)
    first, second = load_suite([path]).plan()
    build(first)
    with pytest.raises(CaseError, match=r"^-2 is not a whole number of at least 0$") as caught:
        build(second)
    assert caught.value.where == ("desc", "OutputTensor", "Sizes", 1)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        ("{Sizes: [1]}", "`InputTensors[0]` lacks DataType"),
        ("{DataType: FLOAT32}", "`InputTensors[0]` lacks Sizes"),
        ("{Sizes: [true], DataType: FLOAT32}", "True is not a whole number of at least 0"),
        ("{Sizes: [4294967296], DataType: FLOAT32}", "must be at most 4294967295"),
        ("{Sizes: [1], DataType: FLOAT32, Strides: [4294967296]}", "must be at most 4294967295"),
    ],
)
def test_invalid_tensor_in_a_matrix_is_refused(tmp_path: Path, tensor: str, message: str) -> None:
    text = f"""
    operator: JOIN
    cases:
      - matrix: {{Tensor: [{tensor}]}}
        desc:
          InputTensors: "=[Tensor]"
          OutputTensor: {{Sizes: [1], DataType: FLOAT32}}
          Axis: 0
    """
    path = write(tmp_path, text)
    assert message in refusal(lambda: load_suite([path]), tmp_path)


def test_later_matrix_cases_are_checked_only_with_every_case(
    tmp_path: Path,
) -> None:
    text = replace_once(JOIN_MATRIX, "Count: [3]", "Count: [3, 2000]")
    path = write(tmp_path, text)
    load_suite([path])
    with pytest.raises(InvalidFilesError, match="2000 is not a number from 0 to 1024"):
        load_suite([path], every_case=True)
