"""Cases are found by identifier, by pattern, and by name without a folder.

The tested code is in `dmlconf/cases/identifiers.py`.
"""

from __future__ import annotations

import pytest

from dmlconf.cases.identifiers import (
    AmbiguousNameError,
    fits,
    identifier_matcher,
    resolved,
    scope_of,
)

CASES = [
    "gather/documented/example-1",
    "gather/documented/example-2",
    "gather/matrix[DataType=FLOAT16,Axis=1]",
    "gather/matrix[DataType=FLOAT16,Axis=2]",
    "tile/documented/example-1",
]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("gather/documented/example-1", 1),
        ("gather/*", 4),
        ("*/example-?", 3),
        ("gather/matrix", 2),
        ("gather/matrix[DataType=FLOAT16,Axis=1]", 1),
        ("gather/matrix[DataType=FLOAT16,*]", 2),
        ("gather/matrix[DataType=FLOAT16,Axis=[12]]", 0),
        ("gather", 0),
    ],
)
def test_a_name_or_pattern_matches_its_cases(name: str, count: int) -> None:
    assert sum(map(identifier_matcher([name]), CASES)) == count


def test_brackets_in_a_pattern_match_themselves() -> None:
    assert fits("a[b]*", "a[b]c")
    assert not fits("a[b]", "ab")


def test_star_and_question_mark_are_wildcards() -> None:
    for pattern, text in (
        ("*", ""),
        ("*ab", "abab"),
        ("a*b*c", "abbcabc"),
        ("*a?c*", "ab-abc"),
        ("a**b", "ab"),
        ("*a*a", "aa"),
        ("?*", "x"),
    ):
        assert fits(pattern, text), (pattern, text)
    for pattern, text in (("*a*a", "a"), ("a*b", "abc"), ("?*", ""), ("*ab*ab*", "aba")):
        assert not fits(pattern, text), (pattern, text)


def test_a_pattern_of_many_wildcards_is_matched_quickly() -> None:
    # A matcher that backtracks would take years.
    assert not fits("*a" * 40 + "!", "a" * 10_000)
    assert not fits("*?" * 40 + "!", "a" * 10_000)
    assert fits("*a" * 40 + "!", "a" * 10_000 + "!")


def test_a_unique_name_is_found_without_its_folder() -> None:
    assert resolved(["example-2"], CASES) == (["gather/documented/example-2"], [])
    assert resolved(["matrix", "tile/documented/example-1"], CASES) == (
        ["gather/matrix", "tile/documented/example-1"],
        [],
    )


def test_an_ambiguous_name_is_refused_with_its_cases() -> None:
    with pytest.raises(AmbiguousNameError) as raised:
        resolved(["example-1"], CASES)
    actual = "several cases are called example-1: gather/documented/example-1, tile/documented"
    assert str(raised.value).startswith(actual)


def test_names_that_no_case_has_are_returned_separately() -> None:
    assert resolved(["example-3", "roi_*", "gather/*"], CASES) == (
        ["gather/*"],
        ["example-3", "roi_*"],
    )


@pytest.mark.parametrize(
    ("names", "operators", "files"),
    [
        (["gather/matrix[Axis=1]"], {"GATHER"}, {("GATHER", "matrix")}),
        (["gather/*", "tile/boundary/x"], {"GATHER", "TILE"}, set()),
        (["example-1"], set(), set()),
        (["gather"], set(), set()),
        (["*/boundary"], set(), set()),
        (["nothing/boundary"], set(), set()),
        (["gather/matrix", "example-1"], set(), set()),
        (["gather/matrix", "nothing/boundary"], set(), set()),
    ],
)
def test_names_tell_which_operators_and_files_to_load(
    names: list[str], operators: set[str], files: set[tuple[str, str]]
) -> None:
    """An empty set means all."""
    actual = scope_of(names)
    assert (set(actual[0]), set(actual[1])) == (operators, files)
