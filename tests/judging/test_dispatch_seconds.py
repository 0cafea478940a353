"""Verdicts in logs and reports have the times of dispatches.

The tested code is in `dmlconf/judging/judge.py`, `dmlconf/verdicts/record.py`,
`dmlconf/run_log/log.py`, `schemas/run-log.schema.json` and `schemas/report.schema.json`.
"""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from dmlconf.backends.protocol import Outcome, Outputs, Rejection
from dmlconf.cases.building.build import build
from dmlconf.documents.schema import bundled_schema
from dmlconf.judging.judge import judge
from dmlconf.run_log.log import verdict_data
from dmlconf.verdicts.verdict import Status, Verdict
from tests.engine.cases import plan


def verdict(directory: Path, outcome: Outcome) -> Verdict:
    return judge(build(plan(directory, "stated")[0]), outcome, lambda case: None)


SCHEMAS = ("run-log", "report")


def check_schema(name: str, data: object) -> None:
    schema = bundled_schema(name)
    inside = {"$schema": schema["$schema"], "$defs": schema["$defs"], "$ref": "#/$defs/verdict"}
    jsonschema.Draft202012Validator(inside).validate(data)


def test_times_of_dispatches_are_reported_with_the_verdict(tmp_path: Path) -> None:
    values = {"OutputTensor": np.array([1, 2, 1, 2], np.float32)}
    actual = verdict(tmp_path, Outputs(values, 0.25, (), (0.5, 0.0000012345678)))
    assert (actual.status, actual.seconds) == (Status.PASSED, 0.25)
    data = json.loads(json.dumps(verdict_data(actual)))
    assert data["dispatch_seconds"] == [0.5, 0.000001235]  # Rounded to nanoseconds.
    for name in SCHEMAS:
        check_schema(name, data)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas_refuse_negative_times(tmp_path: Path, name: str) -> None:
    values = {"OutputTensor": np.array([1, 2, 1, 2], np.float32)}
    data = json.loads(json.dumps(verdict_data(verdict(tmp_path, Outputs(values)))))
    check_schema(name, {**data, "dispatch_seconds": [0]})
    with pytest.raises(jsonschema.ValidationError):
        check_schema(name, {**data, "dispatch_seconds": [-1]})


@pytest.mark.parametrize(
    "outcome",
    [
        Outputs({"OutputTensor": np.array([1, 2, 1, 2], np.float32)}),
        Rejection("CompileOperator", "E_FAIL"),
    ],
    ids=["no clock", "refused"],
)
def test_times_are_absent_if_nothing_was_measured(tmp_path: Path, outcome: Outcome) -> None:
    data = json.loads(json.dumps(verdict_data(verdict(tmp_path, outcome))))
    assert "dispatch_seconds" not in data
    for name in SCHEMAS:
        check_schema(name, data)
