"""A DirectML that is wrong in one circumstance fails, and the circumstance is named.

The tested code is in `dmlconf/workers/exercising.py`, `dmlconf/judging/circumstances.py` and
`dmlconf/backends/directml/circumstances/`, a module for each circumstance. The wrong DirectML is
`tests/lab/circumstances/saboteur.c`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from dmlconf.backends.circumstances import Circumstance
from dmlconf.run_log.log import read_log
from dmlconf.verdicts.verdict import Status
from tests.cases.suites import SUM
from tests.lab.running import lab

pytestmark = pytest.mark.lab

HERE: Final = Path(__file__).parent
NOTHING: Final = "nothing"

GRAPH: Final = """
graph: a graph of one operator
cases:
  - name: sum
    inputs:
      a: {Sizes: [7], DataType: FLOAT32, fill: {uniform: {low: -1, high: 1, seed: 3}}}
      b: {Sizes: [7], DataType: FLOAT32, fill: {uniform: {low: -1, high: 1, seed: 4}}}
    nodes:
      sum: {operator: ELEMENT_WISE_ADD, desc: {ATensor: a, BTensor: b, OutputTensor: {}}}
    outputs: {y: sum}
"""

FILES: Final = {"case.yaml": SUM, "graph.yaml": GRAPH}

RESULTS: Final = dict.fromkeys(Circumstance, Status.PASSED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saboteur")
    source, library = HERE / "saboteur.c", folder / "saboteur.dll"
    compiler = ["x86_64-w64-mingw32-gcc", "-std=c17", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*compiler, "-shared", "-o", library, source, "-ldxguid"], check=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module", params=FILES)
def verdicts(folder: Path, request: pytest.FixtureRequest) -> dict[str, tuple[Any, ...]]:
    """By saboteur: the status, the blamed circumstance, and the status under each circumstance."""
    program = "tests.lab.circumstances.verdicts"
    done = lab("python", "--", "-m", program, request.param, *Circumstance, NOTHING, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    result = [json.loads(line) for line in done.stdout.splitlines()]
    return {saboteur: tuple(rest) for saboteur, *rest in result}


@pytest.mark.parametrize("circumstance", Circumstance)
def test_exactly_the_wrong_circumstance_is_named(
    circumstance: Circumstance, verdicts: dict[str, tuple[Any, ...]]
) -> None:
    order = list(Circumstance)
    before = order[: order.index(circumstance)]
    results = {each: RESULTS[each] for each in before} | {circumstance: Status.FAILED}
    assert verdicts[circumstance] == (Status.FAILED, circumstance, results)


def test_real_directml_is_right_under_every_circumstance(
    verdicts: dict[str, tuple[Any, ...]],
) -> None:
    assert verdicts[NOTHING] == (Status.PASSED, None, RESULTS)


def test_a_run_names_the_circumstance(folder: Path) -> None:
    arguments = ("case.yaml", "-b", "directml", "--directml", "saboteur.dll", "--log", "run.jsonl")
    chosen = {"DMLCONF_SABOTEUR": Circumstance.OWNED}
    command = ("run", "--", "run", *arguments, "--circumstances", "all")
    done = lab(*command, cwd=folder, environment=chosen)
    [verdict] = read_log(folder / "run.jsonl").verdicts
    assert (done.returncode, verdict.circumstance) == (1, "owned")
    assert "only when owned: " in done.stdout
    assert "--circumstances owned" in done.stdout
