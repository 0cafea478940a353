"""Each benchmark runs without a warning on little data, or is used by one that does.

The tested code is in `benchmarks/`.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from benchmarks import same_verdicts
from tests.ci.action import ROOT
from tests.cli.process import dmlconf

BENCHMARKS: Final = ROOT / "benchmarks"

SMALL: Final[dict[str, tuple[str, ...]]] = {
    "comparison": (),
    "fleet": ("--small",),
    "fuzzing": ("GATHER", "GEMM"),
    "history": ("--small",),
    "models": ("--small",),
    "operators": ("--small",),
    "run": ("--small",),
    "suite": ("--small",),
    "verdicts": ("--small",),
}
"""The arguments for little data of each benchmark that needs neither the lab nor a log."""

SMALL_IN_LAB: Final[dict[str, tuple[str, ...]]] = {
    "circumstances": ("cases/tile/documented.yaml", "repeated"),
    "directml": ("--small",),
    "worker_memory": ("1/2000", "256"),
}
"""The arguments for little data of each benchmark that needs the lab."""

READING_A_LOG: Final = ("reports", "same_verdicts")
"""Benchmarks whose arguments are logs of runs."""

ON_PYTHON_OF_THE_LAB: Final = ("circumstances", "isolation", "peer_directml")
"""Benchmarks that Python in the lab runs."""


def run(*command: str) -> str:
    """Return what a command prints; it must succeed without a warning."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=600,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.benchmark
@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs_on_little_data(name: str) -> None:
    assert run(sys.executable, "-m", f"benchmarks.{name}", *SMALL[name])


@pytest.mark.lab
@pytest.mark.parametrize("name", SMALL_IN_LAB)
def test_a_benchmark_of_the_lab_runs_on_little_data(name: str) -> None:
    command = [sys.executable]
    if name in ON_PYTHON_OF_THE_LAB:
        command += ["lab/lab.py", "python", "--"]
    assert run(*command, "-m", f"benchmarks.{name}", *SMALL_IN_LAB[name])


@pytest.mark.benchmark
def test_reports_and_same_verdicts_read_logs(
    tmp_path: Path,
) -> None:
    logs: list[Path] = []
    for backend in ("numpy", "faulty:negated"):
        log = tmp_path / f"{len(logs)}.jsonl"
        dmlconf(tmp_path, "run", ROOT / "cases" / "tile", "-b", backend, "--log", log)
        logs.append(log)
    assert "FLOAT16" in run(sys.executable, "-m", "benchmarks.reports", str(logs[0]))
    assert same_verdicts.main(logs[0], logs[0]) == 0
    assert same_verdicts.main(*logs) == 1


BENCHMARK_NAMES: Final = {path.stem for path in BENCHMARKS.glob("[!_]*.py")}


def benchmarks_used_by(name: str) -> set[str]:
    """Return the benchmarks that the benchmark `name` imports or runs as programs."""
    tree = ast.parse((BENCHMARKS / f"{name}.py").read_text("utf-8"))
    words = [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    words += [str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    forms = {
        form: other for other in BENCHMARK_NAMES for form in (f"benchmarks.{other}", f"{other}.py")
    }
    return {forms[word] for word in words if word in forms}


def test_every_benchmark_is_tested_or_used_by_one() -> None:
    waiting = [*SMALL, *SMALL_IN_LAB, *READING_A_LOG]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += benchmarks_used_by(name)
    assert reached == BENCHMARK_NAMES
