"""Problems in files are shown with line, caret and hint; control characters are escaped.

The tested code is in `dmlconf/documents/problems.py`.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.documents.problems import InvalidFilesError, Problem, nearest, printable


@given(st.text())
def test_printable_text_has_only_visible_characters_and_spaces(text: str) -> None:
    # Unicode categories C*: control and format characters; Z*: spaces and separators.
    for character in printable(text):
        assert character == " " or unicodedata.category(character)[0] not in "CZ"


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_printable_ascii_is_unchanged(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\rb\nc\td", r"a\rb\nc\td"),
        ("\u202eevil", r"\u202eevil"),
        ("\u2066\u2069\u200f", r"\u2066\u2069\u200f"),
        ("\x9b1A", r"\x9b1A"),
        ("\ud800", r"\ud800"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("größer 数 ✓", "größer 数 ✓"),
    ],
)
def test_only_unprintable_characters_are_escaped(text: str, printed: str) -> None:
    assert printable(text) == printed


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Axes", "Axes"),
        ("axis", "Axis"),
        ("AXIS", "Axis"),
        ("InputTenser", "InputTensor"),
        ("inputtensor", "InputTensor"),
        ("zzz", None),
        ("", None),
    ],
)
def test_nearest_finds_a_similar_name_in_any_case(name: str, expected: str | None) -> None:
    assert nearest(name, ["Axis", "Axes", "InputTensor", "OutputTensor"]) == expected


def test_nearest_of_no_names_is_none() -> None:
    assert nearest("name", []) is None


def test_problem_shows_line_caret_and_hint() -> None:
    problem = Problem(Path("a.yaml"), "is wrong", 12, 4, "  - bad value", 3, "mend it")
    assert str(problem) == (
        "a.yaml:12:4: is wrong\n    12 |   - bad value\n       |    ^^^\n    hint: mend it"
    )


def test_problem_of_a_whole_file_shows_no_line() -> None:
    assert str(Problem(Path("a.yaml"), "is empty")) == "a.yaml: is empty"


def test_caret_stands_under_its_column_after_escaped_characters() -> None:
    rows = str(Problem(Path("a"), "m", 1, 3, "\x1b\u202eX", 1)).split("\n")
    assert rows[1] == r"     1 | \x1b\u202eX"
    assert rows[1][rows[2].index("^")] == "X"


def test_caret_does_not_extend_beyond_the_line() -> None:
    rows = str(Problem(Path("a"), "m", 1, 4, "abcdef", 99)).split("\n")
    assert rows[2] == "       |    ^^^"


@pytest.mark.parametrize("column", [1, 49, 51, 500, 1000])
def test_long_line_is_cut_around_the_caret(column: int) -> None:
    source = "".join(chr(ord("a") + i % 26) for i in range(1000))
    _, excerpt, caret = str(Problem(Path("a"), "m", 1, column, source)).split("\n")
    assert len(excerpt) <= len("     1 | ") + 100
    assert excerpt[caret.index("^")] == source[column - 1]


def test_messages_paths_and_hints_are_escaped() -> None:
    problem = Problem(Path("a\x1b.yaml"), "m\u202e", hint="h\x07")
    assert str(problem) == "a\\x1b.yaml: m\\u202e\n    hint: h\\x07"


def test_invalid_files_error_lists_all_problems_in_order_each_once() -> None:
    problems = [Problem(Path("a"), "one"), Problem(Path("b"), "two", 1, 1, "x")]
    error = InvalidFilesError([*problems, Problem(Path("a"), "one")])
    assert error.problems == tuple(problems)
    assert str(error) == "a: one\nb:1:1: two\n     1 | x\n       | ^"
