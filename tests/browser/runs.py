"""Make run logs, comparisons and scoreboards for the browser to show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dmlconf.comparison.compare import compare
from dmlconf.reports.comparisons import html
from dmlconf.reports.comparisons.scoreboard import render_html, scoreboard
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.figures import ErrorMap, Figures
from dmlconf.verdicts.verdict import (
    Execution,
    Identity,
    Judgement,
    Reason,
    ReasonKind,
    Status,
    Verdict,
)
from tests.reports import logs

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = [
    "HOSTILE",
    "VERDICTS",
    "comparison_page",
    "open_and_wait",
    "run_log",
    "scoreboard_page",
    "verdict",
]

HOSTILE: Final = "<img src=x onerror=alert(1)></script><script>alert(2)</script>\x1b[31m\u202e'\"&"
"""Text in a run log that a browser would execute if a page did not escape it."""


def verdict(
    case: str, operator: str, status: Status, message: str = "wrong", level: str = "1_0"
) -> Verdict:
    """Return a verdict; unless it passed, its reason is wrong values with this message."""
    reason = None
    if status is not Status.PASSED:
        difference = {
            "tensor": "OutputTensor",
            "coordinates": [0],
            "expected": 1.0,
            "actual": 2.0,
            "allowed": [[0.75, 1.25], [3.0, 3.0]],
            "off_by": 8.0,
            "unit": "ULP",
        }
        reason = Reason(ReasonKind.WRONG_VALUES, message, (difference,), message)
    figures = {
        "OutputTensor": Figures(
            4,
            1,
            8.0,
            "ulp",
            2.0,
            margin=4.0,
            source=message,
            histogram={"0": 3, "8": 1},
            error_map=ErrorMap(("09", "10"), 1, (2, 2)),
        )
    }
    facts = {"InputTensor": "FLOAT16 2x2", "Axis": 1}
    return Verdict(
        Identity(case, operator, ("matrix",), "cases/a.yaml:3", facts=facts, feature_level=level),
        Judgement(status, None, reason, {} if reason is None else figures),
        Execution(0.001),
    )


def run_log(verdicts: list[Verdict], **environment: str) -> RunLog:
    """Return the log of a complete run; `environment` replaces values of `logs.plain()`."""
    log = logs.plain()
    counts = {str(s): sum(v.status is s for v in verdicts) for s in Status}
    assert log.footer is not None
    return RunLog(
        replace(
            log.header,
            selected=len(verdicts),
            environment={**log.header.environment, **environment},
        ),
        tuple(verdicts),
        replace(log.footer, summary=counts),
    )


VERDICTS: Final = [
    verdict("gather/matrix[Axis=0]", "GATHER", Status.PASSED),
    verdict("gather/matrix[Axis=1]", "GATHER", Status.FAILED),
    verdict("tile/documented/a", "TILE", Status.PASSED, level="6_4"),
    verdict(f"tile/{HOSTILE}", "TILE", Status.BROKEN, HOSTILE),
]
"""For each of two operators, a verdict that passed and one that did not."""


def open_and_wait(page: Page, address: str) -> Page:
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    return page


def comparison_page() -> str:
    """Return a comparison of two runs, with a new failure, one that stays, and a fixed case."""
    base, new = _two_runs()
    return html.render_html([(compare(base, new), (f"base {HOSTILE}", "new"))])


def scoreboard_page(operator: str = "TOP_K") -> str:
    """Return the scoreboard of two runs with failures, and with an operator that has none."""
    case = verdict(f"{operator.lower()}/a", operator, Status.PASSED)
    base, new = (replace(run, verdicts=(case, *run.verdicts)) for run in _two_runs())
    return render_html(scoreboard([base, new], ["base.jsonl", "new.jsonl"]))


def _two_runs() -> tuple[RunLog, RunLog]:
    fixed = verdict("gather/matrix[Axis=1]", "GATHER", Status.PASSED)
    worse = verdict("tile/documented/a", "TILE", Status.FAILED)
    unchanged = VERDICTS[0], VERDICTS[3]
    return run_log(VERDICTS, driver="1"), run_log([*unchanged, fixed, worse], driver="2")
