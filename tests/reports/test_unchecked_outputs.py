"""Reports count cases of which some outputs were not compared.

The tested code is in `dmlconf/reports/runs/remarks.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dmlconf.reports.runs import html, markdown, picture
from dmlconf.run_log.log import RunLog
from tests.reports import logs


@pytest.mark.parametrize("render", [picture.render_text, markdown.render, html.render])
def test_reports_count_cases_compared_in_part(
    render: Callable[[RunLog], str],
) -> None:
    partly = logs.PASSED.judged(unchecked_outputs=("OutputIndexTensor",))
    log = logs.run_log(partly, partly.of_case(case="gather/other"), logs.PASSED_NEAR)
    words = " ".join(render(log).replace("\\", "").split())
    assert "compared in part: in 2 cases" in words
    assert f"OutputIndexTensor of {logs.PASSED.case}" in words
    assert "compared in part" not in render(logs.run_log(logs.PASSED))
