"""Equal parts of a JSON tree are written once, and read back as one object.

The tested code is in `dmlconf/documents/repeats.py`.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.documents.repeats import with_repeats, without_repeats

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
TREES = st.recursive(
    PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=2), inner)
)


@pytest.mark.slow
@given(TREES)
def test_tree_is_read_back_as_from_plain_json(tree: Any) -> None:
    read = json.loads(json.dumps(without_repeats(tree)))
    assert repr(with_repeats(read)) == repr(json.loads(json.dumps(tree)))


def test_equal_numbers_of_different_types_stay_different() -> None:
    tree = [1, 1.0, True, 0.0, -0.0, False, "1", None, [1], [1.0], {"a": 1}, {"a": True}]
    assert repr(with_repeats(without_repeats([*tree, tree]))) == repr([*tree, tree])
    (nan,) = with_repeats(without_repeats([math.nan]))
    assert math.isnan(nan)


def test_equal_parts_are_written_once() -> None:
    tensor = {"DataType": "FLOAT32", "Sizes": [1, 2]}
    parts = without_repeats([tensor, {"DataType": "FLOAT32", "Sizes": [1, 2]}, [1, 2]])
    # Within a part, 0 stands for the first part, and -1 for the part just before this one.
    assert parts == ["FLOAT32", 1, 2, [1, 2], {"DataType": 0, "Sizes": -1}, [-1, -1, -2]]
    first, second, sizes = with_repeats(parts)
    assert first == tensor
    assert first is second
    assert sizes is first["Sizes"]


def test_distant_equal_parts_are_written_once() -> None:
    tree = [[number % 30] for number in range(90)]
    parts = without_repeats(tree)
    assert len(parts) == 30 + 30 + 1  # The numbers, the lists of one number, and the whole.
    assert with_repeats(parts) == tree


@pytest.mark.parametrize("damaged", [[], [[0]], [1, [2]], [{"a": "b"}], [1, [None]]])
def test_damaged_parts_raise_an_error(damaged: list[Any]) -> None:
    with pytest.raises((LookupError, TypeError)):
        with_repeats(damaged)
