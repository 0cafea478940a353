"""`run --dump` writes failing cases as files that run and fail again.

The tested code is in `dmlconf/diagnosis/dump.py` and `dmlconf/cases/writing/export.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends import registry
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case, Provenance
from dmlconf.diagnosis.dump import dump_cases
from dmlconf.engine.session import in_process, reference
from dmlconf.judging.judge import judge
from dmlconf.verdicts.verdict import Status
from tests.bundled import bundled

CASES = [
    "gemm/matrix[DataType=FLOAT16,DimensionCount=2,TransA=NONE,TransB=NONE]",
    "join/documented/example-1-only-one-axis-fits",
    "tile/invalid/repeat-of-0",
]

ZEROS = registry.parse("faulty:zeros")
REFERENCE = reference("numpy", ZEROS)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """A case with generated data, a documented one and an invalid one."""
    folders = dict.fromkeys(name.partition("/")[0] for name in CASES)
    plan = {planned.identifier: planned for planned in bundled(*folders).plan()}
    return [valid_case(plan[name]) for name in CASES]


def dump_files(cases: list[Case], folder: Path) -> list[Path]:
    return dump_cases(folder, cases, in_process(ZEROS, registry.create(ZEROS)), REFERENCE)


def test_dumped_case_loads_with_the_same_desc_and_data(cases: list[Case], tmp_path: Path) -> None:
    paths = dump_files(cases, tmp_path / "dump")
    assert [path.stem for path in paths] == [
        "gemm-matrix-DataType-FLOAT16-DimensionCount-2-TransA-NONE-TransB-NONE",
        "join-documented-example-1-only-one-axis-fits",
        "tile-invalid-repeat-of-0",
    ]
    for path, case in zip(paths, cases, strict=True):
        [again] = map(valid_case, load_suite([path]).plan())
        assert again.operator_name == case.operator_name
        assert again.desc == case.desc
        for name, array in case.inputs().items():
            np.testing.assert_array_equal(again.inputs()[name], array)
        assert (again.expectation is None) == (case.expectation is None)


def test_a_dumped_case_fails_again(cases: list[Case], tmp_path: Path) -> None:
    backend = registry.create(ZEROS)
    paths = dump_files(cases, tmp_path)
    assert len(paths) == len(CASES)
    for path in paths:
        [again] = map(valid_case, load_suite([path]).plan())
        [outcome] = backend.run([again])
        assert judge(again, outcome, REFERENCE).status is Status.FAILED


def test_a_dump_has_the_expected_permitted_and_actual_values(
    cases: list[Case], tmp_path: Path
) -> None:
    [path] = dump_files(cases[:1], tmp_path)
    arrays = {file.name: np.load(file) for file in path.with_suffix("").iterdir()}
    assert {name for name in arrays if name.startswith("Output")} == {
        f"OutputTensor.{role}.npy" for role in ("expected", "lowest", "highest", "actual")
    }
    expected = arrays["OutputTensor.expected.npy"]
    assert not arrays["OutputTensor.actual.npy"].any()
    assert (arrays["OutputTensor.lowest.npy"] <= expected).all()
    assert (expected <= arrays["OutputTensor.highest.npy"]).all()
    # The reference computes the expected outputs again.
    [again] = map(valid_case, load_suite([path]).plan())
    assert again.expectation is None


def test_a_stated_expectation_keeps_its_provenance(cases: list[Case], tmp_path: Path) -> None:
    path = dump_files(cases, tmp_path)[1]
    [again] = map(valid_case, load_suite([path]).plan())
    assert again.expectation is not None
    assert again.expectation.provenance is Provenance.DOCUMENTED
