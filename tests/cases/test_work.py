"""`work_of` estimates how many terms a device computes for a case.

The tested code is in `dmlconf/cases/work.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.work import work_of
from tests.backends.directml.cases import tile

GEMM = """
operator: GEMM
cases:
  - name: large
    desc:
      ATensor: {Sizes: [1, 1, 100, 3000], DataType: FLOAT32, fill: &fill {constant: {value: 1}}}
      BTensor: {Sizes: [1, 1, 3000, 200], DataType: FLOAT32, fill: *fill}
      OutputTensor: {Sizes: [1, 1, 100, 200], DataType: FLOAT32}
      TransA: NONE
      TransB: NONE
      Alpha: 1
      Beta: 0
"""


def test_the_work_of_a_gemm_is_about_its_multiplications(tmp_path: Path) -> None:
    (tmp_path / "gemm.yaml").write_text(GEMM, encoding="utf-8")
    [planned] = load_suite([tmp_path]).plan()
    assert work_of(valid_case(planned)) == pytest.approx(100 * 200 * 3000, rel=0.01)


def test_the_work_of_a_small_case_is_outputs_times_inputs() -> None:
    assert work_of(tile()) == 4 * 2
