"""A test that `for_each` makes of many items names each item that fails, and fails without items.

The tested code is in `tests/each.py`.
"""

from __future__ import annotations

import pytest

from tests.each import for_each


def test_a_test_of_many_items_names_each_item_that_fails() -> None:
    @for_each([2, 3, 4, 5], name=lambda number: f"number {number}")
    def even(number: int) -> None:
        assert number % 2 == 0, "odd"

    with pytest.raises(AssertionError) as caught:
        even()
    first, *lines = str(caught.value).splitlines()
    assert first == "2 of 4 do not hold"
    named = [line for line in lines if line.startswith("number")]
    assert named == ["number 3: odd", "number 5: odd"]


def test_a_test_without_items_fails() -> None:
    @for_each(())
    def anything(_: object) -> None:
        pass

    with pytest.raises(AssertionError, match="nothing to check"):
        anything()
