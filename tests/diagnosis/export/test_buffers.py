"""`expected_of` gives exported programs the lowest and highest permitted value of each element.

The tested code is in `dmlconf/diagnosis/export/buffers.py`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmlconf.cases.model import ExpectedOutputs, Provenance
from dmlconf.diagnosis.export.buffers import expected_of
from dmlconf.reference.evaluation import evaluate
from tests.diagnosis.export.graph_cases import graph_of


def test_wrong_stated_value_is_the_only_permitted_one() -> None:
    case = graph_of("wiring/outputs-in-another-order")
    name, right = next(iter(evaluate(case).items()))
    wrong = np.array(right)
    wrong.ravel()[2] += 1
    stated = ExpectedOutputs({name: wrong}, Provenance.STATED)
    permitted = expected_of(replace(case, expectation=stated))[name].permitted
    assert all(ends.ravel()[2] == wrong.ravel()[2] for pair in permitted for ends in pair)
    assert any(low.ravel()[1] <= right.ravel()[1] <= high.ravel()[1] for low, high in permitted)


def test_expected_values_of_a_graph_are_permitted() -> None:
    case = graph_of("attention/")
    outputs = expected_of(case)
    assert outputs.keys() == case.graph.outputs.keys()
    for name, expected in outputs.items():
        inside = [
            (low <= expected.values) & (expected.values <= high) for low, high in expected.permitted
        ]
        assert np.logical_or.reduce(inside).all(), name
