"""`dmlconf fuzz` finds a sample of planted defects; `python -m tests.fuzzing` tries all of them.

The tested code is in `dmlconf/fuzzing/operators.py` and `dmlconf/cli/commands/running/fuzz.py`.
"""

from __future__ import annotations

import pytest

from tests.diagnosis.defects import DEFECTS, Defect
from tests.fuzzing.planted import find

SAMPLE = [defect for defect in DEFECTS if len(defect.operators) == 1][::6]
"""Every sixth defect of a single operator."""


@pytest.mark.fuzz
@pytest.mark.parametrize("defect", SAMPLE, ids=lambda defect: defect.name)
def test_planted_defect_is_found_within_300_cases(defect: Defect) -> None:
    assert find(defect, seed=1, most=300).cases is not None
