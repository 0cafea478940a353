"""A condition over unknown sizes and data types is impossible only if it is always false.

`Several` stands for any number of at least 2, and `Any` for any number of at least 1.

The tested code is in `dmlconf/coverage/combinations/open_numbers.py`.
"""

from __future__ import annotations

import pytest

from dmlconf.coverage.combinations.open_numbers import (
    FUNCTIONS_OF_OPEN_NUMBERS,
    Answers,
    OneOf,
    OpenNumber,
    OpenSizes,
    possible,
)
from dmlconf.expressions import Expression, namespace


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("Several == 1", False),
        ("Several == 7", True),
        ("Several != 1", True),
        ("Any == 1", True),
        ("not Any == 1", True),
        ("Several < 2", False),
        ("Several <= 2", True),
        ("not Several >= 2", False),
        ("Any * Several == 1", False),
        ("Any + Several < 3", False),
        ("Any + Several < 4", True),
        ("Several // 2 == 5", True),
        ("Several % 3 < 0", False),
        ("7 // Several < 0", False),
        ("sum((Any, Several)) < 3", False),
        ("Any - Several == -3", True),
        ("product((Any, Several)) == 1", False),
        ("product((Any, Any)) == 1", True),
        ("(1, Several, Any) == (1, 1, 9)", False),
        ("(1, Several, Any) == (1, 4, 9)", True),
        ("all(size == 1 for size in (Any, Several))", False),
        ("any(size == 1 for size in (Any, Several))", True),
        ("Several == 1 or Any == 1", True),
        ("Several in (1, 0)", False),
        # Each comparison is judged alone.
        ("Several == 7 and Several == 8", True),
        ("drop_leading_ones((1, Several)) == ()", False),
        ("product(Sizes[:-1]) == 0", False),
        ("Sizes[-1] == 0", False),
        ("Sizes == (1, 2)", True),
        ("Type == 'INT8'", False),
        ("Type != 'INT8'", True),
        ("Type == 'FLOAT16'", True),
        ("Type in ('INT8', 'UINT8')", False),
        ("range(Several) == ()", True),
        ("1 if Any == 2 else 0", True),
    ],
)
def test_only_conditions_that_are_always_false_are_impossible(
    condition: str, expected: bool
) -> None:
    answers = Answers()
    names = {
        "Any": OpenNumber(answers, 1),
        "Several": OpenNumber(answers, 2),
        "Sizes": OpenSizes(answers),
        "Type": OneOf(answers, ("FLOAT32", "FLOAT16")),
    }
    whole = namespace({**names, **FUNCTIONS_OF_OPEN_NUMBERS})
    assert possible(lambda: Expression(condition).evaluate(whole), answers) is expected
