"""The cases that a target can express are counted without running anything.

The tested code is in `dmlconf/coverage/expressible.py`, `dmlconf/translation/translate.py` and
`schemas/translation/onnx.yaml`.
"""

from __future__ import annotations

from dmlconf.cases.loading.loader import valid_case
from dmlconf.coverage.expressible import measure_target
from tests.bundled import bundled


def test_expressible_cases_and_reasons_of_other_cases_are_counted() -> None:
    plan = list(bundled("gather/documented.yaml", "gather/invalid.yaml").plan())
    [row] = measure_target(map(valid_case, plan), "onnx")
    refused = row.reasons["a desc that DirectML must refuse has no counterpart"]
    assert refused > 0
    assert row.expressible == len(plan) - refused == row.cases - row.reasons.total()
    slices = list(bundled("slice_grad/documented.yaml").plan())
    [row] = measure_target(map(valid_case, slices), "onnx")
    assert row.expressible == 0
    assert dict(row.reasons) == {"SLICE_GRAD: ONNX has no gradient of Slice": len(slices)}
