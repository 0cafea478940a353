"""A generated case that is saved in a case file is loaded as the same case.

The tested code is in `dmlconf/fuzzing/saving.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.fuzzing.invalid import invalid_case
from dmlconf.fuzzing.operators import operator_case
from dmlconf.fuzzing.saving import in_folder, save_cases

NAMES = ("ELEMENT_WISE_CLIP_GRAD1", "FILL_VALUE_SEQUENCE", "LSTM", "PADDING1", "SCATTER_ELEMENTS")
"""Operators whose descs have activations, arrays, absent tensors, or scalars of any data type."""


@pytest.mark.slow
@pytest.mark.parametrize("generate", [operator_case, invalid_case])
def test_saved_case_is_the_same_case(
    tmp_path: Path, generate: Callable[[str, int, int], PlannedCase]
) -> None:
    generated = [generate(name, 1, number) for name in NAMES for number in range(12)]
    planned = [in_folder(each, tmp_path) for each in generated]
    paths = save_cases(planned)
    assert len(paths) == len(NAMES)
    by_name = {each.identifier: build(each) for each in load_suite(paths).plan()}
    assert len(by_name) == len(planned)
    for each in planned:
        case, saved = build(each), by_name[each.identifier]
        assert repr(saved.desc) == repr(case.desc)
        assert saved.tags == case.tags
        assert saved.in_place == case.in_place
        assert saved.expectation == case.expectation
        assert {name: array.tobytes() for name, array in saved.inputs().items()} == {
            name: array.tobytes() for name, array in case.inputs().items()
        }
    assert any(each.expectation for each in by_name.values()) == (generate is invalid_case)
    assert any(each.in_place for each in by_name.values()) == (generate is operator_case)
