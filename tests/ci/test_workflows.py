"""Workflows and issue forms fit their schemas, and name only targets and commands that exist.

The tested code is in `Justfile`, `.ci/nightly`, `.github/workflows/`, `.github/ISSUE_TEMPLATE/`
and `docs/examples/`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import Any

import click
import pytest
import yaml

from dmlconf.cli.entry_point import cli
from tests.ci.action import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.yml"))

RECIPE = re.compile(r"^([a-z]+)(?: \*[A-Z]+)?:$", re.MULTILINE)
"""The first line of a target in `Justfile`."""


def steps(name: str) -> list[dict[str, Any]]:
    """Return the steps of all jobs of a workflow."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text("utf-8"))
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def targets() -> set[str]:
    """Return the targets of `just`, without the one that lists them."""
    return set(RECIPE.findall((ROOT / "Justfile").read_text("utf-8"))) - {"default"}


@pytest.mark.action
def test_workflows_and_issue_forms_fit_their_schemas() -> None:
    forms = [path for path in FORMS if path.name != "config.yml"]
    config = [path for path in FORMS if path.name == "config.yml"]
    assert len(WORKFLOWS) >= 3
    assert len(forms) == 3
    for schema, files in (
        ("vendor.github-workflows", [*WORKFLOWS, *EXAMPLES]),
        ("vendor.github-issue-forms", forms),
        ("vendor.github-issue-config", config),
    ):
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
        done = subprocess.run(
            [*command, *map(str, files)], capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stdout


def test_scripts_of_workflows_insert_only_step_outputs() -> None:
    """GitHub inserts other expressions, such as a stranger's branch name, into the script."""
    scripts = 0
    for path in [*WORKFLOWS, *EXAMPLES]:
        for job in yaml.safe_load(path.read_text("utf-8"))["jobs"].values():
            for step in job.get("steps", ()):
                scripts += "run" in step
                expressions = re.findall(r"\${{ *(.*?) *}}", step.get("run", ""))
                output = re.compile(r"steps\.[\w-]+\.outputs\.[\w-]+")
                assert [each for each in expressions if not output.fullmatch(each)] == [], path
    assert scripts > 10


def test_the_nightly_workflow_has_a_job_for_each_part() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text("utf-8"))
    parts = workflow["jobs"]["part"]["strategy"]["matrix"]["part"]
    functions = re.findall(
        r"^part_(\w+)\(\)", (ROOT / ".ci" / "nightly").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(parts) == sorted(functions) != []


def test_issue_forms_ask_for_existing_commands() -> None:
    texts = [path.read_text("utf-8") for path in FORMS]
    asked = [each for text in texts for each in re.findall(r"`dmlconf (\w+)([^`]*)`", text)]
    assert asked
    context = click.Context(cli)
    for name, arguments in asked:
        called = cli.get_command(context, name)
        assert called, name
        options = {spelling for each in called.params for spelling in each.opts}
        assert set(re.findall(r"(?<!\S)--?[a-z-]+", arguments)) <= options, name


def test_contributing_names_every_target_of_just_and_no_other() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert set(re.findall(r"\bjust ([a-z]+)", text)) == targets() != set()


def test_the_workflow_ci_uses_existing_targets() -> None:
    used = {
        name for step in steps("ci.yml") for name in re.findall(r"/just (\w+)", step.get("run", ""))
    }
    assert used
    assert used <= targets()


def test_workflows_run_the_readmes_tests_and_ci_scripts() -> None:
    commands = [step["run"] for step in steps("ci.yml") if "run" in step]
    readme = (ROOT / "README.md").read_text("utf-8")
    assert any(command in readme for command in commands if "pytest -n auto" in command)
    assert "bash .ci/run" in commands
    assert any(
        command.startswith("bash .ci/nightly")
        for step in steps("nightly.yml")
        if (command := step.get("run", ""))
    )


@pytest.mark.action
def test_just_accepts_every_target() -> None:
    just = shutil.which("just", path=str(ROOT / ".venv" / "bin")) or shutil.which("just")
    assert just is not None, "the extra dev brings it: rust-just"
    assert targets()
    for name in sorted(targets()):
        done = subprocess.run(
            [just, "--dry-run", name], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.strip()  # `just` prints here the commands that it would run.
