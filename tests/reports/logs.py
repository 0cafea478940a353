"""Make run logs with every status, and with text that contains the markup of every format."""

from __future__ import annotations

import io
import math
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.model import Provenance
from dmlconf.run_log.log import Footer, Header, LogWriter, RunLog
from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.verdict import (
    Execution,
    Identity,
    Judgement,
    Reason,
    ReasonKind,
    Status,
    Verdict,
)

NASTY: Final = "[red]a|b[/] `c` ```d``` <e>&\x1b[31m\x07\u202e\ufffe\ud800\r\n# f"
"""Markup of every format, a terminal's escapes, and characters that XML and UTF-8 refuse."""

HEADER: Final = Header(
    dmlconf="0.1.0",
    started="2026-11-21T05:00:00+00:00",
    backend="directml:adapter=1",
    against="numpy",
    environment={
        "backend": "directml",
        "version": "1.15.4",
        "adapter": "Contoso Graphics 9000",
        "driver": "32.0.15.6094",
        "details": {"metacommands": True},
        "platform": "Windows-11-10.0.26100-SP0",
        "python": "3.13.1",
        "numpy": "2.2.0",
    },
    paths=("cases/gather", "my cases/odd'name.yaml"),
    suite_digest="0123456789abcdef" * 4,
    catalogue_digest="fedcba9876543210" * 4,
    selected=0,
    options={"operators": ["GATHER"]},
)


def figures(worst_ulp: float | None, differing: int = 0) -> dict[str, Figures]:
    """Return the figures of one output of 12 elements, under the rule of at most 1 ULP."""
    return {"OutputTensor": Figures(12, differing, worst_ulp, "ulp", 1)}


def difference(coordinates: list[int], expected: float, actual: float) -> dict[str, Any]:
    return {
        "tensor": "OutputTensor",
        "coordinates": coordinates,
        "expected": expected,
        "actual": actual,
    }


def verdict(
    case: str,
    status: Status = Status.PASSED,
    reason: Reason | None = None,
    operator: str = "GATHER",
    **more: Any,
) -> Verdict:
    """Return a verdict; fields that are not given are those of a plain pass."""
    values: dict[str, Any] = {
        "case": case,
        "operator": operator,
        "status": status,
        "reason": reason,
        "tags": (case.split("/")[1].partition("[")[0],) if "/" in case else (),
        "expectation": Provenance.REFERENCE,
        "seconds": 0.25,
        "location": "cases/gather/matrix.yaml:12",
        **more,
    }
    identity, judgement, execution = (
        {each.name: values.pop(each.name) for each in fields(kind) if each.name in values}
        for kind in (Identity, Judgement, Execution)
    )
    assert not values
    return Verdict(Identity(**identity), Judgement(**judgement), Execution(**execution))


PASSED: Final = verdict(
    "gather/documented/example-1", expectation=Provenance.DOCUMENTED, figures=figures(0.0)
)
PASSED_NEAR: Final = verdict(
    "gather/matrix[DataType=FLOAT16,DimensionCount=5,Axis=1]", figures=figures(1.0)
)
"""A pass with the largest permitted error, 1 ULP."""
PASSED_INTEGERS: Final = verdict(
    "argmin/documented/example-1", operator="ARGMIN", seconds=0.0004, figures=figures(None)
)
FAILED: Final = verdict(
    "gather/matrix[DataType=FLOAT32,DimensionCount=8,Axis=3,IndicesType=UINT64]",
    Status.FAILED,
    Reason(
        ReasonKind.WRONG_VALUES,
        "4 of 12 elements of OutputTensor differ",
        (
            difference([0, 2], 1.5, math.inf),
            difference([0, 3], -math.inf, -0.0),
            difference([1, 10], math.nan, 16777216.0),
            difference([11, 0], 3.4028234663852886e38, 1.1754943508222875e-38),
        ),
    ),
    figures=figures(math.inf, 4),
)
BROKEN: Final = verdict(
    "join/boundary/many-inputs",
    Status.BROKEN,
    Reason(
        ReasonKind.DEVICE_REMOVED,
        "DXGI_ERROR_DEVICE_HUNG by ID3D12Device.GetDeviceRemovedReason",
        diagnostics="\r\n".join(f"debug layer: line {number}" for number in range(1, 31)) + "\r\n",
    ),
    operator="JOIN",
    expectation=None,
    seconds=61.5,
    location="cases/join/boundary.yaml:7",
)
UNSUPPORTED: Final = verdict(
    "gather/matrix[DataType=FLOAT64]",
    Status.UNSUPPORTED,
    Reason(ReasonKind.DATA_TYPE, "the backend lacks FLOAT64"),
    expectation=None,
    seconds=0.0,
)
UNCHECKED: Final = verdict(
    "join/matrix[DataType=UINT8]",
    Status.UNCHECKED,
    Reason(ReasonKind.NO_INDEPENDENT_EXPECTATION, "ran, but nothing independent tells"),
    operator="JOIN",
    expectation=None,
)
WAIVED: Final = verdict(
    "gather/boundary/waived",
    Status.WAIVED,
    Reason(ReasonKind.WRONG_VALUES, "known as DRV-1234 until 2027-01-01"),
    figures=figures(40.0, 1),
)
KNOWN_FAULT: Final = verdict(
    "argmin/boundary/int64",
    Status.WAIVED,
    Reason(ReasonKind.KNOWN_FAULT, "low-words, in DirectML 1.15.4: The low words are compared."),
    operator="ARGMIN",
    figures=figures(None, 1),
)
STALE: Final = verdict(
    "scatter_elements/matrix[Axis=1]",
    Status.STALE,
    Reason(ReasonKind.WRONG_VALUES, "waived by DRV-77, yet it passed"),
    operator="SCATTER_ELEMENTS",
    figures=figures(4294967295.0),
)
NOT_RUN: Final = verdict(
    "tile/matrix[Repeats=4]",
    Status.NOT_RUN,
    Reason(ReasonKind.INTERRUPTED, "interrupted"),
    operator="TILE",
    expectation=None,
    seconds=0.0,
    location="",
)
HOSTILE: Final = verdict(
    f"gather/{NASTY}",
    Status.FAILED,
    Reason(
        ReasonKind.WRONG_VALUES,
        NASTY,
        ({**difference([0], math.nan, math.inf), "tensor": NASTY},),
        NASTY,
    ),
    operator=f"GATHER{NASTY}",
    location=f"cases/{NASTY}.yaml:3",
)

EVERY_STATUS: Final = (
    PASSED,
    PASSED_NEAR,
    PASSED_INTEGERS,
    FAILED,
    BROKEN,
    UNSUPPORTED,
    UNCHECKED,
    WAIVED,
    STALE,
    NOT_RUN,
)


def run_log(*verdicts: Verdict, selected: int | None = None, **header: Any) -> RunLog:
    """Return the log of a run that ended, of `selected` cases; by default all have verdicts."""
    count = len(verdicts) if selected is None else selected
    summary = {str(s): sum(v.status is s for v in verdicts) for s in Status}
    complete = count == len(verdicts) - summary[Status.NOT_RUN]
    footer = Footer("2026-11-21T05:01:02+00:00", 62.5, complete, summary)
    return RunLog(replace(HEADER, selected=count, **header), verdicts, footer)


def text_of(log: RunLog) -> str:
    stream = io.StringIO()
    writer = LogWriter(stream)
    writer.header(log.header)
    for place, reached in enumerate(log.verdicts):
        writer.verdict(reached, place)
    if log.footer is not None:
        writer.footer(log.footer)
    return stream.getvalue()


@cache
def log_lines() -> tuple[bytes, ...]:
    return tuple(text_of(everything()).encode().splitlines(keepends=True))


def write(path: Path, log: RunLog) -> Path:
    path.write_text(text_of(log), encoding="utf-8", newline="")
    return path


def dead(log: RunLog, selected: int) -> RunLog:
    """Return the log of a run of `selected` cases that died, without a footer."""
    return replace(log, header=replace(log.header, selected=selected), footer=None)


def everything() -> RunLog:
    return run_log(*EVERY_STATUS)


def plain() -> RunLog:
    """Return the log of a passing run of two cases on the reference."""
    return run_log(
        PASSED,
        PASSED_INTEGERS,
        backend="numpy",
        against="numpy",
        paths=(),
        options={},
        environment={
            **HEADER.environment,
            "backend": "numpy",
            "version": "2.2.0",
            "adapter": None,
            "driver": None,
            "details": {},
        },
    )


def hostile() -> RunLog:
    """Return the log of one failing case, with `NASTY` in each of its texts."""
    environment = {**HEADER.environment, "adapter": NASTY, "driver": NASTY}
    return run_log(HOSTILE, backend=f"plugin:{NASTY}", paths=(NASTY,), environment=environment)
