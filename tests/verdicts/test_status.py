"""Everything that depends on a status, such as its color, is part of its one entry.

The tested code is in `dmlconf/verdicts/status.py`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dmlconf
from dmlconf.documents.schema import bundled_schema
from dmlconf.verdicts.status import Status

ROOT = Path(__file__).resolve().parents[2]

ENTRY = """
    SUSPECT = (
        "suspect",
        StatusTraits(
            "an imagined status",
            fails_run=True,
            judged=True,
            gravity=8,
            junit="failure",
            style="bold red",
            colors=("#123456", "#654321"),
        ),
    )

    @property
    def fails_run"""

REPORTS = """
import sys
from dataclasses import replace
from dmlconf.cases.model import Provenance
from dmlconf.reports.formats import RUN_FORMATS
from dmlconf.run_log.log import Footer, Header, RunLog
from dmlconf.verdicts.verdict import Identity, Judgement, Reason, ReasonKind, Status, Verdict
reason = Reason(ReasonKind.WRONG_VALUES, "1 of 4 elements differs")
judgement = Judgement(Status("suspect"), Provenance.STATED, reason)
verdict = Verdict(Identity("gather/a/b", "GATHER", ("a",)), judgement)
environment = {"backend": "x", "version": "1", "adapter": None, "driver": None, "details": {},
               "platform": "p", "python": "3", "numpy": "2"}
header = Header("0", "2026-01-01T00:00:00+00:00", "x", "numpy", environment, (), "0", "0", 1, {})
footer = Footer("2026-01-01T00:00:01+00:00", 1.0, True, {"suspect": 1})
log = RunLog(header, (verdict,), footer)
for name in sys.argv[1:]:
    text = RUN_FORMATS[name].text(log)
    assert "suspect" in text, name
    assert name != "junit" or 'failures="1"' in text, text
    assert name != "html" or "#123456" in text, name
"""


def test_no_two_statuses_have_the_same_gravity() -> None:
    assert len({status.traits.gravity for status in Status}) == len(Status)


def test_every_failing_status_fails_in_junit_and_no_other() -> None:
    for status in Status:
        assert (status.traits.junit in ("failure", "error")) == status.fails_run
    assert [status for status in Status if status.traits.junit is None] == [Status.PASSED]


def enums(node: object) -> list[list[object]]:
    """Return the lists of statuses in a schema."""
    found: list[list[object]] = []
    if isinstance(node, dict):
        values = node.get("enum")
        if isinstance(values, list) and "stale" in values:
            found.append([value for value in values if value is not None])
        found += [each for value in node.values() for each in enums(value)]
    elif isinstance(node, list):
        found += [each for value in node for each in enums(value)]
    return found


@pytest.mark.parametrize("name", ["run-log", "report", "comparison"])
def test_schemas_list_all_statuses(name: str) -> None:
    lists = enums(bundled_schema(name))
    assert lists
    for each in lists:
        assert each == list(Status)


def test_the_documentation_lists_all_statuses() -> None:
    text = (ROOT / "docs" / "verdicts.md").read_text("utf-8")
    for status in Status:
        answer = "yes" if status.fails_run else "no"
        meaning = status.traits.meaning
        row = rf"\| {status} \| {re.escape(meaning)} \| {answer}[^|]*\|"
        assert re.search(row, text), status


def test_one_entry_makes_a_new_status_known_to_all_reports(tmp_path: Path) -> None:
    package = tmp_path / "dmlconf"
    shutil.copytree(Path(dmlconf.__file__).parent, package, ignore=shutil.ignore_patterns("*.pyc"))
    module = package / "verdicts" / "status.py"
    text = module.read_text("utf-8")
    head = "\n    @property\n    def fails_run"
    assert text.count(head) == 1
    module.write_text(text.replace(head, ENTRY), encoding="utf-8")
    shutil.copytree(ROOT / "schemas", tmp_path / "schemas")
    names = ["html", "json", "junit", "markdown", "svg", "text"]
    done = subprocess.run(
        [sys.executable, "-c", REPORTS, *names],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
