"""Reports name the condition of planted defects (`defects.yaml`), and `diagnose` the culprit."""

from __future__ import annotations

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
"""One or more defects of each kind; `python -m tests.diagnosis defects` measures all sixty."""


def test_there_are_sixty() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) == 60


@pytest.mark.diagnosis
@pytest.mark.parametrize(
    "defect", [d for d in DEFECTS if d.name in SAMPLE], ids=lambda defect: defect.name
)
def test_a_defect_is_named_blamed_and_reduced(defect: Defect) -> None:
    measured = measure(defect)
    assert measured.named, measured.lines
    assert measured.culprit == defect.culprit
    assert measured.small, measured.elements
