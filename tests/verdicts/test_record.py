"""Verdicts are written as JSON and read back unchanged.

The tested code is in `dmlconf/verdicts/record.py`.
"""

from __future__ import annotations

import json
import math

from dmlconf.cases.model import Provenance
from dmlconf.verdicts.figures import ErrorMap, Figures
from dmlconf.verdicts.record import record_of, value_of
from dmlconf.verdicts.verdict import (
    Execution,
    Identity,
    Judgement,
    Reason,
    ReasonKind,
    Status,
    VariantResult,
    Verdict,
)

FIGURES = Figures(
    elements=4,
    differing=2,
    worst_ulp=math.inf,
    rule="ulp",
    limit=2.0,
    margin=math.inf,
    source="its page",
    expectation=Provenance.DOCUMENTED,
    open=0,
    loose=1,
    worst_coordinates=(0, 3),
    histogram={"0": 2, "NaN": 2},
    error_map=ErrorMap(("09",), 0, (4,)),
)

DIFFERENCE = {
    "tensor": "OutputTensor",
    "coordinates": [0, 3],
    "expected": 1.0,
    "actual": -math.inf,
    "allowed": [[0.5, math.inf]],
}

DETAILED = Verdict(
    Identity("gather/a", "GATHER", ("a", "b"), "a.yaml:3", facts={"Axis": 1, "Scale": "inf"}),
    Judgement(
        Status.FAILED,
        Provenance.RECORDED,
        Reason(ReasonKind.WRONG_VALUES, "2 of 4 elements", (DIFFERENCE,)),
        {"OutputTensor": FIGURES},
        variants={"half=on": VariantResult(Status.BROKEN, ReasonKind.CRASH, "it died")},
        attempts=(Status.FAILED, Status.PASSED),
    ),
    Execution(0.25, (0.125, 0.5)),
)

SPARSE = Verdict(Identity("gather/b", "GATHER", ()), Judgement(Status.NOT_RUN))
"""A verdict without any optional field."""


def test_a_verdict_written_as_json_is_read_back_unchanged() -> None:
    for verdict in (DETAILED, SPARSE):
        text = json.dumps(record_of(verdict), allow_nan=False)
        assert value_of(Verdict, json.loads(text)) == verdict


def test_numbers_that_json_lacks_are_text_and_text_stays_text() -> None:
    record = record_of(DETAILED)
    assert record["figures"]["OutputTensor"]["worst_ulp"] == "inf"
    assert record["reason"]["differences"][0]["actual"] == "-inf"
    assert record["reason"]["differences"][0]["allowed"] == [[0.5, "inf"]]
    assert value_of(Verdict, record).facts["Scale"] == "inf"


def test_absent_optional_values_are_left_out() -> None:
    assert list(record_of(SPARSE).items()) == [
        ("case", "gather/b"),
        ("operator", "GATHER"),
        ("tags", []),
        ("status", "not run"),
        ("expectation", None),
        ("reason", None),
        ("figures", {}),
        ("seconds", 0.0),
        ("location", ""),
    ]


def test_times_of_cases_and_dispatches_are_rounded() -> None:
    record = record_of(SPARSE.ran(seconds=1 / 3, dispatch_seconds=(1 / 3,)))
    assert (record["seconds"], record["dispatch_seconds"]) == (0.333333, [0.333333333])


def test_figures_without_the_fields_of_newer_versions_are_read() -> None:
    old = {"elements": 4, "differing": 0, "worst_ulp": None, "rule": "exact", "limit": 0}
    assert value_of(Figures, old) == Figures(4, 0, None, "exact", 0)
