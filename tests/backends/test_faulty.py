"""The backend `faulty` gives the wrong results that its options ask for, or refuses the options.

The tested code is in `dmlconf/backends/faulty/backend.py`, `dmlconf/backends/faulty/modes.py`,
`dmlconf/backends/options.py`, `dmlconf/backends/registry.py` and `dmlconf/cases/conditions.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends import registry
from dmlconf.backends.faulty.backend import create, last_negated, negated, scaled
from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.options import split_options
from dmlconf.backends.protocol import BackendError, Outputs, Rejection
from dmlconf.tensors.datatypes import Array, DataType
from tests.cases.suites import built
from tests.engine.cases import case

ONCE_TILED = """
operator: TILE
cases:
  - desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, -2]}
      OutputTensor: {Sizes: [2], DataType: FLOAT32}
      Repeats: [1]
"""
"""A case whose right output is its input, [1, -2]."""


LARGEST_INT64_IN_FLOAT64 = 2**63 - 1024
"""The largest number of FLOAT64 that is an INT64."""


def array_of(data_type: DataType, *values: float) -> Array:
    return np.array(values, data_type.dtype)


@pytest.mark.parametrize(
    ("data_type", "values", "expected"),
    [
        (DataType.FLOAT16, [1.5, -2, 0], [-1.5, 2, 0]),
        # Integers wrap around.
        (DataType.INT8, [1, -2, -128], [-1, 2, -128]),
        (DataType.UINT32, [1, 0], [2**32 - 1, 0]),
        (DataType.INT4, [1, -8, 7], [-1, -8, -7]),
        (DataType.UINT4, [1, 0, 15], [15, 0, 1]),
    ],
)
def test_the_fault_negated_changes_the_sign_of_each_element(
    data_type: DataType, values: list[float], expected: list[float]
) -> None:
    actual = negated(array_of(data_type, *values), data_type)
    assert actual.dtype == data_type.dtype
    assert actual.tolist() == expected


def test_last_element_of_a_transposed_output_is_negated() -> None:
    rows = array_of(DataType.FLOAT32, 1, 2, 3, 4).reshape(2, 2)
    assert last_negated(rows, DataType.FLOAT32).tolist() == [[1, 2], [3, -4]]
    assert last_negated(rows.T, DataType.FLOAT32).tolist() == [[1, 3], [2, -4]]


@pytest.mark.parametrize(
    ("data_type", "values", "expected"),
    [
        (DataType.FLOAT32, [2, -4], [4, -8]),
        (DataType.FLOAT16, [60000], [float("inf")]),  # The largest FLOAT16 is 65504.
        (DataType.INT8, [3, 100, -100], [6, 127, -128]),
        (DataType.UINT4, [3, 9], [6, 15]),
        (DataType.INT64, [2**62], [LARGEST_INT64_IN_FLOAT64]),
    ],
)
def test_the_fault_scaled_multiplies_elements_and_saturates_integers(
    data_type: DataType, values: list[float], expected: list[float]
) -> None:
    actual = scaled(array_of(data_type, *values), data_type, 2)
    assert actual.dtype == data_type.dtype
    assert actual.tolist() == expected


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("negated", [-1, 2]),
        ("scaled", [np.float32(1.1), np.float32(-2.2)]),  # The default factor is 1.1.
        ("scaled,by=3", [3, -6]),
        ("scaled,by=3,on=tile/f", [3, -6]),  # The case is called tile/f.
        ("scaled,by=3,on=nowhere", [1, -2]),
    ],
)
def test_fault_changes_only_chosen_cases(
    tmp_path: Path, argument: str, expected: list[float]
) -> None:
    (outcome,) = create(argument).run([built(tmp_path, ONCE_TILED)])
    assert isinstance(outcome, Outputs)
    assert outcome.arrays["OutputTensor"].tolist() == expected


def test_an_invalid_desc_is_rejected_as_the_reference_rejects_it(tmp_path: Path) -> None:
    invalid = built(
        tmp_path, ONCE_TILED.replace("OutputTensor: {Sizes: [2]", "OutputTensor: {Sizes: [3]")
    )
    (outcome,) = create("negated").run([invalid])
    right = run_case(invalid)
    assert isinstance(outcome, Rejection)
    assert isinstance(right, Rejection)
    assert replace(outcome, seconds=0) == replace(right, seconds=0)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("negated,by=2", "there is no option of the backend faulty:negated 'by'"),
        ("scaled,by=much", "much is not a factor"),
        ("slow,seconds=-1", "-1 is not a number of seconds"),
        ("scaled,by=nan", "nan is not a factor"),
        ("scaled,by=-inf", "-inf is not a factor"),
    ],
)
def test_invalid_options_of_a_fault_are_refused(argument: str, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        create(argument)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("Unheard > 1", "no operator has Unheard; `dmlconf operators NAME` lists the fields"),
        ("Repeat[0] == 1", "no operator has Repeat; did you mean Repeats?"),
        ("Rank > 1 and Rang < 3", "no operator has Rang; did you mean Rank?"),
        ("Rank = 1", "is not a condition: Rank = 1: .*; did you mean ==?"),
        # After an unclosed parenthesis, a comma separates options.
        ("Rank in (1, 2", "name one fault, not negated and  2, such as"),
    ],
)
def test_invalid_conditions_are_refused(where: str, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        create(f"negated,where={where}")


@pytest.mark.parametrize(
    ("where", "faulty"),
    [
        ("Rank in (1, 2)", True),
        ("Rank in (2, 3)", False),
        ("Rank in [1, 2] and max(Rank, 5) == 5", True),
        ("Repeats == (1,)", True),
        ("FeatureLevel >= 4_1", False),  # The case needs level 3_1.
        ("Rank >= 1", True),
    ],
)
def test_fault_changes_only_cases_that_meet_its_condition(
    tmp_path: Path, where: str, faulty: bool
) -> None:
    (outcome,) = create(f"scaled,where={where},by=2").run([built(tmp_path, ONCE_TILED)])
    assert isinstance(outcome, Outputs)
    assert outcome.arrays["OutputTensor"].tolist() == ([2, -4] if faulty else [1, -2])


def test_fault_zeros_accepts_an_invalid_case_without_outputs(tmp_path: Path) -> None:
    (outcome,) = create("zeros").run([case(tmp_path, "invalid")])
    assert isinstance(outcome, Outputs)
    assert not outcome.arrays


def test_options_after_an_unclosed_parenthesis_are_split_at_commas() -> None:
    words, options = split_options("path=C:/a(b,half=on,[x,y)")
    assert (words, options) == (["[x", "y)"], {"path": "C:/a(b", "half": "on"})


def test_old_backend_name_is_accepted_but_not_listed() -> None:
    # Old logs and certificates name `faulty` as `miniature`.
    for name in ("miniature", "faulty"):
        backend = registry.create(registry.parse(f"{name}:zeros"))
        assert backend.environment().backend == name
        level = registry.create(registry.parse(f"{name}:level=3_1"))
        assert level.environment().backend == name
    assert "faulty" in registry.backend_names()
    assert "miniature" not in registry.backend_names()
