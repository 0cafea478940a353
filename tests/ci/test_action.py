"""The GitHub action (`action.yml`) fits its schema, runs cases, and runs no text of users as code.

The tested code is in `action.yml`, the scripts in `.github/action/`, the example workflows
`docs/examples/gate.yml`, `docs/examples/history.yml` and `docs/examples/history-comment.yml`, and
`dmlconf/reports/history/news.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from shutil import rmtree

import pytest
import yaml

from dmlconf.run_log.log import read_log
from tests.ci.action import ACTION, ROOT, Job, action, steps
from tests.cli.process import TILE
from winelab.recipe import cache_directory

EXAMPLE = ROOT / "docs" / "examples" / "gate.yml"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps are run by bash")


@pytest.mark.action
@pytest.mark.parametrize(
    ("schema", "file"),
    [("vendor.github-actions", ACTION), ("vendor.github-workflows", EXAMPLE)],
    ids=["action", "workflow"],
)
def test_the_action_and_the_example_workflow_fit_their_schemas(schema: str, file: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout


def test_no_script_contains_values_that_users_give() -> None:
    # A user's value that is inserted into a script would be run as code.
    scripts = [step["run"] for step in steps() if "run" in step]
    assert len(scripts) >= 4
    assert not [script for script in scripts if "${{" in script]


def test_steps_run_every_script_with_its_variables() -> None:
    scripts = set()
    for step in steps():
        if script := re.search(r"\.github/action/\w+\.sh", step.get("run", "")):
            scripts.add(ROOT / script[0])
            text = (ROOT / script[0]).read_text("utf-8")
            assert set(re.findall(r"\bACTION_\w+", text)) <= {"ACTION_FOLDER", *step["env"]}
    assert scripts == set((ROOT / ".github" / "action").glob("*.sh"))


@pytest.mark.parametrize("name", ["gate.yml", "history.yml"])
def test_the_example_uses_only_existing_inputs_and_outputs(name: str) -> None:
    text = EXAMPLE.with_name(name).read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"].values()
    [use] = [step for job in jobs for step in job["steps"] if "/dmlconf@" in step.get("uses", "")]
    assert set(use["with"]) <= set(action()["inputs"])
    used = set(re.findall(r"steps\.dmlconf\.outputs\.([\w-]+)", text))
    assert used
    assert used <= set(action()["outputs"])


def test_the_comment_workflow_runs_no_foreign_code() -> None:
    workflow = yaml.safe_load(EXAMPLE.with_name("history-comment.yml").read_text("utf-8"))
    history = yaml.safe_load(EXAMPLE.with_name("history.yml").read_text("utf-8"))
    assert workflow[True]["workflow_run"]["workflows"] == [
        history["name"]
    ]  # YAML reads the key `on` as True.
    [job] = workflow["jobs"].values()
    download, comment = job["steps"]
    assert download["uses"] == "actions/download-artifact@v4"
    assert "uses" not in comment
    assert "${{" not in comment["run"]
    assert history["permissions"] == {"contents": "read"}


@pytest.mark.action
def test_a_run_is_added_to_the_history(tmp_path: Path) -> None:
    job = job_with(tmp_path, TILE, paths="my cases", backend="faulty:zeros", history="h.sqlite")
    job.run()
    assert job.exit_codes["Add the run to the history"] == 0, job.printed
    assert (job.workspace / "h.sqlite").stat().st_size > 0
    site = job.workspace / job.outputs["steps.history.outputs.site"]
    assert "TILE" in (site / "index.html").read_text("utf-8")
    news = (job.workspace / job.outputs["steps.history.outputs.news"]).read_text("utf-8")
    assert "the first run, in which 1 case failed" in news
    assert news in job.summary.read_text("utf-8")


def job_with(folder: Path, case: str, **inputs: str) -> Job:
    """Return a job whose workspace has a case file in `my cases`."""
    job = Job(folder, inputs)
    job.workspace.mkdir(parents=True)
    (job.workspace / "my cases").mkdir()
    (job.workspace / "my cases" / "tile.yaml").write_text(case, encoding="utf-8")
    return job


@pytest.mark.action
def test_a_run_that_passes_leaves_its_reports(tmp_path: Path) -> None:
    job = job_with(tmp_path, TILE, paths="my cases\n", backend="numpy", options="-k\nstated")
    job.run()
    assert set(job.exit_codes.values()) == {0}, job.printed
    assert job.outputs["steps.run.outputs.exit-code"] == "0"
    report = job.workspace / job.outputs["steps.run.outputs.report"]
    assert (report / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert ElementTree.parse(report / "junit.xml").getroot().get("tests") == "1"
    assert "PASSED" in job.summary.read_text("utf-8")
    assert "::notice title=dmlconf::PASSED" in job.printed


@pytest.mark.action
def test_a_failing_run_writes_its_reports(tmp_path: Path) -> None:
    job = job_with(tmp_path, TILE, paths="my cases", backend="faulty:zeros")
    job.run()
    assert job.exit_codes["Run the cases"] == 0
    assert job.exit_codes["Pass on the exit code"] == 1
    report = job.workspace / job.outputs["steps.run.outputs.report"]
    assert "FAILED" in (report / "report.html").read_text("utf-8")
    assert "::error" in job.printed


@pytest.mark.action
def test_an_unknown_option_gives_exit_code_2(tmp_path: Path) -> None:
    job = job_with(tmp_path, TILE, paths="my cases", options="--no-such-option; exit 0")
    job.run()
    assert job.exit_codes["Pass on the exit code"] == 2
    assert "steps.run.outputs.report" not in job.outputs


@pytest.mark.lab
def test_the_lab_is_archived_and_restored(tmp_path: Path) -> None:
    first = job_with(tmp_path / "first", TILE, paths="my cases", lab="true")
    first.environment = {"DMLCONF_LAB": str(cache_directory())}
    first.run()
    assert set(first.exit_codes.values()) == {0}, first.printed
    archive = Path(first.outputs["steps.install.outputs.lab-archive"])

    again = job_with(tmp_path / "again", TILE, paths="my cases", lab="true")
    again.temporary.mkdir()
    archive.rename(again.temporary / archive.name)
    again.run()
    assert set(again.exit_codes.values()) == {0}, again.printed
    assert not list((again.temporary / "dmlconf-lab").glob("*.log"))  # Only a build leaves logs.
    header = read_log(again.workspace / "dmlconf-report" / "run.jsonl").header
    assert header.environment["version"] == "1.15.4"
    rmtree(tmp_path)  # The lab and its archive have several gigabytes.
