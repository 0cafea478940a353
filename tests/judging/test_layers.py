"""Cases made from layers of published networks have data for which wrong outputs fail.

The tested code is in `cases/*/model.yaml` and `tests/judging/wrong_results.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pytest

from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.cli.common.cache import user_store
from dmlconf.judging.judge import Against
from dmlconf.reference.evaluation import evaluate
from dmlconf.resources import cases_directory
from dmlconf.workers.memory import tensor_bytes
from tests.judging.wrong_results import LAYER_CHANGES, Survivor, survivors

ONE_IN: Final = 4
"""The sample takes every fourth layer of every fourth file."""

MOST_BYTES: Final = 1 << 18
"""The sample leaves out layers with larger tensors, each of which takes seconds."""

MOST_ALIKE: Final = 0.95
"""The largest share of equal elements in an output."""

FEW: Final = 64
"""An output of so few elements may be constant."""


@cache
def layers(one_in: int = 1) -> Sequence[PlannedCase]:
    """Return the layers of every operator, or of one in `one_in`."""
    files = sorted(cases_directory().glob("*/model.yaml"))[::one_in]
    return list(load_suite(files, store=user_store()).plan())


def reference() -> Against:
    """Return the reference, which remembers its outputs for the last case."""
    last: list[tuple[str, Outcome]] = []

    def against(case: Case) -> Outcome:
        if not last or last[0][0] != case.identifier:
            last[:] = [(case.identifier, Outputs(evaluate(case)))]
        return last[0][1]

    return against


def unnoticed(plan: Sequence[PlannedCase]) -> list[Survivor]:
    return list(survivors(plan, reference(), LAYER_CHANGES))


def uniform_outputs(plan: Sequence[PlannedCase]) -> list[str]:
    uniform = []
    for planned in plan:
        case = build(planned)
        for name, array in evaluate(case, case.inputs()).items():
            _, counts = np.unique(array, return_counts=True)
            if array.size > FEW and counts.max() > MOST_ALIKE * array.size:
                uniform.append(f"{planned.identifier} {name}")
    return uniform


def sample() -> list[PlannedCase]:
    return [
        planned for planned in layers(ONE_IN)[::ONE_IN] if tensor_bytes(build(planned)) < MOST_BYTES
    ]


@pytest.mark.whole
def test_hundreds_of_layers_have_notes_of_their_networks() -> None:
    templates = {planned.template for planned in layers()}
    assert len(layers()) >= 600
    notes = {template.about.note for template in templates}
    assert len(notes) > 400
    assert all(note and ", " in note and "(" in note for note in notes)


@pytest.mark.slow
def test_a_sample_of_layers_notices_wrong_outputs() -> None:
    assert len(sample()) > 12
    assert unnoticed(sample()) == []


def test_outputs_of_a_sample_of_layers_are_not_nearly_constant() -> None:
    assert uniform_outputs(sample()) == []


@pytest.mark.layers
def test_every_layer_notices_wrong_outputs() -> None:
    assert unnoticed(layers()) == []


@pytest.mark.layers
def test_no_output_of_a_layer_is_nearly_constant() -> None:
    assert uniform_outputs(layers()) == []
