"""Nouns agree with counts, lists say how many items they leave out, and hints suggest names.

The tested code is in `dmlconf/documents/wording.py` and `dmlconf/documents/problems.py`.
"""

from __future__ import annotations

import pytest

from dmlconf.documents.problems import name_hint
from dmlconf.documents.wording import counted, first_lines, first_names


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 cases"), (1, "1 case"), (2, "2 cases"), (1234, "1,234 cases")]
)
def test_noun_agrees_with_its_count(count: int, text: str) -> None:
    assert counted(count, "case") == text


def test_shortened_list_counts_the_rest() -> None:
    assert first_names("abc", 3) == "a, b, c"
    assert first_names("abc", 2) == "a, b and 1 more"
    assert first_lines("abc", 3) == ["  a", "  b", "  c"]
    assert first_lines("abc", 2) == ["  a", "  b", "  and 1 more"]


def test_hint_gives_a_similar_name_or_all_names() -> None:
    assert name_hint("GEM", ["GRU", "GAM", "GEMM"]) == "did you mean GEMM?"
    assert name_hint("axis", ["Axis"], mark="`") == "did you mean `Axis`?"
    assert name_hint("zzz", ["GRU", "GEMM"]) == "one of GRU, GEMM"
    assert name_hint("zzz", ["GRU"], "see the page") == "see the page"
