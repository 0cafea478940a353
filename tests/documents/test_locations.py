"""Problems point at the line and column of a value in a YAML file, or of its key.

The tested code is in `dmlconf/documents/reader.py` and `dmlconf/documents/problems.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.documents.reader import read_document
from tests.documents.refusals import write


def test_items_of_top_level_lists_have_lines(tmp_path: Path) -> None:
    text = "# head\ntags: [a, b]\ncases:\n  - x: [1, 2]\n    y: 2\n\n  - x: 3\n  # more\n  - z\n"
    document = read_document(write(tmp_path, text))
    assert document.item_lines == {"tags": [2, 2], "cases": [4, 7, 9]}


YAML_FILE = """\
# a comment
top: 5
list:
  - one
  - {two: 2, three: [3, 4]}
folded: >-
  some
  text
shared: &s {x: 1}
again: *s
"""


@pytest.mark.parametrize(
    ("where", "key", "location", "underlined"),
    [
        ((), False, (2, 1), "t"),
        (("top",), False, (2, 6), "5"),
        (("top",), True, (2, 1), "top"),
        (("list", 0), False, (4, 5), "one"),
        (("list", 1, "two"), True, (5, 6), "two"),
        (("list", 1, "three", 1), False, (5, 25), "4"),
        (("list", 1, "three"), False, (5, 21), "[3, 4]"),
        (("folded",), False, (6, 9), ">"),
        (("again", "x"), False, (9, 16), "1"),
        (("list", 9), False, (4, 3), "-"),
        (("list", 1, "four"), True, (5, 5), "{two: 2, three: [3, 4]}"),
        (("top", "none", "at all"), False, (2, 6), "5"),
    ],
)
def test_problem_points_at_value_key_or_enclosing_value(
    tmp_path: Path,
    where: tuple[str | int, ...],
    key: bool,
    location: tuple[int, int],
    underlined: str,
) -> None:
    document = read_document(write(tmp_path, YAML_FILE))
    problem = document.problem(where, "message", "hint", key=key)
    assert (problem.line, problem.column) == location
    assert problem.source[problem.column - 1 :][: problem.width] == underlined
    assert (problem.message, problem.hint) == ("message", "hint")
