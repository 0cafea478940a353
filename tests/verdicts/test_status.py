"""One definition of a status states all that depends on it, such as its color in reports.

The tested code is in `dmlconf/verdicts/status.py`, `dmlconf/verdicts/schema.py`,
`schemas/run-log.schema.json`, `schemas/report.schema.json`, `schemas/comparison.schema.json` and
`docs/verdicts.md`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import dmlconf
from dmlconf.documents.schema import bundled_schema
from dmlconf.reports.formats import COMPARISON_FORMATS, RUN_FORMATS, SCOREBOARD_FORMATS
from dmlconf.verdicts.schema import with_statuses
from dmlconf.verdicts.status import Status
from tests.cli.process import environment

ROOT = Path(__file__).resolve().parents[2]

DEFINITION = """
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
"""The definition of a new status, and the property before which it is inserted."""

MAKE_LOGS = """
import sys
from dataclasses import replace
from pathlib import Path
from dmlconf.cases.model import Provenance
from dmlconf.run_log.log import Footer, Header, LogWriter, RunLog, rewrite
from dmlconf.verdicts.verdict import Execution, Identity, Judgement, Reason, ReasonKind, Status
from dmlconf.verdicts.verdict import Verdict

reason = Reason(ReasonKind.WRONG_VALUES, "1 of 4 elements differs")
suspect = Judgement(Status("suspect"), Provenance.STATED, reason, attempts=(Status("suspect"),) * 2)
passed = Judgement(Status.PASSED, Provenance.STATED)
repeated = replace(passed, circumstances={"repeated": "suspect"})
digest = "0" * 64
environment = {"backend": "x", "version": "1", "adapter": None, "driver": None, "details": {},
               "platform": "p", "python": "3", "numpy": "2"}
for number, judgement in enumerate((suspect, passed, repeated)):
    verdict = Verdict(Identity("gather/a/b", "GATHER", ("a",)), judgement, Execution(0.1))
    time = f"2026-01-0{number + 1}T00:00:0{{}}+00:00"
    header = Header("0", time.format(0), "x", "numpy", environment, (), digest, digest, 1, {})
    counts = {str(each): int(each == judgement.status) for each in Status}
    log = RunLog(header, (verdict,), Footer(time.format(1), 1.0, True, counts))
    with Path(f"{number}.jsonl").open("w", encoding="utf-8") as stream:
        rewrite(log, LogWriter(stream))
"""
"""A script that writes three logs: a case is suspect, passes, or is suspect if repeated."""

CHECK_REPORTS = """
import json
import sys
from pathlib import Path
from dmlconf.documents.schema import bundled_schema, validator
from dmlconf.verdicts.schema import with_statuses

for name, file in zip(sys.argv[1::2], sys.argv[2::2]):
    schema = with_statuses(bundled_schema(name))
    validator(schema).validate(json.loads(Path(file).read_text("utf-8")))
"""
"""A script that validates reports; its arguments are pairs of a schema and a file."""


RUN_COMMANDS = """
import json
import sys
from pathlib import Path
from tests.cli.process import dmlconf_here

shown = []
for words in json.loads(sys.argv[1]):
    done = dmlconf_here(Path.cwd(), *words)
    assert done.returncode in (0, 1), done.stderr
    shown.append(done.stdout + done.stderr)
print(json.dumps(shown))
"""
"""A script that runs dmlconf's commands, given as JSON, and prints what each shows, as JSON."""


def test_no_two_statuses_have_the_same_gravity() -> None:
    assert len({status.traits.gravity for status in Status}) == len(Status)


def test_only_failed_broken_and_stale_fail_a_run() -> None:
    failing = {status for status in Status if status.fails_run}
    assert failing == {Status.FAILED, Status.BROKEN, Status.STALE}


def test_junit_elements_of_statuses_agree_with_fails_run() -> None:
    for status in Status:
        assert (status.traits.junit in ("failure", "error")) == status.fails_run
    assert [status for status in Status if status.traits.junit is None] == [Status.PASSED]


def lists_of_statuses(node: object) -> Iterator[list[object]]:
    """Yield the lists in a schema that name several statuses."""
    if isinstance(node, dict):
        for value in node.values():
            yield from lists_of_statuses(value)
    elif isinstance(node, list):
        texts = {each for each in node if isinstance(each, str)}
        if len(texts & set(Status)) > 1:
            yield node
        for value in node:
            yield from lists_of_statuses(value)


@pytest.mark.parametrize("name", ["run-log", "report", "comparison"])
def test_schemas_list_all_statuses(name: str) -> None:
    schema = bundled_schema(name)
    lists = list(lists_of_statuses(schema))
    assert lists
    assert schema == with_statuses(schema), "the file lacks a status"
    assert all(each == list(Status) for each in lists)


def test_documentation_lists_every_status() -> None:
    text = (ROOT / "docs" / "verdicts.md").read_text("utf-8")
    for status in Status:
        answer = "yes" if status.fails_run else "no"
        meaning = status.traits.meaning
        row = rf"\| {status} \| {re.escape(meaning)} \| {answer}[^|]*\|"
        assert re.search(row, text), status


@pytest.mark.slow
def test_one_definition_makes_a_new_status_known_to_all_reports(tmp_path: Path) -> None:
    package = tmp_path / "dmlconf"
    shutil.copytree(Path(dmlconf.__file__).parent, package)  # With what Python compiled.
    module = package / "verdicts" / "status.py"
    text = module.read_text("utf-8")
    head = "\n    @property\n    def fails_run"
    assert text.count(head) == 1
    module.write_text(text.replace(head, DEFINITION), encoding="utf-8")
    shutil.copytree(ROOT / "schemas", tmp_path / "schemas")
    (tmp_path / "cases").mkdir()

    def python(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=environment(tmp_path, GITHUB_ACTIONS="true"),
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def reports(formats: Iterable[str], prefix: str) -> list[str]:
        return [word for name in formats for word in ("--report", f"{name}:{prefix}.{name}")]

    def written(prefix: str) -> dict[str, str]:
        files = sorted(tmp_path.glob(f"{prefix}.*"))
        return {file.suffix[1:]: file.read_text("utf-8") for file in files}

    python("-c", MAKE_LOGS)
    run_formats = [name for name, each in RUN_FORMATS.items() if each.takes_file]
    history = ("--database", "history.sqlite")
    commands = (
        ("report", "0.jsonl", *reports(run_formats, "run")),
        ("report", "0.jsonl", "--report", "github"),
        ("report", "0.jsonl", "1.jsonl", *reports(SCOREBOARD_FORMATS, "scores")),
        ("compare", "1.jsonl", "0.jsonl", "2.jsonl", *reports(COMPARISON_FORMATS, "changes")),
        ("history", "add", *history, "0.jsonl", "1.jsonl", "2.jsonl"),
        ("history", "case", *history, "gather/a/b"),
        ("history", "site", *history, "-o", "site"),
    )
    shown, github, _, _, _, of_case, _ = json.loads(
        python("-c", RUN_COMMANDS, json.dumps(commands))
    )
    assert "FAILED: 1 of 1 case fails the run (1 suspect)" in shown
    assert "::error" in github
    assert "suspect" in of_case
    of_run, scores, changes = written("run"), written("scores"), written("changes")
    assert set(of_run) == set(run_formats)
    assert set(scores) == set(SCOREBOARD_FORMATS)
    assert set(changes) == set(COMPARISON_FORMATS)
    for kind, texts in (("run", of_run), ("scores", scores), ("changes", changes)):
        assert [name for name, text in texts.items() if "suspect" not in text] == [], kind
    assert 'failures="1"' in of_run["junit"]
    for page in (of_run["html"], scores["html"], changes["html"]):
        assert "--suspect: #123456" in page
        assert re.search(r"td\.suspect[^}]*{ font-weight: 600; }", page)
    python("-c", CHECK_REPORTS, "report", "run.json", "comparison", "changes.json")
    assert any("suspect" in page.read_text("utf-8") for page in tmp_path.glob("site/**/*.html"))
