"""A generated case that is saved in a case file is loaded as the same case.

The tested code is in `dmlconf/fuzzing/saving.py`.
"""

from __future__ import annotations

from pathlib import Path

from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.fuzzing.operators import operator_case
from dmlconf.fuzzing.saving import in_folder, save_cases

NAMES = ("ELEMENT_WISE_CLIP_GRAD1", "FILL_VALUE_SEQUENCE", "LSTM", "PADDING1", "SCATTER_ELEMENTS")


def test_a_saved_case_is_the_same_case(tmp_path: Path) -> None:
    generated = [operator_case(name, 1, number) for name in NAMES for number in range(12)]
    planned = [in_folder(each, tmp_path) for each in generated]
    paths = save_cases(planned)
    assert len(paths) == len(NAMES)
    by_name = {each.identifier: valid_case(each) for each in load_suite(paths).plan()}
    assert len(by_name) == len(planned)
    for each in planned:
        case, saved = valid_case(each), by_name[each.identifier]
        assert repr(saved.desc) == repr(case.desc)
        assert {name: array.tobytes() for name, array in saved.inputs().items()} == {
            name: array.tobytes() for name, array in case.inputs().items()
        }
