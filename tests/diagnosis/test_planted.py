"""The first ten lines of a terminal report name the condition of a planted defect (`planted.yaml`).

The tested code is in `dmlconf/diagnosis/common_conditions.py`,
`dmlconf/reports/runs/shared_properties.py` and `dmlconf/reports/runs/terminal.py`.
"""

from __future__ import annotations

import io
import re
from typing import Final

import pytest
from rich.console import Console

from dmlconf.backends import registry
from dmlconf.engine.against import AUTO, expectations
from dmlconf.engine.session import in_process, judged, make_header
from dmlconf.reports.runs import terminal
from dmlconf.resources import cases_directory
from dmlconf.run_log.log import RunLog
from tests.bundled import bundled
from tests.diagnosis.planted import DEFECTS, Defect, PlantedBackend

FIRST_LINES: Final = 10

SAMPLE: Final = tuple(defect for defect in DEFECTS if len(defect.operators) == 1)[::6]
"""Every sixth defect of one operator; `python -m tests.diagnosis` tries all."""

QUICK: Final = "gather beyond the first axis"
"""The defect that is tried by default, since its cases are quick."""


def run_log(defect: Defect) -> RunLog:
    suite = bundled(*map(str.lower, defect.operators))
    plan = [planned for planned in suite.plan() if "model" not in planned.template.tags]
    backend = in_process(registry.parse("faulty:zeros"), PlantedBackend(defect))
    expected = expectations(AUTO, backend, suite, plan, [cases_directory()])
    header = make_header(suite, [], len(plan), backend, expected.name, {"against": AUTO})
    return RunLog(header, tuple(judged(plan, backend, expected.against)), None)


def first_lines(log: RunLog) -> str:
    """Return the first lines of the report in a terminal of 80 columns."""
    stream = io.StringIO()
    Console(file=stream, width=80, height=25, highlight=False, color_system=None).print(
        terminal.render(log), crop=False
    )
    return "\n".join(stream.getvalue().split("\n")[:FIRST_LINES])


def is_named(defect: Defect, text: str) -> bool:
    return all(re.search(pattern, text) for pattern in defect.named)


def test_at_least_thirty_defects_have_different_names() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) >= 30


def test_default_defect_is_in_the_sample() -> None:
    assert QUICK in {defect.name for defect in SAMPLE}


@pytest.mark.parametrize(
    "defect",
    [
        pytest.param(defect, marks=() if defect.name == QUICK else pytest.mark.diagnosis)
        for defect in SAMPLE
    ],
    ids=lambda defect: defect.name,
)
def test_the_first_ten_lines_name_the_planted_condition(defect: Defect) -> None:
    text = first_lines(run_log(defect))
    assert is_named(defect, text), text
