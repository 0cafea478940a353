"""Layers of published networks: their data leave no rule room for a spoiled output."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import pytest

from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.build import build
from dmlconf.cases.loader import load_suite
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.cli.cache import user_store
from dmlconf.reference.evaluation import evaluate
from dmlconf.resources import cases_directory
from dmlconf.runner.judge import Against
from dmlconf.runner.memory import tensor_bytes
from tests.runner.wrong_results import LAYER_CHANGES, Survivor, survivors

ONE_IN: Final = 40
MOST_BYTES: Final = 1 << 21
"""Of the layers that a sample takes; the others take seconds each."""


PERMITTED: Final = {
    ("1% off", "activation_softmax1/model/llama-3-8b-next-word-of-128256[DataType=FLOAT16,"),
    ("1% off", "activation_softmax1/model/qwen2-7b-next-word-of-151936-2-rows[DataType=FLOAT16,"),
}
"""What a rule passes: FLOAT16 stores of 128,256 shares may add up to more than 1% of their sum."""


@cache
def layers() -> Sequence[PlannedCase]:
    files = sorted(cases_directory().glob("*/model.yaml"))
    return list(load_suite(files, store=user_store()).plan())


def reference() -> Against:
    """Return what tells the reference's outputs, computed once for each case."""
    last: list[tuple[str, Outcome]] = []

    def against(case: Case) -> Outcome:
        if not last or last[0][0] != case.identifier:
            last[:] = [(case.identifier, Outputs(evaluate(case)))]
        return last[0][1]

    return against


def unnoticed(plan: Sequence[PlannedCase]) -> list[Survivor]:
    permitted = PERMITTED | {("one element off", case) for _, case in PERMITTED}
    return [
        survivor
        for survivor in survivors(plan, reference(), LAYER_CHANGES)
        if not any(
            survivor.change == change and survivor.case.startswith(case)
            for change, case in permitted
        )
    ]


def test_there_are_hundreds_of_layers_each_with_its_network() -> None:
    templates = {planned.template for planned in layers()}
    assert len(layers()) >= 600
    notes = {template.about.note for template in templates}
    assert len(notes) > 400
    assert all(note and ", " in note and "(" in note for note in notes)


def test_a_sample_of_layers_notices_spoiled_outputs() -> None:
    sample = [
        planned for planned in layers()[::ONE_IN] if tensor_bytes(build(planned)) < MOST_BYTES
    ]
    assert len(sample) > 15
    assert unnoticed(sample) == []


@pytest.mark.layers
def test_every_layer_notices_spoiled_outputs() -> None:
    assert unnoticed(layers()) == []
