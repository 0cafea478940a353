"""Run the steps of `action.yml` that are scripts, as GitHub would, on this machine."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

__all__ = ["ACTION", "ROOT", "Job", "action", "steps"]

ROOT: Final = Path(__file__).parents[2]

ACTION: Final = ROOT / "action.yml"

_EXPRESSION: Final = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")


def action() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(ACTION.read_text("utf-8"))
    return data


def steps() -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = action()["runs"]["steps"]
    return result


@dataclass
class Job:
    """A job on this machine.

    Attributes:
        folder: a folder for all that the job writes.
        inputs: the inputs of the action that differ from their defaults.
        environment: further environment variables of the runner.
        outputs: the outputs of the steps that ran, by `steps.ID.outputs.NAME`.
        exit_codes: the exit codes of the steps that ran, by the step's name.
        printed: all that these steps printed.
    """

    folder: Path
    inputs: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    exit_codes: dict[str, int] = field(default_factory=dict)
    printed: str = ""

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def temporary(self) -> Path:
        return self.folder / "temp"

    @property
    def summary(self) -> Path:
        """The file to which steps write Markdown for the job's page."""
        return self.folder / "summary.md"

    def run(self) -> None:
        """Run the scripts of the steps whose conditions hold, in order, until one fails."""
        self.workspace.mkdir(exist_ok=True)
        self.temporary.mkdir(exist_ok=True)
        for step in steps():
            if "run" not in step or not self._holds(step.get("if", "")):
                continue
            if self._run(step) != 0:
                return

    def _holds(self, condition: str) -> bool:
        """Return whether comparisons joined by `&&` hold, such as `inputs.lab == 'true'`."""
        for each in filter(None, condition.split(" && ")):
            comparison = re.fullmatch(r"([\w.-]+) (==|!=) '(.*)'", each)
            assert comparison, condition
            if (self._context(comparison[1]) == comparison[3]) != (comparison[2] == "=="):
                return False
        return True

    def _run(self, step: Mapping[str, Any]) -> int:
        """Run a step's script, keep its results, and return its exit code."""
        file = self.folder / "output"
        file.write_text("", "utf-8")
        variables = {name: self._value(text) for name, text in step.get("env", {}).items()}
        kept = {k: v for k, v in os.environ.items() if not k.startswith("DMLCONF_")}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self._value(step["run"])],
            cwd=self.workspace,
            env={
                **kept,
                "GITHUB_ACTIONS": "true",
                "GITHUB_OUTPUT": str(file),
                "GITHUB_STEP_SUMMARY": str(self.summary),
                "RUNNER_TEMP": str(self.temporary),
                **self.environment,
                **variables,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=600,
        )
        self.printed += done.stdout
        self.exit_codes[step["name"]] = done.returncode
        for line in file.read_text("utf-8").splitlines():
            name, _, value = line.partition("=")
            self.outputs[f"steps.{step.get('id')}.outputs.{name}"] = value
        return done.returncode

    def _value(self, text: str) -> str:
        """Replace expressions, such as `${{ inputs.lab }}`, by their values."""
        return _EXPRESSION.sub(lambda match: self._context(match[1]), text)

    def _context(self, name: str) -> str:
        """Return the value of a name in expressions; an unknown one is empty, as at GitHub."""
        if name == "github.action_path":
            return str(ROOT)
        if name.startswith("inputs."):
            key = name.removeprefix("inputs.")
            return self.inputs.get(key, action()["inputs"][key]["default"])
        return self.outputs.get(name, "")
