"""A handle is a short name of a case, such as cc9m8: safe in a shell and unique in a run.

The tested code is in `dmlconf/cases/handles.py` and `dmlconf/cases/identifiers.py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dmlconf.cases.handles import (
    SHORTEST,
    cases_of_handle,
    handles,
    handles_among,
    handles_in_order,
    is_handle,
    longest_handle,
)
from dmlconf.cases.identifiers import AmbiguousNameError, resolved

NAMES = [f"gemm/matrix[A={number}]" for number in (*range(300), 980, 5023, 1259, 18_489)]
"""The last four are two pairs; in each, both digests begin with the same 5 characters."""


@pytest.fixture(scope="module")
def known() -> Mapping[str, str]:
    return handles(NAMES)


def test_a_handle_is_the_same_in_every_version() -> None:
    assert handles(["gemm/matrix[A=0]"]) == {"gemm/matrix[A=0]": "cc9m8"}


def test_handles_are_unique_and_longer_where_beginnings_collide(
    known: Mapping[str, str],
) -> None:
    assert len(set(known.values())) == len(NAMES)
    lengths = {len(handle) for handle in known.values()}
    assert min(lengths) == SHORTEST
    assert max(lengths) > SHORTEST
    longer = [name for name in NAMES if len(known[name]) > SHORTEST]
    assert longer == NAMES[-4:]
    for name in (*NAMES[:3], *longer[:3]):
        assert cases_of_handle(known[name], NAMES) == [name]


@pytest.mark.slow
@given(st.integers(0, 300_000), st.sets(st.integers(0, 499), max_size=9))
@example(0, {0, 1, 2})
def test_handles_among_and_in_order_agree_with_handles(first: int, some: set[int]) -> None:
    names = [f"gemm/matrix[A={first + number}]" for number in range(500)] + NAMES
    chosen = [names[number] for number in some] + NAMES[-4::2]
    every = handles(names)
    assert handles_among(chosen, names) == {name: every[name] for name in chosen}
    assert list(handles_in_order(names)) == [every[name] for name in names]


def test_handles_in_order_works_for_one_or_no_case() -> None:
    assert list(handles_in_order(["gemm/one"])) == list(handles(["gemm/one"]).values())
    assert list(handles_in_order([])) == []


@pytest.mark.slow
@given(st.text())
def test_a_handle_has_five_characters_and_needs_no_quotes(name: str) -> None:
    handle = handles([name])[name]
    assert re.fullmatch("[a-z][a-z0-9]{4}", handle)
    assert shlex.quote(handle) == handle
    assert is_handle(handle)
    assert longest_handle(name).startswith(handle)


@pytest.mark.parametrize("text", ["", "cc9m", "cc9m8+", "CC9M8"])
def test_a_malformed_handle_names_no_case(text: str) -> None:
    assert cases_of_handle("cc9m8", ["gemm/matrix[A=0]"]) == ["gemm/matrix[A=0]"]
    assert not is_handle(text)
    assert cases_of_handle(text, ["gemm/matrix[A=0]"]) == []


def test_a_handle_is_resolved_to_its_case(known: Mapping[str, str]) -> None:
    assert resolved([known[NAMES[7]]], NAMES) == ([NAMES[7]], [])


def test_a_beginning_that_two_handles_share_is_ambiguous(
    known: Mapping[str, str],
) -> None:
    longer = next(name for name in NAMES if len(known[name]) > SHORTEST)
    with pytest.raises(AmbiguousNameError, match=re.escape(longer)):
        resolved([known[longer][:SHORTEST]], NAMES)


def test_an_identifiers_end_is_preferred_to_a_handle() -> None:
    handle = handles(["gemm/a"])["gemm/a"]
    assert resolved([handle], ["gemm/a", f"join/{handle}"]) == ([f"join/{handle}"], [])
