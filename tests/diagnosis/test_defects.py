"""Reports name the condition of a planted defect (`defects.yaml`); `diagnose` finds the culprit.

The tested code is in `dmlconf/diagnosis/diagnose.py`, `dmlconf/diagnosis/shared_properties.py`,
`dmlconf/diagnosis/reduction/reduce.py` and `dmlconf/reports/runs/shared_properties.py`.
"""

from __future__ import annotations

import math

import pytest

from tests.diagnosis.defects import DEFECTS, Defect
from tests.diagnosis.measure import measure

SAMPLE = (
    "graph compiler drops fused activations",
    "strides of one activation",
    "optimizer in place",
    "race in the soft maximum of half precision",
    "limits of infinities",
    "device lost by layers in both directions",
    "hang on activations in place",
    "folds that leave steps out",
)
"""Defects to measure here; `python -m tests.diagnosis defects` measures all."""


def test_defects_yaml_has_sixty_defects_with_different_names() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) == 60


def test_the_sample_names_defects_of_defects_yaml() -> None:
    assert set(SAMPLE) - {defect.name for defect in DEFECTS} == set()


@pytest.mark.diagnosis
@pytest.mark.parametrize(
    "defect", [d for d in DEFECTS if d.name in SAMPLE], ids=lambda defect: defect.name
)
def test_condition_and_culprit_of_a_defect_are_found(
    defect: Defect,
) -> None:
    measured = measure(defect, seconds=math.inf)
    assert measured.named, measured.lines
    assert measured.culprit == defect.culprit
    assert measured.small, measured.elements
