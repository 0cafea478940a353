"""Reports count the graphs that pass only because each of their nodes is right.

The tested code is in `dmlconf/reports/runs/remarks.py` and `dmlconf/verdicts/figures.py`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from dmlconf.documents.schema import bundled_schema, validator
from dmlconf.reports.runs import html, json_report, markdown, picture
from dmlconf.reports.runs.remarks import by_nodes_note
from dmlconf.run_log.log import read_log
from tests.reports import logs

OUTPUT = replace(logs.figures(2.0)["OutputTensor"], by_nodes=3)
"""3 elements are right only because each node is right for its own inputs."""

RIGHT_BY_NODES = logs.PASSED.judged(figures={"y": OUTPUT})


def test_reports_count_graphs_right_by_their_nodes() -> None:
    log = logs.run_log(RIGHT_BY_NODES, RIGHT_BY_NODES.of_case(case="graphs/other"))
    note = (
        "right by their nodes: 2 graphs have elements that no sample gave, but each node is right "
        f"for the inputs that it got, such as {logs.PASSED.case}"
    )
    for report in (picture.render_text(log), markdown.render(log), html.render(log)):
        assert note in " ".join(report.split())


def test_graphs_are_counted_in_a_log_read_into_columns(
    tmp_path: Path,
) -> None:
    file = logs.write(tmp_path / "run.jsonl", logs.run_log(RIGHT_BY_NODES))
    note = by_nodes_note(read_log(file, most_objects=0))
    assert note is not None
    assert "1 graph has elements" in note


def test_json_counts_elements_right_by_the_nodes() -> None:
    data = json.loads(json_report.render(logs.run_log(RIGHT_BY_NODES)))
    assert data["verdicts"][0]["figures"]["y"]["by_nodes"] == 3
    validator(bundled_schema("report")).validate(data)


def test_reports_without_such_graphs_do_not_mention_them() -> None:
    log = logs.run_log(logs.PASSED)
    for report in (picture.render_text(log), markdown.render(log), html.render(log)):
        assert "right by" not in report
