"""Wrong results (zeros, negated or 10% larger) fail each case, unless a file explains why not.

The tested code is in `cases/`, `tests/judging/wrong_results.py` and
`tests/judging/explained_survivors.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import pytest
import yaml

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.selection import without_models
from dmlconf.cli.common.cache import user_store
from dmlconf.engine.against import suite_expectations
from dmlconf.resources import cases_directory
from dmlconf.workers.memory import tensor_bytes
from tests.judging.wrong_results import CHANGES, Survivor, survivors

OPERATORS_ONE_IN: Final = 5
CASES_ONE_IN: Final = 30
"""The quick test takes every 30th case of every fifth operator."""

PARTS: Final = 47
"""Each part takes about a minute."""

MOST_BYTES: Final = 1 << 14
"""The quick test leaves out cases with larger tensors, each of which takes seconds."""


@dataclass(frozen=True)
class Explanation:
    """The reason why some cases rightly pass with wrong results."""

    because: str
    changes: Sequence[str]
    cases: Sequence[str]

    def patterns_of(self, survivor: Survivor) -> list[str]:
        if survivor.change not in self.changes:
            return []
        return [p for p in self.cases if fnmatchcase(survivor.case, p.replace("[", "[[]"))]


def explanations() -> list[Explanation]:
    text = Path(__file__).with_name("explained_survivors.yaml").read_text(encoding="utf-8")
    return [Explanation(**entry) for entry in yaml.safe_load(text)]


@pytest.fixture
def plan(bundled_suite: Suite) -> Sequence[PlannedCase]:
    """Return all cases except layers of models."""
    return without_models(list(bundled_suite.plan()))[0]


def explained(found: Iterable[Survivor]) -> tuple[list[str], set[str]]:
    unexplained: list[str] = []
    used: set[str] = set()
    for survivor in found:
        patterns = {p for each in explanations() for p in each.patterns_of(survivor)}
        used |= patterns
        if not patterns:
            unexplained.append(f"{survivor.change}: {survivor.case}")
    return unexplained, used


def test_each_explanation_has_known_changes_and_patterns_of_cases() -> None:
    assert explanations()
    for explanation in explanations():
        assert set(explanation.changes) <= CHANGES.keys(), explanation.because
        assert explanation.changes, explanation.because
        assert explanation.cases, explanation.because


@pytest.mark.slow
def test_a_sample_of_the_suite_has_only_explained_survivors() -> None:
    folders = sorted(cases_directory().iterdir())
    operators = [each for each in folders if each.name not in ("graphs", "shared")]
    paths = [*operators[::OPERATORS_ONE_IN], cases_directory() / "graphs" / "wiring.yaml"]
    part = load_suite(paths, store=user_store())
    plan, _ = without_models(list(part.plan()))
    against, _ = suite_expectations([cases_directory()])
    sample = [case for case in plan[::CASES_ONE_IN] if tensor_bytes(build(case)) < MOST_BYTES]
    assert len(sample) > 150
    unexplained, _ = explained(survivors(sample, against))
    assert not unexplained


@pytest.mark.whole
@pytest.mark.parametrize("part", range(PARTS))
def test_a_part_of_the_suite_has_only_explained_survivors(
    plan: list[PlannedCase], part: int
) -> None:
    against, _ = suite_expectations([cases_directory()])
    unexplained, _ = explained(survivors(plan[part::PARTS], against))
    assert not unexplained


@pytest.mark.whole
def test_each_pattern_of_an_explanation_explains_a_survivor(plan: list[PlannedCase]) -> None:
    against, _ = suite_expectations([cases_directory()])
    unused = []
    for explanation in explanations():
        for pattern in explanation.cases:
            escaped = pattern.replace("[", "[[]")
            cases = [case for case in plan if fnmatchcase(case.identifier, escaped)]
            if not any(explanation.patterns_of(each) for each in survivors(cases, against)):
                unused.append(pattern)
    assert not unused
