"""`dmlconf record` writes recordings beside case files, and `--into-case` values into them.

The tested code is in `dmlconf/cli/commands/writing/record.py`, `dmlconf/cli/runs/into_case.py`,
`dmlconf/expectations/into_cases.py` and `dmlconf/cases/writing/insertion.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dmlconf.cases.writing.insertion import number_text
from dmlconf.cli.runs import into_case
from dmlconf.expectations.into_cases import device_name
from tests.cli.process import RIGHT, dmlconf_here, write

CASES = """\
# Corner cases of my kernel.
operator: ELEMENT_WISE_SQRT
cases:
  - name: small  # as small as it gets
    desc:
      # The input comes first.
      InputTensor: {Sizes: [4], DataType: FLOAT32, values: [2, 0.1, -1, .inf]}  # four
      OutputTensor: {Sizes: [4], DataType: FLOAT32}

  # Larger than a list should be.
  - name: large
    desc:
      InputTensor: {Sizes: [300], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [300], DataType: FLOAT32}
    note: |
      A note of
      two lines.

# The end."""
"""A case with an output of 4 elements and one of 300, between comments."""

FILLED = """\
# Corner cases of my kernel.
operator: ELEMENT_WISE_SQRT
cases:
  - name: small  # as small as it gets
    desc:
      # The input comes first.
      InputTensor: {Sizes: [4], DataType: FLOAT32, values: [2, 0.1, -1, .inf]}  # four
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
    recorded: faulty VERSION
    expect:
      OutputTensor: [1.4142135, 0.31622776, .nan, .inf]

  # Larger than a list should be.
  - name: large
    desc:
      InputTensor: {Sizes: [300], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [300], DataType: FLOAT32}
    note: |
      A note of
      two lines.
    recorded: faulty VERSION
    expect:
      OutputTensor: {file: "element_wise_sqrt-mine-large.OutputTensor.npy"}

# The end."""
"""CASES with expected values: 4 in the case file, and 300 in a file of their own."""

SPLIT = """\
operator: SPLIT
cases:
- name: mine
  desc:
    InputTensor: {Sizes: [3], DataType: INT8, values: [-1, 2, 3]}
    OutputTensors:
    - {Sizes: [1], DataType: INT8}
    - {Sizes: [2], DataType: INT8}
    Axis: 0"""


def text_with_expectations(directory: Path, text: str, *chosen: str | Path) -> str:
    """Write a text to `mine.yaml`, record expected values into it, and return its new text.

    `chosen` are arguments of `record`; the default is the path of the file.
    """
    path = write(directory, text, "mine.yaml")
    done = dmlconf_here(directory, "record", *(chosen or [path]), "--into-case", "-b", RIGHT)
    assert done.returncode == 0, done.stderr
    assert dmlconf_here(directory, "validate", path).returncode == 0
    return path.read_text("utf-8")


def refused(directory: Path, text: str, backend: str = RIGHT) -> tuple[int, str]:
    """Return the exit code and the message of a refused recording; check the file is unchanged."""
    path = write(directory, text, "mine.yaml")
    done = dmlconf_here(directory, "record", path, "--into-case", "-b", backend)
    assert path.read_text("utf-8") == text
    return done.returncode, done.stderr


def recorded_version(text: str) -> str:
    return str(yaml.safe_load(text)["cases"][0]["recorded"]).partition(" ")[2]


def test_recording_into_a_case_file_keeps_its_comments_and_layout(tmp_path: Path) -> None:
    text = text_with_expectations(tmp_path, CASES)
    assert text == FILLED.replace("VERSION", recorded_version(text))
    large = np.load(tmp_path / "element_wise_sqrt-mine-large.OutputTensor.npy")
    assert np.array_equal(large, np.sqrt(np.arange(300, dtype="f4")))


@pytest.mark.parametrize("together", [True, False])
def test_large_outputs_of_similar_names_get_separate_files(tmp_path: Path, together: bool) -> None:
    """The outputs of `mine/a-b` and `mine-a/b` would have the same file name."""
    first = write(tmp_path, CASES.replace("large", "a-b"), "mine.yaml")
    other = CASES.replace("large", "b").replace("fill: sequence", "fill: {constant: {value: 4}}")
    second = write(tmp_path, other, "mine-a.yaml")
    for chosen in [[first, second]] if together else [[first], [second]]:
        done = dmlconf_here(tmp_path, "record", *chosen, "--into-case", "-b", RIGHT)
        assert done.returncode == 0, done.stderr
    validated = dmlconf_here(tmp_path, "validate", first, second)
    assert validated.returncode == 0, validated.stderr


def test_case_that_is_not_named_gets_no_expected_values(tmp_path: Path) -> None:
    text = text_with_expectations(tmp_path, CASES, "element_wise_sqrt/mine/small", "mine.yaml")
    assert ["expect" in each for each in yaml.safe_load(text)["cases"]] == [True, False]


def test_outputs_are_written_into_a_file_without_final_newline(
    tmp_path: Path,
) -> None:
    text = text_with_expectations(tmp_path, SPLIT)
    assert text.startswith(SPLIT + "\n  recorded: ")
    assert text.endswith("\n    OutputTensors:\n      - [-1]\n      - [2, 3]\n")


def test_recording_into_a_case_file_keeps_windows_line_endings(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(SPLIT.replace("\n", "\r\n").encode())
    done = dmlconf_here(tmp_path, "record", path, "--into-case", "-b", RIGHT)
    assert done.returncode == 0, done.stderr
    written = path.read_bytes()
    assert written.count(b"\n") == written.count(b"\r\n") > SPLIT.count("\n")


def test_values_are_not_written_into_a_file_that_was_edited_during_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, CASES, "mine.yaml")
    other = CASES.split("cases:\n")[1].partition("\n\n")[0].replace("small", "other")
    edited = CASES.replace("cases:\n", f"cases:\n{other.replace('[2, 0.1', '[9, 25')}\n")

    def edit(environment: Mapping[str, Any]) -> str:
        path.write_text(edited, encoding="utf-8")
        return device_name(environment)

    monkeypatch.setattr(into_case, "device_name", edit)
    done = dmlconf_here(tmp_path, "record", path, "--into-case", "-b", RIGHT)
    assert done.returncode == 1
    message = f"not recorded: element_wise_sqrt/mine/small: {path} was changed"
    assert message in done.stderr
    assert path.read_text("utf-8") == edited


def test_values_that_contradict_the_reference_are_refused(tmp_path: Path) -> None:
    code, message = refused(tmp_path, CASES, "faulty:negated")
    assert code == 1
    assert "not recorded: element_wise_sqrt/mine/small: the expected value and the ref" in message


def test_case_that_disputes_the_reference_takes_contradicting_values(tmp_path: Path) -> None:
    path = write(tmp_path, SPLIT + "\n  disputes: reference\n  note: Why.\n", "mine.yaml")
    done = dmlconf_here(tmp_path, "record", path, "--into-case", "-b", "faulty:zeros")
    assert done.returncode == 0, done.stderr
    assert "- [0, 0]" in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("change", "line", "expected_message"),
    [
        (("- name: mine", "- matrix: {N: [1, 2]}"), 3, "a matrix stands for many cases"),
        (("Axis: 0", "Axis: 0\n  expect: {OutputTensors: [[-1], [2, 3]]}"), 10, "already states"),
        (("Axis: 0", "Axis: 0\n  origin: elsewhere"), 10, "`origin` says"),
    ],
)
def test_entry_that_cannot_hold_expected_values_is_refused(
    tmp_path: Path, change: tuple[str, str], line: int, expected_message: str
) -> None:
    code, message = refused(tmp_path, SPLIT.replace(*change))
    assert code == 3
    assert expected_message in message
    assert f"mine.yaml:{line}:" in message


def test_entry_within_braces_is_refused(tmp_path: Path) -> None:
    tile = "{Sizes: [1], DataType: INT8, values: [1]}, OutputTensor: {Sizes: [1], DataType: INT8}"
    text = f"operator: TILE\ncases:\n- {{desc: {{InputTensor: {tile}, Repeats: [1]}}}}\n"
    code, message = refused(tmp_path, text)
    assert code == 3
    assert "within braces" in message
    assert "mine.yaml:3:" in message


def test_expected_values_from_the_reference_are_refused(tmp_path: Path) -> None:
    code, message = refused(tmp_path, SPLIT, "numpy")
    assert code == 2
    assert "never come from the reference" in message


def test_option_into_case_without_a_case_file_is_refused(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "record", "split/mine", "--into-case", "-b", RIGHT)
    assert done.returncode == 2
    assert "name its path" in done.stderr


def test_text_of_a_number_is_read_back_exactly() -> None:
    rng = np.random.default_rng(1)
    for data_type, bits in (("f2", "u2"), ("f4", "u4"), ("f8", "u8")):
        numbers = rng.integers(0, np.iinfo(bits).max, 2000, dtype=bits).view(data_type)
        for number in numbers[np.isfinite(numbers)]:
            assert type(number)(float(number_text(number))).tobytes() == number.tobytes()
    assert number_text(np.float32(-0.0)) == "-0.0"


def test_recording_of_a_folder_is_written_beside_its_cases(
    tmp_path: Path,
) -> None:
    (tmp_path / "split").mkdir()
    write(tmp_path / "split", SPLIT)
    done = dmlconf_here(tmp_path, "record", "split", "-b", RIGHT, "--name", "right")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "split" / "right.dmlrec").is_file()


def test_file_outside_an_operators_folder_needs_option_o(
    tmp_path: Path,
) -> None:
    done = dmlconf_here(tmp_path, "record", write(tmp_path, SPLIT), "-b", RIGHT)
    assert done.returncode == 2
    assert "say where to write" in done.stderr
