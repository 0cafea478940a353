"""A DirectML that is wrong in one circumstance is caught with that circumstance named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from dmlconf.backends.circumstances import Circumstance
from dmlconf.runner.log import read_log
from dmlconf.runner.verdict import Status, Verdict

pytestmark = pytest.mark.lab

HERE: Final = Path(__file__).parent
SCRIPT: Final = HERE.parents[2] / "lab" / "lab.py"

SUITE: Final = """
operator: GEMM
cases:
  - name: product
    desc:
      ATensor: {Sizes: [1, 1, 3, 5], DataType: FLOAT32, fill: {uniform: {low: 0, high: 1, seed: 3}}}
      BTensor: {Sizes: [1, 1, 5, 7], DataType: FLOAT32, fill: {uniform: {low: 0, high: 1, seed: 4}}}
      CTensor: {Sizes: [1, 1, 3, 7], DataType: FLOAT32, fill: {uniform: {low: 0, high: 1, seed: 5}}}
      OutputTensor: {Sizes: [1, 1, 3, 7], DataType: FLOAT32}
      TransA: NONE
      TransB: NONE
      Alpha: 1
      Beta: 1
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The DirectML that is wrong as DMLCONF_SABOTEUR says."""
    path = tmp_path_factory.mktemp("saboteur") / "saboteur.dll"
    source = HERE / "saboteur.c"
    compiler = ["x86_64-w64-mingw32-gcc", "-std=c17", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*compiler, "-shared", "-o", path, source, "-ldxguid"], check=True)
    return path


def verdict(directory: Path, library: Path, saboteur: str) -> Verdict:
    """Return the verdict on a case that runs under all circumstances."""
    (directory / "gemm.yaml").write_text(SUITE, encoding="utf-8")
    (directory / "saboteur.dll").write_bytes(library.read_bytes())
    arguments = ("-b", "directml", "--directml", "saboteur.dll", "--circumstances", "all")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "run", "--", "run", "gemm.yaml", *arguments,
         "--log", "run.jsonl"],
        capture_output=True, text=True, check=False, cwd=directory, timeout=300,
        env={**os.environ, "DMLCONF_SABOTEUR": saboteur},
    )  # fmt: skip
    log = read_log(directory / "run.jsonl")
    [verdict] = log.verdicts
    assert done.returncode == verdict.status.fails_run, done.stdout + done.stderr
    return verdict


@pytest.mark.parametrize("circumstance", list(Circumstance))
def test_the_circumstance_is_named_and_no_other(
    circumstance: Circumstance, library: Path, tmp_path: Path
) -> None:
    found = verdict(tmp_path, library, circumstance)
    before = list(Circumstance)[: list(Circumstance).index(circumstance)]
    results = dict.fromkeys(before, Status.PASSED) | {circumstance: Status.FAILED}
    assert (found.status, found.circumstance) == (Status.FAILED, circumstance)
    assert {**found.circumstances} == results


def test_without_a_saboteur_every_circumstance_passes(library: Path, tmp_path: Path) -> None:
    found = verdict(tmp_path, library, "nothing")
    assert found.status is Status.PASSED
    assert {**found.circumstances} == dict.fromkeys(Circumstance, Status.PASSED)
