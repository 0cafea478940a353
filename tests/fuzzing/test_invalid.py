"""Generated invalid cases break the constraint that they name, and no other.

The tested code is in `dmlconf/fuzzing/invalid.py`.
"""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.model import ExpectedRejection
from dmlconf.catalogue.constraints import violations
from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.invalid import breakable, invalid_case, invalid_desc

SAMPLE = ["GATHER", "GEMM", "JOIN", "LSTM", "TILE"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_case_breaks_only_the_constraint_that_it_names(name: str) -> None:
    constraints = breakable(operator(name))
    assert len(constraints) > 1
    for number in range(len(constraints)):
        case = build(invalid_case(name, 1, number))
        assert isinstance(case.expectation, ExpectedRejection)
        broken = violations(case.operator, case.desc, documented=True)
        assert broken == (case.expectation.constraint,)


def test_successive_cases_break_all_constraints() -> None:
    """No case breaks `batch-sizes`: it would break `irrelevant-index-sizes-are-1`, too."""
    constraints = breakable(operator("GATHER"))
    numbers = range(len(constraints))
    broken = [build(invalid_case("GATHER", 1, number)).expectation for number in numbers]
    names = {part.constraint for part in broken if isinstance(part, ExpectedRejection)}
    assert names == {*constraints} - {"batch-sizes"}


def test_seed_and_number_determine_a_case() -> None:
    entries = [invalid_case(name, 7, 3).template.data for name in SAMPLE]
    assert sha256(json.dumps(entries).encode()).hexdigest()[:16] == "01538788771f9bb9"


@pytest.mark.fuzz
@pytest.mark.parametrize("name", [name for name in operator_names() if operator(name).fields])
def test_most_constraints_can_be_broken_alone(name: str) -> None:
    constraints = breakable(operator(name))
    broken = [
        constraint
        for constraint in constraints
        if invalid_desc(operator(name), constraint, Chance(1, name, constraint)) is not None
    ]
    assert len(broken) >= 0.6 * len(constraints)
